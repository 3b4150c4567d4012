"""A server of cluster A loses its connection to another one: when it dials again, and where."""

import json
from dataclasses import replace

import pytest

from jsctl.broker.gateway_options import GatewayOptions, GatewayUrl, RemoteGateway
from jsctl.broker.turn import Accepted, ConnKind, Dial
from tests.support.node_play import NodePlay, PlayClient, node_options

BLOCK = GatewayOptions(name="A", port=7222)
KNOWN = RemoteGateway("B", (GatewayUrl("10.0.0.9", 7222),))
IN = 201


class Play(NodePlay):
    """That server, and what comes of its dials."""

    _conn = 300

    def dialed(self) -> list[Dial]:
        """What was dialed since the last look."""
        found, self.dials = self.dials, []
        return found

    def opened(self, dial: Dial, *urls: str) -> int:
        """A server of B answers a dial, and says where its cluster is reached."""
        self._conn += 1
        gate = self.clients[self._conn] = PlayClient(self, self._conn)
        made = Accepted(gate.conn, ConnKind.GATEWAY, dial.host, dial.port, dial_token=dial.token)
        self.turn(accepted=[made])
        gate.send(b"INFO %s\r\n" % info(*urls))
        return gate.conn

    def lost(self, conn: int) -> None:
        """The other side has closed a connection."""
        self.turn(closed=[(conn, "EOF")])


def info(*urls: str) -> bytes:
    """What a server of B says of itself."""
    fields = {"server_id": "NB", "server_name": "nb", "gateway": "B", "gateway_urls": urls}
    return json.dumps(fields).encode()


@pytest.fixture
def play() -> Play:
    """B is configured."""
    return Play(node_options(gateway=replace(BLOCK, remotes=(KNOWN,))))


def test_addresses_of_no_use_leave_those_that_are_known() -> None:
    """A cluster that others told of has no other ones."""
    play = Play(node_options(gateway=BLOCK))
    gate = play.clients[IN] = PlayClient(play, IN)
    play.turn(accepted=[Accepted(IN, ConnKind.GATEWAY, "127.0.0.1", 40000)])
    said = b'CONNECT {"name":"NB","gateway":"B"}\r\nINFO %s\r\n' % info("10.0.0.9:7222")
    gate.send(said)
    (dial,) = play.dialed()
    play.lost(play.opened(dial, "nowhere", "10.0.0.9:0"))
    play.run(1.5)
    assert [(one.host, one.port) for one in play.dialed()] == [("10.0.0.9", 7222)]


def test_who_is_turned_away_again_and_again_dials_once_a_second(play: Play) -> None:
    """As with a wrong password: the other side says so only behind its INFO."""
    count = 0
    for _ in range(100):
        for dial in play.dialed():
            count += 1
            play.lost(play.opened(dial))
        play.run(0.05)
    assert 4 <= count <= 6


def test_a_connection_that_carried_messages_is_replaced_at_once(play: Play) -> None:
    (dial,) = play.dialed()
    conn = play.opened(dial)
    play.run(1)
    play.lost(conn)
    play.run(0.15)
    assert len(play.dialed()) == 1
