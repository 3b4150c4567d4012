"""Requests that are drawn from seeds, asked of both servers with the same in them: every field of
every answer is the same, but those of one list. `python -m tests.differential` draws more."""

from collections.abc import Iterator

import pytest

from tests.differential.cases import CASES, played
from tests.differential.twins import Twins, running

SEEDS = range(1, 9)


@pytest.fixture(scope="module")
def twins() -> Iterator[Twins]:
    """Both servers."""
    with running() as both:
        yield both


@pytest.mark.parametrize("name", sorted(CASES))
def test_answers_are_the_same(twins: Twins, name: str) -> None:
    different = {seed: found for seed in SEEDS if (found := played(twins, seed, CASES[name]))}
    assert not different
