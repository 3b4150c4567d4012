"""A stream's state: messages in a store, ids seen lately, times to live, and its config.

Knows nothing of raft, requests or clocks. Everything that happens is an entry of the stream's
log; entries carry decisions, so that applying one cannot fail and replicas stay equal. Removal by
limits is not in the log: it follows from the config, which is, right behind each append.

Effects on the store are skipped by the store itself when its mark shows that it has them, as
after a restart; effects on memory are always applied.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from jsctl.api.codec import dumps, loads
from jsctl.api.fields import ZERO_TIME
from jsctl.api.stream import LostData, StreamConfig, StreamState
from jsctl.api.times import format_time
from jsctl.broker.jetstream.streams.dedupe import Dedupe
from jsctl.broker.jetstream.streams.entries import (
    Begin,
    Config,
    Delete,
    Expire,
    Flags,
    Messages,
    Purge,
    RemoveMessages,
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
    ROLLUP,
    ROLLUP_ALL,
    TTL,
    nats_fields,
    parse_ttl,
    plain_ids,
)
from jsctl.broker.jetstream.streams.ttl import Ttls
from jsctl.broker.store.frame import Frame
from jsctl.broker.store.stream_store import StreamStore
from jsctl.broker.subject.matching import Filters

SUBJECTS_PER_PAGE = 20_000
"""A page of 100,000, as nats-server has it, would keep everybody else waiting."""
_HEAD = struct.Struct("<BQQIIII")
_BOUNDS = struct.Struct("<QQQQ")
_VERSION = 2
_WITHOUT_POSITIONS = 1
"""The version before: it ends with the times to live."""


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
        self.bounds: StoreBounds | None = None
        """After `restore`: what the store must hold; the store's content comes by its export."""
        if config.first_seq > 1 and store.last_seq == 0:
            store.set_first(config.first_seq, store.mark)

    # The log.

    def apply(self, index: int, entry: StreamEntry, ids: Sequence[bytes] = ()) -> int:
        """Take one committed entry; `ids` are those of its messages, if the caller knows them.

        Returns how many messages it stored or removed; for a config its revision.
        """
        self.applied = index
        match entry:
            case Messages():
                return self._messages(index, entry, ids)
            case Expire():
                return self._expire(index, entry)
            case Delete():
                self.ttls.forget((entry.seq,))
                return self.store.remove((entry.seq,), index, entry.erase)
            case RemoveMessages():
                self.ttls.forget(entry.seqs)
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

    def _begin(self, index: int, first: int) -> int:
        if not self.store.retained_messages and first > self.store.last_seq + 1:
            self.store.set_first(first, index)
        return 0

    def _append(self, index: int, frame: Frame) -> None:
        # Invariant: an entry that the store does not have yet continues its sequences. A leader
        # that gave one twice would lose the second message without a word.
        store = self.store
        assert index <= store.mark or frame.first_seq > store.last_seq, "a sequence given twice"
        store.append(frame, index)

    def _messages(self, index: int, entry: Messages, ids: Sequence[bytes]) -> int:
        frame, flags = entry.frame, entry.flags
        self._append(index, frame)
        flags &= ~Flags.SOURCED
        if flags == Flags.IDS and _is_run(frame):
            ids = ids or plain_ids(frame.header_blocks)
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
        if entry.skipped:
            self.store.remove(entry.skipped, index)
        self._retain_after(index, frame)
        return frame.count - len(entry.skipped)

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
            if flags & Flags.TTLS and TTL in fields:
                ttl_ns = parse_ttl(fields[TTL])
                if ttl_ns:
                    self.ttls.add(seq, time_ns, ttl_ns)
            if flags & Flags.ROLLUPS and ROLLUP in fields:
                self._roll_up(index, seq, subject, fields[ROLLUP])
        self.dedupe.expire(found.times[-1])

    def _roll_up(self, index: int, seq: int, subject: bytes, what: bytes) -> None:
        if what == ROLLUP_ALL:
            self.store.truncate_front(seq, index)
            self.ttls.trim(seq)
        else:
            self.store.purge(Filters((subject,)), seq, 0, index)

    def _expire(self, index: int, entry: Expire) -> int:
        self.dedupe.expire(entry.now_ns)
        if not entry.up_to:
            return 0
        if not self.ttls.never:
            return self.store.truncate_front(entry.up_to + 1, index)
        first = self.store.first_seq
        spared = self.ttls.never
        return self.store.remove(
            [seq for seq in range(first, entry.up_to + 1) if seq not in spared], index
        )

    def _purge(self, index: int, entry: Purge) -> int:
        filters = Filters((entry.filter,)) if entry.filter else None
        count = self.store.purge(filters, entry.up_to + 1, entry.keep, index)
        self.ttls.trim(self.store.first_seq)
        return count

    def _config(self, index: int, entry: Config) -> int:
        self.config = loads(StreamConfig, entry.config)
        self.revision = entry.revision
        self.dedupe.resize(self.config.duplicate_window)
        if self.config.max_msgs_per_subject > 0:
            self._retain_subjects(index, set(self.store.retained_names(Filters())))
        self._retain(index)
        return entry.revision

    # Limits.

    def _retain_after(self, index: int, frame: Frame) -> None:
        if index < self.store.mark:
            return
        if self.config.max_msgs_per_subject > 0:
            self._retain_subjects(index, set(frame.columns.subjects))
        self._retain(index)

    def _retain_subjects(self, index: int, subjects: set[bytes]) -> None:
        config, store = self.config, self.store
        if config.discard_new_per_subject:
            return
        over = store.excess(subjects, config.max_msgs_per_subject)
        if over:
            self.ttls.forget(store.remove_oldest(over, index))

    def _retain(self, index: int) -> None:
        config, store = self.config, self.store
        if config.discard.value == "new":
            return
        store.keep_newest(config.max_msgs, config.max_bytes, index)
        if self.ttls.never:
            self.ttls.trim(store.first_seq)

    # Snapshots.

    def snapshot(self) -> bytes:
        """All but the messages: config, ids, times to live, positions, and the store's bounds."""
        config = dumps(self.config)
        dedupe = self.dedupe.snapshot()
        ttls = self.ttls.snapshot()
        head = _HEAD.pack(
            _VERSION,
            self.applied,
            self.revision,
            len(config),
            len(self.last_msg_id),
            len(dedupe),
            len(ttls),
        )
        store = self.store
        totals = store.retained_messages, store.retained_bytes
        bounds = _BOUNDS.pack(*totals, store.first_seq, store.last_seq)
        positions = encode_positions(self.positions)
        return b"".join((head, bounds, config, self.last_msg_id, dedupe, ttls, positions))

    def restore(self, snapshot: bytes) -> None:
        """Take a snapshot's state; `bounds` then says what the store has to reach."""
        version, applied, revision, *sizes = _HEAD.unpack_from(snapshot)
        assert version in (_VERSION, _WITHOUT_POSITIONS), version
        self.bounds = StoreBounds(*_BOUNDS.unpack_from(snapshot, _HEAD.size))
        at = _HEAD.size + _BOUNDS.size
        parts: list[bytes] = []
        for size in sizes:
            parts.append(snapshot[at : at + size])
            at += size
        self.positions = {}
        if version == _VERSION:
            self.positions, at = decode_positions(snapshot, at)
        assert at == len(snapshot), "a snapshot ends with its last part"
        self.applied, self.revision = applied, revision
        self.config = loads(StreamConfig, parts[0])
        self.last_msg_id = parts[1]
        self.dedupe = Dedupe(self.config.duplicate_window)
        self.dedupe.restore(parts[2])
        self.ttls.restore(parts[3])

    # Questions.

    def info_state(
        self,
        *,
        subjects_filter: bytes = b"",
        offset: int = 0,
        deleted_details: bool = False,
        consumers: int = 0,
    ) -> StreamState:
        """The state as `STREAM.INFO` tells it; subjects one page at a time, sorted."""
        found = self.store.state()
        subjects: dict[str, int] = {}
        if subjects_filter:
            names = sorted(self.store.names(Filters((subjects_filter,))))
            page = names[offset : offset + SUBJECTS_PER_PAGE]
            count = self.store.count_for
            subjects = {name.decode("utf-8", "replace"): count(name) for name in page}
        empty = found.last_seq == 0
        return StreamState(
            messages=found.messages,
            bytes=found.bytes,
            first_seq=0 if empty else found.first_seq,
            first_ts=format_time(found.first_time_ns) if found.messages else ZERO_TIME,
            last_seq=found.last_seq,
            last_ts=format_time(found.last_time_ns),
            num_subjects=found.num_subjects,
            subjects=subjects,
            num_deleted=found.num_deleted,
            deleted=self._deleted() if deleted_details else (),
            lost=self._lost(found.lost),
            consumer_count=consumers,
        )

    def count_subjects(self, subjects_filter: bytes) -> int:
        """How many subjects there are to be paged through."""
        return len(self.store.names(Filters((subjects_filter,))))

    def _deleted(self) -> tuple[int, ...]:
        ranges = self.store.deleted().ranges()
        return tuple([seq for low, high in ranges for seq in range(low, high + 1)])

    def _lost(self, ranges: tuple[tuple[int, int], ...]) -> LostData | None:
        if not ranges:
            return None
        return LostData(msgs=tuple([seq for low, high in ranges for seq in range(low, high + 1)]))


def _is_run(frame: Frame) -> bool:
    """Whether sequences have no holes, and all messages one time: mirrors have others."""
    times = frame.columns.times
    return frame.last_seq - frame.first_seq + 1 == frame.count and times[0] == times[-1]
