"""What a stream's leader does when schedules are due: it makes their messages, and says when they
are due next, in one entry of the log.

An entry has what a message replaces as well: the schedule that it ends goes with it, one that is
due again is so with it, on all replicas. A schedule is looked at as it is applied, so it does not
come to its turn while anything is on its way that may end or replace it. What is due is taken in
portions, one at a time.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from jsctl.broker.errors import Damaged
from jsctl.broker.jetstream.scheduling.patterns import Due
from jsctl.broker.jetstream.scheduling.rules import ScheduleRules
from jsctl.broker.jetstream.scheduling.schedules import FORGET, REMOVE, ScheduledMessage, Schedules
from jsctl.broker.jetstream.streams import publish_headers as known
from jsctl.broker.jetstream.streams.checks import Checks, Taken
from jsctl.broker.jetstream.streams.entries import (
    RemoveMessages,
    StreamEntryKind,
    decode,
    encode_scheduled,
)
from jsctl.broker.jetstream.streams.in_flight import InFlight
from jsctl.broker.jetstream.streams.sequencer import Admitted, Sequencer
from jsctl.broker.jetstream.streams.stream import Stream
from jsctl.broker.protocol import headers as blocks
from jsctl.broker.store.record import Record

ROUND_MESSAGES_MAX = 250
ROUND_BYTES_AIMED = 4 << 20
RETRY_NS = 20_000_000
"""How soon is looked again at what is due and cannot be made now."""
NO_ROOM_RETRY_NS = 1_000_000_000
SCAN_MESSAGES = 1_000
"""So many messages are looked at in a round, where schedules are not known."""
_UNSETTLING = frozenset({StreamEntryKind.PURGE, StreamEntryKind.DELETE, StreamEntryKind.CONFIG})
_STRIPPED = (b"Nats-Schedule", b"Nats-Expected-")
_WAITS = "a message that another replica may have"
_DROPPED = (known.MSG_ID, known.TTL, known.ROLLUP)


class Made(NamedTuple):
    """The message of a schedule that is due."""

    subject: bytes
    headers: bytes
    payload: bytes


class Firing:
    """See the module. From one win of a group's leadership to the loss of it.

    `unapplied` gives the entries of the log that are not applied; `needs` is told of a message that
    has to be read and is damaged here, and says whether another replica may have it.
    """

    def __init__(
        self,
        stream: Stream,
        in_flight: InFlight,
        rules: ScheduleRules,
        unapplied: Callable[[], Iterable[bytes]],
        needs: Callable[[int], bool],
    ) -> None:
        self._stream = stream
        self._in_flight = in_flight
        self._rules = rules
        self._unapplied = unapplied
        self._needs = needs
        self._retry_ns = 0

    def next_due_ns(self, schedules: Schedules) -> int | None:
        """When `fire` has something to do."""
        if schedules.scan:
            return max(self._retry_ns, 1)
        due_ns = schedules.next_due_ns()
        return None if due_ns is None else max(due_ns, self._retry_ns)

    def wait(self, now_ns: int) -> None:
        """There is no room for messages now."""
        self._retry_ns = now_ns + NO_ROOM_RETRY_NS

    def fire(
        self,
        schedules: Schedules,
        sequencer: Sequencer,
        checks: Checks,
        time_ns: int,
        now_ns: int,
        made: Admitted,
    ) -> None:
        """Make an entry for what is due by `now_ns`, stored with `time_ns`, if something is."""
        if schedules.scan:
            self._scan(schedules, sequencer, now_ns, made)
            return
        due = schedules.due(now_ns, ROUND_MESSAGES_MAX)
        if not due:
            return
        building = sequencer.begin()
        building.timer = True
        checks.begin(sequencer.next_seq, building.rows)
        for one in self._ready(due, time_ns):
            found = self._find(one, time_ns)
            if found is None:
                continue
            message, due_ns = found
            taken = None if message is None else checks.check_made(*message)
            if isinstance(taken, Taken):
                taken.ended = b"" if due_ns else one.subject
                sequencer.take(building, taken, b"", time_ns)
            gone = isinstance(taken, Taken) and not taken.skipped
            if due_ns or not gone:
                over = REMOVE if isinstance(taken, Taken) else FORGET
                building.changes[one.seq] = due_ns or over
            if building.size >= ROUND_BYTES_AIMED:
                break
        if building.rows:
            sequencer.close(building, made)
        elif building.changes:
            sequencer.add_timed(encode_scheduled(building.changes), [], made)
        self._retry_ns = 0 if building.rows or building.changes else now_ns + RETRY_NS

    def _ready(self, due: list[ScheduledMessage], time_ns: int) -> Iterator[ScheduledMessage]:
        """Those that nothing on its way has to do with, and whose own time is not over."""
        leaving: set[int] = set()
        for data in self._unapplied():
            if data[0] in _UNSETTLING:
                return
            if data[0] == StreamEntryKind.REMOVE:
                entry = decode(data)
                assert isinstance(entry, RemoveMessages)
                leaving.update(entry.seqs)
        written, ended, ttls = self._in_flight.subjects(), self._in_flight.ended, self._stream.ttls
        for one in due:
            if one.subject in written or one.subject in ended or one.seq in leaving:
                continue
            if not ttls.is_over(one.seq, time_ns):
                yield one

    def _find(self, one: ScheduledMessage, time_ns: int) -> tuple[Made | None, int] | None:
        """What a schedule makes, if it is one, and when it is due next; None if that cannot be told
        yet, or it is too old to be there much longer."""
        stream, max_age = self._stream, self._stream.config.max_age
        record = self._load(one.seq)
        if record is _WAITS:
            return None
        if not isinstance(record, Record):
            return None, FORGET
        if 0 < max_age <= time_ns - record.time_ns and one.seq not in stream.ttls.never:
            return None
        fields = known.nats_fields(record.headers)
        due = self._rules.next_due(fields, one.due_ns)
        if not isinstance(due, Due):
            return None, FORGET
        source = fields.get(known.SCHEDULE_SOURCE)
        last = stream.store.last_for(source) if source else None
        content = self._load(last) if last else None
        if content is _WAITS:
            return None
        made = _make(one, fields, content if isinstance(content, Record) else record, due)
        return made, due.at_ns if due.repeats else FORGET

    def _load(self, seq: int) -> object:
        """The message; None if there is none any more, _WAITS if it has to be repaired."""
        try:
            return self._stream.store.load(seq)
        except Damaged:
            return _WAITS if self._needs(seq) else None

    def _scan(
        self, schedules: Schedules, sequencer: Sequencer, now_ns: int, made: Admitted
    ) -> None:
        """Look at some messages for schedules that are not known."""
        store, size, looked, found = self._stream.store, 0, 0, Schedules()
        seqs = store.live_seqs(schedules.scan, store.last_seq, SCAN_MESSAGES)
        for seq in seqs:
            record = self._load(seq) if size < ROUND_BYTES_AIMED else _WAITS
            if record is _WAITS:
                break
            looked += 1
            if isinstance(record, Record):
                size += len(record.headers) + len(record.payload)
                self._look(record, found)
        if seqs and not looked:
            self._retry_ns = now_ns + RETRY_NS
            return
        if looked < len(seqs):
            found.scan = seqs[looked]
        elif looked == SCAN_MESSAGES and seqs[-1] < store.last_seq:
            found.scan = seqs[-1] + 1
        sequencer.add_timed(encode_scheduled({}, found.snapshot()), [], made)

    def _look(self, record: Record, found: Schedules) -> None:
        """Whether a message is a schedule."""
        if known.SCHEDULE not in record.headers:
            return
        due = self._rules.next_due(known.nats_fields(record.headers), record.time_ns)
        if isinstance(due, Due) and self._stream.store.last_for(record.subject) == record.seq:
            found.set(record.seq, record.subject, max(due.at_ns, 1))


def _make(one: ScheduledMessage, fields: dict[bytes, bytes], content: Record, due: Due) -> Made:
    headers = b""
    if content.headers:
        # Publishers may send anything: it need not end as a block does.
        first, *lines = content.headers.split(b"\r\n")
        dropped = tuple([name + b":" for name in _DROPPED])
        kept = [line for line in lines[:-2] if not line.startswith((*_STRIPPED, *dropped))]
        headers = b"\r\n".join([first, *kept, b"", b""])
    headers = blocks.append(headers, known.SCHEDULER, one.subject)
    following = due.text.encode() if due.repeats else known.NEXT_PURGE
    headers = blocks.append(headers, known.SCHEDULE_NEXT, following)
    for name, source in ((known.TTL, known.SCHEDULE_TTL), (known.ROLLUP, known.SCHEDULE_ROLLUP)):
        value = fields.get(source)
        if value:
            headers = blocks.append(headers, name, value)
    return Made(fields.get(known.SCHEDULE_TARGET, b""), headers, content.payload)
