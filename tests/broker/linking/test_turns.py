"""A turn is not for all that another server may send at once, nor for all who listen to that."""

import json
from collections.abc import Callable
from functools import partial

import pytest

from jsctl.broker.compression_options import FAST, OFF, Compression
from jsctl.broker.gateway_options import GatewayOptions
from jsctl.broker.interest.outbound import TARGETS_SHIFT
from jsctl.broker.leafnode_options import LeafNodeOptions
from jsctl.broker.linking.compression import packed
from jsctl.broker.linking.lane import UNITS
from jsctl.broker.options import ClusterOptions, JetStreamOptions
from jsctl.broker.turn import Accepted, ConnKind, TurnOutputs
from tests.support.node_play import NodePlay, PlayClient, node_options

CONN = 301
ROUNDS = 2
"""A connection is read, and its rest looked at, once each in the turn in which its input comes."""
MODES = {
    "route": (ConnKind.ROUTE, OFF),
    "packed route": (ConnKind.ROUTE, FAST),
    "gateway": (ConnKind.GATEWAY, OFF),
    "leaf node": (ConnKind.LEAF, OFF),
    "packed leaf node": (ConnKind.LEAF, FAST),
}
INFO: dict[ConnKind, dict[str, object]] = {
    ConnKind.ROUTE: {"server_id": "NX", "server_name": "x", "cluster": "C", "host": "h", "port": 1},
    ConnKind.GATEWAY: {"server_id": "NX", "server_name": "x", "gateway": "B"},
    ConnKind.LEAF: {},
}
CONNECT: dict[ConnKind, dict[str, object]] = {
    ConnKind.GATEWAY: {"name": "NX", "gateway": "B"},
    ConnKind.LEAF: {"user": "a", "pass": "a", "name": "l", "cluster": "l"},
}


class Peer(NodePlay):
    """A node, and a server that is connected with it; it notes how far each turn has come."""

    def __init__(self, kind: ConnKind, mode: str) -> None:
        self.looks: list[int] = []
        self.look: Callable[[], int] = lambda: 0
        found = Compression(mode)
        options = node_options(
            jetstream=JetStreamOptions(),
            cluster=ClusterOptions(name="C", port=6222, compression=found),
            gateway=GatewayOptions(name="A" if kind is ConnKind.GATEWAY else "", port=7222),
            leafnodes=LeafNodeOptions(port=7422, compression=found),
        )
        super().__init__(options)
        self.say = partial(self._say, OFF)
        self.clients[CONN] = PlayClient(self, CONN)
        self.clients[CONN].take = lambda data: None  # type: ignore[method-assign]
        self.turn(accepted=[Accepted(CONN, kind, "127.0.0.1", 5)])
        told = INFO[kind]
        if mode != OFF:
            self.say(b"INFO %b\r\n" % json.dumps({**told, "compression": mode}).encode())
            self.say = partial(self._say, mode)
        if kind in CONNECT:
            self.say(b"CONNECT %b\r\n" % json.dumps(CONNECT[kind]).encode())
        if told:
            self.say(b"INFO %b\r\n" % json.dumps(told).encode())

    def _say(self, mode: str, line: bytes) -> None:
        self.turn(chunks=[(CONN, line if mode == OFF else packed(mode, line))])

    def _perform(self, outputs: TurnOutputs) -> None:
        super()._perform(outputs)
        self.looks.append(self.look())


def words(kind: ConnKind) -> bytes:
    """What a message to account A begins with."""
    return b"LMSG " if kind is ConnKind.LEAF else b"RMSG A "


def steps(play: Peer, said: bytes) -> list[int]:
    """How much was delivered in each turn that something takes."""
    play.looks.clear()
    play.say(said)
    return [now - before for before, now in zip([0, *play.looks], play.looks, strict=False)]


@pytest.mark.parametrize("listeners", ["all", "some messages"])
@pytest.mark.parametrize("name", MODES)
def test_who_has_many_listeners_gets_a_part_of_each_turn(name: str, listeners: str) -> None:
    """They are served by the loop, or by the steps as subscriptions have a maximum."""
    kind, mode = MODES[name]
    play = Peer(kind, mode)
    client = play.connect("a")
    many, count = 512, 600
    for sid in range(many):
        client.send(b"SUB s %d\r\n" % sid)
        if listeners == "some messages":
            client.send(b"UNSUB %d 99999999\r\n" % sid)
    seen = 0

    def taken(data: bytes) -> None:
        nonlocal seen
        seen += data.count(b"MSG s ")

    client.take = taken  # type: ignore[method-assign]
    play.look = lambda: seen
    found = steps(play, (words(kind) + b"s 0\r\n\r\n") * count)
    assert sum(found) == many * count
    assert max(found) <= ROUNDS * ((UNITS << TARGETS_SHIFT) + 2 * many)
    assert CONN not in play.paused


@pytest.mark.parametrize("name", MODES)
def test_what_is_left_comes_in_its_order(name: str) -> None:
    kind, mode = MODES[name]
    play = Peer(kind, mode)
    client = play.connect("a")
    client.subscribe("s")
    play.look = lambda: len(client.messages)
    bodies = [b"%05d" % number for number in range(8 * UNITS)]
    odd = [words(kind) + b" s 5\r\n%b\r\n" % body for body in bodies]
    assert max(steps(play, b"".join(odd))) <= ROUNDS * UNITS
    play.say(words(kind) + b"s 4\r\nlast\r\n")
    assert [body for _, _, body in client.messages] == [*bodies, b"last"]
    assert CONN not in play.paused


@pytest.mark.parametrize("name", ["route", "gateway", "leaf node"])
def test_what_is_left_of_who_has_gone_is_carried_out(name: str) -> None:
    kind, mode = MODES[name]
    play = Peer(kind, mode)
    client = play.connect("a")
    client.subscribe("s")
    bodies = [b"%05d" % number for number in range(8 * UNITS)]
    odd = b"".join([words(kind) + b" s 5\r\n%b\r\n" % body for body in bodies])
    play.turn(chunks=[(CONN, odd)], closed=[(CONN, "EOF")])
    assert [body for _, _, body in client.messages] == bodies
    assert not play.faults
