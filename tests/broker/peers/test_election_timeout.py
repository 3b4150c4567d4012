"""What lateness does to election timeouts, and for how long."""

from hypothesis import given
from hypothesis import strategies as st

from jsctl.broker.peers.election_timeout import WINDOW_NS, WINDOWS, ElectionTimeout

MS = 1_000_000
BASE = 300 * MS


def test_an_idle_machine_keeps_the_base() -> None:
    one = ElectionTimeout(BASE)
    for gap in (100 * MS, 110 * MS, 149 * MS):
        one.heard(gap)
    assert one.factor(1) == 1


def test_lateness_raises_it_by_steps_and_is_forgotten() -> None:
    one = ElectionTimeout(BASE)
    one.factor(0)
    one.heard(200 * MS)
    assert one.factor(1) == 2
    one.heard(550 * MS)
    assert one.factor(2) == 4
    for window in range(1, WINDOWS):
        assert one.factor(window * WINDOW_NS) == 4
    assert one.factor(WINDOWS * WINDOW_NS) == 1


@given(st.lists(st.tuples(st.integers(0, 10**10), st.integers(0, 10**9))))
def test_it_is_always_one_of_the_steps(events: list[tuple[int, int]]) -> None:
    one, now = ElectionTimeout(BASE), 0
    for gap, wait in events:
        one.heard(gap)
        now += wait
        factor = one.factor(now)
        assert factor in (1, 2, 4)
        assert factor == 4 or 2 * gap <= factor * BASE


def test_a_long_base_is_not_raised() -> None:
    one = ElectionTimeout(800 * MS)
    one.heard(900 * MS)
    assert one.factor(1) == 1
