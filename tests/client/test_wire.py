"""What a server sends, read into messages: whole, byte by byte, and what is no protocol."""

import asyncio

import pytest
from nats.errors import ProtocolError

from jsctl.client.headers import Headers, pairs_of
from jsctl.client.wire.parser import LINE_MAX, LineParser
from jsctl.client.wire.subjects import RawSubject, bytes_of, exact, subject_of

LINES = (
    b'INFO {"max_payload": 1}\r\n+OK\r\nPING\r\nPONG\r\n'
    b"MSG a\x0bb 1 \xff\x0c 5\r\nM\r\nG \r\n"
    b"HMSG c 22 16 18\r\nNATS/1.0\r\nA: b\r\n\r\nxy\r\n".replace(b"16 18", b"18 20")
    + b"MSG \x1c\x85 1 0\r\n\r\n"
    b"-ERR 'Permissions Violation for Publish to \"\xff\"'\r\n"
)
HEARD: list[tuple[object, ...]] = [
    ("info", {"max_payload": 1}),
    ("ping",),
    ("pong",),
    (1, b"a\x0bb", b"\xff\x0c", b"M\r\nG ", None),
    (22, b"c", b"", b"xy", b"NATS/1.0\r\nA: b\r\n\r\n"),
    (1, b"\x1c\x85", b"", b"", None),
    ("err", "'Permissions Violation for Publish to \"\N{REPLACEMENT CHARACTER}\"'"),
]


class Heard:
    """Stands for the client."""

    def __init__(self) -> None:
        self.all: list[tuple[object, ...]] = []

    async def _process_ping(self) -> None:
        self.all.append(("ping",))

    async def _process_pong(self) -> None:
        self.all.append(("pong",))

    async def _process_err(self, said: str) -> None:
        self.all.append(("err", said))

    async def _process_info(self, info: dict[str, object]) -> None:
        self.all.append(("info", info))

    async def _process_msg(self, *message: object) -> None:
        self.all.append(message)


@pytest.mark.parametrize("size", [1, 7, len(LINES)])
def test_words_end_at_blanks_and_nowhere_else(size: int) -> None:
    async def run() -> list[tuple[object, ...]]:
        heard = Heard()
        parser = LineParser(heard)
        for at in range(0, len(LINES), size):
            await parser.parse(LINES[at : at + size])
        return heard.all

    assert asyncio.run(run()) == HEARD


@pytest.mark.parametrize(
    "line",
    [
        b"HELLO\r\n",
        b"MSG a 1\r\n",
        b"MSG a b c d e\r\n",
        b"MSG a x 0\r\n\r\n",
        b"HMSG a 1 0\r\n\r\n",
        b"HMSG a 1 3 2\r\n\r\n",
        b"MSG a 1 -15\r\n\r\n",
        b"MSG a 1 1_0\r\n0123456789\r\n",
        b"MSG a 1 " + b"9" * 5000 + b"\r\n",
        b"INFO \xff\r\n",
        b"INFO []\r\n",
        b"x" * LINE_MAX,
    ],
)
def test_what_is_no_protocol_ends_the_connection(line: bytes) -> None:
    with pytest.raises(ProtocolError):
        asyncio.run(LineParser(Heard()).parse(line))


def test_a_subject_is_text_and_leaves_as_it_came() -> None:
    assert subject_of(b"a.\xc3\xa4") == exact("a.ä") == "a.ä"
    assert not isinstance(subject_of(b"a.b"), RawSubject)
    found = subject_of(b"a.\xff")
    assert found == "a.\N{REPLACEMENT CHARACTER}"
    assert bytes_of(found) == b"a.\xff"
    assert exact(found) == "a.\udcff"
    assert bytes_of("a.ä") == b"a.\xc3\xa4"


@pytest.mark.parametrize(
    ("block", "values"),
    [
        (b"NATS/1.0\r\nA:  x \r\nGr\xc3\xb6\xc3\x9fe: 1\r\na b: 2\r\n: 3\r\n\r\n", None),
        (b"NATS/1.0 404 \xff\r\nA: 1\r\n\r\n", ("404", "\N{REPLACEMENT CHARACTER}")),
        (b"NATS/1.0 503\r\n\r\n", ("503", "")),
    ],
)
def test_all_headers_are_read(block: bytes, values: tuple[str, str] | None) -> None:
    found = Headers.read(block)
    assert found is not None
    assert found.block == block
    if values is None:
        assert found == {"A": "x ", "Größe": "1", "a b": "2"}
    else:
        assert (found["Status"], found.get("Description", "")) == values


@pytest.mark.parametrize("block", [b"NATS/1.0\r\n\r\n", b"NATS/1.0", b"other\r\nA: b\r\n\r\n", b""])
def test_headers_that_are_none_are_none(block: bytes) -> None:
    assert Headers.read(block) is None


def test_headers_are_passed_on_byte_by_byte() -> None:
    block = b"NATS/1.0\r\nA: \xff\x00 \r\n\xfe: \xc3\xa4\r\nA: 2\r\n\r\n"
    made = Headers.of(pairs_of(block))
    assert made is not None
    assert made.block == block
