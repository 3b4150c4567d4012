"""What start-up makes of the files of the log.

    frame bad, no claim for it anywhere       torn by a crash, never acknowledged: dropped
    the same, and its copy of the claims too  damage: every group is unknown
    frame bad, claimed by a frame or mirror   damage: its groups are suspect from there
    several bad frames, then good ones        damage
    nothing tells what a bad frame held       every group is unknown

A frame is written only after the sync of the one before it returned. So a bad frame with a good
one behind it was durable once, claimed or not.

What a start concludes it writes down as standings, and which frames were bad. Those are not
looked at again. A frame that turned bad since is judged anew, and what the log says of standings
behind it was said when it was still sound: it clears nobody.
"""

import re
from collections.abc import Callable
from dataclasses import field

from jsctl.broker.errors import DiskError
from jsctl.broker.ports import Disk
from jsctl.broker.store.seqset import SeqSet
from jsctl.broker.store.wal import format as fmt
from jsctl.broker.store.wal.format import Claim, Claimed, Header, WalRecord
from jsctl.dataclass import dataclass

WHOLE, SUSPECT, UNKNOWN = "whole", "suspect", "unknown"
_STANDINGS = (WHOLE, SUSPECT, UNKNOWN)
_NAME = re.compile(r"([0-9a-f]{10})-([0-9a-f]{8})\.wal")


@dataclass(slots=True)
class RecoveredGroup:
    """A group's log and hard state. Entries are `(index, term, kind, data)`, ascending."""

    term: int = 0
    vote: bytes = b""
    base_index: int = 0
    base_term: int = 0
    members: bytes = b""
    entries: list[tuple[int, int, int, bytes]] = field(default_factory=list)
    standing: str = WHOLE
    suspect_term: int = 0
    suspect_index: int = 0
    holed: bool = False
    """Entries behind a hole were met and left out."""

    @property
    def last_index(self) -> int:
        """Index of the last entry that is there."""
        return self.entries[-1][0] if self.entries else self.base_index

    @property
    def last_term(self) -> int:
        """Its term."""
        return self.entries[-1][1] if self.entries else self.base_term


@dataclass(slots=True)
class Recovered:
    """Everything that `Wal.open` learned."""

    groups: dict[bytes, RecoveredGroup] = field(default_factory=dict)
    torn: int = 0
    """Frames dropped as never acknowledged: 0 or 1."""
    empty: bool = True
    """No frame was found: a new log, or one that is lost as a whole."""
    files: int = 0
    """Segment files that were there."""
    first: int = 0
    """Number of the first of them; a log begins with 1."""
    zeros: bool = False
    """The first of them has neither a blank nor a claim: no log is made like that today."""
    unsure: bool = False
    """Part of the log is gone and nothing tells what it held: groups that are not listed may
    have been there, and every listed one is unknown."""
    damage: list[str] = field(default_factory=list)
    """What does not check, each with file and consequence; empty for a sound log."""


@dataclass(slots=True)
class FoundSegment:
    """A segment file: its length, and where frames may be written on."""

    number: int
    length: int
    end: int = 0
    frames: list[int] = field(default_factory=list)
    ends: dict[int, int] = field(default_factory=dict)
    groups: dict[bytes, int] = field(default_factory=dict)
    """Greatest entry index of each group in it."""
    hard: set[bytes] = field(default_factory=set)
    """Groups with records other than entries in it."""
    torn_slots: list[int] = field(default_factory=list)
    """Offsets of the copies of claims that a crash has torn."""
    zero_slots: list[int] = field(default_factory=list)
    """Offsets of those that may be zeros, and are."""
    is_claimed: bool = False
    """Whether one of the others has a claim."""
    is_blank: bool = False
    """Whether one of them has a blank."""
    claim: Claim | None = None
    """What its last frame holds, for torn ones and zeros."""


def segment_name(number: int, length: int) -> str:
    """File name of a segment; its length is part of it, so that a cut file shows."""
    return f"{number:010x}-{length:08x}.wal"


@dataclass(slots=True)
class _Frame:
    header: Header
    segment: FoundSegment
    body: bytes | None


class Scan:
    """One pass over the files of a log directory."""

    def __init__(self, disk: Disk, directory: str, identity: bytes) -> None:
        self._disk = disk
        self._directory = directory
        self._identity = identity
        self._frames: dict[int, _Frame] = {}
        self._claims: dict[int, Claim] = {}
        self._unreadable: list[int] = []
        self._weak: list[FoundSegment] = []
        """Segments whose only claim does not check: torn by a crash if their frames are sound."""
        self._doubt = False
        self.segments: list[FoundSegment] = []
        self.recovered = Recovered()
        self.has_blanks = True
        """Whether all segments were made with blanks."""
        self.last_number = 0
        self.last_hash = fmt.NO_HASH
        self.bad = SeqSet()
        """Frames that should be there and are not sound."""
        self._judged = SeqSet()
        """Those of which an earlier start turned into standings what they mean."""
        self._suspects: set[bytes] = set()
        """Groups of which a frame that turned bad since held more than a claim tells."""

    def run(self) -> None:
        """Read everything; the results are in the attributes."""
        for name in self._disk.list(self._directory):
            match = _NAME.fullmatch(name)
            if match is not None:
                self._read_segment(name, FoundSegment(int(match[1], 16), int(match[2], 16)))
        self.recovered.files = len(self.segments)
        self.recovered.first = self.segments[0].number if self.segments else 0
        self.recovered.empty = not self._frames and not self._claims
        self.recovered.zeros = any(len(one.zero_slots) == 2 for one in self.segments[:1])
        self._find_damage()
        self._fold()

    def _read_segment(self, name: str, segment: FoundSegment) -> None:
        path = f"{self._directory}/{name}"
        file = self._disk.open(path)
        try:
            data = self._read(path, file.size(), file.read)
        finally:
            file.close()
        if len(data) < segment.length:
            self.recovered.damage.append(f"{path}: {segment.length - len(data)} bytes are cut off")
            data += b"\xff" * (segment.length - len(data))
        self._note_gap(segment)
        self.segments.append(segment)
        self._read_mirrors(data, segment)
        view = memoryview(data)
        at, end = 0, max(0, segment.length - fmt.MIRROR_BYTES)
        while at < end:
            header = None
            if view[at : at + 4] == fmt.MAGIC_BYTES:
                header = fmt.decode_header(view[at : at + fmt.HEADER_BYTES], self._identity)
            if header is None:
                at += fmt.BLOCK
                continue
            body = data[at + fmt.HEADER_BYTES : at + fmt.HEADER_BYTES + header.body_length]
            self._take(_Frame(header, segment, self._verified(header, body)), at)
            at += header.span

    def _note_gap(self, segment: FoundSegment) -> None:
        if self.segments and self.segments[-1].number + 1 != segment.number:
            self._unreadable.append(self.segments[-1].number + 1)
            self.recovered.damage.append(f"a segment before {segment.number} is missing")

    def _read(self, path: str, size: int, read: Callable[[int, int], bytes]) -> bytes:
        try:
            return read(0, size)
        except DiskError:
            pass
        parts = []
        for start in range(0, size, fmt.BLOCK):
            try:
                parts.append(read(start, min(fmt.BLOCK, size - start)))
            except DiskError as error:
                self.recovered.damage.append(str(error))
                parts.append(b"\xff" * min(fmt.BLOCK, size - start))
        return b"".join(parts)

    def _verified(self, header: Header, body: bytes) -> bytes | None:
        if len(body) != header.body_length or fmt.content_hash(body) != header.body_hash:
            return None
        return body

    def _take(self, frame: _Frame, at: int) -> None:
        number = frame.header.number
        segment = frame.segment
        known = self._frames.get(number)
        if known is not None and known.body is not None:
            return
        if segment.frames and number < segment.frames[-1]:
            return  # Left over from before the file was used again.
        self._frames[number] = frame
        segment.frames.append(number)
        segment.ends[number] = at + frame.header.span
        if frame.body is not None:
            for claim in fmt.decode_claims(frame.body[: frame.header.claims_length]):
                self._claims[claim.number] = claim

    def _read_mirrors(self, data: bytes, segment: FoundSegment) -> None:
        start = max(0, segment.length - fmt.MIRROR_BYTES)
        for at in (start, start + fmt.MIRROR_SLOT):
            claim, sound = fmt.decode_mirror(data[at : at + fmt.MIRROR_SLOT], self._identity)
            if not sound:
                segment.torn_slots.append(at)
            elif claim is None:
                segment.zero_slots.append(at)
            elif not claim.number:
                segment.is_blank = True
            else:
                segment.is_claimed = True
                known = self._claims.get(claim.number)
                if known is None or not known.complete:
                    self._claims[claim.number] = claim

    def _judge_slots(self, good: list[int]) -> None:
        """Zeros are damage, but in a log whose reserve has no blanks: a version before made it.

        What lies before all frames that are needed was about to be used again.
        """
        begun = [one.number for one in self.segments if not set(good).isdisjoint(one.frames)]
        for last in self.segments[-1:]:
            self.has_blanks = last.is_blank or last.number in begun
        for segment in self.segments:
            if self.has_blanks:
                segment.torn_slots += segment.zero_slots
                segment.zero_slots = []
            if begun and segment.number < begun[0]:
                continue
            if len(segment.torn_slots) == 2:
                name = segment_name(segment.number, segment.length)
                self._unreadable.append(segment.number)
                self.recovered.damage.append(
                    f"{self._directory}/{name}: both copies of the claims are damaged"
                )
            elif segment.torn_slots and not segment.is_claimed:
                self._weak.append(segment)

    def _find_damage(self) -> None:
        """Decide for every frame that should be there and is not sound: torn, or damage."""
        good = sorted(n for n, frame in self._frames.items() if frame.body is not None)
        newest = good[-1] if good else 0
        start = min(self._frames[newest].header.oldest, newest) if good else 1
        good = [n for n in good if n >= start]
        self._claims = {n: claim for n, claim in self._claims.items() if n >= start}
        self.last_number = max(newest, max(self._claims, default=0))
        for number in good:
            self._note_examined(number)
        self._check_chain(good, start)
        numbers = range(max(1, start), self.last_number + 1)
        for number in sorted(set(numbers).difference(good)):
            self.bad.add(number)
            if number not in self._judged:
                self._damaged(number)
        self._judge_slots(good)
        self._judge_tail(newest)
        self._settle_segments(set(good))
        self.last_hash = fmt.NO_HASH
        if good and newest == self.last_number:
            self.last_hash = self._frames[newest].header.hash

    def _judge_tail(self, newest: int) -> None:
        """Without readable claims at the end, what is not there may have been promised."""
        torn = [n for n, f in self._frames.items() if n > self.last_number]
        self.recovered.torn = len(torn)
        where = self._frames[newest].segment.number if newest else 0
        if not self._is_the_end(where, newest):
            self._unreadable += [one.number for one in self._weak if not one.frames]
        if any(number >= where for number in self._unreadable):
            self._doubt = True
            self.recovered.damage.append("the end of the log and its claims are unreadable")
        if torn and min(torn) != self.last_number + 1:
            self._doubt = True
            self.recovered.damage.append("frames before the last one are missing")
        elif torn and newest and self._was_claimed(self._frames[torn[0]], newest):
            self._doubt = True
            self.recovered.damage.append("the last frame and its claim are damaged")

    def _is_the_end(self, where: int, newest: int) -> bool:
        """Whether no segment behind one had begun: both places for claims are sound in it, and
        neither says that the frame behind its last one is elsewhere."""
        if not self.has_blanks or newest != self.last_number:
            return False
        return any(one.number == where and not one.torn_slots for one in self.segments)

    def _was_claimed(self, frame: _Frame, newest: int) -> bool:
        """Whether the copy of a bad frame's claim is bad as well: no crash leaves both. What was
        in that place before was synced with the frame before it, if that is in the same file."""
        segment = frame.segment
        slot = fmt.slot_of(segment.length, frame.header.number)
        return slot in segment.torn_slots and self._frames[newest].segment is segment

    def _settle_segments(self, good: set[int]) -> None:
        """Leave only what counts: files may hold frames from an earlier use of theirs."""
        self._frames = {n: frame for n, frame in self._frames.items() if n in good}
        for segment in self.segments:
            segment.frames = [n for n in segment.frames if n in good]
            segment.end = segment.ends[segment.frames[-1]] if segment.frames else 0
            if segment.frames and (segment.torn_slots or segment.zero_slots):
                segment.claim = self._claim_of(self._frames[segment.frames[-1]])

    def _claim_of(self, frame: _Frame) -> Claim:
        """What its writer said of a sound frame."""
        claim = Claim(frame.header.number, frame.header.hash)
        for one in self._records(frame):
            if one.kind == fmt.EXAMINED:
                continue
            claimed = claim.groups.setdefault(one.group, Claimed())
            if one.kind == fmt.ENTRY:
                claimed.last_index, claimed.last_term = one.log_index, one.term
            elif one.kind == fmt.VOTE:
                claimed.voted, claimed.vote_term, claimed.vote = True, one.term, one.data
            elif one.kind in (fmt.BASE, fmt.DROP) or (one.kind == fmt.STANDING and one.entry_kind):
                claimed.unsure = True
        return claim

    def _note_examined(self, number: int) -> None:
        frame = self._frames[number]
        assert frame.body is not None, "only sound frames are looked into"
        for one in self._records(frame):
            if one.kind == fmt.EXAMINED and one.data:
                for first, last in SeqSet.decode(one.data).ranges():
                    self._judged.add_range(first, last)

    def _check_chain(self, good: list[int], oldest: int) -> None:
        previous: _Frame | None = None
        for number in good:
            frame = self._frames[number]
            known = {fmt.NO_HASH, frame.header.previous}
            if previous is not None and previous.header.number == number - 1 > oldest:
                known.add(previous.header.hash)
            if len(known) > 2:
                self._doubt = True
                self.recovered.damage.append(f"frame {number}: the chain is broken before it")
            previous = frame

    def _damaged(self, number: int) -> None:
        claim = self._claims.get(number)
        if claim is None or not claim.complete:
            self._doubt = True
            self.recovered.damage.append(f"frame {number} is lost, and nothing tells what it held")
            return
        self.recovered.damage.append(
            f"frame {number} is damaged; its {len(claim.groups)} groups are suspect"
        )

    def _records(self, frame: _Frame) -> list[WalRecord]:
        assert frame.body is not None, "only sound frames have records"
        header = frame.header
        return list(fmt.decode_records(frame.body, header.claims_length, header.records))

    def _fold(self) -> None:
        """Replay sound frames and, in their place, what is known of damaged ones."""
        for number in sorted({*self._frames, *self._claims}):
            frame = self._frames.get(number)
            if frame is not None and frame.body is not None:
                for one in self._records(frame):
                    self._replay(one, frame.segment)
            elif number <= self.last_number and number not in self._judged:
                self._replay_claim(self._claims.get(number))
        self.recovered.unsure = self._doubt
        for group in self.recovered.groups.values():
            _close_gap(group)
            if self._doubt or (group.holed and group.standing == WHOLE):
                group.standing = UNKNOWN

    def _replay_claim(self, claim: Claim | None) -> None:
        if claim is None:
            return
        for name, one in claim.groups.items():
            group = self.recovered.groups.setdefault(name, RecoveredGroup())
            self._suspect(group, one)
            if one.last_index or one.unsure:
                self._suspects.add(name)

    def _suspect(self, group: RecoveredGroup, one: Claimed) -> None:
        if one.voted and one.vote_term >= group.term:
            group.term, group.vote = one.vote_term, one.vote
        if one.last_index:
            group.standing = SUSPECT if group.standing == WHOLE else group.standing
            _raise_suspicion(group, one.last_term, one.last_index)
        if one.unsure:
            group.standing = UNKNOWN

    def _drop_group(self, name: bytes) -> None:
        self.recovered.groups.pop(name, None)
        self._suspects.discard(name)
        for known in self.segments:
            known.groups.pop(name, None)
            known.hard.discard(name)

    def _replay(self, one: WalRecord, segment: FoundSegment) -> None:
        if one.kind == fmt.EXAMINED:
            return
        if one.kind == fmt.DROP:
            self._drop_group(one.group)
            return
        group = self.recovered.groups.get(one.group)
        if group is None:
            group = self.recovered.groups[one.group] = RecoveredGroup()
        if one.kind == fmt.ENTRY:
            segment.groups[one.group] = max(segment.groups.get(one.group, 0), one.log_index)
            _append(group, one)
            return
        segment.hard.add(one.group)
        if one.kind == fmt.STANDING:
            self._replay_standing(group, one)
        else:
            self._replay_hard(group, one)

    def _replay_standing(self, group: RecoveredGroup, one: WalRecord) -> None:
        standing = _STANDINGS[one.entry_kind]
        if one.group not in self._suspects:
            group.standing, group.holed = standing, False
            group.suspect_term, group.suspect_index = one.term, one.log_index
            return
        group.standing = max(group.standing, standing, key=_STANDINGS.index)
        _raise_suspicion(group, one.term, one.log_index)

    def _replay_hard(self, group: RecoveredGroup, one: WalRecord) -> None:
        if one.kind == fmt.TRUNCATE:
            _truncate(group, one.log_index)
            for known in self.segments:
                if known.groups.get(one.group, 0) >= one.log_index:
                    known.groups[one.group] = one.log_index - 1
        elif one.kind == fmt.VOTE:
            group.term, group.vote = one.term, one.data
        elif one.kind == fmt.BASE:
            _rebase(group, one)


def _append(group: RecoveredGroup, one: WalRecord) -> None:
    index = one.log_index
    if index <= group.base_index:
        return
    if group.entries:
        if index <= group.last_index:
            _truncate(group, index)
        if index != group.last_index + 1 and group.entries:
            group.holed = True
            if group.standing != WHOLE:
                _raise_suspicion(group, one.term, index)
            return
    # The first entry may stand alone: its base is repeated later if older segments are gone.
    group.entries.append((index, one.term, one.entry_kind, one.data))


def _truncate(group: RecoveredGroup, index: int) -> None:
    entries = group.entries
    if entries and index <= entries[-1][0]:
        del entries[max(0, index - entries[0][0]) :]


def _rebase(group: RecoveredGroup, one: WalRecord) -> None:
    index = one.log_index
    term, members = fmt.decode_base(one.data)
    entries = group.entries
    known = next((e[1] for e in entries if e[0] == index), term)
    if known != term or index > group.last_index:
        entries.clear()
        group.holed = False
    elif entries:
        del entries[: max(0, index + 1 - entries[0][0])]
    group.base_index, group.base_term, group.members = index, term, members


def _close_gap(group: RecoveredGroup) -> None:
    """Entries that do not follow the base are of no use, and their absence is damage."""
    if group.entries and group.entries[0][0] != group.base_index + 1:
        _raise_suspicion(group, group.last_term, group.last_index)
        group.entries.clear()
        group.holed = True


def _raise_suspicion(group: RecoveredGroup, term: int, index: int) -> None:
    if (term, index) > (group.suspect_term, group.suspect_index):
        group.suspect_term, group.suspect_index = term, index
