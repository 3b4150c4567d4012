"""Sequences that go from the front, beside a list."""

import random

import pytest

from jsctl.broker.jetstream.consumers.chosen import Chosen


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
