"""What time does to a stream: `max_age`, times to live of messages, markers, ids.

Run by the stream's leader only. It proposes removals; replicas apply them alike. At most one
round of removals is in flight.
"""

from collections import Counter

from jsctl.api.times import format_duration
from jsctl.broker.deadlines import earliest
from jsctl.broker.errors import Damaged
from jsctl.broker.jetstream.streams.entries import (
    Flags,
    encode_expire,
    encode_messages,
    encode_remove,
)
from jsctl.broker.jetstream.streams.in_flight import InFlight
from jsctl.broker.jetstream.streams.publish_headers import (
    KV_OPERATION,
    KV_PURGE,
    MARKER_REASON,
    ROLLUP,
    ROLLUP_SUBJECT,
)
from jsctl.broker.jetstream.streams.stream import Stream
from jsctl.broker.protocol.headers import get
from jsctl.broker.store.record import Record, Row

ROUND_MESSAGES_MAX = 10_000
"""Where messages have to be looked at one by one (times to live, markers), so many a round."""
ROUND_BYTES_AIMED = 8 << 20
"""Where messages are read, for their subjects, about so much of them."""
LOOKED_AT_ONCE = 256
MARKER_HEADERS = b"NATS/1.0\r\n%b: MaxAge\r\nNats-TTL: %b\r\n%b: %b\r\n\r\n"


class Timers:
    """Due times of one stream."""

    __slots__ = ("_in_flight", "_mortal", "_stream", "_waiting")

    def __init__(self, stream: Stream, in_flight: InFlight) -> None:
        self._stream = stream
        self._in_flight = in_flight
        self._waiting = 0
        self._mortal = (0, 0)
        """What `_first_mortal` found last: nothing before it is mortal, ever."""

    def landed(self) -> None:
        """The round in flight was applied, at least partly."""
        self._waiting = sum([batch.timer for batch in self._in_flight.batches])

    def dropped(self) -> None:
        """The round was not taken by the log."""
        self.landed()

    @property
    def waiting(self) -> bool:
        """Whether a round is in flight."""
        return self._waiting > 0

    def joined(self, entries: int) -> None:
        """So many more entries, of schedules, are part of the round."""
        self._waiting += entries

    def next_due_ns(self) -> int | None:
        """The earliest time at which something is due; None while a round is in flight."""
        if self._waiting:
            return None
        stream = self._stream
        age_due_ns = self._age_due_ns() if stream.config.max_age > 0 else None
        return earliest(age_due_ns, stream.ttls.next_due_ns(), stream.dedupe.empty_at_ns())

    def _first_mortal(self) -> tuple[int, int] | None:
        """(sequence, time) of the first message that `max_age` applies to."""
        store, never = self._stream.store, self._stream.ttls.never
        if not store.retained_messages:
            return None
        if not never:
            return store.first_seq, store.state().first_time_ns
        start = max(self._mortal[0], store.first_seq)
        if start == self._mortal[0] and store.is_live(start) and start not in never:
            return self._mortal
        while seqs := store.live_seqs(start, store.last_seq, LOOKED_AT_ONCE):
            for seq in seqs:
                record = None if seq in never else _load(self._stream, seq)
                if record is not None:
                    self._mortal = (seq, record.time_ns)
                    return self._mortal
            start = seqs[-1] + 1
        return None

    def _age_due_ns(self) -> int | None:
        first = self._first_mortal()
        return None if first is None else first[1] + self._stream.config.max_age

    def due(self, now_ns: int, next_seq: int) -> list[tuple[bytes, list[Row]]]:
        """Entries for what is due, each with the messages (markers) that it adds."""
        if self._waiting:
            return []
        stream = self._stream
        # Nothing is stored in a stream that is sealed, and a marker would be.
        marker_ttl_ns = 0 if stream.config.sealed else stream.config.subject_delete_marker_ttl
        up_to = self._age_bound(now_ns, bool(marker_ttl_ns))
        over = stream.ttls.due(now_ns, ROUND_MESSAGES_MAX)
        if marker_ttl_ns and over:
            over = self._readable(over)
        ids_over = stream.dedupe.empty_at_ns()
        made: list[tuple[bytes, list[Row]]] = []
        if up_to or (ids_over is not None and ids_over <= now_ns):
            made.append((encode_expire(up_to, now_ns), []))
        if over:
            made.append((encode_remove(over), []))
        if marker_ttl_ns and (up_to or over):
            rows = self._markers(up_to, over, now_ns, next_seq)
            if rows:
                made.append((encode_messages(rows, Flags.TTLS), rows))
        self._waiting = len(made)
        return made

    def _age_bound(self, now_ns: int, one_by_one: bool) -> int:
        """The last sequence that is too old; 0 if none is."""
        store, max_age = self._stream.store, self._stream.config.max_age
        first = self._first_mortal() if max_age > 0 else None
        if first is None or first[1] + max_age > now_ns:
            return 0
        # What is due goes, whatever times lie around it: each round has to remove something.
        bound = max(store.seq_at_time(now_ns - max_age + 1) - 1, first[0])
        if one_by_one or self._stream.ttls.never:
            live = store.live_seqs(first[0], bound, ROUND_MESSAGES_MAX)
            bound = store.first_of(live, ROUND_BYTES_AIMED)[-1]
        return bound

    def _readable(self, over: list[int]) -> list[int]:
        """Those of some messages, perhaps gone already, that are read in one round."""
        store = self._stream.store
        live = store.live_of(sorted(over))
        later = set(live) - set(store.first_of(live, ROUND_BYTES_AIMED))
        return [seq for seq in over if seq not in later] if later else over

    def _markers(self, up_to: int, over: list[int], now_ns: int, next_seq: int) -> list[Row]:
        """One marker for each subject of which nothing is left now.

        As nats-server's they roll their subject up: here nothing of it is left for them, but what
        copies them, and keeps its messages longer, is to let go of it.
        """
        stream = self._stream
        store = stream.store
        going = set(over)
        if up_to:
            aged = store.live_seqs(store.first_seq, up_to, store.retained_messages)
            going.update([seq for seq in aged if seq not in stream.ttls.never])
        busy = self._in_flight.subjects()
        ttl = format_duration(stream.config.subject_delete_marker_ttl).encode()
        headers = MARKER_HEADERS % (MARKER_REASON, ttl, ROLLUP, ROLLUP_SUBJECT)
        rows: list[Row] = []
        passed = Counter[bytes]()
        for seq in sorted(going):
            record = _load(stream, seq)
            subject = store.subject_of(seq) if record is None else record.subject
            if subject is None:
                continue
            passed[subject] += 1
            if record is None or subject in busy or _is_marker(record.headers):
                continue
            if passed[subject] == store.retained_for(subject):
                rows.append((next_seq + len(rows), now_ns, subject, headers, b""))
        return rows


def _is_marker(headers: bytes) -> bool:
    """Whether a message itself says that its subject is empty, as a marker or as a key's purge."""
    return bool(get(headers, MARKER_REASON)) or get(headers, KV_OPERATION) == KV_PURGE


def _load(stream: Stream, seq: int) -> Record | None:
    try:
        return stream.store.load(seq)
    except Damaged:
        return None
