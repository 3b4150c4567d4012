"""JetStream on one server, without sockets: log, groups, assets, peers.

The node feeds it frames of peers, finished disk batches and captured messages, and calls `run`
once a turn; it answers with frames, disk batches, publishes and facts. What is to be done by whom
is in its parts: here they are put together, and called in the order of a turn.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from jsctl.broker import lazy
from jsctl.broker.assets.assets import Assets, StreamKey
from jsctl.broker.assets.cluster_view import ClusterView
from jsctl.broker.assets.disk_watch import DiskWatch
from jsctl.broker.assets.engine_options import TICK_NS, EngineOptions, ServerCard
from jsctl.broker.assets.introductions import Introductions
from jsctl.broker.assets.lost_log import find_loss
from jsctl.broker.assets.meta.member import MetaMember
from jsctl.broker.assets.own_news import OwnNews
from jsctl.broker.assets.peer_exchange import PeerExchange
from jsctl.broker.assets.reconfigurator import Reconfigurator
from jsctl.broker.assets.repair.scrub_targets import mend_at_start
from jsctl.broker.assets.repair.upkeep import Upkeep
from jsctl.broker.assets.replicas.consumer_replica import ConsumerReplica
from jsctl.broker.assets.replicas.direct_consumers import DirectConsumer
from jsctl.broker.assets.replicas.facts import Fact
from jsctl.broker.assets.replicas.replica_context import AccountTraffic, Quota, ReplicaContext
from jsctl.broker.assets.replicas.stream_replica import StreamReplica
from jsctl.broker.assets.work_inquiries import WorkInquiries
from jsctl.broker.interest.targets import Sink
from jsctl.broker.jetstream.meta.state import Meta
from jsctl.broker.jetstream.streams.publish_room import PublishRoom
from jsctl.broker.peers.liveness import Liveness
from jsctl.broker.peers.outbox import PeerOutbox
from jsctl.broker.ports import Disk, ZoneOffset, only_utc
from jsctl.broker.replication.bootstrap import GroupBootstrap
from jsctl.broker.replication.group import LeaderChange, RaftGroup, SyncJob
from jsctl.broker.replication.groups import Groups
from jsctl.broker.replication.transfers import ImportJob, Transfers
from jsctl.broker.store.wal.log import Wal, WalOptions
from jsctl.broker.store.wal.new_store import LOG_DIRECTORY, NewStore
from jsctl.broker.store.wal.recovery import Recovered
from jsctl.broker.turn import DiskBatch, Jitter, LogLevel

if TYPE_CHECKING:
    from jsctl.broker.replication import salvage
else:
    salvage = lazy.module("jsctl.broker.replication.salvage")

TICKS_MAX = 64
"""Ticks made up for after a stall; more change nothing."""
STANDSTILL_NS = 1_500_000_000
"""A process that did not run for so long is taken for dead by the others, and what they asked of it
before is not what they want now."""
SET_NS = 300_000_000
"""A clock that went on by so much more than time did was set: nobody was silent for that."""
EARLY_TICKS = 2
"""Of those, how many come before the messages that waited meanwhile."""
ROUNDS_MAX = 16
"""Rounds of work in one turn; what is left follows in the next."""
MAINTAIN_NS = 1_000_000_000


class Engine:
    """See the module. Times in ns; pure except for the disk port.

    `streams` becomes the table of the streams with a replica here; the quota counts by it.
    """

    def __init__(
        self,
        options: EngineOptions,
        *,
        disk: Disk,
        traffic: AccountTraffic,
        jitter: Jitter,
        new_id: Callable[[], str],
        quota: Quota,
        streams: dict[StreamKey, StreamReplica],
        zones: ZoneOffset = only_utc,
        new_store: NewStore | None = None,
    ) -> None:
        self.options = options
        self.disk = disk
        self.outbox = PeerOutbox(options.me)
        wal, recovered = _opened_log(options, disk, new_store)
        self.groups = Groups(wal, self.outbox, options.limits)
        self.context = ReplicaContext(
            options.me,
            options.server_name,
            options.cluster,
            options.life,
            options.boot,
            disk,
            traffic,
            self.groups,
            jitter,
            quota,
            options.domain,
            PublishRoom(options.publishing),
            zones,
            options.stores,
        )
        starter = _starter(options, wal, jitter)
        starter.take(recovered, find_loss(disk, recovered, alone=not options.clustered))
        for damage in recovered.damage:
            self.context.log(LogLevel.ERROR, f"Damaged log: {damage}")
        self.assets = Assets(self.context, starter, new_id, streams, not options.clustered)
        liveness, state = Liveness(options.boot, options.life), Meta()
        news = OwnNews(options, self.groups, self.assets, liveness, options.card)
        self._own_news = news
        self.cluster = ClusterView(options, liveness, news, state)
        self.disk_watch = DiskWatch(self.context, self.assets, self.cluster)
        self.meta = MetaMember(self.context, self.cluster, self.assets, self.outbox, state, new_id)
        self.transfers = Transfers(
            self.groups, self.outbox, self.context.logs, self.cluster.is_damaged
        )
        self.upkeep = Upkeep(
            self.context, self.outbox, self.assets, self.cluster.online, options.scrub
        )
        self.inquiries = WorkInquiries(self.context, self.outbox, self.cluster.online)
        leader_of = self.cluster.leader_of
        self.introductions = Introductions(self.context, self.outbox, leader_of, self.inquiries)
        self.peers = PeerExchange(
            self.context,
            self.cluster,
            self.meta,
            self.transfers,
            self.upkeep,
            self.introductions,
            self.inquiries,
            self.outbox,
        )
        others = self.cluster.online, self.meta.submit, state.applied_consumers
        self.reconfigurator = Reconfigurator(self.context, self.assets, *others)
        self.reads: list[tuple[int, bool]] = []
        """(token, may be served) of finished `read` calls."""
        self._steady_ns = self._unticked_ns = 0
        self._maintain_due_ns = 0

    def show(self, card: ServerCard) -> None:
        """Others are told this of the server from now on."""
        self._own_news.card = card

    # Start and end

    def start(self, now_ns: int) -> None:
        """Take up what is on the disk; without any, begin to found or to join."""
        self._now(now_ns)
        mend_at_start(self.context)
        self.meta.start(now_ns)

    def _now(self, now_ns: int) -> None:
        self.context.now_ns = self.groups.now_ns = self.cluster.now_ns = now_ns

    def close(self) -> None:
        """The process ends: release files. What was put off the log brings back."""
        self.groups.put_off.clear()
        self.assets.close()
        self.groups.wal.close()

    # Disk

    def synced(self, ticket: int) -> None:
        """A disk batch is durable."""
        self.groups.synced(ticket)

    # Time

    def tick_early(self, now_ns: int, steady_ns: int = 0) -> int:
        """Before the turn's messages: a little of the time that went by; returns the rest.

        Leases and promises of different servers rest on ticks: these follow a clock that nobody
        sets (`steady_ns`), where it is told.
        """
        passed_ns = now_ns - self.context.now_ns
        if steady_ns and self._steady_ns:
            set_ns = passed_ns - (steady_ns - self._steady_ns)
            if set_ns > SET_NS:
                self.cluster.liveness.clock_set(set_ns)
            passed_ns -= set_ns
        self._steady_ns = steady_ns
        self._unticked_ns += passed_ns  # What went by since the last tick.
        self._now(now_ns)
        ticks = self._unticked_ns // TICK_NS
        if ticks <= 0:
            return 0
        if ticks * TICK_NS >= STANDSTILL_NS:
            self.cluster.liveness.stood_still()
        self._unticked_ns -= ticks * TICK_NS
        ticks = min(ticks, TICKS_MAX)
        early = min(ticks, EARLY_TICKS)
        self.groups.tick(early, ticks - early)
        return ticks - early

    def tick_late(self) -> None:
        """After the turn's messages: the rest of the time."""
        self.groups.catch_up()

    def look(self) -> None:
        """What time makes due besides the groups."""
        now_ns = self.context.now_ns
        self.peers.tick(now_ns)
        self.inquiries.tick(now_ns)
        self.introductions.tick(now_ns)
        self.upkeep.tick(now_ns)
        if self.meta.bootstrap is not None:
            self.meta.found(now_ns)
        elif self.reconfigurator.due(now_ns):
            self.reconfigurator.steer()
            self.meta.give_up_founding()
            if self.meta.takes_part and self.meta.replica is not None:
                self.reconfigurator.steer_meta(self.meta.replica, self.cluster.facts())
        self.disk_watch.look()
        if now_ns >= self._maintain_due_ns:
            self._maintain_due_ns = now_ns + MAINTAIN_NS
            self.transfers.tick(now_ns)
            self.disk_watch.hand_over()
            self.groups.relieve()
            self.groups.forget_memory_of(self.cluster.has_lost_memory)
            if self.assets.knows_all:
                self.groups.go_on_without(self.cluster.was_removed)
            self.meta.take_up()
            self.assets.tidy(self.cluster.pace())

    # Work

    def collect(self, sinks: Iterable[Sink]) -> list[Sink]:
        """Wake the replicas that captured something; other sinks are returned."""
        if self.groups.put_off:
            self.groups.apply_rest()
        others: list[Sink] = []
        for sink in sinks:
            owner = sink.owner
            if isinstance(owner, StreamReplica | ConsumerReplica):
                self.context.queue.wake(owner.group.name, owner)
            elif isinstance(owner, DirectConsumer):
                self.context.queue.wake(owner.run_name, owner)
            else:
                others.append(sink)
        return others

    def run(self, collect: Callable[[], None]) -> None:
        """Propose, drain, apply and deliver until there is nothing more to do in this turn.

        `collect` is called between rounds, to take the facts and to look for what the work itself
        captured.
        """
        context, queue = self.context, self.context.queue
        self.groups.tell()
        queue.begin(context.now_ns, others=bool(self.groups.schedule.busy))
        for replica in self.assets.pushers.concerned():
            queue.wake(replica.group.name, replica)
        self.groups.drain()
        self._follow()
        for _ in range(ROUNDS_MAX):
            collect()
            runners = queue.take()
            if not runners:
                break
            if self.groups.put_off:
                self.groups.apply_rest()
            for name, runner in runners.items():
                runner.run()
                queue.ran(name, runner)
            if context.unused:
                self.reconfigurator.remove_unused()
            self.groups.drain()
            self._follow()
        self.meta.leave_if_told()

    def take_facts(self) -> list[Fact]:
        """What was found out since the last call, in order."""
        self.groups.apply_rest()
        facts, self.context.facts = self.context.facts, []
        return facts

    def _follow(self) -> None:
        groups = self.groups
        if self.assets.waiting:
            self.assets.retry(self.meta.state.applied_consumers)
            self.reconfigurator.remove_unused()
        if groups.changes:
            changes, groups.changes = groups.changes, []
            for change in changes:
                self._leader_changed(change)
        if groups.needs_state:
            needs, groups.needs_state = groups.needs_state, []
            for group, peer in needs:
                self.transfers.wanted(group, peer, self.context.now_ns)
        if groups.checkpoints.finished:
            groups.apply_rest()  # Else what was put off would be applied to a newer state.
            finished, groups.checkpoints.finished = groups.checkpoints.finished, []
            for group, work in finished:
                if isinstance(work, ImportJob):
                    self.transfers.imported(group, work)
                else:
                    self._salvaged(group, work)
                groups.checkpoints.taken(group)
        if groups.reads.answers or self._has_questions:
            self._take_confirmed()

    @property
    def _has_questions(self) -> bool:
        """Whether leaders of streams are asked something, here or elsewhere, or have to ask."""
        return bool(
            self.context.strangers
            or self.context.bereaved
            or self.introductions.early
            or self.inquiries.busy
        )

    def _take_confirmed(self) -> None:
        """Reads that are confirmed, and who is introduced or is to be."""
        reads, self.groups.reads.answers = self.groups.reads.answers, []
        for _, token, good in reads:
            if not self.introductions.confirmed(token, good):
                self.reads.append((token, good))
        self.inquiries.follow()
        self.introductions.follow()

    def _salvaged(self, group: RaftGroup, work: SyncJob) -> None:
        assert isinstance(work, salvage.SalvageJob), "no other work comes back"
        reason = salvage.finish(self.groups, group, work)
        if reason:
            text = f"'{group.name}' does not go on with what is here: {reason}"
            self.context.log(LogLevel.WARNING, text)

    def _leader_changed(self, change: LeaderChange) -> None:
        group = change.group
        if group.gone:
            return  # It has ended in the turn in which it began.
        self.context.facts.append(change)
        replica = group.unit
        if change.leader == self.options.me and isinstance(
            replica, StreamReplica | ConsumerReplica
        ):
            self.assets.unsettled[group.name] = replica
        self.peers.leader_changed(change)

    def seal(self) -> list[DiskBatch]:
        """End of the turn: work for the disk thread."""
        return self.groups.seal()

    def settle(self) -> bool:
        """Behind the outputs of the turn: apply what was put off until then; whether something
        came of it that a turn is to tell, or goes on with."""
        if not self.groups.put_off:
            return False
        self.groups.apply_rest()
        return self.is_busy or bool(self.context.facts)

    @property
    def is_busy(self) -> bool:
        """Whether groups or replicas have something to do in this turn or the next, or to tell."""
        context, groups = self.context, self.groups
        busy = groups.schedule.busy or groups.checkpoints.drafting
        return bool(busy or context.queue.waiting or context.logs)

    @property
    def rests(self) -> bool:
        """Whether the turn left nothing undone: until `urgent_ns`, a turn that brings nothing has
        nothing to do here."""
        groups, context = self.groups, self.context
        left = (
            self.assets.waiting,
            groups.changes,
            groups.needs_state,
            groups.checkpoints.finished,
            groups.reads.answers,
            self.reads,
            self._has_questions,
            context.facts,
            context.unused,
            context.crowds,
            context.logs,
        )
        return not any(left)

    def urgent_ns(self) -> int | None:
        """When the next turn has to be for groups and replicas, even if nothing arrives."""
        queue, schedule = self.context.queue, self.groups.schedule
        if queue.waiting or schedule.busy or self.groups.checkpoints.drafting:
            return self.context.now_ns
        due_ns, tell_ns = queue.next_due_ns(), self.groups.tell_due_ns
        if tell_ns is not None:
            due_ns = tell_ns if due_ns is None else min(due_ns, tell_ns)
        if schedule.awake:
            tick_ns = self.context.now_ns + TICK_NS - self._unticked_ns
            due_ns = tick_ns if due_ns is None else min(due_ns, tick_ns)
        return due_ns

    def next_due_ns(self) -> int | None:
        """When `look` has something to do."""
        parts = (self.peers, self.inquiries, self.introductions, self.upkeep)
        due = [self._maintain_due_ns, *(part.next_due_ns() for part in parts)]
        if not self.groups.idle:
            due.append(self.disk_watch.due_ns)
        if self.meta.bootstrap is not None:
            due.append(self.context.now_ns + TICK_NS)
        if self.options.clustered:
            due.append(self.reconfigurator.next_due_ns())
        return min((at for at in due if at is not None), default=None)


def _starter(options: EngineOptions, wal: Wal, jitter: Jitter) -> GroupBootstrap:
    timing, limits = options.timing, options.raft_limits
    return GroupBootstrap(options.me, options.life, options.boot, wal, timing, jitter, limits)


def _opened_log(
    options: EngineOptions, disk: Disk, new_store: NewStore | None
) -> tuple[Wal, Recovered]:
    if new_store is not None:
        return new_store.log, new_store.recovered
    wal_options = WalOptions(options.incarnation, options.log_segment_bytes)
    return Wal.open(disk, LOG_DIRECTORY, wal_options)
