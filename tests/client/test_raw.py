"""Frames out of bytes: whole, byte by byte, and counted without being looked at."""

import asyncio

import pytest

from jsctl.client.raw import Counted, Frame, RawConnection, header_block
from jsctl.client.wire.frames import frame_of
from jsctl.errors import JsctlError, NotAllowed

MESSAGES = (
    b"MSG a 1 5\r\nhello\r\n"
    b"PING\r\n"
    b"MSG a.b 22 in.box 2\r\nMS\r\n"
    b"+OK\r\n"
    b"HMSG c 1 16 18\r\nNATS/1.0\r\nA: b\r\n\r\nxy\r\n".replace(b"16 18", b"18 20")
    + b"HMSG d 1 _R.1 16 16\r\nNATS/1.0 503\r\n\r\n\r\n"
    b"MSG a 1 0\r\n\r\n"
)
FRAMES = [
    Frame(b"a", b"", b"", b"hello"),
    Frame(b"a.b", b"in.box", b"", b"MS"),
    Frame(b"c", b"", b"NATS/1.0\r\nA: b\r\n\r\n", b"xy"),
    Frame(b"d", b"_R.1", b"NATS/1.0 503\r\n\r\n", b""),
    Frame(b"a", b"", b"", b""),
]


class Written(asyncio.Transport):
    """Remembers what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.data = b""

    def is_closing(self) -> bool:
        return True

    def close(self) -> None:
        """Nothing is open."""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.data += bytes(data)


def connection() -> tuple[RawConnection, Written]:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    protocol, transport = asyncio.StreamReaderProtocol(reader), Written()
    return RawConnection(reader, asyncio.StreamWriter(transport, protocol, reader, loop)), transport


@pytest.mark.parametrize("step", [1, 2, 7, len(MESSAGES)])
async def test_frames_in_any_pieces(step: int) -> None:
    raw, transport = connection()
    pieces = [MESSAGES[at : at + step] for at in range(0, len(MESSAGES), step)]
    found = [frame for piece in pieces for frame in raw.parse(piece)]
    assert found == FRAMES
    assert found[3].status == b"503"
    assert not found[2].status
    assert transport.data == b"PONG\r\n"


@pytest.mark.parametrize("step", [1, 3, 64, len(MESSAGES) * 50])
async def test_counting_sees_the_same(step: int) -> None:
    raw, transport = connection()
    alike = b"MSG a 1 6\r\nPING\r\n\r\n" * 20  # counted by their first line alone
    data, counter, rest = MESSAGES * 50 + alike, Counted(), b""
    for at in range(0, len(data), step):
        rest = counter.add(rest + data[at : at + step], raw)
    assert (counter.messages, counter.bytes, rest) == (270, 50 * 9 + 120, b"")
    assert transport.data == b"PONG\r\n" * 50


async def test_what_a_server_complains_of() -> None:
    raw, _ = connection()
    with pytest.raises(NotAllowed, match=r"ermissions .iolation"):
        raw.parse(b"-ERR 'Permissions Violation for Publish to \"x\"'\r\n")
    with pytest.raises(JsctlError, match=r"nats: maximum payload exceeded"):
        raw.parse(b"-ERR 'Maximum Payload Violation'\r\n")
    with pytest.raises(JsctlError, match="line without an end"):
        raw.parse(b"x" * 70_000)


def test_publishes() -> None:
    assert frame_of(b"a", b"hi") == b"PUB a 2\r\nhi\r\n"
    assert frame_of(b"a", b"hi", b"r") == b"PUB a r 2\r\nhi\r\n"
    header = header_block({"K": "v"})
    assert (
        frame_of(b"a", b"hi", b"r", header) == b"HPUB a r 18 20\r\nNATS/1.0\r\nK: v\r\n\r\nhi\r\n"
    )
    assert header_block({}) == b""
