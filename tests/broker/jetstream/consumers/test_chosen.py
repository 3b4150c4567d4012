"""Sequences that go from the front, beside a list."""

import random
from array import array

import pytest

from jsctl.broker.jetstream.consumers.chosen import Chosen
from jsctl.broker.jetstream.consumers.entries import (
    ConsumerProgress,
    apply_progress,
)
from jsctl.broker.jetstream.consumers.state import STEPS_MIN, ConsumerState
from jsctl.broker.store.sequences.shared import SharedSeqs


@pytest.mark.parametrize("seed", range(10))
def test_it_is_a_list_whose_front_goes(seed: int) -> None:
    rng = random.Random(seed)
    naive = sorted(rng.sample(range(200), rng.randrange(1, 120)))
    chosen = Chosen(naive)
    while naive:
        assert list(chosen) == naive and len(chosen) == len(naive) and bool(chosen)
        first, count = rng.randrange(len(naive)), rng.randrange(1, 9)
        assert chosen[first] == naive[first] and chosen[-1] == naive[-1]
        assert chosen[first : first + count] == naive[first : first + count]
        assert chosen[:count] == naive[:count]
        assert [n in chosen for n in range(200)] == [n in naive for n in range(200)]
        kept = chosen.copy()
        up_to = rng.choice([naive[0] - 1, naive[0], naive[min(5, len(naive) - 1)]])
        chosen.drop(up_to)
        assert list(kept) == naive, "a copy is its own"
        naive = [n for n in naive if n > up_to]
    assert not chosen and list(chosen) == [] and chosen[:3] == [] and 3 not in chosen


def test_an_array_that_others_have_too_is_never_changed() -> None:
    shared = SharedSeqs(array("Q", range(10)))
    one, other = Chosen(shared), Chosen(shared)
    one.drop(7)
    assert list(one) == [8, 9]
    assert list(other) == list(shared.seqs) == list(range(10))


@pytest.mark.parametrize(
    ("step", "size"),
    [(1, 0), (2, 1), (255, 1), (256, 2), (1 << 16, 4), (1 << 33, 8)],
)
def test_a_start_with_very_many_is_written_as_steps(step: int, size: int) -> None:
    count = STEPS_MIN
    seqs = array("Q", range(5, 5 + step * count, step))
    written = ConsumerProgress(ConsumerState(acks_needed=True))
    read = ConsumerState(acks_needed=True)
    written.start(5, seqs[-1], seqs)
    entry = written.take(1)
    assert entry is not None
    assert len(entry) == 35 + size * (count - 1)
    apply_progress(read, entry)
    assert read.facts() == written.state.facts()
    assert list(read.last_seqs) == list(seqs)


def test_a_start_with_few_is_written_as_before() -> None:
    written = ConsumerProgress(ConsumerState(acks_needed=True))
    read = ConsumerState(acks_needed=True)
    written.start(5, 100, array("Q", range(5, 5 + STEPS_MIN - 1)))
    entry = written.take(1)
    assert entry is not None and entry[5] == 1
    apply_progress(read, entry)
    assert read.facts() == written.state.facts()


def test_what_the_leader_here_has_written_is_not_made_again() -> None:
    seqs = array("Q", range(5, 5 + 3 * STEPS_MIN, 3))
    written, other = ConsumerProgress(ConsumerState(acks_needed=True)), array("Q", seqs)
    written.start(5, seqs[-1], Chosen(SharedSeqs(seqs)))
    entry = written.take(1)
    assert entry is not None
    other[-1] += 1
    for coming, same in ((seqs, True), (other, False), (seqs[1:], False)):
        read = ConsumerState(acks_needed=True)
        read.coming = Chosen(SharedSeqs(coming))
        apply_progress(read, entry)
        assert read.facts() == written.state.facts()
        assert (read.last_seqs._shared.seqs is coming) == same


@pytest.mark.parametrize("step", [1, 3, 300])
@pytest.mark.parametrize("used", [0, 5, STEPS_MIN])
@pytest.mark.parametrize("delayed", [False, True])
def test_a_state_has_the_steps_of_very_many(step: int, used: int, delayed: bool) -> None:
    state, read = ConsumerState(acks_needed=True), ConsumerState(acks_needed=True)
    count = 2 * STEPS_MIN + 1
    state.start(7, 7 + step * count, array("Q", range(7, 7 + step * count, step)))
    for place in range(used):
        state.deliver((7 + step * place,), place + 1, 1)
    if delayed and used:
        state.delay([(7, 99)])
        state.redeliver((7,), used + 1, 2)
    read.decode(state.encode())
    assert read.facts() == state.facts()
    assert len(read.last_seqs) == count - used
