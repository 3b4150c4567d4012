"""What is wrong with JetStream on this server. Health tells the truth, or it is of no use."""

from collections.abc import Iterable

from jsctl.broker.assets.engine import Engine
from jsctl.broker.assets.replicas.consumer_replica import ConsumerReplica
from jsctl.broker.assets.replicas.stream_replica import StreamReplica
from jsctl.broker.jetstream.meta.assignments import ConsumerAssignment, StreamAssignment
from jsctl.broker.jetstream.meta.entries import Assignment
from jsctl.broker.jsapi.live_view import CURRENT_NS, known_leader
from jsctl.broker.replication.group import RaftGroup
from jsctl.broker.system.monitoring.jetstream_facts import standing_text
from jsctl.broker.system.monitoring.view import Ailment, AssetHealth, HealthFacts
from jsctl.dataclass import dataclass

BEHIND_MAX = 5_000
"""Entries that a replica may be behind its leader and still count as current."""
RANGES_NAMED_MAX = 5
NOT_RUNNING = "JetStream meta layer is not running"
RECOVERING = "JetStream is still recovering meta layer"
NO_LEADER = "JetStream has not established contact with a meta leader"
DISK_FULL = "the disk is full, publishes are refused"
NOT_CURRENT = "JetStream is not current with the meta leader"


@dataclass(frozen=True, slots=True)
class HealthReport:
    """Looks at one engine; `failed` says why the node stops, if it does."""

    engine: Engine
    failed: str = ""

    def facts(self, *, assets: bool = True) -> HealthFacts:
        """All checks of this server; those of assets look at each."""
        engine = self.engine
        if engine.cluster.removed:
            return HealthFacts(not_ready=self.failed, jetstream_enabled=False)
        clustered = engine.options.clustered
        made = self._assigned(engine) if assets else []
        return HealthFacts(
            not_ready=self.failed,
            meta_problem=self._meta_problem(engine) if clustered else self._lost_alone(engine),
            assets=self._assets(engine, made) if assets else (),
            accounts=frozenset(one.account for one in made),
        )

    @staticmethod
    def _lost_alone(engine: Engine) -> str:
        """Without a cluster nobody can bring back what the log of this server lost."""
        damage = "" if engine.meta.founding is None else standing_text(engine.meta.group)
        return f"{RECOVERING}: {damage}" if damage else ""

    def _meta_problem(self, engine: Engine) -> str:
        if engine.meta.founding is None:
            return NOT_RUNNING
        group = engine.meta.group
        raft = group.raft
        damage = standing_text(group)
        if damage:
            return f"{RECOVERING}: {damage}"
        leader = known_leader(engine, group)
        if not leader:
            return NO_LEADER
        if group.leading:
            return ""
        member = engine.options.me in raft.members.voters
        heard = engine.cluster.silent_ns(leader) < CURRENT_NS
        return "" if member and heard and not _behind(group) else NOT_CURRENT

    @staticmethod
    def _assigned(engine: Engine) -> list[Assignment]:
        """To this server and others, streams before consumers."""
        return [] if engine.meta.founding is None else engine.meta.state.assets()

    def _assets(self, engine: Engine, assigned: Iterable[Assignment]) -> list[AssetHealth]:
        """What other servers host is theirs to tell."""
        me = engine.options.me
        found: list[AssetHealth] = []
        for made in assigned:
            if me not in made.group.members:
                continue
            if isinstance(made, StreamAssignment):
                found.append(self._stream(engine, made))
            else:
                found.append(self._consumer(engine, made))
        return found

    def _stream(self, engine: Engine, made: StreamAssignment) -> AssetHealth:
        replica = engine.assets.streams.get((made.account, made.name))
        ailment, reason = _ailment(engine, replica)
        if (
            replica is not None
            and ailment is None
            and engine.context.disk_full
            and not replica.volatile
        ):
            ailment, reason = Ailment.WRITE_ERROR, DISK_FULL
        if replica is not None and replica.store.is_damaged:
            ailment, reason = Ailment.NOT_CURRENT, _damaged(replica)
        return AssetHealth(made.account, made.name, "", ailment, reason)

    def _consumer(self, engine: Engine, made: ConsumerAssignment) -> AssetHealth:
        replica = engine.assets.consumers.get((made.account, made.stream, made.name))
        ailment, reason = _ailment(engine, replica)
        return AssetHealth(made.account, made.stream, made.name, ailment, reason)


Verdict = tuple[Ailment | None, str]


def _ailment(engine: Engine, replica: StreamReplica | ConsumerReplica | None) -> Verdict:
    if replica is None:
        return Ailment.MISSING, ""
    reason = standing_text(replica.group) or _not_current(engine, replica.group)
    return (Ailment.NOT_CURRENT, reason) if reason else (None, "")


def _not_current(engine: Engine, group: RaftGroup) -> str:
    """Why a replica does not stand where its leader does; empty when it does."""
    raft, me = group.raft, engine.options.me
    if group.leading:
        return ""
    if me not in raft.members.voters:
        return "the replica is not a full member yet and catches up"
    leader = known_leader(engine, group)
    if not leader or leader == me:
        return "the group has no leader"
    if engine.cluster.silent_ns(leader) >= CURRENT_NS:
        return f"the leader {engine.cluster.name_of(leader)} is not heard"
    behind = _behind(group)
    return f"the replica is {behind} entries behind" if behind else ""


def _behind(group: RaftGroup) -> int:
    """Entries that a replica lacks, when they are too many."""
    raft = group.raft
    behind = max(raft.commit, raft.leader_commit) - raft.applied
    return behind if behind > BEHIND_MAX else 0


def _damaged(replica: StreamReplica) -> str:
    ranges, lost = replica.store.lost.ranges(), len(replica.hopeless)
    named = [f"{low}" if low == high else f"{low} to {high}" for low, high in ranges]
    more = len(named) - RANGES_NAMED_MAX
    text = ", ".join(named[:RANGES_NAMED_MAX]) + (f" and {more} more ranges" if more > 0 else "")
    what = f", {lost} of them on all replicas" if lost else ""
    return f"messages {text} are damaged on this server{what}"
