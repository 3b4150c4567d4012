"""Pages of names, against all of them sorted."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jsctl.broker.subject import paging
from jsctl.broker.subject.paging import page_of
from tests.support.quick import examples

ORDERS: dict[str, Callable[[int, int], int]] = {
    "ascending": lambda number, total: number,
    "descending": lambda number, total: -number,
    "scattered": lambda number, total: number * 7919 % 20011,
    "alike": lambda number, total: number % 3,
    "first the last": lambda number, total: number if number % 8 else total + number,
}


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("SAMPLE", 8), ("MARGIN", 1), ("SORTED_MAX", 16)):
        monkeypatch.setattr(paging, name, value)


@settings(max_examples=examples(100))
@given(
    st.sampled_from(sorted(ORDERS)), st.integers(0, 300), st.integers(0, 310), st.integers(1, 40)
)
def test_a_page_is_what_it_is_of_all(order: str, total: int, offset: int, count: int) -> None:
    names = [b"%06d" % (ORDERS[order](number, total) + 100_000) for number in range(total)]
    assert page_of(names, offset, count) == sorted(names)[offset : offset + count]


def test_most_names_are_not_sorted(monkeypatch: pytest.MonkeyPatch) -> None:
    lengths: list[int] = []

    def counted(some: list[bytes]) -> list[bytes]:
        lengths.append(len(some))
        return sorted(some)

    monkeypatch.setattr(paging, "sorted", counted, raising=False)
    monkeypatch.setattr(paging, "SAMPLE", 128)
    monkeypatch.setattr(paging, "MARGIN", 16)
    names = [b"%06d" % (number * 7919 % 20011) for number in range(20011)]
    for offset in (0, 5000, 9990):
        page_of(names, offset, 100)
    assert max(lengths) < len(names) / 2
