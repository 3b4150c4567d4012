"""A turn is not for all that a leaf node may send at once."""

import json
from collections.abc import Callable

import pytest

from jsctl.broker.compression_options import FAST, OFF, Compression
from jsctl.broker.leafnode_options import LeafNodeOptions
from jsctl.broker.leafnodes.types import STEPS_MAX
from jsctl.broker.linking.compression import packed
from jsctl.broker.turn import Accepted, ConnKind, TurnOutputs
from tests.support.node_play import NodePlay, PlayClient, node_options

COUNT = 8 * STEPS_MAX
ODD = b"".join([b"LMSG  s 4\r\n%04d\r\n" % number for number in range(COUNT)])
"""With one space more than servers write: these are carried out one by one."""
WORDS = [b"%04d" % number for number in range(COUNT)]


class Leafs(NodePlay):
    """A node; it notes what it has done with each turn."""

    def __init__(self, mode: str) -> None:
        self.looks: list[int] = []
        self.look: Callable[[], int] = lambda: 0
        block = LeafNodeOptions(port=7422, compression=Compression(mode))
        super().__init__(node_options(leafnodes=block))

    def _perform(self, outputs: TurnOutputs) -> None:
        super()._perform(outputs)
        self.looks.append(self.look())

    def leaf(self, mode: str) -> int:
        """A leaf node in account A."""
        conn = 99
        self.clients[conn] = PlayClient(self, conn)
        self.clients[conn].take = lambda data: None  # type: ignore[method-assign]
        self.turn(accepted=[Accepted(conn, ConnKind.LEAF, "127.0.0.1", 1)])
        if mode != OFF:
            self.turn(chunks=[(conn, b'INFO {"compression":"%b"}\r\n' % mode.encode())])
        said = {"user": "a", "pass": "a", "name": "l", "cluster": "l"}
        self.say(mode, conn, b"CONNECT %b\r\n" % json.dumps(said).encode())
        return conn

    def say(self, mode: str, conn: int, line: bytes) -> None:
        """Said by the leaf node."""
        self.turn(chunks=[(conn, line if mode == OFF else packed(mode, line))])


@pytest.mark.parametrize("mode", [OFF, FAST])
def test_what_is_left_is_for_the_next_turns(mode: str) -> None:
    play = Leafs(mode)
    client = play.connect("a")
    client.subscribe("s")
    conn = play.leaf(mode)
    play.looks.clear()
    play.look = lambda: len(client.messages)
    play.say(mode, conn, ODD)
    steps = [now - before for before, now in zip([0, *play.looks], play.looks, strict=False)]
    assert max(steps) <= 4 * STEPS_MAX
    assert [body for _, _, body in client.messages] == WORDS
    assert conn not in play.paused
    play.say(mode, conn, b"LMSG s 4\r\nlast\r\n")
    assert client.messages[-1][2] == b"last"


def test_what_is_left_of_who_has_gone_is_carried_out() -> None:
    play = Leafs(OFF)
    client = play.connect("a")
    client.subscribe("s")
    conn = play.leaf(OFF)
    play.turn(chunks=[(conn, ODD)], closed=[(conn, "EOF")])
    assert [body for _, _, body in client.messages] == WORDS
