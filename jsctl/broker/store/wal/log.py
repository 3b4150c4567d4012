"""The log of a server: one for all its raft groups, synced once a turn.

The loop collects records with `add_*` and hands them to the disk thread as one batch; while it
syncs, the next one collects. The two sides share nothing: a batch carries what it needs, and the
chain of hashes belongs to the thread. Start-up is in `wal_recovery`, bytes are in `wal_format`.

Segments are zeroed before use, so that a sync writes no metadata. One is always held in reserve:
while it is there the log cannot run out of room. A segment is used again when no group needs an
entry in it; hard state that lies in it is written anew first.
"""

from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import field

from jsctl.broker.errors import DiskFull
from jsctl.broker.ports import Disk
from jsctl.broker.store.scrub import LogCheck
from jsctl.broker.store.wal import format as fmt
from jsctl.broker.store.wal.batch import NewSegment, WalBatch, WalWriter
from jsctl.broker.store.wal.format import Claim, Claimed
from jsctl.broker.store.wal.recovery import (
    SUSPECT,
    UNKNOWN,
    WHOLE,
    FoundSegment,
    Recovered,
    RecoveredGroup,
    Scan,
    segment_name,
)
from jsctl.dataclass import dataclass

SEGMENT_BYTES = 16 << 20
_FOREVER = 1 << 62
_STANDING_CODES = {WHOLE: 0, SUSPECT: 1, UNKNOWN: 2}
LogEntry = tuple[int, int, int, bytes]
"""index, term, kind, data."""


@dataclass(frozen=True, slots=True)
class WalOptions:
    """`identity` has 16 bytes and is the store's incarnation."""

    identity: bytes
    segment_bytes: int = SEGMENT_BYTES


@dataclass(slots=True)
class _Segment:
    number: int
    length: int
    first_frame: int = 0
    groups: dict[bytes, int] = field(default_factory=dict)
    hard: set[bytes] = field(default_factory=set)


@dataclass(slots=True)
class _Group:
    """What must survive when old segments go."""

    term: int = 0
    vote: bytes = b""
    voted: bool = False
    base_index: int = 0
    base: bytes = b""
    standing: tuple[int, int, int] = (0, 0, 0)
    """code, term, index."""
    released: int = 0
    first_needed: int = 0


class Wal:
    """See the module. Not for use by two threads; batches may run on another one, in order."""

    def __init__(self, disk: Disk, directory: str, options: WalOptions, scan: Scan) -> None:
        self._options = options
        self._directory = directory
        self._writer = WalWriter(disk, directory, options.identity, scan.last_hash)
        self._parts: list[bytes] = []
        self._count = 0
        self._bytes = 0
        self._claimed: dict[bytes, Claimed] = {}
        self._greatest: dict[bytes, int] = {}
        """Greatest entry index of each group among what is to be written."""
        self._touched: set[bytes] = set()
        self._claims: list[Claim] = []
        self._in_flight: dict[int, WalBatch] = {}
        self._next_number = scan.last_number + 1
        self._ticket = 0
        self._groups: dict[bytes, _Group] = {}
        self._segments: deque[_Segment] = deque()
        self._position = 0
        self._reserve: _Segment | None = None
        self._wished: NewSegment | None = None
        self._made_number = 0
        self._holder = b""
        self._retiring: tuple[int, _Segment] | None = None
        self._retired: list[_Segment] = []
        self._adopt(scan)

    @staticmethod
    def open(disk: Disk, directory: str, options: WalOptions) -> tuple["Wal", Recovered]:
        """Read the log and make it ready for writing. Raises DiskError, DiskFull."""
        assert len(options.identity) == 16, "an identity has 16 bytes"
        disk.make_directory(directory)
        scan = Scan(disk, directory, options.identity)
        scan.run()
        wal = Wal(disk, directory, options, scan)
        if not scan.recovered.damage:
            wal._mend(scan)
        wal._prepare()
        if scan.recovered.damage:
            wal._note_damage(scan)
        return wal, scan.recovered

    # What is to be written

    def add_entries(self, group: bytes, entries: Sequence[LogEntry]) -> None:
        """Entries of a group, ascending; data is not copied before the disk thread runs."""
        if not entries:
            return
        add = self._parts.append
        pack = fmt.pack_record
        size = 0
        for index, term, kind, data in entries:
            add(pack(fmt.ENTRY, kind, len(group), term, index, len(data)))
            add(group)
            add(data)
            size += len(data)
        count = len(entries)
        self._count += count
        self._bytes += size + count * (fmt.RECORD_BYTES + len(group))
        claimed = self._claimed_of(group)
        claimed.last_index, claimed.last_term = entries[-1][0], entries[-1][1]
        self._greatest[group] = entries[-1][0]
        self._state_of(group)

    def add_truncate(self, group: bytes, from_index: int) -> None:
        """Entries of a group from an index on are void."""
        state = self._state_of(group)
        assert from_index > state.base_index, "a log is not cut below its base"
        # The group may never get as far again: what is void keeps no segment.
        for greatest in (self._greatest, *[segment.groups for segment in self._segments]):
            if greatest.get(group, 0) >= from_index:
                greatest[group] = from_index - 1
        self._add(fmt.TRUNCATE, group, 0, from_index)

    def add_vote(self, group: bytes, term: int, vote: bytes) -> None:
        """Term and vote of this server."""
        state = self._state_of(group)
        state.term, state.vote, state.voted = term, vote, True
        self._add(fmt.VOTE, group, term, 0, vote)
        claimed = self._claimed_of(group)
        claimed.voted, claimed.vote_term, claimed.vote = True, term, vote

    def add_base(self, group: bytes, index: int, term: int, members: bytes) -> None:
        """The log of a group begins behind `index`; entries up to it are not recovered."""
        state = self._state_of(group)
        state.base_index, state.base = index, fmt.base_data(term, members)
        self._add(fmt.BASE, group, 0, index, state.base)
        self._claimed_of(group).unsure = True

    def add_standing(self, group: bytes, standing: str, term: int = 0, index: int = 0) -> None:
        """How far a group's log is to be believed: `whole` once a leader has filled it up."""
        state = self._state_of(group)
        state.standing = (_STANDING_CODES[standing], term, index)
        self._note_standing(group, state)

    def add_drop(self, group: bytes) -> None:
        """The group is gone from this server."""
        self._add(fmt.DROP, group, 0, 0)
        self._claimed_of(group).unsure = True
        self._groups.pop(group, None)
        self._touched.discard(group)
        self._greatest.pop(group, None)
        for segment in self._segments:
            segment.groups.pop(group, None)
            segment.hard.discard(group)

    def release(self, group: bytes, index: int) -> None:
        """Entries up to `index` are durable elsewhere.

        They are given up when the group's base (`add_base`) has reached them too.
        """
        state = self._groups.get(group)
        if state is not None:
            state.released = max(state.released, index)

    @property
    def pending_bytes(self) -> int:
        """Size of what the next batch would hold."""
        return self._bytes

    def pinned(self) -> list[tuple[bytes, int]]:
        """Groups that keep the oldest segment, each with the index it must release (and base)."""
        if len(self._segments) < 2:
            return []
        return self._holders(self._segments[0])

    def resting(self) -> list[LogCheck]:
        """Checks of the frames that are durable and still needed, one for each segment."""
        newest = min((one.number for one in self._in_flight.values()), default=self._next_number)
        found: list[LogCheck] = []
        ends = [one.first_frame for one in self._segments][1:]
        for segment, end in zip(self._segments, [*ends, newest], strict=True):
            first, last = segment.first_frame, min(end or newest, newest) - 1
            if first and first <= last:
                path = f"{self._directory}/{segment_name(segment.number, segment.length)}"
                found.append(LogCheck(path, segment.length, self._options.identity, first, last))
        return found

    def suspect(self, check: LogCheck) -> bool:
        """A check found damage; whether the frame is still needed. Nothing more is written to
        the newest segment: it is given up as soon as no group needs it, as all others are."""
        if not self._segments or check.next_frame < self._segments[0].first_frame:
            return False
        if check.next_frame >= self._segments[-1].first_frame:
            self._position = _FOREVER
            self._add(fmt.EXAMINED, b"", 0, 0)
        return True

    def close(self) -> None:
        """Release files. Only when no batch is running."""
        self._writer.close()

    # Batches

    def take_batch(self) -> WalBatch | None:
        """Everything added since the last one, as work for the disk thread; None if nothing.

        A batch that raised DiskFull may be run again later; others behind it must wait. After
        SyncFailed nothing can be written any more.
        """
        carried = self._retire()
        if not self._parts and not self._retired:
            return None
        claims = b"".join(map(fmt.encode_claim, self._claims))
        self._claims = []
        self._ticket += 1
        body_bytes = len(claims) + self._bytes
        before, is_damaged = self._segments[-1], self._position == _FOREVER
        create = self._place(fmt.aligned(fmt.HEADER_BYTES + body_bytes))
        segment = self._segments[-1]
        # Evidence is not written into.
        ended = None if segment is before or is_damaged else (before.number, before.length)
        number = self._next_number
        self._next_number += 1
        segment.first_frame = segment.first_frame or number
        for group in self._touched:
            segment.hard.add(group)
        for group, index in self._greatest.items():
            segment.groups[group] = max(segment.groups.get(group, 0), index)
        batch = WalBatch(
            ticket=self._ticket,
            writer=self._writer,
            number=number,
            oldest=self._segments[0].first_frame,
            segment=(segment.number, segment.length),
            offset=self._position,
            claims=claims,
            parts=self._parts,
            size=body_bytes,
            count=self._count,
            claim=Claim(number, b"", self._claimed),
            create=create,
            reserve=self._wish(),
            begun_behind=ended,
            retired=[(one.number, one.length) for one in self._retired],
        )
        self._position += fmt.aligned(fmt.HEADER_BYTES + body_bytes)
        if carried is not None:
            self._retiring = (batch.ticket, carried)
        self._in_flight[batch.ticket] = batch
        self._parts, self._count, self._bytes = [], 0, 0
        self._claimed, self._greatest, self._touched, self._retired = {}, {}, set(), []
        return batch

    def done(self, ticket: int) -> None:
        """The batch's `run` has returned: it is durable."""
        batch = self._in_flight.pop(ticket)
        self._claims.append(batch.claim)
        made = None if batch.reserve_error else batch.reserve
        if made is not None and made == self._wished:
            self._reserve, self._wished = _Segment(*made), None
        if self._retiring is not None and self._retiring[0] == ticket:
            segment = self._retiring[1]
            assert self._segments[0] is segment, "segments go in order"
            self._retired.append(self._segments.popleft())
            self._retiring = None

    # Inside

    def _add(
        self, kind: int, group: bytes, term: int, index: int, data: bytes = b"", entry_kind: int = 0
    ) -> None:
        self._parts += fmt.record_parts(kind, group, term, index, data, entry_kind)
        self._count += 1
        self._bytes += fmt.RECORD_BYTES + len(group) + len(data)
        if kind not in (fmt.DROP, fmt.EXAMINED):
            self._touched.add(group)
            self._claimed_of(group)

    def _state_of(self, group: bytes) -> _Group:
        state = self._groups.get(group)
        if state is None:
            state = self._groups[group] = _Group()
        return state

    def _claimed_of(self, group: bytes) -> Claimed:
        claimed = self._claimed.get(group)
        if claimed is None:
            claimed = self._claimed[group] = Claimed()
        return claimed

    def _holds(self, group: bytes, greatest: int) -> bool:
        state = self._groups.get(group)
        return state is not None and min(state.released, state.base_index) < greatest

    def _holders(self, segment: _Segment) -> list[tuple[bytes, int]]:
        return [one for one in segment.groups.items() if self._holds(*one)]

    def _retire(self) -> _Segment | None:
        """Begin to give up the oldest segment: repeat the hard state that lies in it."""
        if len(self._segments) < 2 or self._retiring or self._retired:
            return None
        segment = self._segments[0]
        if self._holds(self._holder, segment.groups.get(self._holder, 0)):
            return None
        holders = self._holders(segment)
        if holders:
            self._holder = holders[0][0]
            return None
        for group in sorted(segment.hard):
            state = self._groups.get(group)
            if state is not None:
                self._repeat(group, state)
        if not self._parts:
            self._add(fmt.EXAMINED, b"", 0, 0)
        return segment

    def _repeat(self, group: bytes, state: _Group) -> None:
        if state.base:
            self._add(fmt.BASE, group, 0, state.base_index, state.base)
        if state.voted:
            self._add(fmt.VOTE, group, state.term, 0, state.vote)
            claimed = self._claimed_of(group)
            claimed.voted, claimed.vote_term, claimed.vote = True, state.term, state.vote
        if state.standing[0]:
            self._note_standing(group, state)

    def _note_standing(self, group: bytes, state: _Group) -> None:
        code, term, index = state.standing
        self._add(fmt.STANDING, group, term, index, b"", code)
        if code:
            self._claimed_of(group).unsure = True

    def _room(self) -> int:
        if not self._segments:
            return 0
        return self._segments[-1].length - fmt.MIRROR_BYTES - self._position

    def _place(self, length: int) -> list[NewSegment]:
        """Choose where a frame goes; segments that must be made first are returned."""
        if length <= self._room():
            return []
        need = max(self._options.segment_bytes, length + fmt.MIRROR_BYTES)
        self._position = 0
        create: list[NewSegment] = []
        while self._reserve is not None or self._wished is not None:
            if self._reserve is None and self._wished is not None:
                create.append(self._wished)
                self._reserve = _Segment(*self._wished)
            chosen, self._reserve, self._wished = self._reserve, None, None
            assert chosen is not None, "one of the two was there"
            # A segment too short for this frame keeps its place in the order, empty.
            chosen.first_frame = self._next_number
            self._segments.append(chosen)
            if chosen.length >= need:
                return create
        create.append(NewSegment(self._new_number(), need))
        self._segments.append(_Segment(*create[-1]))
        return create

    def _wish(self) -> NewSegment | None:
        """A reserve to be made with this batch; the same one again when that has failed."""
        if self._reserve is not None:
            return None
        if self._wished is None:
            self._wished = NewSegment(self._new_number(), self._options.segment_bytes)
        return self._wished

    def _new_number(self) -> int:
        self._made_number += 1
        return self._made_number

    def _adopt(self, scan: Scan) -> None:
        found = [one for one in scan.segments if one.frames]
        first = 0 if scan.recovered.damage or not found else found[0].number
        last = found[-1].number if found else 0
        self._segments += _kept([one for one in scan.segments if first <= one.number <= last])
        spare = [_Segment(one.number, one.length) for one in scan.segments if one.number > last]
        self._made_number = max((one.number for one in scan.segments), default=0)
        if scan.recovered.damage:
            # Whatever lies behind the damage is evidence: it is not written into.
            self._position = _FOREVER
            for kept in spare:
                kept.first_frame = self._next_number
            self._segments.extend(spare)
        elif found:
            self._position = found[-1].end
        if spare and not scan.recovered.damage:
            self._reserve = spare[0]
            self._retired = spare[1:]
            self._made_number = spare[0].number
        # Their removal was not durable yet.
        old = [one for one in scan.segments if one.number < first]
        self._retired += [_Segment(one.number, one.length) for one in old]
        for name, group in scan.recovered.groups.items():
            self._groups[name] = _group_of(group)

    def _mend(self, scan: Scan) -> None:
        """Write copies of claims that a crash has torn anew: the next crash may tear the others,
        and without any the end of the log could not be believed.

        A reserve without blanks comes last: until then zeros are sound in the others.
        """
        used = [one for one in scan.segments if one.frames]
        for one in used[-1:]:
            self._writer.assure(one)
        for one in used:
            for at in one.torn_slots + one.zero_slots:
                self._writer.restate((one.number, one.length), at, one.claim)
        if not scan.has_blanks:
            last = used[-1].number if used else 0
            with suppress(DiskFull):  # They stay as they are until there is room.
                for one in scan.segments:
                    if one.number > last:
                        self._writer.renew((one.number, one.length))

    def _prepare(self) -> None:
        """Make the first segment and the reserve, before anything is promised."""
        # What a killed process wrote may still be in the page cache only.
        self._writer.settle([(one.number, one.length) for one in self._segments])
        self._writer.remove([(one.number, one.length) for one in self._retired])
        self._retired = []
        if not self._segments:
            if self._reserve is None:
                self._reserve = self._make()
            self._segments.append(self._reserve)
            self._reserve = None
        if self._reserve is None:
            try:
                self._reserve = self._make()
            except DiskFull:
                self._made_number -= 1

    def _make(self) -> _Segment:
        wanted = NewSegment(self._new_number(), self._options.segment_bytes)
        self._writer.create(wanted)
        return _Segment(*wanted)

    def _note_damage(self, scan: Scan) -> None:
        """Write down what the damage means, so that the next start need not find it again."""
        for name, group in scan.recovered.groups.items():
            if group.standing != WHOLE:
                self.add_standing(name, group.standing, group.suspect_term, group.suspect_index)
            if group.term:
                self.add_vote(name, group.term, group.vote)
        self._add(fmt.EXAMINED, b"", 0, 0, scan.bad.encode())


def _kept(found: list[FoundSegment]) -> list[_Segment]:
    """Segments that are in use, of which the last one has frames. One without, which was too short
    for a frame or has none that checks, stays as long as the one behind it."""
    made: list[_Segment] = []
    for one in reversed(found):
        if one.frames:
            first, groups = one.frames[0], one.groups
        else:
            first, groups = made[-1].first_frame, dict(made[-1].groups)
        made.append(_Segment(one.number, one.length, first, groups, one.hard))
    return made[::-1]


def _group_of(group: RecoveredGroup) -> _Group:
    based = group.base_index or group.members
    base = fmt.base_data(group.base_term, group.members) if based else b""
    return _Group(
        term=group.term,
        vote=group.vote,
        voted=bool(group.term),
        base_index=group.base_index,
        base=base,
        standing=(_STANDING_CODES[group.standing], group.suspect_term, group.suspect_index),
    )


__all__ = ["Recovered", "RecoveredGroup", "Wal", "WalBatch", "WalOptions"]
