"""Numbers and foreign text in cells."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from jsctl.dashboard.look.ink import Ink
from jsctl.dashboard.look.payload import FORMS, one_line, whole
from jsctl.dashboard.look.words import (
    clean,
    fitted,
    short,
    short_bytes,
    short_names,
    short_time,
)
from jsctl.dashboard.model.message import StoredMessage


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (88, "88"),
        (999, "999"),
        (1000, "1.0k"),
        (5123, "5.1k"),
        (48_200, "48.2k"),
        (999_999, "1.0M"),
        (12_413_882, "12.4M"),
        (188_000_000, "188M"),
        (7e9, "7.0G"),
        (3.4, "3.4"),
    ],
)
def test_short_numbers(value: float, text: str) -> None:
    assert short(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0B"), (512, "512B"), (1024, "1.0K"), (8.1 * 1024**3, "8.1G"), (102 * 1024**2, "102M")],
)
def test_short_sizes(value: float, text: str) -> None:
    assert short_bytes(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (410_000, "410µs"),
        (3_900_000, "3.9ms"),
        (100_000_000, "100ms"),
        (12e9, "12s"),
        (240e9, "4m"),
        (2.5 * 3600e9, "2h 30m"),
        (76 * 3600e9, "3d 4h"),
    ],
)
def test_short_times(value: float, text: str) -> None:
    assert short_time(value) == text


def test_shared_parts_of_names_are_left_out() -> None:
    assert short_names(["nats-1.east", "nats-2.east"]) == {"nats-1.east": "1", "nats-2.east": "2"}
    assert short_names(["n1", "n2"]) == {"n1": "n1", "n2": "n2"}
    assert short_names(["a.x", "a.x.b"]) == {"a.x": "x", "a.x.b": "x.b"}
    assert short_names(["only.one"]) == {"only.one": "only.one"}


NASTY = st.text(
    st.characters(codec="utf-8", exclude_categories=())
    | st.sampled_from("\x1b\x07\x9b\u202e\u200d\u2066\n\r\t[]日本語😀")
)


@given(NASTY)
def test_nothing_that_a_terminal_obeys_is_left(text: str) -> None:
    shown = clean(text)
    assert not [one for one in shown if ord(one) < 32 or 127 <= ord(one) < 160]
    turning = {chr(code) for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))}
    assert not set(shown) & turning


@given(NASTY, st.integers(0, 40))
def test_cells_are_never_wider(text: str, width: int) -> None:
    assert cell_len(fitted(clean(text), width)) <= width


@given(st.binary(max_size=300), st.sampled_from(FORMS))
def test_payloads_are_safe_in_every_form(data: bytes, form: str) -> None:
    message = StoredMessage(1, 0, "a.\x1b[2J", (("Key\x1b", "value\x07"),), data)
    shown = whole(message, form, Ink()).plain
    assert not [one for one in shown if ord(one) < 32 and one != "\n"]
    line = one_line(data, 40)
    assert not [one for one in line if ord(one) < 32]


def test_escape_codes_are_shown_as_pictures() -> None:
    assert clean("a\x1b[31mb") == "a␛[31mb"
    assert "␛[2J" in whole(StoredMessage(1, 0, "s", (), b"\x1b[2J"), "text", Ink()).plain


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b'{"id":12345678901234567890.5}', '{\n  "id": 12345678901234567890.5\n}'),
        (b'{"a": 1e999, "a": 2}', '{\n  "a": 1e999,\n  "a": 2\n}'),
        (b'[{}, [], "[,", {"b" :null}]', '[\n  {},\n  [],\n  "[,",\n  {\n    "b": null\n  }\n]'),
        (b'["gr\\u00f6\\u00dfe", "\\ud800"]', '[\n  "größe",\n  "·"\n]'),
        ("[1]".encode("utf-16"), "[\n  1\n]"),
    ],
)
def test_json_is_laid_out_as_it_is(data: bytes, text: str) -> None:
    """Nothing is rounded or left out, and nothing shown that cannot be written to a terminal."""
    shown = whole(StoredMessage(1, 0, "s", (), data), "json", Ink()).plain
    assert shown.partition("\n\n")[2] == text
    shown.encode()


def test_json_of_great_depth_is_no_longer_by_the_square_of_it() -> None:
    depth = 900
    message = StoredMessage(1, 0, "s", (), b"[" * depth + b"]" * depth)
    assert len(whole(message, "auto", Ink()).plain) < 200 * depth


def test_halves_of_characters_are_shown_as_a_dot() -> None:
    assert clean("a\ud800b\udfff") == "a·b·"
