"""The leader's side of a stream: which publishes are taken, and as what.

`StreamLeader` exists only while this server leads the stream's group and has applied its own
first entry. It judges a turn's publishes by applied and in-flight state, and by the newest config
that the log has before them; it gives them sequences and a time, and encodes them once. Whether the
log takes the entries is told by `proposed`, that they are applied by `applied`; acks are published
by the caller when their entry is applied.

Theory of operation: batches without headers, or with new message ids and nothing else, on a stream
without per-message rules take the short way, a handful of list operations for a whole batch.
Everything else goes message by
message through `checks`.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from jsctl.api.codec import dumps
from jsctl.api.errors import ApiError, api_error
from jsctl.api.stream import StreamConfig
from jsctl.broker.jetstream.streams.absent import is_ingest
from jsctl.broker.jetstream.streams.checks import HEADER_BYTES_MAX, Checks, Taken
from jsctl.broker.jetstream.streams.entries import (
    Flags,
    encode_begin,
    encode_config,
    encode_delete,
    encode_purge,
    encode_remove,
    encode_sourced,
    make_messages,
)
from jsctl.broker.jetstream.streams.in_flight import Ack, Batch, InFlight
from jsctl.broker.jetstream.streams.positions import SourcePosition
from jsctl.broker.jetstream.streams.publish_headers import FAST_INGEST, plain_ids
from jsctl.broker.jetstream.streams.stream import Stream
from jsctl.broker.jetstream.streams.timers import Timers
from jsctl.broker.store.record import Row

Publish = tuple[bytes, bytes, bytes, bytes, object]
"""(subject, reply, headers, payload, origin) as the router captured it."""

Arrived = tuple[int, int, bytes, bytes, bytes, str]
"""(sequence, time, subject, headers, payload, the origin's identity) of another stream."""

ENTRY_BYTES_MAX = 4 << 20
"""A turn's messages are split into entries of about this size."""
IN_FLIGHT_MESSAGES_MAX = 100_000
IN_FLIGHT_BYTES_MAX = 128 << 20
"""Beyond these publishes are refused with `too many requests`."""


@dataclass(slots=True)
class Admitted:
    """What came of a batch.

    `acks[i]` belongs to `entries[i]` and is to be published when that entry is applied; keep
    the list itself, retries that join may be added to it until then. `rejects` are published
    now.
    """

    entries: list[bytes] = field(default_factory=list)
    acks: list[list[Ack]] = field(default_factory=list)
    rejects: list[Ack] = field(default_factory=list)


def _everybody(subject: bytes) -> bool:
    return True


class StreamLeader:
    """Admission for one stream, from one win of its group's leadership to the loss of it."""

    def __init__(
        self,
        stream: Stream,
        *,
        interested: Callable[[bytes], bool] = _everybody,
        domain: str = "",
    ) -> None:
        self.stream = stream
        self.refusal: ApiError | None = None
        """While set, every publish is refused with it: account or server are out of room."""
        self.interested = interested
        self.in_flight = InFlight()
        self._next_seq = stream.store.last_seq + 1
        self._time_ns = stream.store.last_time_ns
        self._last_id = stream.last_msg_id
        name = dumps(stream.name)
        self._ack = b'{"stream":' + name.replace(b"%", b"%%") + b',"seq":%d'
        if domain:
            self._ack += b',"domain":' + dumps(domain).replace(b"%", b"%%")
        self._duplicate = self._ack + b',"duplicate": true}'
        self._ack += b"}"
        self._reject_tail = b',"stream":' + name + b',"seq":0}'
        self._measure = stream.store.message_bytes
        self._overhead = self._measure(0, 0, 0)
        self._header_overhead = self._measure(0, 1, 0) - 1
        self._timers = Timers(stream, self.in_flight)
        self._coming: tuple[int, StreamConfig] | None = None
        """Revision and config that the log took, and that may not be applied yet."""
        self._revision = -1
        self._checks: Checks
        self.config: StreamConfig
        """What publishes are judged by: the newest config in the log, applied or not."""
        self._short = False
        self._payload_max = 0
        self._reconfigure()

    def _reconfigure(self) -> None:
        stream = self.stream
        self._revision = stream.revision
        if self._coming is not None and self._coming[0] <= stream.revision:
            self._coming = None
        self.config = config = stream.config if self._coming is None else self._coming[1]
        self._checks = Checks(stream, config, self.in_flight, self.interested)
        self._short = self._checks.trivial
        self._payload_max = config.max_msg_size if config.max_msg_size > 0 else 1 << 62

    # Publishes.

    def admit(self, batch: Sequence[Publish], now_ns: int) -> Admitted:
        """Judge a turn's publishes, in order, and encode those that are taken."""
        if self._revision != self.stream.revision:
            self._reconfigure()
        self._time_ns = max(self._time_ns, now_ns)
        refusal = self.refusal or self._overload()
        if refusal is not None:
            return Admitted(rejects=self._refuse(batch, refusal))
        if self._short and batch and FAST_INGEST not in b" ".join([item[1] for item in batch]):
            headers = [item[2] for item in batch]
            ids = plain_ids(headers) if any(headers) else []
            if not any(headers) or self._are_new(ids):
                lengths = [len(item[2]) + len(item[3]) for item in batch]
                size = sum(lengths) + sum([len(item[0]) for item in batch])
                size += (self._header_overhead if ids else self._overhead) * len(batch)
                fits = max(map(len, headers)) <= HEADER_BYTES_MAX and size <= ENTRY_BYTES_MAX
                if fits and max(lengths) <= self._payload_max:
                    return self._take_all(batch, size, ids)
        return self._take_each(batch)

    def admit_sourced(
        self, key: str, arrivals: Iterable[Arrived], now_ns: int
    ) -> tuple[Admitted, int, ApiError | None]:
        """Take messages of a source, in order; how many, and why not the next one.

        Those that were published here before count: they are known. Without a key they are of a
        mirror's origin, and keep its sequences and times.
        """
        if self._revision != self.stream.revision:
            self._reconfigure()
        self._time_ns = max(self._time_ns, now_ns)
        made, count = Admitted(), 0
        refusal = self.refusal or self._overload()
        if refusal is not None:
            return made, 0, refusal
        building = self._begin_building()
        for seq, time_ns, subject, headers, payload, identity in arrivals:
            count += 1
            if not key and seq < self._next_seq:
                continue
            outcome = self._checks.check_sourced(subject, headers, payload, self._time_ns)
            if isinstance(outcome, ApiError):
                refusal, count = outcome, count - 1
                break
            if key:
                building.positions[key] = SourcePosition(seq, identity)
                time_ns = self._time_ns
            else:
                self._next_seq = seq
            if isinstance(outcome, Taken):
                self._take(building, outcome, b"", time_ns)
                if building.size >= ENTRY_BYTES_MAX:
                    building = self._close(building, made)
        self._close(building, made)
        return made, count, refusal

    def sourced(self, positions: dict[str, SourcePosition]) -> Admitted:
        """It is known up to where this stream has its sources."""
        self.in_flight.add(Batch([], 0, [], [], self._last_id))
        return Admitted([encode_sourced(positions)], [[]])

    def begin_at(self, first: int) -> Admitted:
        """A stream that holds nothing goes on with a sequence above its last."""
        self.in_flight.add(Batch([], 0, [], [], self._last_id))
        self._next_seq = max(self._next_seq, first)
        return Admitted([encode_begin(first)], [[]])

    def judge(self, item: Publish, now_ns: int) -> Taken | ApiError | int:
        """What would come of one publish now, as `Checks.check` says it; nothing is admitted."""
        if self._revision != self.stream.revision:
            self._reconfigure()
        refusal = self.refusal or self._overload()
        if refusal is not None:
            return refusal
        self._checks.begin(self._next_seq, [])
        return self._checks.check(
            item[0], item[2], item[3], max(self._time_ns, now_ns), self._last_id
        )

    def _are_new(self, ids: Sequence[bytes]) -> bool:
        """Whether nothing has to be known of these ids but that they are to be remembered."""
        dedupe = self.stream.dedupe
        return (
            dedupe.window_ns > 0
            and len(ids) > 0
            and len(set(ids)) == len(ids)
            and self.in_flight.ids.keys().isdisjoint(ids)
            and not dedupe.has_any(ids)
        )

    def _take_all(self, batch: Sequence[Publish], size: int, ids: list[bytes]) -> Admitted:
        """Messages without headers, or all with new ids and nothing else."""
        first, now, ack = self._next_seq, self._time_ns, self._ack
        rows: list[Row] = [
            (seq, now, item[0], item[2], item[3]) for seq, item in enumerate(batch, first)
        ]
        acks = []
        if not self.config.no_ack:
            acks = [(item[1], ack % seq) for seq, item in enumerate(batch, first) if item[1]]
        entry = make_messages(rows, Flags.IDS if ids else Flags.NONE)
        self.in_flight.add(Batch(rows, size, acks, ids, self._last_id, entry))
        self.in_flight.ids.update([(name, (seq, acks)) for seq, name in enumerate(ids, first)])
        self._last_id = ids[-1] if ids else b""
        self._next_seq = first + len(rows)
        return Admitted([entry.frame.buffer], [acks])

    def _take_each(self, batch: Sequence[Publish]) -> Admitted:
        made = Admitted()
        building = self._begin_building()
        no_ack = self.config.no_ack
        for subject, reply, headers, payload, _ in batch:
            ingest = is_ingest(reply)
            if no_ack:
                reply = b""
            outcome = self._judge(subject, ingest, headers, payload)
            if isinstance(outcome, ApiError):
                if reply:
                    made.rejects.append((reply, self._rejection(outcome)))
            elif isinstance(outcome, int):
                self._duplicate_of(outcome, reply, made)
            else:
                self._take(building, outcome, reply, self._time_ns)
                if building.size >= ENTRY_BYTES_MAX:
                    building = self._close(building, made)
        self._close(building, made)
        return made

    def _judge(
        self, subject: bytes, ingest: bool, headers: bytes, payload: bytes
    ) -> Taken | ApiError | int:
        if ingest:
            return self._checks.check_ingest(headers, payload)
        return self._checks.check(subject, headers, payload, self._time_ns, self._last_id)

    def _begin_building(self) -> "_Building":
        building = _Building(self._last_id)
        self._checks.begin(self._next_seq, building.rows)
        return building

    def _take(self, building: "_Building", taken: Taken, reply: bytes, time_ns: int) -> None:
        seq = self._next_seq
        self._next_seq = seq + 1
        payload = b"" if taken.skipped else taken.payload
        headers = b"" if taken.skipped else taken.headers
        building.rows.append((seq, time_ns, taken.subject, headers, payload))
        building.size += self._measure(len(taken.subject), len(headers), len(payload))
        building.flags |= taken.flags
        if taken.skipped:
            building.skipped.append(seq)
        self._last_id = taken.message_id
        building.ids.append(taken.message_id)
        if taken.message_id:
            self.in_flight.ids[taken.message_id] = (seq, building.acks)
        if reply:
            building.acks.append((reply, self._ack % seq))

    def _duplicate_of(self, seq: int, reply: bytes, made: Admitted) -> None:
        """Answer a retry: with the first one's ack if that is in flight, else at once."""
        if not reply:
            return
        answer = (reply, self._duplicate % seq)
        waiting = self.in_flight.ids.get(self._checks.message_id)
        if waiting is None:
            made.rejects.append(answer)
        else:
            waiting[1].append(answer)

    def _close(self, building: "_Building", made: Admitted) -> "_Building":
        if building.rows:
            entry = make_messages(
                building.rows, building.flags, building.skipped, building.positions
            )
            made.entries.append(entry.frame.buffer)
            made.acks.append(building.acks)
            before = building.last_id_before
            batch = Batch(building.rows, building.size, building.acks, building.ids, before, entry)
            self.in_flight.add(batch)
        elif building.positions:
            made.entries.append(encode_sourced(building.positions))
            made.acks.append([])
            self.in_flight.add(Batch([], 0, [], [], self._last_id))
        return self._begin_building()

    def _overload(self) -> ApiError | None:
        waiting = self.in_flight
        if waiting.messages > IN_FLIGHT_MESSAGES_MAX or waiting.bytes > IN_FLIGHT_BYTES_MAX:
            return api_error("JSStreamTooManyRequests")
        return None

    def _refuse(self, batch: Sequence[Publish], refusal: ApiError) -> list[Ack]:
        if self.config.no_ack:
            return []
        payload = self._rejection(refusal)
        return [(item[1], payload) for item in batch if item[1]]

    def refused(self, acks: Sequence[Sequence[Ack]]) -> list[Ack]:
        """The answers to publishes that the log did not take."""
        body = self._rejection(api_error("JSClusterNotAvailErr"))
        return [(reply, body) for some in acks for reply, _ in some]

    def _rejection(self, error: ApiError) -> bytes:
        return b'{"error":' + dumps(error.body()) + self._reject_tail

    # Other entries, made by the leader so that bounds are fixed.

    def purge(self, subject_filter: bytes, up_to: int, keep: int) -> bytes:
        """A PURGE entry; `up_to` 0 means everything admitted so far."""
        bound = self._next_seq - 1
        return encode_purge(subject_filter, min(up_to, bound) if up_to else bound, keep)

    def delete(self, seq: int, erase: bool) -> bytes:
        """A DELETE entry."""
        return encode_delete(seq, erase)

    def remove(self, seqs: Sequence[int]) -> bytes:
        """A REMOVE entry, for messages that were consumed."""
        return encode_remove(seqs)

    def configure(self, revision: int, config: StreamConfig) -> bytes:
        """A CONFIG entry."""
        return encode_config(revision, dumps(config))

    def configured(self, revision: int, config: StreamConfig) -> None:
        """The log took a CONFIG entry: what is admitted from now on is stored behind it."""
        self._coming = revision, config
        self._reconfigure()

    # Time.

    def expire(self, now_ns: int) -> Admitted:
        """What time removes by now, perhaps with markers in its place; perhaps nothing.

        To be proposed like admitted batches. Nothing is returned while an earlier such
        batch is in flight.
        """
        self._time_ns = max(self._time_ns, now_ns)
        found = self._timers.due(self._time_ns, self._next_seq)
        made = Admitted()
        for entry, rows in found:
            size = sum([self._measure(len(row[2]), len(row[3]), 0) for row in rows])
            self.in_flight.add(Batch(rows, size, [], [], self._last_id, timer=True))
            if rows:
                self._next_seq = rows[-1][0] + 1
                self._last_id = b""
            made.entries.append(entry)
            made.acks.append([])
        return made

    def next_due_ns(self) -> int | None:
        """When `expire` should be called next; None if nothing is to expire."""
        return self._timers.next_due_ns()

    # The log.

    def proposed(self, first_index: int | None) -> None:
        """Where the log put the entries of the last `admit` or `expire`; None: nowhere.

        What was not taken is rolled back, as if it had never been admitted.
        """
        if first_index is None:
            dropped = self.in_flight.drop_unproposed()
            self._timers.dropped()
            if dropped is not None:
                self._last_id = dropped.last_id_before
            rows = [batch.rows[-1][0] for batch in self.in_flight.batches if batch.rows]
            self._next_seq = (rows[-1] if rows else self.stream.store.last_seq) + 1
            return
        waiting = [batch for batch in self.in_flight.batches if not batch.index]
        for index, batch in enumerate(waiting, first_index):
            batch.index = index

    def applied(self, index: int) -> None:
        """Everything up to this index is in the stream's state."""
        if self.in_flight.applied(index):
            self._timers.landed()

    @property
    def next_seq(self) -> int:
        """The sequence that the next message will get."""
        return self._next_seq


class _Building:
    """An entry that is being filled."""

    __slots__ = ("acks", "flags", "ids", "last_id_before", "positions", "rows", "size", "skipped")

    def __init__(self, last_id_before: bytes) -> None:
        self.rows: list[Row] = []
        self.acks: list[Ack] = []
        self.ids: list[bytes] = []
        self.skipped: list[int] = []
        self.positions: dict[str, SourcePosition] = {}
        self.size = 0
        self.flags = 0
        self.last_id_before = last_id_before
