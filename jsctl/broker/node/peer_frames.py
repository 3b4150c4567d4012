"""Frames between brokers: carried as messages of the system account, on its own route links."""

from dataclasses import field

from jsctl.broker.accounts.accounts import Account
from jsctl.broker.assets.engine import Engine
from jsctl.broker.errors import ProtocolError
from jsctl.broker.interest.targets import Sink, Subscription
from jsctl.broker.jsapi.service import ApiService
from jsctl.broker.jsapi.usage import Usage
from jsctl.broker.peers.frames import decode_frame
from jsctl.broker.peers.items import ForwardReply, PeerFrame
from jsctl.broker.peers.outbox import FRAMES, frame_subject
from jsctl.broker.routes.types import PeerChange
from jsctl.broker.routing.router import Router
from jsctl.broker.routing.setup import peer_id
from jsctl.broker.turn import LogLevel
from jsctl.dataclass import dataclass

USES_NS = 1_000_000_000


@dataclass(slots=True)
class PeerFrames:
    """In and out of frames; the owner of the sink that captures them."""

    router: Router
    engine: Engine
    api: ApiService
    usage: Usage
    account: Account = field(init=False)
    _answers: Sink | None = field(init=False)
    """Of other servers, to requests that came in here."""
    _uses_due_ns: int = 0

    def __post_init__(self) -> None:
        system = self.router.accounts.system
        assert system is not None, "JetStream has one"
        self.account, self._answers = system, self.router.routes.answers
        mine = frame_subject(self.engine.options.me)
        self.router.subscribe(self.account, mine, Sink(self, self.account))

    def owns(self, sink: Sink) -> bool:
        """Whether it captures what brokers say to each other."""
        return sink.owner is self or sink is self._answers

    def peer_changed(self, name: str, change: PeerChange) -> None:
        """A broker was linked, or a link to one is gone."""
        peer = peer_id(name)
        if change is PeerChange.LINKED:
            self.engine.peers.linked(peer)
        elif change is PeerChange.BROKEN:
            self._interrupted(peer)
        else:
            self.engine.peers.unlinked(peer)

    def far_changed(self, sub: Subscription, came: bool) -> None:
        """Another cluster listens to something, or no longer: where it is frames of a broker, that
        one is there."""
        words = sub.subject.decode(errors="replace").split(".")
        if sub.account is not self.account or len(words) != 3 or (words[0], words[2]) != FRAMES:
            return
        if came:
            self.engine.peers.linked(words[1])
        else:
            self.engine.peers.cut_off(words[1])
            self.api.interrupted(words[1])

    def _interrupted(self, peer: str) -> None:
        """What was on its way to a broker that is reached may be lost."""
        self.api.interrupted(peer)
        self.engine.peers.interrupted(peer)

    def take(self, sink: Sink, now_ns: int) -> bool:
        """Frames came in. Those that cannot be read are dropped, with a line in the log.

        Whether there was more in them than what is always said.
        """
        more = False
        for subject, _, headers, payload, origin in sink.take():
            if isinstance(origin, Account):
                self.api.answered(ForwardReply(origin.name, subject, headers, payload))
                more = True
                continue
            try:
                frame = decode_frame(payload)
                news = self.engine.peers.receive(frame, now_ns)
            except ProtocolError as error:
                self.engine.context.log(LogLevel.WARNING, f"Dropped a frame of a peer: {error}")
                more = True
                continue
            lost = bool(frame.counts) and self._counted(frame)
            more = more or news or lost
            if news:
                self._hear(frame)
        return more

    def _hear(self, frame: PeerFrame) -> None:
        """What is not for the engine."""
        self._requests(frame)
        for request in frame.gathers:
            self.api.gathering.asked(frame.sender, request)
        for gathered in frame.gathered:
            self.api.gathering.told(gathered)
            self.api.farewells.told(frame.sender, gathered)
        if frame.uses or frame.tier_uses:
            self.usage.told(frame.sender, frame.uses, frame.tier_uses)

    def _counted(self, frame: PeerFrame) -> bool:
        """A peer says how many of its words should have come, and how many of ours did not; whether
        some were lost."""
        some = False
        life = self.engine.cluster.liveness.life(frame.sender) if frame.counts else None
        for count in frame.counts:
            lost = self.engine.outbox.counts.came(frame.sender, life.boot if life else 0, count)
            if lost.theirs:
                self.api.answers_lost()
            if lost.mine:
                self._interrupted(frame.sender)
            some = some or lost.theirs or lost.mine
        return some

    def _requests(self, frame: PeerFrame) -> None:
        """Requests of a peer's clients, and answers for those of this server."""
        for forward in frame.forwards:
            if self.engine.cluster.liveness.is_fresh(frame.sender):
                self.api.take(forward.request, forward.hops, forward.age_ns)
            else:
                self.api.give_back(forward.request, untouched=True)
        for returned in frame.returned:
            self.api.returned(returned)
        for answered in frame.answered:
            self.api.forwarded.answered(answered.account, answered.reply)
        for reply in frame.replies:
            self.api.answered(reply)

    def send(self) -> None:
        """Everything for peers that collected in this turn."""
        now_ns = self.engine.context.now_ns
        if now_ns >= self._uses_due_ns:
            self._uses_due_ns = now_ns + USES_NS
            peers = self.engine.cluster.peers_up()
            uses = self.usage.here() if peers else []
            tiers = self.usage.tiers_here() if uses else []
            for peer in peers if uses else ():
                parcel = self.engine.outbox.parcel(peer)
                parcel.uses.extend(uses)
                parcel.tier_uses.extend(tiers)
        for peer, frames in self.engine.outbox.take():
            subject = frame_subject(peer)
            for frame in frames:
                self.router.publish_pieces(self.account, subject, frame)
