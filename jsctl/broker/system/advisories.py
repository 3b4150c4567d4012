"""Advisories of JetStream: what became of streams, consumers, groups, servers and requests.

Each is told once: of the meta state by its leader, of a group by the group's leader, of a
request by the server it came in on, of a damaged replica by its own server. Nothing is built
unless somebody listens.
"""

from dataclasses import field
from typing import TYPE_CHECKING

from jsctl.api.cluster import PeerInfo
from jsctl.api.subjects import ADVISORY_PREFIX, advisory
from jsctl.api.times import parse_time
from jsctl.broker import lazy
from jsctl.broker.assets.engine import Engine
from jsctl.broker.assets.meta.group_file import META_GROUP
from jsctl.broker.assets.replicas.consumer_replica import ConsumerReplica
from jsctl.broker.assets.replicas.facts import (
    ArchiveNews,
    BatchesAbandoned,
    ConsumerAdvisories,
    MetaChanged,
    ReplicaDamageChanged,
)
from jsctl.broker.assets.replicas.stream_replica import StreamReplica
from jsctl.broker.jetstream.consumers.facts import Advisory
from jsctl.broker.jetstream.meta.assignments import ConsumerAssignment, StreamAssignment
from jsctl.broker.jetstream.meta.entries import MetaServer
from jsctl.broker.jetstream.meta.state import ChangeKind, MetaChange
from jsctl.broker.jetstream.requests import ApiRequest
from jsctl.broker.jsapi.live_view import ApiView, known_leader, sequence_ranges
from jsctl.broker.replication.group import LeaderChange, RaftGroup
from jsctl.broker.system.outlet import EventOutlet
from jsctl.dataclass import dataclass

if TYPE_CHECKING:
    from jsctl.broker.handlers import answers
    from jsctl.broker.jetstream import advisories
    from jsctl.broker.jetstream.advisories import Advisories, Message
    from jsctl.broker.jetstream.consumers import advisories as consumer_advisories
    from jsctl.broker.system import archive_advisories
else:
    advisories = lazy.module("jsctl.broker.jetstream.advisories")
    answers = lazy.module("jsctl.broker.handlers.answers")
    archive_advisories = lazy.module("jsctl.broker.system.archive_advisories")
    consumer_advisories = lazy.module("jsctl.broker.jetstream.consumers.advisories")

QUORUM_LOST_NS = 5_000_000_000
"""How long a group is without a leader before that is told."""
QUORUM_REPEAT_NS = 10_000_000_000
LOOK_NS = 1_000_000_000
_PLACE = tuple(ADVISORY_PREFIX.split(b".")[:-1])
"""Where all advisories are: mostly nobody listens there, whatever they are about."""


@dataclass(slots=True)
class JetStreamAdvisories:
    """Words the facts that `tell` is given, for whoever listens."""

    engine: Engine
    view: ApiView
    outlet: EventOutlet
    _leaderless: dict[str, int] = field(default_factory=dict)
    """Group -> when to tell that it has no leader."""
    _paused: dict[tuple[str, str, str], int] = field(default_factory=dict)
    """Consumer -> when its pause is over."""
    _paused_until_ns: int = 0
    """No pause is over before."""
    _look_due_ns: int = 0
    _disk_full: bool = False

    # How to tell

    def _wanted(self, account: str, *words: str) -> bool:
        if not account or not self.outlet.may_be_wanted(account, _PLACE):
            return False
        return self.view.has_interest(account, advisory(*words))

    def _build(self) -> "Advisories":
        return advisories.Advisories(self.outlet.new_id(), self.view.now_ns, self.view.domain)

    def _tell(self, account: str, message: "Message") -> None:
        self.outlet.publish(account, *message)

    # Requests

    def api_answer(self, request: ApiRequest, payload: bytes) -> None:
        """This server decided on a request: told in the account it came from."""
        if request.reply and self._wanted(request.account, "API"):
            built = self._build().api_audit(self.view.server_name, request, payload)
            self._tell(request.account, built)

    def requests_dropped(self, count: int) -> None:
        """So many requests were dropped, as too many waited."""
        if self._wanted(self.outlet.system, "API", "LIMIT_REACHED"):
            built = self._build().api_limit_reached(self.view.server_name, count)
            self._tell(self.outlet.system, built)

    # Facts

    def tell(
        self,
        fact: MetaChanged
        | LeaderChange
        | ConsumerAdvisories
        | ReplicaDamageChanged
        | ArchiveNews
        | BatchesAbandoned,
    ) -> None:
        """Tell who listens what was found out on this server."""
        match fact:
            case MetaChanged():
                if fact.led:
                    self._changed(fact.change)
                elif fact.change.consumer:
                    self._note_pause(fact.change)
            case LeaderChange():
                self._leader_changed(fact.group, fact.leader)
            case ConsumerAdvisories():
                self._consumer_facts(fact.assignment, fact.advisories)
            case ReplicaDamageChanged():
                self._damage_changed(fact)
            case BatchesAbandoned():
                self._batches_abandoned(fact)
            case ArchiveNews():
                if self._wanted(fact.account, "STREAM", fact.event.value, fact.stream):
                    self._tell(
                        fact.account, archive_advisories.archive_message(self._build(), fact)
                    )

    def _batches_abandoned(self, fact: BatchesAbandoned) -> None:
        """The account is told, and the system account, which is told whose it was."""
        for account in dict.fromkeys((fact.account, self.outlet.system)):
            if not self._wanted(account, "STREAM", "BATCH_ABANDONED", fact.stream):
                continue
            owner = fact.account if account == self.outlet.system else ""
            for name, why in fact.ends:
                built = self._build().batch_abandoned(owner, fact.stream, name, why.value)
                self._tell(account, built)

    def _damage_changed(self, fact: ReplicaDamageChanged) -> None:
        account, stream = fact.account, fact.stream
        if self._wanted(account, "STREAM", "DAMAGE", stream):
            ranges = sequence_ranges(fact.ranges)
            built = self._build().stream_damage(
                self.view.server_name, stream, fact.news.value, fact.messages, ranges
            )
            self._tell(account, built)

    # The meta state

    def _changed(self, change: MetaChange) -> None:
        """Streams and consumers created, changed, deleted; servers removed."""
        if change.server is not None:
            if change.kind is ChangeKind.REMOVED:
                self._server_removed(change.server)
        elif change.consumer:
            self._consumer_changed(change)
        else:
            self._stream_changed(change)

    def _stream_changed(self, change: MetaChange) -> None:
        account, stream = change.account, change.stream
        action, word = _action(change)
        if action and self._wanted(account, "STREAM", word, stream):
            self._tell(account, self._build().stream_action(stream, action))

    def _consumer_changed(self, change: MetaChange) -> None:
        account, stream, consumer = change.account, change.stream, change.consumer
        # Consumers that go with their stream are not told of one by one.
        if self.engine.meta.state.stream(account, stream) is None:
            self._paused.pop((account, stream, consumer), None)
            return
        self._pause_changed(change)
        action, word = _action(change)
        if action in ("create", "delete") and self._wanted(
            account, "CONSUMER", word, stream, consumer
        ):
            self._tell(account, self._build().consumer_action(stream, consumer, action))

    def _note_pause(self, change: MetaChange) -> None:
        """Whoever leads by then tells of the end."""
        key, until = (change.account, change.stream, change.consumer), _pause_ns(change.after)
        if until > self.view.now_ns:
            self._note_paused(key, until)
        else:
            self._paused.pop(key, None)

    def _note_paused(self, key: tuple[str, str, str], until_ns: int) -> None:
        first_ns = min(until_ns, self._paused_until_ns) if self._paused else until_ns
        self._paused[key], self._paused_until_ns = until_ns, first_ns

    def _pause_changed(self, change: MetaChange) -> None:
        until, before = _pause_ns(change.after), _pause_ns(change.before)
        key = (change.account, change.stream, change.consumer)
        now_ns = self.view.now_ns
        if change.kind is ChangeKind.REMOVED or until == before:
            if change.after is None:
                self._paused.pop(key, None)
            return
        paused = until > now_ns
        if paused:
            self._note_paused(key, until)
        elif self._paused.pop(key, None) is None and before <= now_ns:
            return
        self._tell_pause(key, paused, until if paused else before)

    def _tell_pause(self, key: tuple[str, str, str], paused: bool, until_ns: int) -> None:
        account, stream, consumer = key
        if self._wanted(account, "CONSUMER", "PAUSE", stream, consumer):
            built = self._build().consumer_pause(stream, consumer, paused, until_ns)
            self._tell(account, built)

    def _server_removed(self, server: MetaServer) -> None:
        if self._wanted(self.outlet.system, "SERVER", "REMOVED"):
            news = self.engine.cluster.servers.get(server.peer)
            server_id = news.server_id if news is not None else ""
            built = self._build().server_removed(server.name, server_id, server.cluster)
            self._tell(self.outlet.system, built)

    # Groups

    def _leader_changed(self, group: RaftGroup, leader: str) -> None:
        if leader:
            self._leaderless.pop(group.name, None)
        else:
            self._leaderless.setdefault(group.name, self.view.now_ns + QUORUM_LOST_NS)
        elected = leader == self.view.me and not group.gone
        if elected and len(group.raft.members.voters) > 1:
            self._leader_elected(group)

    def _leader_elected(self, group: RaftGroup) -> None:
        replica, name = group.unit, self.view.server_name
        if isinstance(replica, StreamReplica):
            account, stream = replica.key
            if self._wanted(account, "STREAM", "LEADER_ELECTED", stream):
                peers = self._replicas(group)
                self._tell(account, self._build().stream_leader(account, stream, name, peers))
        elif isinstance(replica, ConsumerReplica):
            made = replica.assignment
            if self._wanted(made.account, "CONSUMER", "LEADER_ELECTED", made.stream, made.name):
                built = self._build().consumer_leader(
                    made.account, made.stream, made.name, name, self._replicas(group)
                )
                self._tell(made.account, built)
        elif self._wanted(self.outlet.system, "DOMAIN", "LEADER_ELECTED"):
            peers = self._replicas(group)
            self._tell(
                self.outlet.system, self._build().domain_leader(name, self.view.cluster, peers)
            )

    def _replicas(self, group: RaftGroup) -> tuple[PeerInfo, ...]:
        shown = self.view.group(group.name)
        found = [] if shown is None else shown.replicas
        return tuple(answers.peer_info(peer) for peer in found if peer.peer != self.view.me)

    def tick(self, now_ns: int) -> None:
        """What has to be told because time went by."""
        self._look_at_disk()
        if now_ns < self._look_due_ns or not (self._leaderless or self._paused):
            return
        self._look_due_ns = now_ns + LOOK_NS
        for name, due_ns in list(self._leaderless.items()):
            group = self.engine.groups.by_name.get(name)
            if group is None or known_leader(self.engine, group):
                del self._leaderless[name]
            elif now_ns >= due_ns and not self._has_quorum(group):
                self._leaderless[name] = now_ns + QUORUM_REPEAT_NS
                self._quorum_lost(group)
        for key, until_ns in list(self._paused.items()):
            if now_ns >= until_ns:
                del self._paused[key]
                if self.engine.meta.leading:
                    self._tell_pause(key, False, until_ns)
        self._paused_until_ns = min(self._paused.values(), default=0)

    def _look_at_disk(self) -> None:
        full = self.engine.context.disk_full
        if (
            full
            and not self._disk_full
            and self._wanted(self.outlet.system, "SERVER", "OUT_OF_STORAGE")
        ):
            view = self.view
            built = self._build().out_of_storage(
                view.server_name, self.outlet.server_id, view.cluster
            )
            self._tell(self.outlet.system, built)
        self._disk_full = full

    def next_due_ns(self) -> int | None:
        """When `tick` has something to do."""
        if self._leaderless or not self._paused:
            return self._look_due_ns if self._leaderless else None
        return max(self._look_due_ns, self._paused_until_ns)

    def _has_quorum(self, group: RaftGroup) -> bool:
        voters = group.raft.members.voters
        return 2 * sum(map(self.engine.cluster.online, voters)) > len(voters)

    def _quorum_lost(self, group: RaftGroup) -> None:
        replica = group.unit
        if isinstance(replica, StreamReplica):
            account, stream = replica.key
            if self._wanted(account, "STREAM", "QUORUM_LOST", stream):
                peers = self._replicas(group)
                self._tell(account, self._build().stream_quorum_lost(account, stream, peers))
        elif isinstance(replica, ConsumerReplica):
            made = replica.assignment
            if self._wanted(made.account, "CONSUMER", "QUORUM_LOST", made.stream, made.name):
                built = self._build().consumer_quorum_lost(
                    made.account, made.stream, made.name, self._replicas(group)
                )
                self._tell(made.account, built)
        else:
            assert group.name == META_GROUP

    # Consumers

    def _consumer_facts(self, made: ConsumerAssignment, facts: list[Advisory]) -> None:
        for fact in facts:
            subject = f"{fact.kind.value}.{made.stream}.{made.name}".encode()
            if not self.view.has_interest(made.account, subject):
                continue
            message = consumer_advisories.advisory_message(
                fact,
                account=made.account,
                stream=made.stream,
                consumer=made.name,
                domain=self.view.domain,
                event_id=self.outlet.new_id(),
                now_ns=self.view.now_ns,
            )
            self._tell(made.account, message)


def _action(change: MetaChange) -> tuple[str, str]:
    """(action, word in the subject); empty for changes that are no operator's doing."""
    if change.kind is ChangeKind.ADDED:
        return "create", "CREATED"
    if change.kind is ChangeKind.REMOVED:
        return "delete", "DELETED"
    assert change.before is not None and change.after is not None
    if change.before.revision == change.after.revision:
        return "", ""
    return "modify", "UPDATED"


def _pause_ns(made: StreamAssignment | ConsumerAssignment | None) -> int:
    """Until when a consumer is paused; 0 when it is not."""
    if not isinstance(made, ConsumerAssignment) or not made.config.pause_until:
        return 0
    return max(parse_time(made.config.pause_until), 0)
