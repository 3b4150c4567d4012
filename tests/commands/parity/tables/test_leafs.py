"""The lines of the tables below lines/leafs, on a hub and its leaf nodes."""

from collections.abc import Callable, Iterator

import pytest

from jsctl.testing import Broker
from tests.commands.parity.comparing import alike
from tests.commands.parity.conftest import LEAFS
from tests.commands.parity.leafs import Servers, levelled, started
from tests.support.kept import kept

TOLD_S = 5
"""What one server is told of interest at another one comes a moment later."""


@pytest.fixture(scope="module")
def linked_servers() -> Iterator[Callable[[str], Servers]]:
    """A hub and leaf nodes of each kind that is asked for."""
    yield from kept(started)


@pytest.fixture
def servers(linked_servers: Callable[[str], Servers], story: str) -> Callable[[str], Broker]:
    """Those where the clients of a story connect."""
    place = story.partition("-")[0]
    return lambda kind: linked_servers(kind)[place]


test_each_line_is_answered_alike = alike(LEAFS, levelled, TOLD_S)
