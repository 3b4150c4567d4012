"""What two servers agree on, and the way in of what is compressed."""

import pytest

from jsctl.backups.s2 import BrokenStream, compressed
from jsctl.broker.compression_options import (
    ACCEPT,
    AUTO,
    BEST,
    BETTER,
    FAST,
    NOT_SUPPORTED,
    OFF,
    UNCOMPRESSED,
    Compression,
    agreed,
)
from jsctl.broker.errors import ProtocolError
from jsctl.broker.linking.compression import PORTION_BYTES, Unpacking, packed

MS = 1_000_000
DATA = [b"x", b"PING\r\n" * 30_000, bytes(range(256)) * 3000]


@pytest.mark.parametrize(
    ("own", "other", "found"),
    [
        (FAST, "", NOT_SUPPORTED),
        (NOT_SUPPORTED, FAST, NOT_SUPPORTED),
        (FAST, OFF, OFF),
        (OFF, FAST, OFF),
        (ACCEPT, ACCEPT, OFF),
        (ACCEPT, AUTO, FAST),
        (ACCEPT, BEST, BEST),
        (BETTER, ACCEPT, BETTER),
        (BETTER, BEST, BETTER),
        (AUTO, FAST, FAST),
    ],
)
def test_what_two_sides_agree_on(own: str, other: str, found: str) -> None:
    assert agreed(Compression(own), other, 20 * MS) == found


def test_a_word_that_is_not_known_is_refused() -> None:
    with pytest.raises(ProtocolError, match="gzip"):
        agreed(Compression(FAST), "gzip", 0)


@pytest.mark.parametrize(
    ("thresholds", "rtt_ms", "level"),
    [
        ((10, 50, 100), 0, UNCOMPRESSED),
        ((10, 50, 100), 10, UNCOMPRESSED),
        ((10, 50, 100), 11, FAST),
        ((10, 50, 100), 100, BETTER),
        ((10, 50, 100), 101, BEST),
        ((0, 0, 20), 0, BETTER),
        ((0, 0, 20), 21, BEST),
        ((5, 10), 11, FAST),
        ((5,), 11, UNCOMPRESSED),
        ((5, 6, 7, 8), 9, BEST),
    ],
)
def test_the_level_follows_the_round_trip(
    thresholds: tuple[int, ...], rtt_ms: int, level: str
) -> None:
    option = Compression(AUTO, tuple(one * MS for one in thresholds))
    assert option.level(rtt_ms * MS) == level


@pytest.mark.parametrize(
    ("own", "before", "after"),
    [
        (FAST, NOT_SUPPORTED, NOT_SUPPORTED),
        (FAST, FAST, FAST),
        (FAST, OFF, ""),
        (ACCEPT, FAST, ""),
        (OFF, FAST, ""),
        (BEST, FAST, BEST),
        (AUTO, BEST, UNCOMPRESSED),
    ],
)
def test_what_a_change_makes_of_a_connection(own: str, before: str, after: str) -> None:
    assert Compression(own).after(before, MS) == after


@pytest.mark.parametrize("level", [UNCOMPRESSED, FAST])
@pytest.mark.parametrize("data", DATA, ids=["one", "small", "large"])
@pytest.mark.parametrize("step", [1 << 20, 4096, 7])
def test_what_is_packed_is_unpacked(level: str, data: bytes, step: int) -> None:
    way, raw, found = Unpacking(), packed(level, data) * 2, b""
    for at in range(0, len(raw), step):
        way.feed(raw[at : at + step])
        while way.waiting:
            found += b"".join(way.portion())
    assert found == data * 2


def test_small_bytes_that_stand_for_many_are_opened_a_portion_at_a_time() -> None:
    way, one = Unpacking(), compressed(bytes(1 << 16))
    way.feed(one * 400)
    assert way.backlog_bytes == len(one) * 400
    portions = 0
    total = 0
    while way.waiting:
        size = sum(map(len, way.portion()))
        assert size <= PORTION_BYTES + (1 << 16)
        portions, total = portions + 1, total + size
    assert total == 400 << 16
    assert portions >= 25
    assert way.backlog_bytes == 0


def test_what_is_no_stream_is_an_error() -> None:
    way = Unpacking()
    way.feed(b"PING\r\n")
    with pytest.raises(BrokenStream):
        list(way.portion())
