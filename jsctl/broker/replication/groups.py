"""All raft groups of this server over one write-ahead log.

Theory of operation. Inputs make groups dirty. `drain` empties the Ready of each dirty group:
records go to the log, messages that may leave at once go to the outbox, committed entries are
applied. `seal` ends the turn: when no batch is with the disk, everything collected becomes one
batch, and what had to wait for it (votes, append answers, `persisted`) is kept under the
batch's ticket. `synced` releases it. While a batch is with the disk the next one collects, so
one sync carries whatever arrived meanwhile. Entries of groups that live in memory do not go to
the log and wait for nothing but their group's terms and votes, which do.

Invariant: nothing in `send_after_sync` leaves before the batch with that Ready's records, and
all batches before it, are durable.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from jsctl.broker.ports import Disk
from jsctl.broker.raft import codec
from jsctl.broker.raft.core import Raft
from jsctl.broker.raft.ready import Ready
from jsctl.broker.raft.types import EntryKind, Index, Message, PeerId, Role
from jsctl.broker.replication.disk_jobs import DiskJob, Removal
from jsctl.broker.replication.group import LeaderChange, RaftGroup, SyncJob, Waiter
from jsctl.broker.replication.group_reads import Reads
from jsctl.broker.store.wal import Wal
from jsctl.broker.turn import DiskBatch


@dataclass(slots=True)
class After:
    """What waits for a batch: messages of one group, and how far its log is then durable."""

    group: RaftGroup
    to_persist: tuple[Index, int] | None
    messages: list[Message]


class Outbox(Protocol):
    """Where messages to peers collect during a turn."""

    def raft(self, peer: PeerId, key: bytes, messages: Sequence[Message]) -> None:
        """Queue messages of one group for a peer."""


@dataclass(slots=True)
class GroupLimits:
    """When a group's applied state is made durable so that the log can be released."""

    checkpoint_bytes: int = 16 * 1024 * 1024
    checkpoint_entries: int = 50_000
    entries_kept: int = 2_000
    """Entries that stay in memory for followers that are a little behind."""
    drain_rounds: int = 64
    """Rounds of one drain; what is left is done in the next turn."""


@dataclass(slots=True)
class Groups:
    """The registry of groups and the one place that moves their Ready."""

    wal: Wal
    outbox: Outbox
    limits: GroupLimits
    now_ns: int = 0
    """The time of the turn."""
    by_name: dict[str, RaftGroup] = field(default_factory=dict)
    changes: list[LeaderChange] = field(default_factory=list)
    needs_state: list[tuple[RaftGroup, PeerId]] = field(default_factory=list)
    """(group, follower) whose next entry this leader does not keep any more."""
    finished: list[tuple[RaftGroup, SyncJob]] = field(default_factory=list)
    """Jobs of `run_job` that ran."""
    reads: Reads = field(default_factory=Reads)
    _by_key: dict[bytes, RaftGroup] = field(default_factory=dict)
    _dirty: dict[str, RaftGroup] = field(default_factory=dict)
    _awake: dict[str, RaftGroup] = field(default_factory=dict)
    _progressed: dict[str, RaftGroup] = field(default_factory=dict)
    _after: list[After] = field(default_factory=list)
    _unsealed: list[RaftGroup] = field(default_factory=list)
    _in_sync: dict[int, list[After]] = field(default_factory=dict)
    _jobs: dict[int, DiskJob] = field(default_factory=dict)
    _queued: list[DiskJob] = field(default_factory=list)
    _removals: dict[int, Removal] = field(default_factory=dict)
    _new_removals: list[Removal] = field(default_factory=list)
    _foreign: set[int] = field(default_factory=set)
    _in_flight: int = 0
    _done: int = 0
    _job_ticket: int = -1

    def add(self, group: RaftGroup) -> None:
        """Take a group in; it runs from the next drain on."""
        assert group.name not in self.by_name, group.name
        self.by_name[group.name] = group
        self._by_key[group.key] = group
        self._awake[group.name] = group
        self._await_seal(group)
        self.touch(group)

    def remove(self, group: RaftGroup) -> None:
        """Forget a group that is not ours any more; its part of the log is the founder's."""
        self._unlead(group)
        group.fail_waiting()
        group.gone = True
        self.by_name.pop(group.name, None)
        self._by_key.pop(group.key, None)
        self._awake.pop(group.name, None)
        self._dirty.pop(group.name, None)
        self._after = [after for after in self._after if after.group is not group]
        self.reads.fail(group)
        self._queued = [job for job in self._queued if job.group is not group]

    def park(self) -> None:
        """Stop all groups and keep what they have on the disk."""
        for group in self.by_name.values():
            self._unlead(group)
            group.fail_waiting()
        self.reads.fail()
        for registry in (self.by_name, self._by_key, self._awake, self._dirty):
            registry.clear()
        self._after.clear()

    def by_key(self, key: bytes) -> RaftGroup | None:
        """The group that peers name by this key."""
        return self._by_key.get(key)

    def touch(self, group: RaftGroup) -> None:
        """The group has something to do."""
        if not group.dirty:
            group.dirty = True
            self._dirty[group.name] = group

    def step(self, key: bytes, messages: Sequence[Message]) -> bool:
        """Messages of a peer for a group; False when the group is not here."""
        group = self._by_key.get(key)
        if group is None:
            return False
        group.raft.step(messages)
        self._awake[group.name] = group
        self.touch(group)
        return True

    def propose(
        self, group: RaftGroup, entries: Sequence[bytes], waiter: Waiter | None
    ) -> Index | None:
        """Put entries into the log; `waiter` is told the last one's result. None: not leading."""
        index = group.raft.propose(entries)
        if index is None:
            return None
        last = index + len(entries) - 1
        if waiter is not None:
            group.waiting[last] = waiter
        self._awake[group.name] = group
        self.touch(group)
        return index

    def read(self, group: RaftGroup, token: int) -> None:
        """Ask whether a read at this leader is current; `reads` gets the answer."""
        self.reads.asked(group, token)
        group.raft.read_index(token)
        self._awake[group.name] = group
        self.touch(group)

    def tick(self, ticks: int) -> None:
        """Time went on by `ticks` for every group that is not asleep."""
        for group in list(self._awake.values()):
            raft = group.raft
            for _ in range(ticks):
                raft.tick()
            if raft.quiet:
                self._awake.pop(group.name, None)
            self.touch(group)

    def peer_down(self, peer: PeerId) -> None:
        """A server is not reachable: wake what slept in trust of it."""
        for group in self.by_name.values():
            if self._concerns(group, peer):
                group.raft.peer_down(peer)
                self._awake[group.name] = group
                self.touch(group)

    def peer_up(self, peer: PeerId) -> None:
        """A server is reachable again."""
        for group in self.by_name.values():
            # It may have left the group since it went down, and is to come back later.
            if peer in group.raft.down or self._concerns(group, peer):
                group.raft.peer_up(peer)
                self._awake[group.name] = group
                self.touch(group)

    @staticmethod
    def _concerns(group: RaftGroup, peer: PeerId) -> bool:
        members = group.raft.members
        return peer in members.voters or peer in members.learners or group.raft.leader == peer

    def synced(self, ticket: int) -> None:
        """A batch is durable: release what waited for it."""
        if self._removals.pop(ticket, None) is not None:
            return
        job = self._jobs.pop(ticket, None)
        if job is not None:
            self._job_done(job)
            return
        self.wal.done(ticket)
        self._in_flight -= 1
        self._done = ticket
        for after in self._in_sync.pop(ticket, ()):
            self._release(after)

    def _release(self, after: After) -> None:
        group = after.group
        if group.gone:
            return
        if after.to_persist is not None:
            group.raft.persisted(*after.to_persist)
        self._send(group, after.messages)
        self.touch(group)

    def _send(self, group: RaftGroup, messages: Iterable[Message]) -> None:
        by_peer: dict[PeerId, list[Message]] = {}
        for message in messages:
            by_peer.setdefault(message.to, []).append(message)
        for peer, batch in by_peer.items():
            self.outbox.raft(peer, group.key, batch)

    def drain(self) -> None:
        """Move every dirty group's Ready until nothing is left to do in this turn."""
        for _ in range(self.limits.drain_rounds):
            if not self._dirty:
                return
            dirty, self._dirty = self._dirty, {}
            for group in dirty.values():
                group.dirty = False
                # An entry of the meta group may just have removed it.
                if not group.gone:
                    self._drain_one(group)

    @property
    def busy(self) -> bool:
        """Whether something is left for another turn."""
        return bool(self._dirty)

    def _drain_one(self, group: RaftGroup) -> None:
        raft = group.raft
        if raft.founding:
            group.unit.founded()
        ready = raft.ready()
        if not ready:
            return
        self._write(group, ready)
        if ready.send:
            self._send(group, ready.send)
        # Invariant: who waits for an entry of this leader is told before entries of another one
        # are applied, which may stand at the same indexes.
        if group.leading and not self._still_leads(group):
            self._unlead(group)
        if ready.committed:
            self._apply(group, ready)
        if ready.needs_snapshot:
            self.needs_state.extend((group, peer) for peer in ready.needs_snapshot)
        self.reads.take(group, ready)
        self._follow_role(group)

    def _write(self, group: RaftGroup, ready: Ready) -> None:
        """Hand what is to be durable to the log. Entries that only memory holds are not: whoever
        restarts has lost the state that they led to, and believes none of them."""
        wal, key, volatile = self.wal, group.key, group.raft.volatile
        before = wal.pending_bytes
        if ready.truncate_from is not None and not volatile:
            wal.add_truncate(key, ready.truncate_from)
        if ready.base is not None:
            base = ready.base
            wal.add_base(key, base.index, base.term, codec.encode_members(base.members))
        if ready.hard_state is not None:
            term, vote = ready.hard_state
            wal.add_vote(key, term, vote.encode())
        if ready.append:
            if not volatile:
                wal.add_entries(key, [(e.index, e.term, int(e.kind), e.data) for e in ready.append])
            group.log_bytes += sum([len(e.data) for e in ready.append])
        if ready.standing is not None:
            standing = ready.standing
            wal.add_standing(key, standing.kind.name.lower(), standing.term, standing.index)
        if wal.pending_bytes > before:
            self._await_seal(group)
        if ready.to_persist or ready.send_after_sync:
            after = After(group, ready.to_persist, ready.send_after_sync)
            if volatile and not group.unsealed and group.ticket not in self._in_sync:
                self._release(after)
            else:
                self._after.append(after)
                self._await_seal(group)

    def _await_seal(self, group: RaftGroup) -> None:
        if not group.unsealed:
            group.unsealed = True
            self._unsealed.append(group)

    def _apply(self, group: RaftGroup, ready: Ready) -> None:
        unit, waiting = group.unit, group.waiting
        for entry in ready.committed:
            result = 0
            if entry.kind is EntryKind.DATA:
                result = unit.apply(entry.index, entry.data)
            elif entry.kind is EntryKind.CONFIG:
                group.members = codec.decode_members(entry.data)
            group.applied_term = entry.term
            if waiting:
                waiter = waiting.pop(entry.index, None)
                if waiter is not None:
                    waiter(result)
        group.raft.applied_to(ready.committed[-1].index)
        self._progressed[group.name] = group
        unit.caught_up()
        self.touch(group)

    @staticmethod
    def _serves(raft: Raft) -> bool:
        """Whether this server leads, and has applied all that came before it.

        A quorum may have committed the leader's first own entry before this server's own disk
        is done with it: until then its state lacks what it holds, and nothing may be decided.
        """
        return raft.role is Role.LEADER and raft.serving and raft.applied >= raft.own_term_index

    def _still_leads(self, group: RaftGroup) -> bool:
        return self._serves(group.raft) and group.led_term == group.raft.term

    def _follow_role(self, group: RaftGroup) -> None:
        raft = group.raft
        serving = self._serves(raft)
        if group.leading and not self._still_leads(group):
            self._unlead(group)
        leader = raft.leader or ""
        if raft.role is Role.LEADER and not serving:
            leader = ""
        if leader != group.leader or (serving and not group.leading):
            group.leader = leader
            self.changes.append(LeaderChange(group, leader, raft.term))
        if serving and not group.leading:
            group.leading = True
            group.led_term = raft.term
            group.leader_since_ns = self.now_ns
            group.unit.lead(raft.term)
            self.touch(group)

    def _unlead(self, group: RaftGroup) -> None:
        if group.leading:
            group.leading = False
            group.unit.unlead()
            group.fail_waiting()

    @property
    def awake(self) -> bool:
        """Whether any group needs ticks."""
        return bool(self._awake)

    def relieve(self) -> None:
        """Free the oldest part of the log of groups that alone keep it."""
        for key, index in self.wal.pinned():
            group = self._by_key.get(key)
            if group is None:
                continue
            if group.checkpointed < index:
                self.checkpoint_soon(group)
            elif group.raft.base_index < index <= group.checkpointed:
                group.raft.compact(min(group.checkpointed, group.raft.applied))
                self.touch(group)

    def seal(self) -> list[DiskBatch]:
        """End of the turn: what the disk has to do now."""
        batches: list[DiskBatch] = []
        if self._in_flight == 0:
            batch = self.wal.take_batch()
            if batch is not None:
                self._in_flight += 1
                self._in_sync[batch.ticket] = self._after
                for group in self._unsealed:
                    group.ticket = batch.ticket
                self._after = []
                batches.append(batch)
            elif self._after:
                after_all, self._after = self._after, []
                for after in after_all:
                    self._hold_or_release(after)
            for group in self._unsealed:
                group.unsealed = False
            self._unsealed = []
        batches.extend(self._queued)
        self._queued = []
        batches.extend(self._checkpoints())
        for removal in self._new_removals:
            self._removals[removal.ticket] = removal
            batches.append(removal)
        self._new_removals = []
        return batches

    def _hold_or_release(self, after: After) -> None:
        ticket = after.group.ticket
        if ticket in self._in_sync:
            self._in_sync[ticket].append(after)
        else:
            self._release(after)

    def _checkpoints(self) -> list[DiskBatch]:
        jobs: list[DiskBatch] = []
        limits = self.limits
        progressed, self._progressed = self._progressed, {}
        for group in progressed.values():
            behind = group.raft.applied - group.checkpointed
            due = group.log_bytes > limits.checkpoint_bytes or behind > limits.checkpoint_entries
            if due and not group.checkpoint_running:
                jobs.extend(self.checkpoint(group))
        return jobs

    def checkpoint(self, group: RaftGroup) -> list[DiskJob]:
        """Start making a group's applied state durable."""
        members = codec.encode_members(group.members or group.raft.members)
        work = group.unit.checkpoint(group.raft.applied, group.applied_term, members)
        if work is None:
            return []
        group.checkpoint_running = True
        group.log_bytes = 0
        return [self._job(group, work)]

    def _job(self, group: RaftGroup, work: SyncJob) -> DiskJob:
        job = DiskJob(self._job_ticket, group, work)
        self._job_ticket -= 1
        self._jobs[job.ticket] = job
        return job

    def run_job(self, group: RaftGroup, work: SyncJob) -> None:
        """Have the disk thread do something for a group; it comes back in `finished`."""
        self._queued.append(self._job(group, work))
        self._foreign.add(self._queued[-1].ticket)

    def discard(self, disk: Disk, directory: str) -> None:
        """Have a directory deleted that nobody uses any more, but perhaps a running job."""
        removal = Removal(self._job_ticket, disk, directory)
        self._job_ticket -= 1
        self._new_removals.append(removal)

    def discarding(self, directory: str) -> bool:
        """Whether a directory is still being deleted: nothing may be built there."""
        waiting = (*self._removals.values(), *self._new_removals)
        return any(one.directory == directory for one in waiting)

    def _job_done(self, job: DiskJob) -> None:
        group = job.group
        if group.gone:
            return
        if job.ticket in self._foreign:
            self._foreign.discard(job.ticket)
            self.finished.append((group, job.work))
            return
        group.checkpoint_running = False
        group.checkpointed = max(group.checkpointed, job.work.index)
        group.unit.checkpointed(job.work)
        self.wal.release(group.key, group.checkpointed)
        self.compact(group)
        if group.checkpoint_again:
            group.checkpoint_again = False
            self.checkpoint_soon(group)
            return
        after, group.after_checkpoint = group.after_checkpoint, []
        for then in after:
            then()

    def checkpoint_soon(self, group: RaftGroup) -> None:
        """Make a group's applied state durable with this turn's work for the disk."""
        if group.checkpoint_running:
            group.checkpoint_again = True
        else:
            self._queued.extend(self.checkpoint(group))

    def when_written(self, group: RaftGroup, then: Callable[[], None]) -> None:
        """Do something when the checkpoint that `checkpoint_soon` asked for is written."""
        group.after_checkpoint.append(then)

    @property
    def jobs(self) -> int:
        """How many jobs the disk thread has or gets with the end of the turn."""
        return len(self._jobs)

    @property
    def idle(self) -> bool:
        """Whether the disk has nothing of ours to do."""
        waiting = self._jobs or self._queued or self._removals or self._new_removals
        return not waiting and self._in_flight == 0

    def compact(self, group: RaftGroup) -> None:
        """Let memory go of entries that nobody needs: durable in the store, known to followers."""
        raft = group.raft
        keep_from = raft.applied - self.limits.entries_kept
        known = min((p.match for p in raft.progress()), default=raft.applied)
        floor = min(group.checkpointed, max(keep_from, known))
        if floor > raft.base_index:
            raft.compact(floor)
            self.touch(group)
