"""Who gets messages of a stream, from whichever replica answers.

What is answered was committed. And what was acknowledged to somebody is found by a server that had
it in its log before anybody asked, unless it was removed meanwhile: a server that does not know
whether it is committed hears that from its leader first, if it can within two seconds.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from jsctl.broker.assets.replicas.stream_replica import StreamReplica
from jsctl.broker.protocol.deliveries import Item
from jsctl.broker.raft.core import Raft
from tests.simulation.machine import ACCOUNT, Process
from tests.simulation.plan import Plan, StreamKind, draw
from tests.simulation.violation import Violation
from tests.simulation.world import MS

if TYPE_CHECKING:
    from tests.simulation.run import Simulation
    from tests.simulation.stream_checks import Books

PACE_MS = 15
NOT_FOUND = b"NATS/1.0 404"


def draw_gets(seed: int, servers: int = 3) -> Plan:
    """A plan with direct gets, and without consumers but for every third one: followers hear at
    once what these wait for."""
    plan = draw(seed, servers)
    kind = StreamKind(direct=True) if seed % 3 == 2 else StreamKind(direct=True, consumers=())
    return replace(plan, kinds=tuple(kind for _ in plan.streams))


@dataclass(frozen=True)
class Stored:
    """What a publisher was told of a message, and up to where its leader's log was committed."""

    group: str
    seq: int
    index: int
    term: int

    def is_in(self, raft: Raft) -> bool:
        """Whether a log has it."""
        return raft.log.commit >= self.index or raft.log.term_at(self.index) == self.term


@dataclass(frozen=True)
class Question:
    """A get that waits for its answer."""

    stored: Stored
    holders: tuple[Process, ...]
    """Servers that had the message when it was asked for."""


class Getter:
    """Asks for what was acknowledged last, of one stream after the other."""

    def __init__(self, of: Simulation) -> None:
        self._of = of
        self._hub, self._world = of.hub, of.world
        self._newest: dict[str, Stored] = {}
        """Of each stream."""
        self._open: dict[bytes, Question] = {}
        self.got = 0
        """Messages."""
        self._broken = ""
        """What was promised and is not so; a server takes an error for one of a request."""

    def begin(self) -> None:
        """Hear what publishers are told, and ask, for one stream more."""
        self._hub.stored, self._hub.got = self.acknowledged, self.answered
        self.step()

    def step(self) -> None:
        """Ask again and again."""
        process = self._hub.any_process()
        if process is not None and self._newest:
            stream = self._world.random.choice(sorted(self._newest))
            self._ask(process, stream, self._newest[stream])
        self._world.at(int(self._world.random.expovariate(1.0) * PACE_MS * MS), self.step)

    def acknowledged(self, unit: StreamReplica, seq: int) -> None:
        """A leader tells a publisher that a message is stored."""
        raft = unit.group.raft
        term = raft.log.term_at(raft.commit) or raft.term
        self._newest[unit.key[1]] = Stored(unit.group.name, seq, raft.commit, term)

    def _ask(self, process: Process, stream: str, stored: Stored) -> None:
        holders = []
        for one in self._of.processes():
            group = one.engine.groups.by_name.get(stored.group)
            if group is not None and stored.is_in(group.raft):
                holders.append(one)
        inbox = self._hub.inbox("d", process.number, lambda message: None, stream)
        self._open[inbox] = Question(stored, tuple(holders))
        body = json.dumps({"seq": stored.seq}).encode()
        process.request(f"DIRECT.GET.{stream}", body, inbox)

    def answered(self, process: Process, stream: str, item: Item) -> None:
        """A server says what it has."""
        subject, _, headers, payload, _ = item
        self._hub.forget(subject)
        question = self._open.pop(subject, None)
        unit = process.engine.assets.streams.get((ACCOUNT, stream))
        if question is None or unit is None or unit.group.name != question.stored.group:
            return
        self._hub.look(process, unit.group)
        known = self._of.checker.history(unit.group.name)
        if known.books is None or known.excused:
            return
        if headers.startswith(NOT_FOUND):
            self._not_found(process, unit, question, known.books)
        elif b"Nats-Sequence" in headers:
            self._found(process, question.stored.seq, payload, known.books)

    def turned(self) -> None:
        """A turn is over. Raises Violation."""
        if self._broken:
            raise Violation(self._broken)

    def _found(self, process: Process, seq: int, payload: bytes, books: Books) -> None:
        self.got += 1
        if books.values.get(seq) != payload:
            self._broken = f"{process.machine.name} shows {seq}, which is not committed so"

    def _not_found(
        self, process: Process, unit: StreamReplica, question: Question, books: Books
    ) -> None:
        stored = question.stored
        if process not in question.holders or stored.seq not in books.model.rows:
            return
        if unit.group.raft.commit < stored.index and _has_given_up(process, unit.key[1]):
            return
        self._broken = f"{process.machine.name} does not find {stored.seq}, which it has"


def _has_given_up(process: Process, stream: str) -> bool:
    """Whether a server does not wait any more to hear what is committed."""
    running = process.node._running
    assert running is not None and running.jetstream is not None
    responder = running.jetstream._direct._responders[(ACCOUNT, stream), stream]
    return responder.doubted_until_ns <= process.engine.context.now_ns
