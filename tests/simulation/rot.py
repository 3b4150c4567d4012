"""Bit rot, and places of a disk that cannot be read, on one server of a run.

What is damaged is remembered: of a segment the messages that the damaged bytes told of, of the log
that it was damaged. So much, and no more, may be missing when the server starts again. It must say
itself what it misses: a replica reports messages as lost, a group does not begin as a whole one.
"""

import random
from contextlib import suppress
from dataclasses import dataclass, field

from jsctl.broker.errors import Damaged
from jsctl.broker.replication import state_file
from jsctl.broker.store.record import peek
from jsctl.broker.store.segments.segment import FRAME, HEAD_BYTES, Envelope, walk
from jsctl.broker.store.wal.format import MIRROR_BYTES
from jsctl.broker.store.wal.recovery import Scan, segment_name
from tests.simulation.disks import DurableGroup, MachineDisk
from tests.support.sim_disk import SECTOR

PAGE = 4096
LOG, SEGMENT, CATALOGUE, STATE, SMALL = "log", "segment", "catalogue", "state", "small"
WEIGHTS = {LOG: 3, SEGMENT: 5, CATALOGUE: 1, STATE: 3, SMALL: 2}
"""Kinds of files, and how often each is chosen."""
_TWINS = ("identity", "founding")
"""Of these one copy has to be left: with both gone a server is not to start."""
_MAY_VANISH = ("/durable", ".cat")
"""Files of stores, beside their segments, that may be gone as a whole."""
Place = tuple[str, int, int]
"""(path, start, end)."""


def kind_of(path: str) -> str:
    """What a file is."""
    name = path.rpartition("/")[2]
    if name.endswith(".wal"):
        return LOG
    if name.endswith(".seg"):
        return SEGMENT
    if name.endswith(".cat"):
        return CATALOGUE
    if name.startswith("state.") and not path.startswith("founding"):
        return STATE
    return SMALL


def group_of(path: str) -> str:
    """The raft group that a file belongs to; empty for those that belong to none."""
    top, *rest = path.split("/")
    if top == "meta":
        return "_meta_"
    return rest[0] if top in ("streams", "consumers") else ""


def durable_states(disk: MachineDisk) -> dict[str, int]:
    """Group -> the index of the newest of its state files that no power cut takes away; a process
    that was killed may have written it, and told nobody."""
    found: dict[str, int] = {}
    for path in disk.paths():
        if kind_of(path) == STATE and not path.endswith(".new"):
            with suppress(Damaged):
                state, name = state_file.decode(disk.durable_content(path), path), group_of(path)
                found[name] = max(state.index, found.get(name, 0))
    return found


@dataclass
class Decay:
    """What of one machine's disk is damaged."""

    log: bool = False
    """Part of the log, since the last start."""
    met: bool = False
    """The same, of what the process that runs found when it started."""
    doubtful: set[str] = field(default_factory=set)
    """Groups that must not begin as whole ones: what they promised is gone."""
    lacking: dict[str, DurableGroup] = field(default_factory=dict)
    """Of those what the log had before it was damaged: a place may be readable again."""
    lost: dict[str, set[int]] = field(default_factory=dict)
    """Stream's group -> messages that damaged bytes told of."""
    catalogues: set[str] = field(default_factory=set)
    """Groups whose catalogue, or durable position, was damaged too."""
    places: list[Place] = field(default_factory=list)

    def may_lack(self, name: str) -> set[int]:
        """Messages that a replica of a stream need not have any more."""
        return set(self.lost.get(name, ()))


def choose(disk: MachineDisk, rng: random.Random, decay: Decay) -> Place | None:
    """A piece of a file in which something is; whole sectors, or a page."""
    files: dict[str, list[str]] = {}
    for path in disk.paths():
        if any(disk.content(path)) and not path.endswith(".new") and not _last_copy(path, decay):
            files.setdefault(kind_of(path), []).append(path)
    if not files:
        return None
    kinds = list(files)
    path = rng.choice(files[rng.choices(kinds, [WEIGHTS[kind] for kind in kinds])[0]])
    data = disk.content(path)
    step = rng.choice([SECTOR, PAGE])
    starts = [at for at in range(0, len(data), step) if any(data[at : at + step])]
    start = rng.choice(starts)
    return path, start, min(start + step, len(data))


def _last_copy(path: str, decay: Decay) -> bool:
    stem = path.rpartition(".")[0]
    if not path.startswith(_TWINS):
        return False
    return any(one != path and one.rpartition(".")[0] == stem for one, _, _ in decay.places)


def spoil(disk: MachineDisk, rng: random.Random, decay: Decay, place: Place) -> None:
    """Damage a place: one bit of it, all of it to zeros, or to other bytes; or its whole file is
    gone."""
    path, start, end = place
    how = rng.randrange(4)
    if how < 2:
        bit = rng.randrange(8 * start, 8 * end)
        if bit % 4 == 0 and path.endswith(_MAY_VANISH):
            note(disk, decay, (path, 0, len(disk.content(path))))
            disk.remove(path)
            return
        note(disk, decay, (path, bit // 8, bit // 8 + 1))
        disk.flip_bit(path, bit)
        return
    note(disk, decay, place)
    other = bytes(end - start) if how == 2 else rng.randbytes(end - start)
    content = disk.content(path)
    disk.overwrite(path, content[:start] + other + content[end:])


def hides_a_frame(disk: MachineDisk, identity: bytes, decay: Decay, place: Place) -> bool:
    """Whether with a place both the last frame of the log and its claim would be gone: nobody can
    tell that from a frame which never came."""
    path = place[0]
    if kind_of(path) != LOG:
        return False
    scan = Scan(disk, "log", identity)
    refused, disk.unopenable = disk.unopenable, set()
    scan.run()
    disk.unopenable = refused
    last = 0
    for segment in scan.segments:
        if f"log/{segment_name(segment.number, segment.length)}" == path and segment.frames:
            last = segment.ends.get(segment.frames[-1] - 1, 0)
    claims = len(disk.content(path)) - MIRROR_BYTES
    starts = [one[1] for one in (place, *decay.places, *disk.unreadable) if one[0] == path]
    return any(last <= at < claims for at in starts) and any(at >= claims for at in starts)


def note(disk: MachineDisk, decay: Decay, place: Place) -> None:
    """A place is about to be damaged, or not to be readable."""
    path = place[0]
    decay.places.append(place)
    kind, name = kind_of(path), group_of(path)
    if kind == LOG:
        # What rots has rested for a while, and so has the claim of the last frame, which would
        # otherwise be gone with the next power cut, and with it what tells damage from a torn end.
        disk.write_back(path)
        decay.log = True
    elif kind == STATE:
        decay.doubtful.add(name)
    elif kind == SEGMENT:
        _note_messages(disk, decay, place)
    elif path.startswith("streams") and not path.endswith("index"):
        decay.catalogues.add(name)
        for other, first, last in list(decay.places):
            if kind_of(other) == SEGMENT and group_of(other) == name and other in disk.paths():
                decay.lost[name] |= told_by(disk.content(other), first, last, whole=True)


def note_refused(disk: MachineDisk, decay: Decay, path: str) -> None:
    """A read failed: of a segment that may hold more by now than when it became unreadable, or
    that does not open."""
    if kind_of(path) == SEGMENT:
        if path in disk.unopenable and path in disk.paths():
            _note_messages(disk, decay, (path, 0, len(disk.content(path))))
        for bad, start, end in disk.unreadable:
            if bad == path:
                _note_messages(disk, decay, (path, *_pages(start, end)))


def _note_messages(disk: MachineDisk, decay: Decay, place: Place) -> None:
    path, start, end = place
    name = group_of(path)
    lost = decay.lost.setdefault(name, set())
    lost |= told_by(disk.content(path), start, end, whole=name in decay.catalogues)


def _pages(start: int, end: int) -> tuple[int, int]:
    """A file is read by whole pages."""
    return start // PAGE * PAGE, -(-end // PAGE) * PAGE


def note_unreadable(disk: MachineDisk, decay: Decay, *, starting: bool = False) -> None:
    """What cannot be read now. Who opens a store reads whole pages; the log is read only then."""
    for path, start, end in disk.unreadable:
        kind = kind_of(path)
        if kind == LOG:
            decay.log = decay.log or starting
        elif kind != STATE and path in disk.paths():
            note(disk, decay, (path, *_pages(start, end)))


def told_by(data: bytes, start: int, end: int, *, whole: bool) -> set[int]:
    """Messages of the frames that a range of a segment touches; `whole`: of all its frames, as
    no catalogue tells where what is damaged belongs."""
    found: set[int] = set()
    for one in walk(data, 0, 0):
        frame = one if isinstance(one, Envelope) else one.frame
        if frame is None or frame.kind != FRAME:
            continue
        if whole or (frame.start - HEAD_BYTES < end and start < frame.end):
            _, first, last, _ = peek(data, frame.start)
            found.update(range(first, last + 1))
    return found
