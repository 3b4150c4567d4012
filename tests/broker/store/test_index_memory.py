"""What a message costs the index of a stream, however many there are."""

import random
import tracemalloc

import pytest

from jsctl.broker.store.subject_index import SubjectIndex

COUNT = 60_000


@pytest.mark.parametrize(("subjects", "bytes_max"), [(1, 0.5), (10, 3.5)])
def test_bytes_of_a_message(subjects: int, bytes_max: float) -> None:
    """Eight and more, before sequences of many were packed."""
    names = [b"s.%d" % number for number in range(subjects)]
    chance = random.Random(subjects)
    index = SubjectIndex()
    index.add_many(range(1, 20 * subjects + 1), names * 20)
    tracemalloc.start()
    try:
        for start in range(20 * subjects + 1, 20 * subjects + COUNT, 500):
            index.add_many(range(start, start + 500), chance.choices(names, k=500))
        size, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert size / COUNT < bytes_max
