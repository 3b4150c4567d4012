"""A stream's state: messages in a store, ids seen lately, times to live, and its config.

Knows nothing of raft, requests or clocks. Everything that happens is an entry of the stream's
log; entries carry decisions, so that applying one cannot fail and replicas stay equal. Removal by
limits is not in the log: it follows from the config, which is, right behind each append.

Effects on the store are skipped by the store itself when its mark shows that it has them, as
after a restart; effects on memory are always applied.
"""

import struct
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from jsctl.api.codec import dumps, loads
from jsctl.api.fields import ZERO_TIME
from jsctl.api.stream import LostData, StreamConfig, StreamState
from jsctl.api.times import format_time
from jsctl.broker import lazy
from jsctl.broker.jetstream.chains.keeper import ChainKeeper
from jsctl.broker.jetstream.config_texts import STREAMS
from jsctl.broker.jetstream.streams.batch_marks import (
    BatchMark,
    Marks,
    decode_marks,
    encode_marks,
)
from jsctl.broker.jetstream.streams.dedupe import Dedupe
from jsctl.broker.jetstream.streams.entries import (
    ALL_SUBJECTS,
    Begin,
    Config,
    Delete,
    Expire,
    Flags,
    Messages,
    Purge,
    RemoveMessages,
    Scheduled,
    Sourced,
    StreamEntry,
)
from jsctl.broker.jetstream.streams.positions import (
    SourcePosition,
    decode_positions,
    encode_positions,
)
from jsctl.broker.jetstream.streams.publish_headers import (
    MSG_ID,
    ROLLUP_ALL,
    ROLLUP_SUBJECT,
    SCHEDULER,
    TTL,
    ends_schedule,
    nats_fields,
    parse_ttl,
    rollup_of,
)
from jsctl.broker.jetstream.streams.ttl import NEVER, Ttls
from jsctl.broker.pieces import Piece, total
from jsctl.broker.store.frame import Frame
from jsctl.broker.store.stream_store import StreamStore
from jsctl.broker.subject.matching import Filters
from jsctl.broker.subject.paging import page_of
from jsctl.dataclass import dataclass

if TYPE_CHECKING:
    from jsctl.broker.jetstream.scheduling import schedules
    from jsctl.broker.jetstream.scheduling.schedules import Schedules
else:
    schedules = lazy.module("jsctl.broker.jetstream.scheduling.schedules")

SUBJECTS_PER_PAGE = 20_000
"""A page of 100,000, as nats-server has it, would keep everybody else waiting."""
_TTLS = Flags.TTLS | Flags.NEVERS
_HEAD = struct.Struct("<BQQIIII")
_BOUNDS = struct.Struct("<QQQQ")
_VERSION = 5
_WITHOUT_CHAIN = 4
"""The version of a stream without a chain."""
_WITHOUT_SCHEDULES = 3
"""The version before: it ends with the marks of fast batches."""
_WITHOUT_MARKS = 2
"""The one before that: it ends with the positions of sources."""
_WITHOUT_POSITIONS = 1
"""The first one: it ends with the times to live."""
_NO_SCHEDULES = bytes(12)


@dataclass(frozen=True, slots=True)
class StoreBounds:
    """What a store held when a snapshot was taken."""

    messages: int
    bytes: int
    first_seq: int
    last_seq: int


class Stream:
    """Implements `ports.StateMachine` for one stream."""

    def __init__(
        self, account: str, config: StreamConfig, created_ns: int, store: StreamStore
    ) -> None:
        self.account = account
        self.name = config.name
        self.created_ns = created_ns
        self.store = store
        self.config = config
        self.revision = 0
        self.applied = 0
        self.dedupe = Dedupe(config.duplicate_window)
        self.ttls = Ttls()
        self.last_msg_id = b""
        self.positions: dict[str, SourcePosition] = {}
        """By index name, up to where this stream has its sources, and those it once had."""
        self.batches: dict[bytes, BatchMark] = {}
        """By their ids, how far fast batches have come that are not over."""
        self.schedules: Schedules | None = None
        """In a stream that has them."""
        self.chained = ChainKeeper(store, max(config.first_seq - 1, 0))
        self.bounds: StoreBounds | None = None
        """After `restore`: what the store must hold; the store's content comes by its export."""
        if config.first_seq > 1 and store.last_seq == 0:
            store.set_first(config.first_seq, store.mark)
        if config.allow_msg_schedules:
            self.schedules = schedules.Schedules()

    # The log.

    def apply(self, index: int, entry: StreamEntry, ids: list[bytes] | None = None) -> int:
        """Take one committed entry; `ids` are those of its messages, if the caller knows them.

        Returns how many messages it stored or removed; for a config its revision.
        """
        self.applied = index
        self.chained.applies(index, entry, self.config)
        match entry:
            case Messages():
                return self._messages(index, entry, ids)
            case Expire():
                return self._expire(index, entry)
            case Delete():
                self._forget((entry.seq,))
                return self.store.remove((entry.seq,), index, entry.erase)
            case RemoveMessages():
                self._forget(entry.seqs)
                return self.store.remove(entry.seqs, index)
            case Purge():
                return self._purge(index, entry)
            case Config():
                return self._config(index, entry)
            case Sourced():
                self.positions.update(entry.positions)
                return 0
            case Begin():
                return self._begin(index, entry.first)
            case Scheduled():
                self._reschedule(index, entry)
                return 0

    def _forget(self, seqs: Sequence[int]) -> None:
        """These messages go."""
        self.ttls.forget(seqs)
        if self.schedules is not None:
            self.schedules.forget(seqs)

    def _trim(self) -> None:
        """Messages went from the front."""
        if self.ttls.never:
            self.ttls.trim(self.store.first_seq)
        if self.schedules is not None:
            self.schedules.trim(self.store.first_seq)

    def _begin(self, index: int, first: int) -> int:
        self.chained.last_seq = max(self.chained.last_seq, first - 1)
        if not self.store.retained_messages and first > self.store.last_seq + 1:
            self.store.set_first(first, index)
        return 0

    def _append(self, index: int, frame: Frame) -> None:
        # Invariant: an entry that the store does not have yet continues its sequences. A leader
        # that gave one twice would lose the second message without a word.
        store = self.store
        assert index <= store.mark or frame.first_seq > store.last_seq, "a sequence given twice"
        store.append(frame, index)

    def _messages(self, index: int, entry: Messages, ids: list[bytes] | None) -> int:
        frame, flags = entry.frame, entry.flags
        self._append(index, frame)
        self.chained.stored(frame)
        flags &= ~Flags.BESIDE
        if flags == Flags.IDS and _is_run(frame):
            ids = ids or frame.plain_ids
        if flags == Flags.NONE:
            self.last_msg_id = b""
        elif ids and flags == Flags.IDS and _is_run(frame):
            # All messages of such an entry have one time, and sequences without holes.
            time_ns = frame.columns.times[0]
            self.dedupe.add_many(ids, frame.first_seq, time_ns)
            self.dedupe.expire(time_ns)
            self.last_msg_id = ids[-1]
        else:
            self._learn(index, frame, flags)
        if entry.positions:
            self.positions.update(entry.positions)
        if entry.marks:
            self._mark(entry.marks)
        if entry.skipped:
            self.store.remove(entry.skipped, index)
        if self.schedules is not None:
            self._schedule(index, entry)
        self._retain_after(index, frame)
        return frame.count - len(entry.skipped)

    def _mark(self, marks: Marks) -> None:
        """How far fast batches have come, and which are over."""
        for name, mark in marks.items():
            if mark is None:
                self.batches.pop(name, None)
            else:
                self.batches[name] = mark

    def _learn(self, index: int, frame: Frame, flags: int) -> None:
        """Ids and times to live are remembered; rollups remove what they roll up."""
        self.last_msg_id = b""
        found = frame.columns
        rows = zip(found.seqs, found.times, found.subjects, frame.header_blocks, strict=True)
        for seq, time_ns, subject, headers in rows:
            fields = nats_fields(headers)
            self.last_msg_id = fields.get(MSG_ID, b"")
            if self.last_msg_id:
                self.dedupe.add(self.last_msg_id, seq, time_ns)
            if flags & _TTLS and TTL in fields:
                ttl_ns = parse_ttl(fields[TTL])
                if ttl_ns == NEVER or (ttl_ns and flags & Flags.TTLS):
                    self.ttls.add(seq, time_ns, ttl_ns)
            if flags & Flags.ROLLUPS:
                self._roll_up(index, seq, subject, rollup_of(fields))
            if flags & Flags.SCHEDULES and ends_schedule(fields):
                self.store.purge(Filters((fields[SCHEDULER],)), seq, 0, index)
        self.dedupe.expire(found.times[-1])

    def _roll_up(self, index: int, seq: int, subject: bytes, what: bytes) -> None:
        if what == ROLLUP_ALL:
            self.store.truncate_front(seq, index)
            self._trim()
        elif what == ROLLUP_SUBJECT:
            self.store.purge(Filters((subject,)), seq, 0, index)

    def _schedule(self, index: int, entry: Messages) -> None:
        """Messages are schedules now, or are not; others are due later."""
        known, frame = self.schedules, entry.frame
        assert known is not None
        if not entry.flags & Flags.SCHEDULES:
            known.overwritten(_without(frame, entry.skipped))
            return
        found, changes = frame.columns, dict(entry.changes)
        for seq, subject, headers in zip(
            found.seqs, found.subjects, frame.header_blocks, strict=True
        ):
            due_ns = changes.pop(seq, 0)
            fields = nats_fields(headers)
            if due_ns:
                known.set(seq, subject, due_ns)
            elif seq not in entry.skipped and not fields.get(SCHEDULER):
                known.drop(subject)
            if ends_schedule(fields):
                known.drop(fields[SCHEDULER])
        self._reschedule(index, Scheduled(changes))

    def _reschedule(self, index: int, entry: Scheduled) -> None:
        known = self.schedules
        if known is None:
            return
        for seq, due_ns in entry.changes.items():
            known.move(seq, due_ns)
        gone = [seq for seq, due_ns in entry.changes.items() if due_ns < 0]
        if gone:
            self.ttls.forget(gone)
            self.store.remove(gone, index)
        if entry.found:
            known.found(entry.found, self.store.last_for)

    def _expire(self, index: int, entry: Expire) -> int:
        self.dedupe.expire(entry.now_ns)
        if not entry.up_to:
            return 0
        if not self.ttls.never:
            count = self.store.truncate_front(entry.up_to + 1, index)
            self._trim()
            return count
        store, spared = self.store, self.ttls.never
        old = store.live_seqs(store.first_seq, entry.up_to, store.retained_messages)
        count = store.remove([seq for seq in old if seq not in spared], index)
        if self.schedules is not None:
            self.schedules.sweep(b"", store.is_live)
        return count

    def _purge(self, index: int, entry: Purge) -> int:
        filters = Filters((entry.filter,)) if entry.filter else None
        count = self.store.purge(filters, entry.up_to + 1, entry.keep, index)
        if entry.filter in ALL_SUBJECTS and not entry.keep:
            self._begin(index, entry.up_to + 1)
        self._trim()
        if self.schedules is not None:
            self.schedules.sweep(entry.filter, self.store.is_live)
        return count

    def _config(self, index: int, entry: Config) -> int:
        self.config = STREAMS.config(entry.config)
        if not self.config.allow_msg_schedules:
            self.schedules = None
        elif self.schedules is None:
            # What came by sources, or when it was a mirror, was not looked at.
            self.schedules = schedules.Schedules(scan=1)
        self.chained.configured(index, self.config)
        self.revision = entry.revision
        self.dedupe.resize(self.config.duplicate_window)
        if self.config.max_msgs_per_subject > 0:
            self._retain_subjects(index, self.store.crowded(self.config.max_msgs_per_subject))
        self._retain(index)
        return entry.revision

    # Limits.

    def _retain_after(self, index: int, frame: Frame) -> None:
        if index < self.store.mark:
            return
        if self.config.max_msgs_per_subject > 0:
            self._retain_subjects(index, set(frame.columns.subjects))
        self._retain(index)

    def _retain_subjects(self, index: int, subjects: Collection[bytes]) -> None:
        config, store = self.config, self.store
        if config.discard_new_per_subject:
            return
        if config.max_msgs_per_subject == 1:
            self._forget(store.keep_last(subjects, index))
        elif over := store.excess(subjects, config.max_msgs_per_subject):
            self._forget(store.remove_oldest(over, index))

    def _retain(self, index: int) -> None:
        config, store = self.config, self.store
        if config.discard.value == "new":
            return
        store.keep_newest(config.max_msgs, config.max_bytes, index)
        if self.ttls.never or self.schedules is not None:
            self._trim()

    # Snapshots.

    def snapshot(self) -> bytes:
        """All but the messages: config, ids, times to live, positions, batches, schedules, and the
        store's bounds."""
        return b"".join(self.snapshot_pieces())

    def snapshot_pieces(self) -> list[Piece]:
        """The same in pieces, which later changes leave as they are."""
        config = dumps(self.config)
        dedupe = self.dedupe.pieces()
        ttls = self.ttls.snapshot()
        chain = self.chained.snapshot(self.applied)
        head = _HEAD.pack(
            _VERSION if chain else _WITHOUT_CHAIN,
            self.applied,
            self.revision,
            len(config),
            len(self.last_msg_id),
            total(dedupe),
            len(ttls),
        )
        store = self.store
        totals = store.retained_messages, store.retained_bytes
        bounds = _BOUNDS.pack(*totals, store.first_seq, store.last_seq)
        sources, marks = encode_positions(self.positions), encode_marks(self.batches)
        known = self.schedules
        planned = _NO_SCHEDULES if known is None else known.snapshot()
        front, middle = head + bounds + config + self.last_msg_id, ttls + sources + marks
        return [front, *dedupe, middle, planned, *chain]

    @staticmethod
    def bounds_of(snapshot: bytes) -> StoreBounds:
        """What a snapshot says of the store."""
        return StoreBounds(*_BOUNDS.unpack_from(snapshot, _HEAD.size))

    def restore(self, snapshot: bytes) -> None:
        """Take a snapshot's state; `bounds` then says what the store has to reach."""
        version, applied, revision, *sizes = _HEAD.unpack_from(snapshot)
        assert _WITHOUT_POSITIONS <= version <= _VERSION, version
        self.bounds = self.bounds_of(snapshot)
        at = _HEAD.size + _BOUNDS.size
        parts: list[bytes] = []
        for size in sizes:
            parts.append(snapshot[at : at + size])
            at += size
        self.positions, self.batches = {}, {}
        if version != _WITHOUT_POSITIONS:
            self.positions, at = decode_positions(snapshot, at)
        if version >= _WITHOUT_SCHEDULES:
            marks, at = decode_marks(snapshot, at)
            self._mark(marks)
        self.applied, self.revision = applied, revision
        self.config = loads(StreamConfig, parts[0])
        self.last_msg_id = parts[1]
        self.dedupe = Dedupe(self.config.duplicate_window)
        self.dedupe.restore(parts[2])
        self.ttls.restore(parts[3])
        self.schedules = None
        if version >= _WITHOUT_CHAIN:
            at = self._restore_schedules(snapshot, at)
        self.chained = ChainKeeper(self.store, self.bounds.last_seq)
        if version == _VERSION:
            at = self.chained.restore(snapshot, at)
        assert at == len(snapshot), "a snapshot ends with its last part"

    def _restore_schedules(self, snapshot: bytes, at: int) -> int:
        if not self.config.allow_msg_schedules:
            return at + len(_NO_SCHEDULES)
        self.schedules = schedules.Schedules()
        return self.schedules.restore(snapshot, at)

    # Questions.

    def info_state(
        self,
        *,
        subjects: dict[str, int] | None = None,
        deleted_details: bool = False,
        consumers: int = 0,
    ) -> StreamState:
        """The state as `STREAM.INFO` tells it, with these subjects."""
        found = self.store.state()
        empty = found.last_seq == 0 and not self.config.first_seq
        return StreamState(
            messages=found.messages,
            bytes=found.bytes,
            first_seq=0 if empty else found.first_seq,
            first_ts=format_time(found.first_time_ns) if found.messages else ZERO_TIME,
            last_seq=found.last_seq,
            last_ts=format_time(found.last_time_ns),
            num_subjects=found.num_subjects,
            subjects=subjects or {},
            num_deleted=found.num_deleted,
            deleted=self._deleted() if deleted_details else (),
            lost=LostData(msgs=every_seq(found.lost)) if found.lost else None,
            consumer_count=consumers,
        )

    def subjects_page(self, subjects_filter: bytes, offset: int = 0) -> tuple[int, dict[str, int]]:
        """How many subjects pass, and how many messages those of one page of them have, sorted."""
        names, count = self.store.names(Filters((subjects_filter,))), self.store.count_for
        page = page_of(names, offset, SUBJECTS_PER_PAGE)
        return len(names), {name.decode("utf-8", "replace"): count(name) for name in page}

    def _deleted(self) -> tuple[int, ...]:
        return every_seq(self.store.deleted().ranges())


def every_seq(ranges: Iterable[tuple[int, int]]) -> tuple[int, ...]:
    """Sequences as infos name them, each for itself."""
    return tuple([seq for low, high in ranges for seq in range(low, high + 1)])


def _without(frame: Frame, skipped: Sequence[int]) -> Sequence[bytes]:
    """The subjects of the messages that are kept."""
    found = frame.columns
    if not skipped:
        return found.subjects
    rows = zip(found.seqs, found.subjects, strict=True)
    return [subject for seq, subject in rows if seq not in skipped]


def _is_run(frame: Frame) -> bool:
    """Whether sequences have no holes, and all messages one time: mirrors have others."""
    times = frame.columns.times
    return frame.last_seq - frame.first_seq + 1 == frame.count and times[0] == times[-1]
