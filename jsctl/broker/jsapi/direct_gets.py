"""Direct gets: any replica that is fresh answers, on its own subscription in one queue group."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from jsctl.broker import lazy
from jsctl.broker.assets.assets import StreamKey
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
    _responders: dict[str, tuple[DirectGetResponder, Sink]] = field(default_factory=dict)

    def refresh(self) -> None:
        """Listen for fresh replicas, no longer for others."""
        replicas = {replica.group.name: replica for replica in self.engine.assets.streams.values()}
        for name in [name for name in self._responders if name not in replicas]:
            self._close(name)
        for name, replica in replicas.items():
            config = replica.stream.config
            wanted = config.allow_direct and self.fresh(replica)
            if wanted and name not in self._responders:
                self._open(name, replica)
            elif not wanted and name in self._responders:
                self._close(name)

    def serves(self, key: StreamKey) -> None:
        """The leader of a stream is about to answer its creation: listen by then."""
        replica = self.engine.assets.streams.get(key)
        if replica is None or not replica.stream.config.allow_direct:
            return
        if replica.group.name not in self._responders:
            self._open(replica.group.name, replica)

    def fresh(self, replica: StreamReplica) -> bool:
        """Whether a replica may answer: whole, and hearing its leader."""
        group = replica.group
        if group.leading:
            return True
        raft = group.raft
        if raft.standing.kind is not StandingKind.WHOLE or not group.leader:
            return False
        near = self.engine.silent_ns(group.leader) < FRESH_NS
        return near and raft.applied >= raft.commit and self.engine.env.me in raft.members.voters

    def _open(self, name: str, replica: StreamReplica) -> None:
        responder = DirectGetResponder(replica)
        sink = Sink(responder)
        account, stream = replica.key
        for prefix in self.engine.env.api_prefixes:
            head = prefix + WORDS + stream.encode()
            for pattern in (head, head + b".>"):
                made = self.engine.env.traffic.listen(account, pattern, sink, DIRECT_QUEUE)
                if made is not None:
                    responder.subscriptions.append(made)
        self._responders[name] = (responder, sink)

    def _close(self, name: str) -> None:
        responder, _ = self._responders.pop(name)
        for subscription in responder.subscriptions:
            self.engine.env.traffic.unlisten(subscription)

    def take(self, sink: Sink, line: LastLine) -> bool:
        """Answer what a responder captured; False if the sink is not a responder's."""
        responder = sink.owner
        if not isinstance(responder, DirectGetResponder):
            return False
        self.answer(responder, sink, line)
        return True

    def answer(self, responder: DirectGetResponder, sink: Sink, line: LastLine) -> None:
        """Answer what a responder captured."""
        for captured in sink.take():
            if captured[1] and self.fresh(responder.replica):
                line.run(client_of(captured[4]), self._answer_one, responder, captured)

    def _answer_one(self, responder: DirectGetResponder, captured: Captured) -> None:
        subject, reply, _, payload, _ = captured
        account, stream = responder.replica.key
        wanted = subject.partition(WORDS + stream.encode())[2][1:]
        answers = direct.answer(responder.replica.stream, payload, wanted).messages
        self.engine.env.traffic.deliver(
            account, [(reply, b"", one.headers, one.payload, b"") for one in answers]
        )
