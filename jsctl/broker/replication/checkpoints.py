"""When the applied state of a group is made durable, so that the log can let go of its entries."""

from collections.abc import Callable, Iterator
from dataclasses import field
from itertools import islice

from jsctl.broker.raft import codec
from jsctl.broker.raft.types import Index
from jsctl.broker.replication.disk_jobs import DiskJob
from jsctl.broker.replication.drafts import Draft
from jsctl.broker.replication.group import RaftGroup, SyncJob
from jsctl.broker.replication.schedule import Schedule
from jsctl.broker.store.wal.log import Wal
from jsctl.dataclass import dataclass

RESTING_BYTES = 1 << 20
"""So much of a group's log is let go of when nothing is added to it for a while."""
IN_TURN_AT_ONCE = 8
"""States that wait for their turn begin while the disk has fewer: each opens and writes files, and
thousands of groups may keep the same part of the log."""


@dataclass(slots=True)
class GroupLimits:
    """When a group's applied state is made durable so that the log can be released."""

    checkpoint_bytes: int = 16 * 1024 * 1024
    checkpoint_entries: int = 50_000
    checkpoint_bytes_max: int = 64 * 1024 * 1024
    """A state of more than `checkpoint_bytes` (message ids, above all) is written anew when as much
    was added to the log, so that it is not written again and again; or so much."""
    entries_kept: int = 2_000
    """Entries that stay in memory for followers that are a little behind."""
    lagging_bytes_max: int = 256 * 1024 * 1024
    """Memory for more of them, in all groups: what followers lack that are there, but further
    behind. Those for which that is not enough get the whole state."""
    lagging_entries_max: int = 100_000
    """The same in entries, for one group."""
    drain_rounds: int = 64
    """Rounds of one drain; what is left is done in the next turn."""


@dataclass(slots=True)
class Checkpointer:
    """Jobs for the disk thread, from being due until they ran. `tickets` numbers them."""

    wal: Wal
    schedule: Schedule
    limits: GroupLimits
    tickets: Iterator[int]
    finished: list[tuple[RaftGroup, SyncJob]] = field(default_factory=list)
    """Jobs of `run` that ran; whoever takes them clears this."""
    _progressed: dict[str, RaftGroup] = field(default_factory=dict)
    _loaded: dict[str, tuple[RaftGroup, int]] = field(default_factory=dict)
    """Groups with much in their log, and how far they were applied when that was seen."""
    _lagging: dict[str, tuple[RaftGroup, int]] = field(default_factory=dict)
    """Groups that keep more for followers, and how many bytes of it."""
    _later: dict[str, tuple[RaftGroup, Callable[[], bool]]] = field(default_factory=dict)
    """Groups that want a checkpoint, as soon as they say so."""
    _in_turn: dict[str, RaftGroup] = field(default_factory=dict)
    """Groups whose turn comes."""
    _jobs: dict[int, DiskJob] = field(default_factory=dict)
    """With the disk, or on their way to it."""
    _queued: list[DiskJob] = field(default_factory=list)
    _drafts: dict[str, tuple[RaftGroup, Draft]] = field(default_factory=dict)
    """States that are not whole yet."""
    _foreign: set[int] = field(default_factory=set)
    """Tickets of `run`."""

    @property
    def running(self) -> int:
        """How many jobs the disk thread has, or gets with the end of this turn or later."""
        return len(self._jobs) + len(self._drafts)

    @property
    def drafting(self) -> bool:
        """Whether the next turn has to go on with a state."""
        return bool(self._drafts)

    @property
    def is_behind(self) -> bool:
        """Whether more groups wait for their turn than the disk takes at once."""
        return len(self._in_turn) > IN_TURN_AT_ONCE

    def applied(self, group: RaftGroup) -> None:
        """Entries of the group were applied: its checkpoint may be due."""
        assert group.checkpointed <= group.raft.applied, group.name
        self._progressed[group.name] = group

    def soon(self, group: RaftGroup) -> None:
        """Make a group's applied state durable with this turn's work for the disk."""
        assert not group.gone, group.name
        if group.checkpoint_running or group.replacing:
            group.checkpoint_again = True
        else:
            self._begin(group)

    def in_turn(self, group: RaftGroup) -> None:
        """Make a group's applied state durable when the disk is done with those before it."""
        self._in_turn[group.name] = group

    def later(self, group: RaftGroup, may: Callable[[], bool]) -> None:
        """Make a group's applied state durable once it `may` be, which is asked now and then."""
        self._later[group.name] = group, may

    def rest(self) -> None:
        """Now and then: what took much, and nothing since the last call, becomes durable without
        the log, so that memory and disk need not hold it any longer; and what was kept for
        followers that have it by now is forgotten."""
        for group, _ in list(self._lagging.values()):
            self.compact(group)
        for name, (group, may) in list(self._later.items()):
            if group.gone or may():
                del self._later[name]
                if not group.gone:
                    group.unit.state_overtaken()
                    self.in_turn(group)
        loaded, self._loaded = self._loaded, {}
        for name, (group, seen) in loaded.items():
            if group.gone or group.log_bytes <= RESTING_BYTES:
                continue
            if group.raft.applied != seen or group.checkpoint_running:
                self._loaded[name] = group, group.raft.applied
            else:
                self.in_turn(group)

    def when_written(self, group: RaftGroup, then: Callable[[], None]) -> None:
        """Do something when the checkpoint that `soon` asked for is written."""
        group.after_checkpoint.append(then)

    def run(self, group: RaftGroup, work: SyncJob) -> None:
        """Have the disk thread write another state for a group; it comes back in `finished`.

        Until it is `taken` no checkpoint begins, and none that has not come as far as the disk goes
        on: it would be of the former state, and newer."""
        group.replacing += 1
        if self._drafts.pop(group.name, None) is not None:
            group.checkpoint_running, group.checkpoint_again = False, True
            group.unit.state_overtaken()  # It took what was begun for written.
        self._foreign.add(self._queue(group, work).ticket)

    def taken(self, group: RaftGroup) -> None:
        """What came back in `finished` is used by now, or is not wanted any more."""
        group.replacing -= 1
        if group.checkpoint_again and not (group.gone or group.checkpoint_running):
            group.checkpoint_again = False
            self.soon(group)

    def seal(self) -> list[DiskJob]:
        """End of the turn: what the disk thread has to do now."""
        limits = self.limits
        progressed, self._progressed = self._progressed, {}
        for group in progressed.values():
            behind = group.raft.applied - group.checkpointed
            large = min(group.state_bytes, limits.checkpoint_bytes_max)
            logged = group.log_bytes > max(limits.checkpoint_bytes, large)
            due = logged or behind > limits.checkpoint_entries
            if due and not (group.checkpoint_running or group.replacing):
                self._begin(group)
            elif group.log_bytes > RESTING_BYTES and group.name not in self._loaded:
                self._loaded[group.name] = group, 0
        for name in list(islice(self._in_turn, max(0, IN_TURN_AT_ONCE - len(self._jobs)))):
            group = self._in_turn.pop(name)
            if not group.gone:
                self.soon(group)
        for name, (group, draft) in list(self._drafts.items()):
            if draft.go_on():
                del self._drafts[name]
                self._queue(group, draft)
        queued, self._queued = self._queued, []
        return queued

    def _begin(self, group: RaftGroup) -> None:
        assert not group.checkpoint_running, group.name
        members = codec.encode_members(group.applied_members)
        work = group.unit.checkpoint(group.raft.applied, group.applied_term, members)
        if work is None:
            return
        group.checkpoint_running = True
        group.log_bytes = 0
        if isinstance(work, Draft) and not work.go_on():
            self._drafts[group.name] = group, work
        else:
            self._queue(group, work)

    def _queue(self, group: RaftGroup, work: SyncJob) -> DiskJob:
        job = DiskJob(next(self.tickets), group, work)
        self._jobs[job.ticket] = job
        self._queued.append(job)
        return job

    def done(self, ticket: int) -> bool:
        """A batch ran; whether it was one of these. What the log need not keep is let go of."""
        job = self._jobs.pop(ticket, None)
        if job is None:
            return False
        foreign = ticket in self._foreign
        self._foreign.discard(ticket)
        if job.group.gone:
            return True
        if foreign:
            self.finished.append((job.group, job.work))
        else:
            self._written(job.group, job.work)
        return True

    def _written(self, group: RaftGroup, work: SyncJob) -> None:
        assert group.checkpoint_running and work.index <= group.raft.applied, group.name
        group.checkpoint_running = False
        group.checkpointed = max(group.checkpointed, work.index)
        group.unit.checkpointed(work)
        self.wal.release(group.key, group.checkpointed)
        self.compact(group)
        if group.checkpoint_again:
            group.checkpoint_again = False
            self.soon(group)
            return
        after, group.after_checkpoint = group.after_checkpoint, []
        for then in after:
            then()

    def compact(self, group: RaftGroup) -> None:
        """Let memory go of entries that nobody needs: durable in the store, known to followers."""
        raft = group.raft
        keep_from = self.wanted_behind(group, raft.applied - self.limits.entries_kept)
        known = min((p.match for p in raft.progress()), default=raft.applied)
        floor = min(group.checkpointed, max(keep_from, known))
        if floor > raft.base_index:
            raft.compact(floor)
            self.schedule.touch(group)

    def wanted_behind(self, group: RaftGroup, index: Index) -> Index:
        """`index`, or the one before it behind which entries stay for followers that are there.

        While their state is on its way others are published: were these forgotten, the next thing
        that they need would be a state again, and so on as long as messages come.
        """
        raft, limits = group.raft, self.limits
        self._lagging.pop(group.name, None)
        lacking = [
            group.states_sent.get(one.peer, index if one.snapshot else one.match)
            for one in raft.progress()
            if one.active
        ]
        behind = min(lacking, default=index)
        if behind >= index:
            return index
        room = limits.lagging_bytes_max - sum([size for _, size in self._lagging.values()])
        behind, size = raft.log.newest(behind, room, limits.lagging_entries_max)
        if behind >= index:
            return index
        self._lagging[group.name] = group, size
        return behind

    def forget(self, group: RaftGroup) -> None:
        """A group is not ours any more."""
        self._progressed.pop(group.name, None)
        self._in_turn.pop(group.name, None)
        self._lagging.pop(group.name, None)
        self._drafts.pop(group.name, None)
        for job in self._queued:
            if job.group is group:
                del self._jobs[job.ticket]
                self._foreign.discard(job.ticket)
        self._queued = [job for job in self._queued if job.group is not group]
