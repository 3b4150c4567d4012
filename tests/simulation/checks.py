"""What must hold for every raft group of every server, whatever happens.

The checker sees each disk batch, each raft message that leaves, and each turn's end. It keeps one
history per group: what was ever applied at which index.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from jsctl.broker.assets.replicas.consumer_replica import ConsumerReplica
from jsctl.broker.assets.replicas.stream_replica import StreamReplica
from jsctl.broker.jetstream.meta.assignments import GroupAssignment
from jsctl.broker.raft.core import Raft
from jsctl.broker.raft.quorum import quorum_size
from jsctl.broker.raft.types import (
    AppendReply,
    EntryKind,
    HeartbeatReply,
    Message,
    Role,
    StandingKind,
    VoteReply,
    VoteRequest,
)
from jsctl.broker.replication.disk_jobs import DiskJob
from jsctl.broker.replication.group import RaftGroup
from jsctl.broker.store.wal.batch import WalBatch
from jsctl.broker.turn import DiskBatch
from tests.simulation.consumer_checks import ConsumerBooks, Told
from tests.simulation.dead_letters import DEAD
from tests.simulation.disks import DurableGroup, DurableLog
from tests.simulation.machine import Machine, Process
from tests.simulation.removal_checks import check_removals, consumed
from tests.simulation.rot import durable_states, note_unreadable
from tests.simulation.stream_checks import Books, is_memory
from tests.simulation.violation import Violation
from tests.simulation.watch import Mark

TURNS_BETWEEN_SUMS = 50
"""Adding up what a store holds takes longer than a turn."""
FOUNDING_ENTRIES = 2
"""The members, and a stream's config or where a consumer starts."""
Fact = tuple[int, EntryKind, bytes]


@dataclass
class History:
    """One group from its beginning."""

    name: str
    entries: list[Fact] = field(default_factory=list)
    """Entries 1, 2, ... that some server applied."""
    leaders: dict[int, str] = field(default_factory=dict)
    """Term -> who led in it."""
    snapshots: dict[int, bytes] = field(default_factory=dict)
    """Applied index -> state of a replica that stood there at the end of a turn."""
    books: Books | None = None
    """What a stream is known to hold."""
    consumer: ConsumerBooks | None = None
    """What a consumer is known to have done."""
    voters: tuple[str, ...] = ()
    """As the most advanced replica knew them, with the index of their entry."""
    voters_index: int = -1
    was_alone: bool = False
    """Once one replica was all there was."""
    assigned: GroupAssignment | None = None
    """As it was when a replica first began; None for the meta group."""
    stream: str = ""
    """The group of the stream that a consumer reads."""
    excused: bool = False
    """More than the fault model allows happened to its disks: nothing is checked any more."""


class Checker:
    """Histories of all groups; raises `Violation`."""

    def __init__(self, machines: list[Machine]) -> None:
        self.machines = machines
        self.groups: dict[str, History] = {}
        self.acks: list[tuple[str, int, bytes]] = []
        """(stream's group, sequence, payload expected) acknowledged in this turn."""
        self.acknowledged = 0
        self.told = Told()
        self._turns = 0
        self._assigned: set[str] = set()
        """Groups of streams and consumers that there are, by the newest state of the meta group."""
        self._assigned_at = 0

    def history(self, name: str) -> History:
        """The history of a group."""
        found = self.groups.get(name)
        if found is None:
            found = self.groups[name] = History(name)
        return found

    def consumers(self, group: str, stream: str, name: str) -> list[ConsumerBooks]:
        """Of a consumer's group, and of those that had its name and are no more."""
        found = [one.consumer for one in self.groups.values() if one.consumer is not None]
        same = [one for one in found if one.key == (stream, name)]
        mine = [one for one in same if one.group == group]
        return mine + [one for one in same if one.group != group and not self.exists(one.group)]

    def fast_told(
        self, name: str, batch: str, document: dict[str, Any], gaps: str
    ) -> list[tuple[int, bytes]]:
        """A publisher is told of a fast batch by a stream's leader: what that promises."""
        books = self.history(name).books
        return [] if books is None else books.fast_told(batch, document, gaps)

    def excused(self, name: str) -> bool:
        """Whether a group lost more than is allowed for, or a consumer's stream did."""
        known = self.history(name)
        if known.stream and self.history(known.stream).excused:
            known.excused = True
        return known.excused

    # Disks

    def started(self, process: Process) -> None:
        """What was safe before the restart must have been found again."""
        machine = process.machine
        before = machine.log
        note_unreadable(machine.disk, machine.decay, starting=True)
        machine.log = after = DurableLog.read(machine.disk, machine.incarnation)
        after.states, after.dropped = _taken(before), before.dropped
        for name, index in durable_states(machine.disk).items():
            after.checkpointed(name, index)
        if machine.decay.log:
            machine.lost.append(before)
        for name, known in before.groups.items():
            found = after.groups.get(name)
            if name in machine.interrupted.dropped and (found is None or found.last == 0):
                continue
            replaced = machine.interrupted.replaced.get(name, known.last + 1)
            missing = _missing(name, known, found, after, replaced)
            if missing and not machine.decay.log:
                raise Violation(f"{machine.name} {missing}")
            if missing:
                machine.decay.doubtful.add(name)
                machine.decay.lacking.setdefault(name, known)
        for name, known in list(machine.decay.lacking.items()):
            if not _missing(name, known, after.groups.get(name), after, known.last + 1):
                del machine.decay.lacking[name]
                machine.decay.doubtful.discard(name)
        machine.decay.met, machine.decay.log = machine.decay.log, False
        for group in process.engine.groups.by_name.values():
            self._meet(process, group)

    def durable(self, process: Process, batch: DiskBatch) -> None:
        """A batch ran."""
        log = process.machine.log
        if isinstance(batch, WalBatch):
            log.wrote(batch)
        elif isinstance(batch, DiskJob):
            log.checkpointed(batch.group.name, batch.work.index)

    def _first_seen(self, process: Process, group: RaftGroup) -> None:
        """A group that begins to run has everything of it that is on the disk."""
        raft, machine = group.raft, process.machine
        # What it applied in the turn in which it began lies behind that.
        process.seen[group.name] = raft.base_index
        if self.history(group.name).excused:
            return
        if machine.decay.met and raft.standing.kind is StandingKind.UNKNOWN:
            # It may be younger than the damage. If nobody else has it, it stays offline.
            self.history(group.name).excused = self.history(group.name).voters == (process.peer,)
        if group.name in machine.decay.doubtful:
            machine.decay.doubtful.discard(group.name)
            lacks = machine.decay.lacking.pop(group.name, None) is not None
            # With a sound log, all that the damaged copy of a state said may be known without it.
            lacks = lacks or raft.last_index < machine.log.states.get(group.name, 0)
            if lacks and raft.standing.kind is StandingKind.WHOLE:
                raise Violation(f"{machine.name} takes what is left of {group.name} for whole")
        known = machine.log.groups.get(group.name)
        begun = 0 if known is None else known.last
        if begun < FOUNDING_ENTRIES and raft.members.voters == (raft.me,):
            self._founded_again(self.history(group.name), raft.base_index)
        if known is None or is_memory(group.name) or raft.standing.kind is not StandingKind.WHOLE:
            return
        if raft.term < known.term or (raft.term == known.term and raft.vote != known.vote):
            raise Violation(f"{machine.name} starts {group.name} without its vote")
        last = known.last
        if raft.last_index < last:
            raise Violation(f"{machine.name} starts {group.name} without entry {last}")
        term = raft.log.term_at(last)
        if last in known.entries and term is not None and term != known.entries[last]:
            raise Violation(f"{machine.name} starts {group.name} with another entry {last}")

    @staticmethod
    def _founded_again(known: History, kept: int) -> None:
        """A crash may take the founding of a group on its only server, or the end of it, if
        nothing came behind it: it is founded again then, as the assignment is by now. What its
        state holds already, so many entries, stays."""
        if kept < len(known.entries) <= FOUNDING_ENTRIES:
            del known.entries[kept:]
            known.snapshots = {at: state for at, state in known.snapshots.items() if at <= kept}
            known.leaders.clear()
            known.books = known.consumer = None

    # Messages between servers

    def sends(self, process: Process, name: str, messages: Sequence[Message]) -> None:
        """A promise leaves only when what it rests on is durable."""
        log, me = process.machine.log, process.machine.name
        for message in messages:
            if isinstance(message, AppendReply) and not message.rejected:
                self._check_reach(process, name, message.index, message.term)
            elif isinstance(message, HeartbeatReply):
                self._check_reach(process, name, message.match, message.term)
            elif isinstance(message, VoteReply | VoteRequest) and not message.pre:
                self._check_vote(log, me, name, message)

    @staticmethod
    def _check_reach(process: Process, name: str, index: int, term: int) -> None:
        me, group = process.machine.name, process.engine.groups.by_name[name]
        if is_memory(name):
            # Nothing of it is ever durable: its holders are counted while they run.
            if term == group.raft.term and index > group.raft.last_index:
                raise Violation(f"{me} acks {index} of {name}, which it does not hold")
        elif not process.machine.log.reaches(name, index, term):
            raise Violation(f"{me} acks {index} of {name} before it is durable")

    @staticmethod
    def _check_vote(log: DurableLog, me: str, name: str, message: VoteReply | VoteRequest) -> None:
        term, vote = log.promised(name)
        if isinstance(message, VoteRequest):
            if not message.poll and term < message.term:
                raise Violation(f"{me} asks for votes in {name} before its own is durable")
        elif (message.granted and (term, vote) < (message.term, "")) or (
            message.granted and term == message.term and vote != message.to
        ):
            raise Violation(f"{me} votes in {name} before that is durable")

    # Turns

    def turned(self, process: Process) -> None:
        """Compare what the turn did with what is known."""
        groups, marks = process.engine.groups.by_name, process.marks
        self._follow_meta(process)
        if len(marks) > len(groups):
            marks = process.marks = {one: at for one, at in marks.items() if one in groups}
        for name, group in groups.items():
            mark = Mark.of(group.raft)
            # Most turns change none of a group, and what is checked here follows from the mark.
            if marks.get(name) != mark:
                self._check_order(process, name, group.raft)
                marks[name] = mark
                self._changed(process, name, group)
        if self.acks:
            self._check_acks(process)
        check_removals(self)
        self._turns += 1
        if self._turns % TURNS_BETWEEN_SUMS == 0:
            for unit in process.engine.assets.streams.values():
                unit.store.check_totals()

    def _changed(self, process: Process, name: str, group: RaftGroup) -> None:
        """A turn left a group another one."""
        self.look(process, group)
        known, raft = self.history(name), group.raft
        if is_memory(name):
            self._remember(process.machine, name, raft)
        if raft.membership.active_index > known.voters_index and raft.members.voters:
            known.voters = raft.members.voters
            known.voters_index = raft.membership.active_index
            known.was_alone = known.was_alone or len(known.voters) == 1
        if known.excused:
            return
        if raft.role is Role.LEADER and known.leaders.get(raft.term) != raft.me:
            self._elected(known, raft)

    @staticmethod
    def _check_order(process: Process, name: str, raft: Raft) -> None:
        """What a turn leaves behind: commit never goes back, and nothing is ahead of it."""
        who, mark = process.machine.name, process.marks.get(name)
        before = 0 if mark is None else mark.commit
        if raft.commit < before:
            raise Violation(f"{who} takes the commit of {name} back from {before} to {raft.commit}")
        if not raft.base_index <= raft.applied <= raft.commit <= raft.last_index:
            raise Violation(
                f"{who} has {raft.base_index}, {raft.applied}, {raft.commit}, {raft.last_index}"
                f" as base, applied, commit and last index of {name}"
            )

    @staticmethod
    def _remember(machine: Machine, name: str, raft: Raft) -> None:
        """Take down which entries a server's memory holds."""
        log = raft.log
        entries = {one.index: one.term for one in log.slice(log.base_index + 1, log.last_index)}
        machine.memory[name] = DurableGroup(raft.term, raft.vote, log.base_index, entries)

    def look(self, process: Process, group: RaftGroup) -> None:
        """Take in what a group applied; before the end of the turn, too, if it may be gone then."""
        seen, known, raft = process.seen, self.history(group.name), group.raft
        self._meet(process, group)
        if known.consumer is not None and len(raft.members.voters) == 1:
            known.consumer.replicated = False
        if known.excused or raft.applied <= seen[group.name]:
            return
        if isinstance(group.unit, ConsumerReplica):
            # What it delivers was stored before, and so were dead letters that it takes for stored.
            made, streams = group.unit.assignment, process.engine.assets.streams
            for name in (made.stream, DEAD):
                stream = streams.get((made.account, name))
                if stream is not None:
                    self.look(process, stream.group)
            if self.excused(known.name):
                return
        self._applied(process, known, raft, seen[group.name], raft.applied)
        seen[group.name] = raft.applied
        self._compare(process, known, group)

    def ended(self, process: Process) -> None:
        """A process ended within a turn: what it knew to be committed it may have told of. Its
        replicas may be anywhere in that, and are not compared."""
        groups = [one for one in process.engine.groups.by_name.values() if one.name in process.seen]
        for group in sorted(groups, key=lambda one: isinstance(one.unit, ConsumerReplica)):
            if not self.excused(group.name):
                known, before = self.history(group.name), process.seen[group.name]
                self._applied(process, known, group.raft, before, group.raft.commit)

    def _meet(self, process: Process, group: RaftGroup) -> None:
        """A group runs: books are kept of what nobody knew of, or was founded again."""
        known, unit = self.history(group.name), group.unit
        if group.name not in process.seen:
            self._first_seen(process, group)
        if known.books is not None or known.consumer is not None:
            return
        if isinstance(unit, StreamReplica | ConsumerReplica) and known.assigned is None:
            known.assigned = unit.assignment.group
        if isinstance(unit, StreamReplica):
            known.books = Books(unit.assignment)
        if isinstance(unit, ConsumerReplica):
            known.consumer = self._open_consumer(process, unit)

    def _open_consumer(self, process: Process, unit: ConsumerReplica) -> ConsumerBooks:
        made = unit.assignment
        stream = process.engine.assets.streams[(made.account, made.stream)].group.name
        self.history(unit.group.name).stream = stream
        return ConsumerBooks(
            unit,
            self.told,
            lambda: self.history(stream).books,
            lambda: self.passed_over(stream),
            lambda: self._log_end(stream),
            lambda: consumed(self, stream),
            self._letters,
        )

    def _letters(self) -> set[bytes] | None:
        """Subjects of the dead letters that are stored; None if some of that was lost."""
        known = [one for one in self.groups.values() if one.books and one.books.name == DEAD]
        if any(one.excused for one in known):
            return None
        return {letter for one in known if one.books for letter in one.books.letters}

    def _log_end(self, name: str) -> int:
        """How far anybody's log of a group goes."""
        processes = [machine.process for machine in self.machines if machine.process]
        found = [process.engine.groups.by_name.get(name) for process in processes]
        return max((group.raft.last_index for group in found if group is not None), default=0)

    def passed_over(self, name: str) -> set[int]:
        """Messages that nobody can bring back: their stream had one replica once."""
        if not self.history(name).was_alone:
            return set()
        return self.may_lack(name)

    def may_lack(self, name: str) -> set[int]:
        """Messages that a replica of a stream may lack, for a while: what was damaged on some
        disk. A leader with damage that brings another replica up has nothing better to give."""
        return {seq for machine in self.machines for seq in machine.decay.may_lack(name)}

    def exists(self, name: str) -> bool:
        """Whether a group is still assigned, as the newest meta state has it that anybody had."""
        for machine in self.machines:
            if machine.process is not None:
                self._follow_meta(machine.process)
        return name in self._assigned

    def _follow_meta(self, process: Process) -> None:
        """Whoever applied most may be down when it is asked what there is."""
        state = process.engine.meta.state
        if state.applied > self._assigned_at:
            self._assigned_at = state.applied
            self._assigned = {one.group.name for one in state.assets()}

    def _applied(
        self, process: Process, known: History, raft: Raft, before: int, last: int
    ) -> None:
        entries, who = known.entries, process.machine.name
        for entry in raft.log.slice(max(before, raft.base_index) + 1, last):
            fact = (entry.term, entry.kind, entry.data)
            if entry.index <= len(entries):
                if entries[entry.index - 1] != fact:
                    raise Violation(f"{who} applied another entry {entry.index} of {known.name}")
                continue
            if entry.index != len(entries) + 1:
                raise Violation(f"{who} applied {entry.index} of {known.name} early")
            entries.append(fact)
            if entry.kind is not EntryKind.DATA:
                continue
            if known.books is not None:
                known.books.apply(entry.index, entry.data)
                self._check_ends(known.books)
            elif known.consumer is not None:
                known.consumer.apply(entry.term, entry.data)

    def _check_ends(self, books: Books) -> None:
        """No clock ever told a time at which what was removed for that was over: too early."""
        ended, books.model.outlived = books.model.outlived, []
        latest_ns = max(machine.latest_ns for machine in self.machines)
        for seq, end_ns in ended:
            if latest_ns < end_ns:
                raise Violation(f"{books.name} ends {seq} {end_ns - latest_ns} ns too early")

    def _elected(self, known: History, raft: Raft) -> None:
        other = known.leaders.setdefault(raft.term, raft.me)
        if other != raft.me:
            raise Violation(f"{other} and {raft.me} lead {known.name} in term {raft.term}")
        last = len(known.entries)
        # Who hears late that it was elected, in a term that is over, lacks what came since.
        if last <= raft.base_index or max(known.leaders) > raft.term:
            return
        if raft.log.term_at(last) != known.entries[last - 1][0]:
            raise Violation(f"leader {raft.me} of {known.name} lacks committed entry {last}")

    def _compare(self, process: Process, known: History, group: RaftGroup) -> None:
        index, unit = group.raft.applied, group.unit
        if isinstance(unit, StreamReplica):
            if known.books is not None and index == len(known.entries):
                may_lack = self.may_lack(group.name)
                known.books.compare(process.machine.name, unit, may_lack)
            return
        if known.consumer is not None and index == len(known.entries):
            assert isinstance(unit, ConsumerReplica)
            known.consumer.compare(process.machine.name, unit.consumer.state)
        state = snapshot_of(process, group)
        other = known.snapshots.setdefault(index, state)
        if other != state:
            raise Violation(f"{process.machine.name} has another state of {known.name} at {index}")

    def _check_acks(self, process: Process) -> None:
        acks, self.acks = self.acks, []
        for name, seq, expected in acks:
            known = self.groups.get(name)
            if known is None or known.books is None or known.excused:
                continue
            self.acknowledged += 1
            index = known.books.acknowledged(seq, expected)
            term = known.entries[index - 1][0]
            group = process.engine.groups.by_name.get(name)
            if group is None:
                continue
            sets = [members for _, members in group.raft.membership.history]
            held = {m.peer for m in self.machines if m.held(name, index, term)}
            if not any(len(held & set(one.voters)) >= quorum_size(len(one.voters)) for one in sets):
                who = process.machine.name
                raise Violation(f"{who} acknowledged {seq} of {name}, durable on {sorted(held)}")


def _missing(
    name: str, known: DurableGroup, found: DurableGroup | None, after: DurableLog, replaced: int
) -> str:
    """What of a group's log before some index is not there any more; empty when all of it is."""
    if found is None:
        return f"lost its log of {name}" if known.entries or known.term else ""
    if found.term < known.term:
        return f"forgot a term of {name}"
    for index, term in known.entries.items():
        if index < replaced and not after.holds(name, index, term):
            return f"lost entry {index} of {name}"
    return ""


def snapshot_of(process: Process, group: RaftGroup) -> bytes:
    """The state of a consumer or of the meta group."""
    engine = process.engine
    if group.name == "_meta_":
        return engine.meta.state.snapshot()
    assert isinstance(group.unit, ConsumerReplica)
    return group.unit.consumer.snapshot()


def _taken(log: DurableLog) -> dict[str, int]:
    """Up to where states on the disk go that their server went on from, as its log tells. One that
    was only received when the process ended was promised to nobody."""
    last = {name: group.last for name, group in log.groups.items()}
    return {name: index for name, index in log.states.items() if index <= last.get(name, 0)}
