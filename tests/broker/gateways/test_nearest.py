"""A queue group with members in other clusters is served in the nearest one that answers."""

import json

import pytest

from jsctl.broker.gateway_options import GatewayOptions, GatewayUrl, RemoteGateway
from jsctl.broker.turn import Accepted, ConnKind
from tests.support.node_play import NodePlay, PlayClient, node_options

PORTS = {"B": 7223, "C": 7224}
SOON_S = 2.5
REMOTES = tuple(RemoteGateway(name, (GatewayUrl("h", port),)) for name, port in PORTS.items())


class Cluster:
    """A server of another cluster, which has a member of the group; it hears PINGs, and answers
    them unless it stands still."""

    def __init__(self, play: NodePlay, conn: int, name: str) -> None:
        self.play = play
        self.name = name
        self.heard = 0
        self.pings = 0
        self.stands_still = False
        (dial,) = (one for one in play.dials if one.port == PORTS[name])
        self.gate = play.clients[conn] = PlayClient(play, conn)
        self.gate.take = self._take  # type: ignore[method-assign]
        made = Accepted(conn, ConnKind.GATEWAY, dial.host, dial.port, dial_token=dial.token)
        play.turn(accepted=[made])
        told = {"server_id": f"N{name}", "server_name": name, "gateway": name}
        self.gate.send(b"INFO %s\r\n" % json.dumps(told).encode())
        self.gate.send(b"RS+ A s q 1\r\n")

    def _take(self, data: bytes) -> None:
        self.heard += data.count(b"MSG A s ")
        self.pings += data.count(b"PING\r\n")

    def answer(self) -> None:
        """PONG to what was asked."""
        if self.pings and not self.stands_still:
            self.pings = 0
            self.gate.send(b"PONG\r\n")


class Play(NodePlay):
    """A server of A, connected with both."""

    def __init__(self) -> None:
        super().__init__(node_options(gateway=GatewayOptions("A", port=7222, remotes=REMOTES)))
        self.others = [Cluster(self, 300 + at, name) for at, name in enumerate(PORTS)]
        self.client = self.connect("a")

    def asked(self, seconds: float) -> list[int]:
        """What each got while the client publishes for a while."""
        before = [one.heard for one in self.others]
        for _ in range(int(seconds * 10)):
            self.client.publish("s", b"x")
            self.run(0.1)
            for one in self.others:
                one.answer()
        return [one.heard - start for one, start in zip(self.others, before, strict=True)]


@pytest.fixture
def play() -> Play:
    """B is as near as C, or nearer; all is measured."""
    made = Play()
    made.asked(SOON_S)
    return made


def test_who_stands_still_is_passed_over_until_he_answers(play: Play) -> None:
    first = play.asked(1)
    near = play.others[first.index(10)]
    far = next(one for one in play.others if one is not near)
    assert sum(first) == 10
    near.stands_still = True
    play.asked(SOON_S)
    before = far.heard
    play.asked(5)
    assert far.heard - before == 50
    near.stands_still = False
    play.asked(SOON_S)
    before = near.heard + far.heard
    assert sum(play.asked(1)) == 10
    assert near.heard + far.heard == before + 10
    assert not play.faults


def test_who_is_sent_nothing_is_not_asked_all_the_time(play: Play) -> None:
    for one in play.others:
        one.pings = 0
    for _ in range(100):
        play.run(0.1)
        for one in play.others:
            assert one.pings <= 1
    assert sum(one.pings for one in play.others) <= 2


def test_one_cluster_alone_is_not_measured() -> None:
    play = NodePlay(node_options(gateway=GatewayOptions("A", port=7222, remotes=REMOTES[:1])))
    other = Cluster(play, 300, "B")
    client = play.connect("a")
    play.run(3)
    other.answer()
    for _ in range(50):
        client.publish("s", b"x")
        play.run(0.1)
    assert other.heard == 50
    assert not other.pings
