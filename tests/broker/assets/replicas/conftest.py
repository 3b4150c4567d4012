"""A server with a stream that others take from."""

import pytest

from tests.support.node_play import NodePlay, PlayClient
from tests.support.stream_requests import stream


@pytest.fixture
def play() -> NodePlay:
    """A server with an origin O."""
    made = NodePlay()
    made.connect("a").ask("$JS.API.STREAM.CREATE.O", **stream("O", 1))
    return made


@pytest.fixture
def client(play: NodePlay) -> PlayClient:
    """Somebody who asks."""
    return play.connect("a")
