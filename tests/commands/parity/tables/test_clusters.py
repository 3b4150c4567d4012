"""The lines of the tables below lines/clusters, on clusters of three."""

from collections.abc import Callable, Iterator

import pytest

from tests.commands.parity.clustered import Whole, levelled, started
from tests.commands.parity.comparing import alike
from tests.commands.parity.conftest import CLUSTERED
from tests.support.kept import kept

SETTLED_S = 10
"""What replicas tell of each other comes with their heartbeats, a second apart."""


@pytest.fixture(scope="module")
def servers() -> Iterator[Callable[[str], Whole]]:
    """A cluster of each kind that is asked for."""
    yield from kept(started)


test_each_line_is_answered_alike = alike(CLUSTERED, levelled, SETTLED_S)
