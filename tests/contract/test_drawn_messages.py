"""What happens to messages, drawn from seeds and asked of both servers: publishes and batches,
copies, deliveries and acknowledgements. Apart from the requests, as most of it is waiting."""

from collections.abc import Iterator

import pytest

from tests.differential.cases import ABOUT_MESSAGES, CASES, differing, played
from tests.differential.twins import Twins, running

SEEDS = range(1, 9)
FEW = range(1, 4)
QUICK = ("batches", "published", "texts")
"""Cases in which nobody is silent for a while to show that this was all."""
FOUND = [
    ("archived", 25),  # an empty time to live
    ("archived", 48),  # a time to live that is shorter than that of markers
    ("published", 600005),  # a stream that lets go of what nobody wants from now on
    ("pushed", 500031),  # an acknowledgement of before a reset
    ("pushed", 800011),  # a consumer of subjects that the stream does not have
]
"""Cases whose answers were not the same once (case, seed)."""


@pytest.fixture(scope="module")
def twins() -> Iterator[Twins]:
    """Both servers."""
    with running() as both:
        yield both


@pytest.mark.parametrize("name", ABOUT_MESSAGES)
def test_answers_are_the_same(twins: Twins, name: str) -> None:
    assert not differing(twins, name, SEEDS if name in QUICK else FEW)


@pytest.mark.parametrize(("name", "seed"), FOUND)
def test_what_was_found_once(twins: Twins, name: str, seed: int) -> None:
    assert not played(twins, seed, CASES[name])
