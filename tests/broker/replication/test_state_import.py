"""States as pieces: cut anywhere, joined again, or refused as a whole."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jsctl.broker.errors import ProtocolError
from jsctl.broker.replication.state_file import load
from jsctl.broker.replication.state_import import (
    BLOB_BYTES_MAX,
    PIECE_BYTES,
    Joiner,
    StateImporter,
    pieces,
)
from tests.support.sim_disk import SimDisk


@given(st.lists(st.binary(max_size=40), max_size=8), st.integers(1, 17))
def test_pieces_join_wherever_they_are_cut(blobs: list[bytes], size: int) -> None:
    stream = b"".join(pieces(blobs))
    joiner, found = Joiner(), []
    for at in range(0, len(stream), size):
        found += joiner.feed(stream[at : at + size])
    joiner.finish()
    assert found == blobs


def test_pieces_are_of_one_size_but_the_last() -> None:
    sizes = [len(piece) for piece in pieces([bytes(PIECE_BYTES), bytes(PIECE_BYTES // 2)])]
    assert sizes == [PIECE_BYTES, PIECE_BYTES // 2 + 8]


def test_a_part_that_is_too_large_or_incomplete_is_refused() -> None:
    joiner = Joiner()
    with pytest.raises(ProtocolError, match="a part of"):
        joiner.feed((BLOB_BYTES_MAX + 1).to_bytes(4, "little"))
    joiner = Joiner()
    joiner.feed(b"\x05\0\0\0ab")
    with pytest.raises(ProtocolError, match="within a part"):
        joiner.finish()


def importer(disk: SimDisk, taken: list[bytes]) -> StateImporter:
    """Of a unit whose last generation was 6."""
    return StateImporter(disk, "d", lambda: 7, taken.append)


def test_a_state_is_durable_before_it_is_used() -> None:
    disk = SimDisk(random.Random(1))
    taken: list[bytes] = []
    one = importer(disk, taken)
    for piece in pieces([b"snapshot"]):
        one.feed(piece)
    job = one.finish(9, 3, b"members")
    assert job.index == 9 and not taken
    job.run()
    disk.crash()
    found = load(disk, "d").state
    assert found is not None and (found.generation, found.index, found.term) == (7, 9, 3)
    assert found.snapshot == b"snapshot" and not taken
    one.switch()
    assert taken == [b"snapshot"]


@pytest.mark.parametrize("blobs", [[], [b"one", b"two"]])
def test_one_part_and_no_other_number(blobs: list[bytes]) -> None:
    disk = SimDisk(random.Random(1))
    one = importer(disk, [])
    for piece in pieces(blobs):
        one.feed(piece)
    with pytest.raises(ProtocolError, match=f"a state of {len(blobs)} parts"):
        one.finish(9, 3, b"")
    one.abandon()
    assert disk.paths() == []
