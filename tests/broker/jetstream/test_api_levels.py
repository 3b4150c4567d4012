"""Levels of the API that a request may need."""

import pytest

from jsctl.broker.jetstream.api_levels import exceeded, level_exceeded
from jsctl.broker.options import COMPATIBLE_API_LEVEL
from jsctl.broker.protocol import headers as blocks

LAST = b"%d" % COMPATIBLE_API_LEVEL
NEXT = b"%d" % (COMPATIBLE_API_LEVEL + 1)


@pytest.mark.parametrize(
    "level", [None, b"", b"0", b"-1", b"+1", LAST, b"0" * 10_000 + LAST, b"-%d" % (1 << 63)]
)
def test_levels_that_there_are(level: bytes | None) -> None:
    assert not exceeded(level)


@pytest.mark.parametrize(
    "level",
    [NEXT, b"x", b"1.5", b" 1", b"1_0", b"9" * 10_000, b"-%d" % ((1 << 63) + 1), b"+", b"\xb2"],
)
def test_levels_that_there_are_not(level: bytes) -> None:
    assert exceeded(level)


def test_a_block_of_headers() -> None:
    told = [blocks.build([(b"Nats-Required-Api-Level", level)]) for level in (LAST, NEXT)]
    assert [level_exceeded(block) for block in told] == [False, True]
    assert not level_exceeded(b"")
