"""Hostile input on the ports of three servers, then each of them is made leader of a stream."""

import random

from jsctl.broker.turn import Accepted, ConnKind
from tests.fuzz import requests
from tests.fuzz.live import INFO
from tests.fuzz.mutate import mutated
from tests.fuzz.nodes import Pages, Session
from tests.fuzz.parsers import RouteHandshake, RouteParser
from tests.fuzz.target import SIZE_MAX
from tests.support.cluster_play import ClusterPlay, ServerPlay
from tests.support.node_play import PlayClient
from tests.support.stream_requests import stream

INPUTS = 250
OPEN_MAX = 30
WORDS = (*Session.words, *RouteParser.words, *RouteHandshake.words, *Pages.words)


class Hostile:
    """Connections to all servers from which nobody expects anything."""

    def __init__(self, cluster: ClusterPlay, seed: int) -> None:
        self.cluster = cluster
        self.rng = random.Random(seed)
        self.open: list[tuple[ServerPlay, int]] = []
        self.routes = [
            *[INFO + data for data in RouteParser().seeds()],
            *[b"INFO " + data + b"\r\n" for data in RouteHandshake().seeds()],
        ]

    def one(self) -> None:
        """One input on a port of one server; some connections stay open."""
        rng, server = self.rng, self.rng.choice(list(self.cluster))
        kind = rng.random()
        if kind < 0.5:
            subject, _, body = requests.made(rng).partition(b"\n")
            client = server.connect("a")
            head = b"SUB r 1\r\nPUB %b r %d\r\n" % (subject, len(body))
            client.send(head + body + b"\r\nPING\r\n")
            self.open.append((server, client.conn))
        else:
            chosen = rng.choice(self.routes if kind < 0.9 else list(Session.samples))
            data = mutated(rng, chosen, WORDS, SIZE_MAX)
            self._raw(server, ConnKind.ROUTE if kind < 0.9 else ConnKind.CLIENT, data)
        if len(self.open) > OPEN_MAX or rng.random() < 0.5:
            self._hang_up(self.open.pop(rng.randrange(len(self.open))))
        if rng.random() < 0.3:
            self.cluster.run(0.05)

    def _raw(self, server: ServerPlay, kind: ConnKind, data: bytes) -> None:
        conn = server.new_conn()
        # What is sent back to it goes nowhere.
        server.clients[conn] = Deaf(server, conn)
        server.turn(accepted=[Accepted(conn, kind, "10.9.9.9", 40_000)])
        server.turn(chunks=[(conn, data)])
        self.open.append((server, conn))

    @staticmethod
    def _hang_up(one: tuple[ServerPlay, int]) -> None:
        server, conn = one
        server.turn(closed=[(conn, "EOF")])


class Deaf(PlayClient):
    """Does not listen."""

    def take(self, data: bytes) -> None:
        """What the server says."""


def test_each_server_can_lead_afterwards() -> None:
    cluster = ClusterPlay()
    config = stream("T", subjects=["t.>"])
    (answer,) = cluster["n1"].request_all("$JS.API.STREAM.CREATE.T", 1, **config)
    assert "error" not in answer
    for subject, body in requests.FIRST:
        cluster["n1"].connect("a").publish(subject, body, "r")
    hostile = Hostile(cluster, 7)
    for _ in range(INPUTS):
        hostile.one()
    cluster.run(3)
    group = cluster.group_of("T")
    for name in ("n3", "n1", "n2"):
        if cluster.leader(group).name != name:
            where = {"preferred": name}
            cluster["n2"].request_all("$JS.API.STREAM.LEADER.STEPDOWN.T", 1, placement=where)
        assert cluster.leader(group).name == name
