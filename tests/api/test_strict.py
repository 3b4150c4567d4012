"""Checks of single values, as the real server makes them."""

from collections.abc import Callable
from dataclasses import fields

import pytest

from jsctl.api import events, strict, times
from jsctl.api.codec import decode, default_of, dumps, encode, key_of, loads, wire_of
from jsctl.api.monitoring.health import HealthzOptions
from jsctl.api.stream import RawStreamMsg, StreamConfig
from jsctl.api.strict import DecodeError, Mismatch


@pytest.mark.parametrize(
    ("check", "good", "bad"),
    [
        (strict.check_text, "x", 1),
        (strict.check_bool, True, 0),
        (strict.check_float, 1.5, True),
        (strict.check_float, 2, "2"),
        (strict.check_bytes, "eA==", 5),
    ],
)
def test_kinds(check: Callable[[object], object], good: object, bad: object) -> None:
    check(good)
    with pytest.raises(Mismatch):
        check(bad)


@pytest.mark.parametrize(
    ("wanted", "low", "high"),
    [(name, *bounds) for name, bounds in strict.INTEGER_RANGES.items()],
)
def test_integers_have_ranges(wanted: str, low: int, high: int) -> None:
    assert strict.check_integer(low, wanted) == low
    assert strict.check_integer(high, wanted) == high
    for value in (low - 1, high + 1, True, 1.0, None):
        with pytest.raises(Mismatch):
            strict.check_integer(value, wanted)


def test_words_of_kinds() -> None:
    kinds = {kind: strict.kind_of(kind) for kind in (True, "x", 1.5, None)}
    assert kinds == {True: "bool", "x": "string", 1.5: "number", None: "null"}
    assert (strict.kind_of([]), strict.kind_of({})) == ("array", "object")


def test_base64_and_times() -> None:
    assert strict.check_bytes("eA==") == b"x"
    with pytest.raises(DecodeError, match="illegal base64"):
        strict.check_bytes("*")
    with pytest.raises(Mismatch):
        strict.check_time(5)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("2024-02-29T12:00:00.5+02:00", ""),
        ("", ' as "2006-01-02T15:04:05Z07:00": cannot parse "" as "2006"'),
        ("2020-01-01", ' as "2006-01-02T15:04:05Z07:00": cannot parse "" as "T"'),
        ("2020-13-01T00:00:00Z", ": month out of range"),
        ("2023-02-29T00:00:00Z", ": day out of range"),
        ("2023-04-31T00:00:00Z", ": day out of range"),
        ("2020-01-01T00:00:00Zx", ': extra text: "x"'),
    ],
)
def test_times_that_are_none(text: str, reason: str) -> None:
    assert times.time_error(text) == reason


@pytest.mark.parametrize(
    ("payload", "text"),
    [
        (b"{} x", "invalid character 'x' after top-level value at offset 4"),
        (b'{"a" 1}', "invalid character '1' after object key at offset 6"),
        (b'{"a', "unexpected EOF"),
        (b"\xff", r"invalid character '\xff' looking for beginning of value at offset 1"),
    ],
)
def test_broken_json(payload: bytes, text: str) -> None:
    with pytest.raises(DecodeError) as refused:
        loads(StreamConfig, payload)
    assert str(refused.value) == text


@pytest.mark.parametrize(
    ("payload", "text"),
    [
        (b"[1 2]", "invalid character '2' after array element at offset 4"),
        (b'{"a":tru}', "invalid character '}' in literal true (expecting 'e') at offset 9"),
        (b'{"a":"\\x"}', r"invalid escape sequence `\x` in string at offset 8"),
        (b'"\\u12"', r'invalid escape sequence `\u12"` in string at offset 6'),
        (b'{"a":"\n"}', r"invalid character '\n' in string at offset 7"),
        (b"-x", "invalid character 'x' in numeric literal at offset 2"),
        (b'{"a":1e}', "invalid character '}' in numeric literal at offset 8"),
        (
            b"{'a':1}",
            r"invalid character '\'' looking for beginning of object key string at offset 2",
        ),
        (
            b"\xef\xbb\xbf{}",
            r"invalid character '\ufeff' looking for beginning of value at offset 3",
        ),
        (b"1.", "unexpected EOF"),
        (b'{"name":"x"}x', "invalid character 'x' looking for beginning of value at offset 13"),
        (b'{"nome":"x"} x', 'json: unknown field "nome"'),
        (b'{"first_seq":1e5}', "number 1e5 into"),
    ],
)
def test_broken_requests(payload: bytes, text: str) -> None:
    with pytest.raises(DecodeError) as refused:
        loads(StreamConfig, payload, strict=True)
    assert text in str(refused.value)


def test_requests_of_several_documents() -> None:
    assert loads(StreamConfig, b'{"name":"a"} {"name":"b"}null', strict=True).name == "b"
    assert loads(StreamConfig, b"null", strict=True) == StreamConfig()


def test_containers_of_another_kind() -> None:
    with pytest.raises(DecodeError, match=r"metadata of type map\[string\]string"):
        loads(StreamConfig, b'{"metadata":[]}', strict=True)


def test_bytes_travel_as_base64() -> None:
    message = RawStreamMsg(subject="s", seq=1, data=b"x", time="2026-01-01T00:00:00Z")
    assert b'"data":"eA=="' in dumps(message)
    assert loads(RawStreamMsg, dumps(message)) == message
    assert loads(RawStreamMsg, dumps(message), strict=True) == message


def test_names_that_are_no_identifiers() -> None:
    assert encode(HealthzOptions(js_enabled_only=True)) == {"js-enabled-only": True}
    assert key_of(HealthzOptions, "js_enabled_only") == "js-enabled-only"


def test_declarations_can_be_read_back() -> None:
    by_name = {one.name: one for one in fields(StreamConfig)}
    about = wire_of(by_name["max_age"]).about
    assert about is not None
    assert (about.flag, about.unit, about.editable) == ("max-age", "duration", True)
    assert default_of(by_name["metadata"]) == {}
    assert default_of(by_name["subjects"]) == ()


def test_events_start_with_their_type() -> None:
    head = events.TypedEvent(type="t", id="i", timestamp="2026-01-01T00:00:00Z")
    made = events.StreamActionAdvisory(head=head, stream="S", action="create")
    assert dumps(made) == (
        b'{"type":"t","id":"i","timestamp":"2026-01-01T00:00:00Z","stream":"S","action":"create"}'
    )
    assert decode(events.StreamActionAdvisory, encode(made)) == made
