"""Sequences for what a stream's leader takes, and the entries that it becomes.

What is in the log and not applied yet is in flight; what the log does not take is rolled back, as
if it had never been taken.
"""

from collections.abc import Callable, Sequence
from dataclasses import field
from itertools import repeat
from operator import add, lt

from jsctl.api.stream import StreamConfig
from jsctl.api.times import SECOND_NS
from jsctl.broker.jetstream.streams.batch_marks import Marks
from jsctl.broker.jetstream.streams.checks import HEADER_BYTES_MAX, Increment, Taken
from jsctl.broker.jetstream.streams.entries import (
    ENTRY_BYTES_MAX,
    Flags,
    Messages,
    encode_sourced,
    make_messages,
    publishes_entry,
)
from jsctl.broker.jetstream.streams.in_flight import Batch, InFlight
from jsctl.broker.jetstream.streams.positions import SourcePosition
from jsctl.broker.jetstream.streams.pub_acks import Ack, Acks, PubAcks
from jsctl.broker.jetstream.streams.publish_headers import MSG_ID, ROLLUP, TTL, parse_ttl
from jsctl.broker.jetstream.streams.stream import Stream
from jsctl.broker.jetstream.streams.ttl import NEVER
from jsctl.broker.protocol.headers import append, get, set_value
from jsctl.broker.store.record import Publish, Row
from jsctl.dataclass import dataclass

Arrived = tuple[int, int, bytes, bytes, bytes, str, bool]
"""(sequence, time, subject, headers, payload, the origin's identity) of another stream, and whether
its headers ask for nothing."""


@dataclass(slots=True)
class Admitted:
    """What came of a batch.

    `acks[i]` belongs to `entries[i]` and is to be published when that entry is applied; keep
    the object itself, retries that join may be added to it until then. `rejects` are published
    now: refusals, and what else waits for no entry.
    """

    entries: list[bytes] = field(default_factory=list)
    acks: list[Acks] = field(default_factory=list)
    rejects: list[Ack] = field(default_factory=list)


class Building:
    """An entry that is being filled."""

    __slots__ = (
        "acks",
        "changes",
        "flags",
        "ids",
        "last_id_before",
        "marker",
        "positions",
        "rows",
        "size",
        "skipped",
        "timer",
    )

    def __init__(self, last_id_before: bytes) -> None:
        self.rows: list[Row] = []
        self.acks = Acks()
        self.ids: list[bytes] = []
        self.skipped: list[int] = []
        self.positions: dict[str, SourcePosition] = {}
        self.changes: dict[int, int] = {}
        """When schedules are due, as entries have it."""
        self.size = 0
        self.flags = 0
        self.last_id_before = last_id_before
        self.timer = False
        """The leader makes it by itself because time passed."""
        self.marker: Callable[[int], Marks] | None = None
        """Says at the end how far fast batches are with the time of the last message, if some have
        messages in it."""


class Sequencer:
    """See the module."""

    __slots__ = (
        "_behind",
        "_header_overhead",
        "_measure",
        "_overhead",
        "_stream",
        "acks",
        "in_flight",
        "last_id",
        "next_seq",
    )

    def __init__(self, stream: Stream, acks: PubAcks) -> None:
        self._stream = stream
        self.acks = acks
        self.in_flight = InFlight()
        self.next_seq = stream.store.last_seq + 1
        self._behind = 0
        """A purge on its way has no message get this sequence, or one below it."""
        self.last_id = stream.last_msg_id
        """The id of the last message, empty if it has none."""
        self._measure = stream.store.message_bytes
        self._overhead = self._measure(0, 0, 0)
        self._header_overhead = self._measure(0, 1, 0) - 1

    def overhead(self, *, headers: bool) -> int:
        """What a message costs besides its bytes."""
        return self._header_overhead if headers else self._overhead

    # An entry, message by message

    def begin(self) -> Building:
        """An entry without messages."""
        return Building(self.last_id)

    def take(self, building: Building, taken: Taken, reply: bytes, time_ns: int) -> None:
        """The next message of an entry, acknowledged to `reply` unless that is empty."""
        seq = self.next_seq
        self.next_seq = seq + 1
        payload = b"" if taken.skipped else taken.payload
        headers = _remembered(taken) if taken.skipped else taken.headers
        if taken.flags & Flags.TTLS and not taken.skipped:
            headers = _outliving_markers(self._stream.config, headers)
        building.rows.append((seq, time_ns, taken.subject, headers, payload))
        building.size += self._measure(len(taken.subject), len(headers), len(payload))
        building.flags |= taken.flags
        if taken.skipped:
            building.skipped.append(seq)
        self.last_id = taken.message_id
        building.ids.append(taken.message_id)
        if taken.flags & Flags.SCHEDULES and not taken.skipped:
            if taken.due_ns:
                building.changes[seq] = taken.due_ns
            if taken.ended:
                self.in_flight.ended[taken.ended] = seq
        if taken.message_id:
            self.in_flight.ids[taken.message_id] = (seq, building.acks)
        if reply:
            value = taken.value
            ack = self.acks.counter(seq, value) if value else self.acks.plain % seq
            building.acks.append((reply, ack))

    def fill(
        self, building: Building, key: str, arrivals: Sequence[Arrived], time_ns: int, most: int
    ) -> bool:
        """All messages of an empty entry at once, from a source or, without a key, from the origin
        of a mirror. False, and nothing: one of them asks for something or is longer than `most`
        (-1: each is looked at), or they are too much for one entry."""
        if not arrivals:
            return False
        seqs, times, subjects, headers, payloads, identities, plain = zip(*arrivals, strict=True)
        sizes = [list(map(len, column)) for column in (subjects, headers, payloads)]
        overhead = self.overhead(headers=any(headers)) * len(arrivals)
        size = overhead + sum(map(sum, sizes))
        if not all(plain) or size > ENTRY_BYTES_MAX or max(sizes[1]) > HEADER_BYTES_MAX:
            return False
        if max(map(add, sizes[1], sizes[2])) > most:
            return False
        if key:
            building.positions[key] = SourcePosition(seqs[-1], identities[-1])
            seqs = tuple(range(self.next_seq, self.next_seq + len(arrivals)))
            times = (time_ns,) * len(arrivals)
        elif seqs[0] < self.next_seq or not all(map(lt, seqs, seqs[1:])):
            return False
        self._put(building, list(zip(seqs, times, subjects, headers, payloads, strict=True)), size)
        return True

    def take_increments(
        self, made: Sequence[Increment], batch: Sequence[Publish], time_ns: int, *, tells: bool
    ) -> Admitted | None:
        """What publishes of counters became, as an entry. Their publishers are told the values, or
        nothing. None: there are none, or they are too much for one entry."""
        if not made:
            return None
        building, first = self.begin(), self.next_seq
        rows = [(seq, time_ns, *one[:3]) for seq, one in enumerate(made, first)]
        texts = sum([len(row[2]) + len(row[3]) + len(row[4]) for row in rows])
        size = texts + self.overhead(headers=True) * len(rows)
        if size > ENTRY_BYTES_MAX:
            return None
        self._put(building, rows, size)
        if tells:
            for seq, (one, publish) in enumerate(zip(made, batch, strict=True), first):
                if publish[1]:
                    building.acks.append((publish[1], self.acks.counter(seq, one[3])))
        admitted = Admitted()
        self.close(building, admitted)
        return admitted

    def _put(self, building: Building, rows: list[Row], size: int) -> None:
        """All messages of an entry, none with an id."""
        building.rows += rows
        building.size = size
        building.ids = [b""] * len(rows)
        self.next_seq, self.last_id = rows[-1][0] + 1, b""

    def take_back(self, building: Building) -> None:
        """As if nothing of an entry had been taken; it must be the last one."""
        self.next_seq -= len(building.rows)
        self.last_id = building.last_id_before
        for message_id in building.ids:
            self.in_flight.ids.pop(message_id, None)
        self.in_flight.take_back(self.next_seq)

    def close(self, building: Building, made: Admitted) -> None:
        """Nothing more comes into an entry; one without messages is none, unless it tells up to
        where sources were taken."""
        if building.rows:
            rows, marker = building.rows, building.marker
            marks = None if marker is None else marker(rows[-1][1])
            entry = make_messages(
                rows,
                building.flags,
                building.skipped,
                building.positions,
                marks,
                building.changes,
            )
            made.entries.append(entry.frame.buffer)
            made.acks.append(building.acks)
            before = building.last_id_before
            self._add(entry, building.size, building.acks, building.ids, before, building.timer)
        elif building.positions:
            self.add_other(encode_sourced(building.positions), made)

    # Entries of one piece

    def take_all(
        self,
        batch: list[Publish],
        time_ns: int,
        size: int,
        ids: list[bytes],
        *,
        tells: bool,
        marks: Marks | None = None,
    ) -> Admitted:
        """Publishes without headers, or all with new ids and nothing else, as an entry. Their
        publishers are told, or not; fast batches are as far as `marks` say."""
        first = self.next_seq
        flags = Flags.IDS if ids else Flags.NONE
        entry = publishes_entry(batch, first, time_ns, flags, size, marks)
        acks = self.acks.run([item[1] for item in batch], first) if tells else Acks()
        self._add(entry, size, acks, ids, self.last_id)
        self.next_seq = first + len(batch)
        # All of them at once: it takes a third of what a loop takes.
        known = zip(range(first, self.next_seq), repeat(acks), strict=False)
        self.in_flight.ids.update(zip(ids, known, strict=False))
        self.last_id = ids[-1] if ids else b""
        return Admitted([entry.frame.buffer], [acks])

    def _add(
        self,
        entry: Messages,
        size: int,
        acks: Acks,
        ids: list[bytes],
        last_id_before: bytes,
        timer: bool = False,
    ) -> None:
        found = entry.frame.columns
        self.in_flight.add(
            Batch(found.seqs, found.subjects, size, acks, ids, last_id_before, entry, timer)
        )

    def add_other(self, entry: bytes, made: Admitted) -> None:
        """An entry that stores no message."""
        made.entries.append(entry)
        made.acks.append(Acks())
        self.in_flight.add(Batch((), (), 0, Acks(), [], self.last_id))

    def add_timed(self, entry: bytes, rows: Sequence[Row], made: Admitted) -> None:
        """An entry that the leader makes because time passed, with what it stores by itself."""
        size = sum([self._measure(len(row[2]), len(row[3]), 0) for row in rows])
        seqs, subjects = [row[0] for row in rows], [row[2] for row in rows]
        self.in_flight.add(Batch(seqs, subjects, size, Acks(), [], self.last_id, timer=True))
        if rows:
            self.next_seq = rows[-1][0] + 1
            self.last_id = b""
        made.entries.append(entry)
        made.acks.append(Acks())

    # The log

    def go_behind(self, seq: int) -> None:
        """The log is to have a purge that leaves nothing up to a sequence above all others."""
        self._behind, self.next_seq = seq, seq + 1

    def proposed(self, first_index: int | None) -> None:
        """Where the log put the entries that were made since the last call; None: nowhere."""
        if first_index is None:
            dropped = self.in_flight.drop_unproposed()
            if dropped is not None:
                self.last_id = dropped.last_id_before
            last = [batch.seqs[-1] for batch in self.in_flight.batches if batch.seqs]
            known = last[-1] if last else self._stream.store.last_seq
            self.next_seq = max(known, self._behind) + 1
            self.in_flight.take_back(self.next_seq)
            return
        waiting = [batch for batch in self.in_flight.batches if not batch.index]
        for index, batch in enumerate(waiting, first_index):
            batch.index = index


def _outliving_markers(config: StreamConfig, headers: bytes) -> bytes:
    """Headers with a time to live that is not shorter than that of markers: else a marker of the
    subject could still be there when this message is over, and no other one would tell of it."""
    least_s = config.subject_delete_marker_ttl // SECOND_NS
    if not least_s or config.max_msgs_per_subject == 1:
        return headers
    ttl_ns = parse_ttl(get(headers, TTL) or b"")
    if ttl_ns is None or ttl_ns == NEVER or ttl_ns >= least_s * SECOND_NS:
        return headers
    return set_value(headers, TTL, b"%d" % least_s)


def _remembered(taken: Taken) -> bytes:
    """The headers of a message that is not kept: its id is known, and what it rolls up is gone, all
    the same."""
    found = append(b"", MSG_ID, taken.message_id) if taken.message_id else b""
    rollup = get(taken.headers, ROLLUP) if taken.flags & Flags.ROLLUPS else None
    return append(found, ROLLUP, rollup) if rollup else found
