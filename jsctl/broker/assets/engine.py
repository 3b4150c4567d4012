"""JetStream on one server, without sockets: log, groups, assets, peers.

The node feeds it frames of peers, finished disk batches and captured messages, and calls `run`
once a turn; it answers with frames, disk batches and publishes. The simulator drives many of
these over a network and disks of its own.
"""

from collections.abc import Callable, Iterable

from jsctl.broker.assets.assets import Assets, StreamKey
from jsctl.broker.assets.cluster_view import TICK_NS, ClusterView, EngineOptions
from jsctl.broker.assets.consumer_replica import ConsumerReplica
from jsctl.broker.assets.facts import Fact, MetaChanged
from jsctl.broker.assets.lost_log import find_loss
from jsctl.broker.assets.meta_bootstrap import Bootstrap, Seen, conflict, hopeless
from jsctl.broker.assets.meta_group_file import (
    is_evicted,
    read_founding,
    write_evicted,
    write_founding,
)
from jsctl.broker.assets.meta_replica import DIRECTORY, GROUP_NAME, MetaReplica
from jsctl.broker.assets.reconfigurator import Reconfigurator
from jsctl.broker.assets.replica_context import AccountTraffic, Quota, ReplicaContext, Runner
from jsctl.broker.assets.stream_replica import StreamReplica
from jsctl.broker.deadlines import Deadlines
from jsctl.broker.errors import ProtocolError
from jsctl.broker.interest.targets import Sink
from jsctl.broker.peers.items import (
    Announcement,
    Eviction,
    Founding,
    MetaProposal,
    PeerFrame,
    ServerNews,
)
from jsctl.broker.peers.liveness import Liveness, LivenessEvent, Restarted, WentDown, WentUp
from jsctl.broker.peers.outbox import PeerOutbox
from jsctl.broker.ports import Disk
from jsctl.broker.raft import codec
from jsctl.broker.replication import state_file
from jsctl.broker.replication.bootstrap import GroupBootstrap
from jsctl.broker.replication.group import GroupKind, LeaderChange, RaftGroup
from jsctl.broker.replication.groups import Groups
from jsctl.broker.replication.transfers import ImportJob, Transfers
from jsctl.broker.store.wal import Wal, WalOptions
from jsctl.broker.turn import DiskBatch, Jitter, LogLevel

TICKS_MAX = 64
"""Ticks made up for after a stall; more change nothing."""
EARLY_TICKS = 2
"""Of those, how many come before the messages that waited meanwhile."""
NEWS_NS = 1_000_000_000
ROUNDS_MAX = 16
"""Rounds of work in one turn; what is left follows in the next."""
MAINTAIN_NS = 1_000_000_000
DISK_LOOK_NS = 100_000_000
DISK_RESERVE_BYTES = 64 * 1024 * 1024
"""Room that is kept for the log itself."""


class Engine(ClusterView):
    """See the module. Times in ns; pure except for the disk port."""

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
        news: Callable[[], ServerNews],
    ) -> None:
        super().__init__(options, Liveness(options.boot, options.life), news)
        self.disk = disk
        self.outbox = PeerOutbox(options.me)
        wal_options = WalOptions(options.incarnation, options.log_segment_bytes)
        wal, recovered = Wal.open(disk, "log", wal_options)
        self.groups = Groups(wal, self.outbox, options.limits)
        self.env = ReplicaContext(
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
        )
        life, boot = options.life, options.boot
        founder = GroupBootstrap(
            options.me, life, boot, wal, options.timing, jitter, options.raft_limits
        )
        founder.take(recovered, find_loss(disk, recovered))
        for damage in recovered.damage:
            self.env.log(LogLevel.ERROR, f"Damaged log: {damage}")
        self.founder = founder
        self.assets = Assets(self.env, founder, new_id, streams)
        self.meta = MetaReplica(self.env, self.meta_state, self._follow_meta)
        self.transfers = Transfers(self.groups, self.outbox, self.env.logs)
        self.reconfigurator = Reconfigurator(self.env, self.assets, self.online, self.to_meta)
        self.deadlines: Deadlines[str] = Deadlines()
        self.removed = False
        """An operator removed this server from the cluster."""
        self._told_to_go = False
        self.reads: list[tuple[int, bool]] = []
        """(token, may be served) of finished `read` calls."""
        self._new_id = new_id
        self._bootstrap: Bootstrap | None = None
        self._history = 0
        """The meta log's end at the start."""
        self._last_tick_ns = 0
        self._news_due_ns = 0
        self._maintain_due_ns = 0
        self._disk_due_ns = 0
        self._warned: set[str] = set()

    # Start and end

    def start(self, now_ns: int) -> None:
        """Take up what is on the disk; without any, begin to found or to join."""
        self.env.now_ns = self.now_ns = self._last_tick_ns = now_ns
        if is_evicted(self.disk):
            self._evict()
            return
        self.founding = read_founding(self.disk)
        options = self.options
        if self.founding is not None:
            self._start_meta(self.founding)
        else:
            self._bootstrap = Bootstrap(
                options.me, options.life, options.clustered, options.promised, now_ns
            )
            self._found(now_ns)

    def _found(self, now_ns: int) -> None:
        assert self._bootstrap is not None
        seen = [
            Seen(
                peer,
                news.facts.jetstream,
                self._foundings.get(peer),
                news.facts.incarnation,
            )
            for peer, news in self.servers.items()
            if self.liveness.is_up(peer)
        ]
        founding = self._bootstrap.decide(seen, self._new_id(), now_ns)
        if founding is None:
            return
        write_founding(self.disk, founding)
        self.founding, self._bootstrap = founding, None
        self._start_meta(founding)
        for peer in self.peers_up():
            self.outbox.parcel(peer).foundings.append(founding)

    def _start_meta(self, founding: Founding) -> None:
        loaded = state_file.load(self.disk, DIRECTORY)
        for damage in loaded.damage:
            self.env.log(LogLevel.ERROR, f"Damaged meta state: {damage}")
        state = loaded.state
        if state is not None:
            self.meta.meta.restore(state.snapshot)
            self.meta.generation = state.generation
        life = founding.life_of(self.options.me)
        raft = self.founder.start(
            GROUP_NAME.encode(),
            state,
            peers=founding.members,
            founders=founding.members,
            life=life,
            volatile=False,
            doubt=bool(loaded.damage),
        )
        group = RaftGroup(GROUP_NAME, GROUP_NAME.encode(), GroupKind.META, raft, self.meta, {})
        if state is not None:
            group.checkpointed, group.applied_term = state.index, state.term
        self.meta.group = group
        self.groups.add(group)
        self.founder.expect(raft.last_index)
        self._history = raft.last_index
        self._follow_meta()

    @property
    def has_meta(self) -> bool:
        """Whether this server takes part in a meta group."""
        return self.founding is not None and not self.removed

    def _follow_meta(self) -> None:
        self.env.replaying = self.meta.newest <= self._history
        for change in self.meta.meta.take_changes():
            self.assets.follow(change)
            self.env.facts.append(MetaChanged(change, self.meta.leading))
            server = change.server
            if server is not None and server.removed and server.peer == self.options.me:
                self._told_to_go = server.incarnation == self.options.life

    def close(self) -> None:
        """The process ends: release files."""
        self.assets.close()
        self.groups.wal.close()

    # Peers

    def linked(self, peer: str) -> None:
        """A connection to a broker is there."""
        self.liveness.linked(peer, self.env.now_ns)

    def unlinked(self, peer: str) -> None:
        """The last connection to a broker closed."""
        self._live(self.liveness.unlinked(peer))

    def _live(self, events: Iterable[LivenessEvent]) -> None:
        for event in events:
            if isinstance(event, WentUp):
                self.groups.peer_up(event.peer)
                self._greet(event.peer)
            elif isinstance(event, WentDown):
                self.groups.peer_down(event.peer)
            elif isinstance(event, Restarted):
                self.forget_leader(event.peer)
                if event.incarnation_changed:
                    self.env.log(LogLevel.WARNING, f"Peer {event.peer} came back with another disk")

    def _greet(self, peer: str) -> None:
        parcel = self.outbox.parcel(peer)
        parcel.news.append(self._news())
        if self.founding is not None:
            parcel.foundings.append(self.founding)
        parcel.announcements.extend(
            known for known in self.leaders.values() if known.leader == self.options.me
        )

    def receive(self, frame: PeerFrame, now_ns: int) -> None:
        """A frame of another broker. Raises ProtocolError when raft messages do not decode."""
        peer = frame.sender
        if frame.heartbeat is not None:
            self._live(self.liveness.heard(peer, frame.heartbeat, now_ns))
        self._hear_news(frame)
        for founding in frame.foundings:
            self._foundings[peer] = founding
            self._check_conflict(peer)
        for known in frame.announcements:
            self.learn_leader(known)
        if self.has_meta and not self.foreign(peer):
            self._step(frame)
        for chunk in frame.chunks:
            self.transfers.received(peer, chunk)
        for ack in frame.acks:
            self.transfers.acked(peer, ack, now_ns)
        for proposal in frame.proposals:
            self.to_meta(proposal.entries)

    def _hear_news(self, frame: PeerFrame) -> None:
        for news in frame.news:
            self.servers[frame.sender] = news
            if self.is_removed(news.facts):
                told = Eviction(news.facts.incarnation)
                self.outbox.parcel(frame.sender).evictions.append(told)
        if any(one.life == self.options.life for one in frame.evictions):
            self._told_to_go = True

    def _evict(self) -> None:
        """Stop to take part, for good: the rest of the cluster counts without this server."""
        self.removed = True
        self.founding = None
        self.forget_leader(self.options.me)
        self.groups.park()
        self.assets.park()
        self.env.log(
            LogLevel.ERROR,
            "JetStream being DISABLED, our server was removed from the cluster; its data is kept,"
            " empty the store to join again as a new member",
        )

    def _step(self, frame: PeerFrame) -> None:
        for batch in frame.raft:
            try:
                messages = codec.decode_messages(batch.messages)
            except ValueError as error:
                raise ProtocolError(f"raft messages of {frame.sender}: {error}") from error
            self.groups.step(batch.group, messages)

    def _give_up_founding(self) -> None:
        """Follow the others when the group that this server takes part in came to nothing."""
        if self.founding is None or self.removed or self.meta.group.raft.last_index:
            return
        better = hopeless(self.founding, self.options.me, self._foundings)
        if better is None:
            return
        self.env.log(LogLevel.INFO, "Joining the JetStream cluster that the others founded")
        self.groups.remove(self.meta.group)
        write_founding(self.disk, better)
        self.founding = better
        self._start_meta(better)

    def _check_conflict(self, peer: str) -> None:
        seen = [Seen(peer, True, self._foundings.get(peer))]
        if conflict(self.founding, seen) and peer not in self._warned:
            self._warned.add(peer)
            self.env.log(
                LogLevel.ERROR,
                f"Peer {peer} belongs to another JetStream cluster (both were founded apart);"
                " empty the store of one side to join it to the other",
            )

    def to_meta(self, entries: list[bytes]) -> None:
        """Have entries proposed by the meta leader; dropped when there is none."""
        if self.founding is not None and self.meta.group.leading:
            self.meta.propose(entries, None)
            return
        leader = self.leader_of(GROUP_NAME)
        if leader and leader != self.options.me:
            self.outbox.parcel(leader).proposals.append(MetaProposal(entries))

    # Disk

    def synced(self, ticket: int) -> None:
        """A disk batch is durable."""
        self.groups.synced(ticket)

    # Time

    def tick_early(self, now_ns: int) -> int:
        """Before the turn's messages: a little of the time that went by; returns the rest."""
        self.env.now_ns = self.groups.now_ns = self.now_ns = now_ns
        ticks = (now_ns - self._last_tick_ns) // TICK_NS
        if ticks <= 0:
            return 0
        self._last_tick_ns += ticks * TICK_NS
        ticks = min(ticks, TICKS_MAX)
        early = min(ticks, EARLY_TICKS)
        self.groups.tick(early)
        return ticks - early

    def tick_late(self, ticks: int) -> None:
        """After the turn's messages: the rest of the time, and what it makes due."""
        now_ns = self.env.now_ns
        if ticks:
            self.groups.tick(ticks)
        self._live(self.liveness.tick(now_ns))
        for peer, beat in self.liveness.due(now_ns):
            self.outbox.parcel(peer).heartbeat = beat
        self._send_news()
        if self._bootstrap is not None:
            self._found(now_ns)
        elif self.reconfigurator.due(now_ns):
            self.reconfigurator.steer()
            self._give_up_founding()
            if self.has_meta:
                self.reconfigurator.steer_meta(self.meta, self.facts())
        if now_ns >= self._disk_due_ns:
            self._disk_due_ns = now_ns + DISK_LOOK_NS
            self._watch_disk()
        if now_ns >= self._maintain_due_ns:
            self._maintain_due_ns = now_ns + MAINTAIN_NS
            self.transfers.tick(now_ns)
            self.groups.relieve()
            self.assets.tidy(self.pace())

    def _send_news(self) -> None:
        now_ns = self.env.now_ns
        if now_ns >= self._news_due_ns:
            self._news_due_ns = now_ns + NEWS_NS
            news = self._news()
            for peer in self.peers_up():
                parcel = self.outbox.parcel(peer)
                parcel.news.append(news)
                if self.founding is not None:
                    parcel.foundings.append(self.founding)

    def _watch_disk(self) -> None:
        """Stop to take messages before the disk is full, and go on when there is room again."""
        full = self.disk.free_bytes() < DISK_RESERVE_BYTES
        if full != self.env.disk_full:
            self.env.disk_full = full
            text = "Disk is full: publishes are refused, reads go on" if full else "Disk has room"
            self.env.log(LogLevel.ERROR if full else LogLevel.INFO, text)

    # Work

    def collect(self, sinks: Iterable[Sink]) -> list[Sink]:
        """Wake the replicas that captured something; other sinks are returned."""
        others: list[Sink] = []
        for sink in sinks:
            owner = sink.owner
            if isinstance(owner, StreamReplica | ConsumerReplica):
                self.env.wake(owner.group.name, owner)
            else:
                others.append(sink)
        return others

    def run(self, collect: Callable[[], None]) -> None:
        """Propose, drain, apply and deliver until there is nothing more to do in this turn.

        `collect` is called between rounds, to take the facts and to look for what the work itself
        captured.
        """
        env = self.env
        for name in self.deadlines.due(env.now_ns):
            self._wake_by_name(name)
        env.go_on(others=self.groups.busy)
        for replica in self.assets.pushers.values():
            if replica.interest_changed():
                env.wake(replica.group.name, replica)
        self.groups.drain()
        self._follow()
        for _ in range(ROUNDS_MAX):
            collect()
            if not env.dirty:
                break
            dirty, env.dirty = env.dirty, {}
            env.share(len(dirty))
            for name, runner in dirty.items():
                runner.run()
                self._schedule(name, runner)
            if env.unused:
                self.reconfigurator.remove_unused()
            self.groups.drain()
            self._follow()
        if self._told_to_go and not self.removed:
            write_evicted(self.disk)
            self._evict()

    def take_facts(self) -> list[Fact]:
        """What was found out since the last call, in order."""
        facts, self.env.facts = self.env.facts, []
        return facts

    def _wake_by_name(self, name: str) -> None:
        group = self.groups.by_name.get(name)
        if group is not None and isinstance(group.unit, StreamReplica | ConsumerReplica):
            self.env.wake(name, group.unit)

    def _schedule(self, name: str, runner: Runner) -> None:
        due: int | None = None
        if isinstance(runner, StreamReplica):
            due = runner.next_due_ns()
        elif isinstance(runner, ConsumerReplica):
            due = runner.due_ns
        if due is None:
            self.deadlines.cancel(name)
        else:
            self.deadlines.set(name, due)

    def _follow(self) -> None:
        groups = self.groups
        if self.assets.waiting:
            meta = self.meta_state
            self.assets.retry(lambda account, stream: meta.consumers(account, stream).values())
        changes, groups.changes = groups.changes, []
        for change in changes:
            self._leader_changed(change)
        needs, groups.needs_state = groups.needs_state, []
        for group, peer in needs:
            self.transfers.wanted(group, peer, self.env.now_ns)
        finished, groups.checkpoints.finished = groups.checkpoints.finished, []
        for group, work in finished:
            if isinstance(work, ImportJob):
                self.transfers.imported(group, work)
        reads, groups.reads.answers = groups.reads.answers, []
        self.reads.extend((token, good) for _, token, good in reads)

    def _leader_changed(self, change: LeaderChange) -> None:
        group = change.group
        known = Announcement(group.name, change.term, change.leader)
        self.env.facts.append(change)
        if change.leader != self.options.me:
            if change.leader:
                self.learn_leader(known)
            return
        self.leaders[group.name] = known
        if isinstance(group.unit, StreamReplica | ConsumerReplica):
            self.assets.unsettled[group.name] = group.unit
        for peer in self.peers_up():
            self.outbox.parcel(peer).announcements.append(known)

    def seal(self) -> list[DiskBatch]:
        """End of the turn: work for the disk thread."""
        return self.groups.seal()

    def next_due_ns(self) -> int | None:
        """When the next turn has to be, even if nothing arrives."""
        env = self.env
        if env.later or env.dirty or self.groups.busy:
            return env.now_ns
        due = [self.liveness.deadline_ns(), self.deadlines.next()]
        if self.groups.awake:
            due.append(self._last_tick_ns + TICK_NS)
        if self.options.clustered:
            due.append(self._news_due_ns)
            due.append(self.reconfigurator.next_due_ns())
        if self._bootstrap is not None:
            due.append(env.now_ns + TICK_NS)
        return min((at for at in due if at is not None), default=None)
