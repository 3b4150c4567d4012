"""Several whole nodes in this process: routes as bytes, a disk each, one clock that tests move."""

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from jsctl.broker.assets.engine import Engine
from jsctl.broker.node import Node
from jsctl.broker.options import ClusterOptions, Options, Url
from jsctl.broker.routing.setup import peer_id
from jsctl.broker.turn import Accepted, ConnKind, Dial, DiskBatch, TurnInputs, TurnOutputs
from tests.support.node_play import (
    ROUNDS_MAX,
    SECOND_NS,
    START_NS,
    STEP_NS,
    NodePlay,
    PlayClient,
    node_options,
)
from tests.support.sim_disk import SimDisk

PORT = 6222
NOTHING = TurnInputs()
"""What waits where nothing does; not to be changed."""


class ServerPlay(NodePlay):
    """One server of a cluster, over all its lives."""

    def __init__(self, cluster: "ClusterPlay", number: int, options: Options) -> None:
        self.cluster = cluster
        self.number = number
        self.options = options
        self.name = options.server_name
        self.peer = peer_id(self.name)
        self.host = f"10.0.0.{number}"
        self.clients: dict[int, PlayClient] = {}
        self.answers = []
        self.reloads = 0
        self.logs: list[str] = []
        self.disk_held = False
        """Disk batches wait, as with a disk that stands still."""
        self._next_conn = 1
        self._lives = 0
        self._due_ns: int | None = None
        self.wipe()
        self.begin()

    def wipe(self) -> None:
        """Another, empty disk."""
        self.disk = SimDisk(random.Random(self.number))

    def begin(self) -> None:
        """A new process."""
        self._lives += 1
        rng = random.Random(self.number * 1000 + self._lives)
        self.exit: str | None = None
        self.inbox = TurnInputs()
        self.batches: list[DiskBatch] = []
        self.routes: dict[int, tuple[ServerPlay, int]] = {}
        self.clients.clear()
        self.node = Node(
            self.options,
            disk=self.disk,
            jitter=rng.randrange,
            server_id=f"N{self.number}{self._lives}".ljust(56, "A"),
            incarnation=f"{rng.randrange(1 << 128):032x}",
        )
        self.node.listening("client", self.host, 4222)
        self.node.listening("cluster", self.host, PORT)
        self.running = True
        self._perform(self.node.start(self.cluster.now_ns))

    @property
    def engine(self) -> Engine:
        """The server's JetStream."""
        assert self.node.engine is not None
        return self.node.engine

    def pause(self) -> None:
        """The process stands still; its connections stay open, and fill."""
        self.running = False

    def go_on(self) -> None:
        """It runs again, and reads what came meanwhile."""
        self.running = True
        self.cluster.settle()

    def halt(self, *, noticed: bool = True) -> None:
        """The process is gone; `noticed`: its connections are closed."""
        self.running = False
        for conn, (other, theirs) in list(self.routes.items()):
            other.routes.pop(theirs, None)
            if noticed:
                other.inbox.closed.append((theirs, "EOF"))
            del self.routes[conn]
        self.disk.kill()

    def break_link(self, other: "ServerPlay") -> None:
        """One of the connections to a server ends."""
        conn = next(conn for conn, (peer, _) in self.routes.items() if peer is other)
        self._close(conn, "connection reset by peer")
        self.cluster.settle()

    # NodePlay

    def turn(self, **fields: Any) -> None:
        """A turn with inputs, then turns of all until there is nothing to do."""
        self._add(TurnInputs(**fields))
        self.cluster.settle()

    def _add(self, more: TurnInputs) -> None:
        for name in TurnInputs.__slots__:
            if name in ("process", "steady_ns"):
                setattr(self.inbox, name, getattr(more, name) or getattr(self.inbox, name))
            else:
                getattr(self.inbox, name).extend(getattr(more, name))

    @property
    def busy(self) -> bool:
        """Whether something waits for a turn."""
        return self.running and self.inbox != NOTHING

    @property
    def due(self) -> bool:
        """Whether it is time for a turn, whatever waits."""
        return self._due_ns is not None and self._due_ns <= self.cluster.now_ns

    def step(self) -> None:
        """One turn with what waits."""
        if self.running:
            inputs, self.inbox = self.inbox, TurnInputs()
            inputs.steady_ns = inputs.steady_ns or self.cluster.now_ns - self.cluster.set_ns
            self._perform(self.node.turn(inputs, self.cluster.now_ns))

    def release_disk(self) -> None:
        """The disk goes on."""
        self.disk_held = False
        self._run_disk()
        self.cluster.settle()

    def _run_disk(self) -> None:
        batches, self.batches = self.batches, []
        for batch in batches:
            batch.run()
            self.inbox.synced.append(batch.ticket)

    def _perform(self, outputs: TurnOutputs) -> None:
        self._due_ns = self.node.settle(self.cluster.now_ns)
        self.batches += outputs.disk
        if not self.disk_held:
            self._run_disk()
        for conn, data in outputs.writes:
            self._write(conn, data)
        for conn, reason in outputs.closes:
            self._close(conn, reason)
        for dial in outputs.dials:
            self._dial(dial)
        self.answers += outputs.answers
        self.logs += [line.text for line in outputs.logs]
        if outputs.exit is not None:
            self.exit = outputs.exit
            self.halt()

    def _write(self, conn: int, data: bytes) -> None:
        if conn in self.routes:
            other, theirs = self.routes[conn]
            if self.cluster.reaches(self, other):
                other.inbox.chunks.append((theirs, data))
        elif conn in self.clients:
            self.clients[conn].take(data)

    def _close(self, conn: int, reason: str) -> None:
        self.inbox.closed.append((conn, reason))
        if conn in self.routes:
            other, theirs = self.routes.pop(conn)
            other.routes.pop(theirs, None)
            other.inbox.closed.append((theirs, reason))

    def _dial(self, dial: Dial) -> None:
        other = next((one for one in self.cluster if one.host == dial.host), None)
        if other is None or not other.running or not self.cluster.reaches(self, other):
            self.inbox.dial_failed.append((dial, "connection refused"))
            return
        mine, theirs = self.new_conn(), other.new_conn()
        self.routes[mine], other.routes[theirs] = (other, theirs), (self, mine)
        ports = (PORT, 50000 + mine)
        self.inbox.accepted.append(
            Accepted(mine, ConnKind.ROUTE, other.host, ports[0], dial_token=dial.token)
        )
        other.inbox.accepted.append(Accepted(theirs, ConnKind.ROUTE, self.host, ports[1]))

    def new_conn(self) -> int:
        """A number for a connection."""
        conn, self._next_conn = self._next_conn, self._next_conn + 1
        return conn

    def run(self, seconds: float) -> None:
        """Let time go by, for all."""
        self.cluster.run(seconds)

    def request_all(self, subject: str, seconds: float, **fields: object) -> list[Any]:
        """Decoded answers to an API request of account A that come within a time."""
        client = self.connect("a")
        client.subscribe("answer")
        client.publish(subject, json.dumps(fields).encode() if fields else b"", "answer")
        self.cluster.run(seconds)
        return client.heard("answer")


class ClusterPlay:
    """Servers n1, n2, ...; `cut` holds pairs of servers that do not hear each other."""

    def __init__(self, count: int = 3, **more: Any) -> None:
        self.now_ns = START_NS
        self.set_ns = 0
        """By how much the clock was set forward, so that time has nothing to do with it."""
        self.cut: set[frozenset[str]] = set()
        self.servers: dict[str, ServerPlay] = {}
        routes = tuple(Url(f"10.0.0.{number}", PORT) for number in range(1, count + 1))
        for number in range(1, count + 1):
            cluster = ClusterOptions(name="C", port=PORT, routes=routes)
            options = replace(node_options(**more), server_name=f"n{number}", cluster=cluster)
            self.servers[f"n{number}"] = ServerPlay(self, number, options)
        self.run(4)

    def __iter__(self) -> Iterator[ServerPlay]:
        return iter(self.servers.values())

    def __getitem__(self, name: str) -> ServerPlay:
        return self.servers[name]

    def reaches(self, one: ServerPlay, other: ServerPlay) -> bool:
        """Whether bytes go from one server to another."""
        return frozenset((one.name, other.name)) not in self.cut

    def isolate(self, name: str) -> None:
        """Nobody hears a server any more; its connections stay open."""
        self.cut |= {frozenset((name, other)) for other in self.servers if other != name}

    def settle(self) -> None:
        """Turns of all servers until nobody has anything to do."""
        for _ in range(ROUNDS_MAX):
            busy = [server for server in self if server.busy]
            if not busy:
                return
            for server in busy:
                server.step()
        raise AssertionError("the cluster is not quiet")

    def run(self, seconds: float) -> None:
        """Let time go by."""
        end = self.now_ns + int(seconds * SECOND_NS)
        while self.now_ns < end:
            self.now_ns += STEP_NS
            for server in self:
                if server.busy or server.due:
                    server.step()
            self.settle()

    def wait(self, fact: Callable[[], bool], what: str, seconds: float = 15) -> None:
        """Let time go by until something is so."""
        end = self.now_ns + int(seconds * SECOND_NS)
        while not fact():
            assert self.now_ns < end, f"not within {seconds} s: {what}"
            self.run(0.05)

    def leader(self, group: str = "_meta_") -> ServerPlay:
        """The server that leads a group; waits for it."""
        self.wait(lambda: self.maybe_leader(group) is not None, f"{group} has a leader")
        found = self.maybe_leader(group)
        assert found is not None
        return found

    def maybe_leader(self, group: str) -> ServerPlay | None:
        """The server that leads a group."""
        for server in self:
            one = server.engine.groups.by_name.get(group) if server.running else None
            if one is not None and one.leading:
                return server
        return None

    def group_of(self, stream: str, consumer: str = "") -> str:
        """The raft group of an asset of account A."""
        for server in self:
            meta = server.engine.meta.state
            found = meta.consumer("A", stream, consumer) if consumer else meta.stream("A", stream)
            if found is not None:
                return found.group.name
        raise AssertionError(f"no stream {stream}")
