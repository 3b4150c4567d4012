"""Foreign JSON: what is refused at the border, and that nothing but DecodeError comes out."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jsctl.api import jsontext
from jsctl.api.jsontext import DEPTH_MAX, parse, parse_object
from jsctl.api.strict import DecodeError

NESTED = DEPTH_MAX + 1


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (b'{"a":1,"a":2}', {"a": 2}),
        (b'"\\ud83d\\ude00"', "\U0001f600"),
        (b'"\\\\ud800"', "\\ud800"),
        (b"1e5", 1e5),
        (b"[" * DEPTH_MAX + b"]" * DEPTH_MAX, None),
        (b'["' + b"[" * 5000 + b'"]', ["[" * 5000]),
        (b'["\\"' + b"[" * 5000 + b'\\\\"]', ['"' + "[" * 5000 + "\\"]),
        (b"[" + b"[]," * 5000 + b"[]]", [[]] * 5001),
    ],
    ids=["twice", "pair", "escaped", "float", "deep", "in text", "behind a quote", "wide"],
)
def test_what_is_a_document(text: bytes, wanted: object) -> None:
    found = parse(text)
    assert wanted is None or found == wanted


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b'"\\ud800"', "invalid surrogate pair in string literal"),
        (b'{"\\udfff":1}', "invalid surrogate pair in string literal"),
        (b'"\\uD83D\\u0041"', "invalid surrogate pair in string literal"),
        ('"\ud800"', "invalid UTF-8 at offset 2"),
        (b'"\xed\xa0\x80"', "invalid UTF-8 at offset 2"),
        (b'"\xff"', "invalid UTF-8 at offset 2"),
        (b"0\x80", r"invalid character '\x80' after top-level value at offset 2"),
        (b"\x89" + b"[" * NESTED, "exceeded max depth"),
        (b'"\\\xff"', "invalid escape sequence"),
        (
            '{"a":1}'.encode("utf-16-le"),
            r"invalid character '\x00' looking for beginning of object",
        ),
        (b"[" * NESTED + b"]" * NESTED, "exceeded max depth"),
        (b'{"a":' * 100_000, "exceeded max depth"),
        (b"[" * 1_000_000, "exceeded max depth"),
        (b'{"a":NaN}', "invalid character 'N' looking for beginning of value at offset 6"),
        (b'["NaN",Infinity]', "invalid character 'I' looking for beginning of value at offset 8"),
        (b"-Infinity", "invalid character 'I' in numeric literal at offset 2"),
        (b"1e999", "json: cannot unmarshal number 1e999 into Go value of type float64"),
        (b"9" * 5000, "json: cannot unmarshal number: value out of range"),
        (b"", "unexpected EOF"),
    ],
)
def test_what_is_refused(text: bytes | str, words: str) -> None:
    with pytest.raises(DecodeError) as refused:
        parse(text)
    assert str(refused.value).startswith(words)


def test_a_text_that_is_too_long() -> None:
    with pytest.raises(DecodeError, match="exceeds the maximum of 10"):
        parse(b'"0123456789"', bytes_max=10)


@pytest.mark.parametrize("text", [b"null", b"[]", b"1", b'"{}"'])
def test_what_is_no_object(text: bytes) -> None:
    with pytest.raises(DecodeError, match="not an object"):
        parse_object(text)


def is_document_or_refused(text: bytes | str) -> None:
    """What is read can be written down again."""
    try:
        found = parse(text)
    except DecodeError:
        return
    json.dumps(found, ensure_ascii=False, allow_nan=False).encode()


@given(st.binary(max_size=200) | st.text(max_size=200))
def test_whatever_comes_is_a_document_or_an_error(text: bytes | str) -> None:
    is_document_or_refused(text)


_PIECES = ["[", "{", "]", "}", '"', "\\", "\\ud800", ",", ":", "1", "NaN", "-Infinity", "é"]


@given(st.lists(st.sampled_from(_PIECES), max_size=60))
def test_pieces_of_json_in_any_order(pieces: list[str]) -> None:
    is_document_or_refused("".join(pieces))


@pytest.mark.parametrize("value", ['{"k%d":1}', '[{"k%d":1}]', '{"b":{"k%d":1}}'])
def test_a_name_that_is_given_often_costs_what_its_length_is(value: str) -> None:
    """Counted, as what was there before was copied each time."""
    copied = 0

    class Copied(jsontext._Merged):
        def __init__(self, old: dict[str, object]) -> None:
            nonlocal copied
            copied += len(old)
            super().__init__(old)

    text = ",".join(f'"a":{value % number}' for number in range(1000))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jsontext, "_Merged", Copied)
        document = jsontext.parse_exactly(f"{{{text}}}")
    assert str(document).count("'k") == 1000
    assert copied < 10
