"""Seeded runs of whole groups under faults: see `chaos` for what happens, `checks` for what holds.

A failing seed is a permanent one: reproduce it with the parameters of its case.
"""

import pytest

from tests.broker.raft.chaos import Chaos
from tests.support.quick import examples


@pytest.mark.parametrize("first", range(0, 60, 10))
def test_three_voters(first: int) -> None:
    for seed in range(first, first + examples(10)):
        Chaos(seed).run()


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_five_voters(first: int) -> None:
    for seed in range(first, first + examples(10)):
        Chaos(seed, nodes=5).run()


@pytest.mark.parametrize("first", range(0, 60, 10))
def test_members_come_and_go(first: int) -> None:
    for seed in range(first, first + examples(10)):
        Chaos(seed, nodes=3, spare=2).run()


@pytest.mark.parametrize("nodes", [3, 5])
@pytest.mark.parametrize("first", range(0, 40, 20))
def test_damaged_minority(first: int, nodes: int) -> None:
    for seed in range(first, first + examples(20)):
        Chaos(seed, nodes=nodes, damage=True).run()


def test_same_seed_same_run() -> None:
    one, other = Chaos(7, nodes=5).run(), Chaos(7, nodes=5).run()

    assert one.net.checker.committed == other.net.checker.committed
    assert one.net.count == other.net.count
