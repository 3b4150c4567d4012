"""Direct gets: any replica that is fresh answers, on its own subscription in one queue group."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from jsctl.broker import lazy
from jsctl.broker.assets.engine import Engine
from jsctl.broker.assets.stream_replica import DIRECT_QUEUE, StreamReplica
from jsctl.broker.interest.targets import Captured, Sink
from jsctl.broker.jsapi.direct_responder import DirectGetResponder
from jsctl.broker.raft.types import StandingKind
from jsctl.broker.sessions.last_line import LastLine, client_of

if TYPE_CHECKING:
    from jsctl.broker.handlers import direct
else:
    direct = lazy.module("jsctl.broker.handlers.direct")

FRESH_NS = 1_000_000_000
"""A replica that has not heard its leader for this long does not answer."""
WORDS = b"DIRECT.GET."
"""What follows the prefix of the API in subjects."""


@dataclass(slots=True)
class DirectGets:
    """All streams of this server."""

    engine: Engine
    _desks: dict[str, tuple[DirectGetResponder, Sink]] = field(default_factory=dict)

    def refresh(self) -> None:
        """Open desks of fresh replicas, close those of others."""
        units = {unit.group.name: unit for unit in self.engine.assets.streams.values()}
        for name in [name for name in self._desks if name not in units]:
            self._close(name)
        for name, unit in units.items():
            config = unit.stream.config
            wanted = config.allow_direct and self.fresh(unit)
            if wanted and name not in self._desks:
                self._open(name, unit)
            elif not wanted and name in self._desks:
                self._close(name)

    def serves(self, unit: StreamReplica) -> None:
        """The leader of a stream is about to answer its creation: have the desk open by then."""
        if unit.stream.config.allow_direct and unit.group.name not in self._desks:
            self._open(unit.group.name, unit)

    def fresh(self, unit: StreamReplica) -> bool:
        """Whether a replica may answer: whole, and hearing its leader."""
        group = unit.group
        if group.leading:
            return True
        raft = group.raft
        if raft.standing.kind is not StandingKind.WHOLE or not group.leader:
            return False
        near = self.engine.silent_ns(group.leader) < FRESH_NS
        return near and raft.applied >= raft.commit and self.engine.env.me in raft.members.voters

    def _open(self, name: str, unit: StreamReplica) -> None:
        desk = DirectGetResponder(unit)
        sink = Sink(desk)
        account, stream = unit.key
        for prefix in self.engine.env.api_prefixes:
            head = prefix + WORDS + stream.encode()
            for pattern in (head, head + b".>"):
                made = self.engine.env.traffic.listen(account, pattern, sink, DIRECT_QUEUE)
                if made is not None:
                    desk.subscriptions.append(made)
        self._desks[name] = (desk, sink)

    def _close(self, name: str) -> None:
        desk, _ = self._desks.pop(name)
        for subscription in desk.subscriptions:
            self.engine.env.traffic.unlisten(subscription)

    def take(self, sink: Sink, line: LastLine) -> bool:
        """Answer what one of the desks captured; False if the sink is not a desk's."""
        desk = sink.owner
        if not isinstance(desk, DirectGetResponder):
            return False
        self.answer(desk, sink, line)
        return True

    def answer(self, desk: DirectGetResponder, sink: Sink, line: LastLine) -> None:
        """Answer what a desk captured."""
        for captured in sink.take():
            if captured[1] and self.fresh(desk.unit):
                line.run(client_of(captured[4]), self._answer_one, desk, captured)

    def _answer_one(self, desk: DirectGetResponder, captured: Captured) -> None:
        subject, reply, _, payload, _ = captured
        account, stream = desk.unit.key
        wanted = subject.partition(WORDS + stream.encode())[2][1:]
        answers = direct.answer(desk.unit.stream, payload, wanted).messages
        self.engine.env.traffic.deliver(
            account, [(reply, b"", one.headers, one.payload, b"") for one in answers]
        )
