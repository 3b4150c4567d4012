"""Requests and messages that are drawn from seeds, asked of clusters of three of both servers."""

from collections.abc import Iterator

import pytest

from tests.differential.cases import CASES, SPREAD, differing, played
from tests.differential.twins import Twins, running_clusters

SEEDS = {
    **dict.fromkeys(
        ("batches", "consumers", "operators", "others", "published", "streams"), range(1, 4)
    ),
    **dict.fromkeys(("archived", "direct", "limited", "strict"), range(1, 2)),
}
"""Of some cases; `python -m tests.differential --clusters` draws all."""
FOUND = [
    ("published", 500003),  # a number with a space behind it
    ("published", 500024),  # what is filled in does not go together with what is asked for
    ("published", 500029),
    ("strict", 7000003),  # a page of names behind their end
]
"""Cases whose answers were not the same once (case, seed)."""


@pytest.fixture(scope="module")
def clusters() -> Iterator[Twins]:
    """Three of each."""
    with running_clusters() as both:
        yield both


@pytest.mark.parametrize("name", SEEDS)
def test_answers_are_the_same(clusters: Twins, name: str) -> None:
    assert not differing(clusters, name, SEEDS[name], SPREAD)


@pytest.mark.parametrize(("name", "seed"), FOUND)
def test_what_was_found_once(clusters: Twins, name: str, seed: int) -> None:
    assert not played(clusters, seed, CASES[name], SPREAD)
