"""Bytes in pieces."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from jsctl.broker.pieces import LARGE_BYTES, gathered, total

SIZES = st.sampled_from([0, 1, 30, LARGE_BYTES - 1, LARGE_BYTES, LARGE_BYTES + 1, 3 * LARGE_BYTES])


@given(st.lists(SIZES, max_size=12))
def test_pieces_are_the_same_bytes(sizes: list[int]) -> None:
    parts = [bytes([number]) * size for number, size in enumerate(sizes)]
    pieces = gathered(parts)
    assert b"".join(pieces) == b"".join(parts)
    assert total(pieces) == sum(sizes)


@given(st.lists(SIZES, max_size=12))
def test_large_parts_are_not_copied_and_small_neighbours_are_one(sizes: list[int]) -> None:
    parts = [bytes([number]) * size for number, size in enumerate(sizes)]
    pieces = gathered(parts)
    large = [part for part in parts if len(part) >= LARGE_BYTES]
    kept = {id(piece) for piece in pieces}
    assert all(id(part) in kept for part in large)
    own = {id(part) for part in large}
    joined = [id(piece) not in own for piece in pieces]
    assert not any(one and other for one, other in pairwise(joined))


def test_there_is_always_a_piece() -> None:
    assert gathered([]) == [b""]
    view = memoryview(b"x" * LARGE_BYTES)
    assert gathered([b"a", view, b"b", b"c"]) == [b"a", view, b"bc"]
