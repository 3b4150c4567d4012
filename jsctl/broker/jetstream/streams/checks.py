"""Whether one publish may be stored: the rules of a stream's config and of its headers.

The checks run in the order of the real server where a stream has several replicas; the first
refusal wins.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from jsctl.api.errors import ApiError, api_error
from jsctl.api.stream import StreamConfig
from jsctl.broker.errors import Damaged
from jsctl.broker.jetstream.streams import publish_headers as known
from jsctl.broker.jetstream.streams.absent import counter_refusal, is_batch
from jsctl.broker.jetstream.streams.entries import Flags
from jsctl.broker.jetstream.streams.in_flight import InFlight
from jsctl.broker.jetstream.streams.publish_headers import (
    ends_schedule,
    nats_fields,
    parse_ttl,
)
from jsctl.broker.jetstream.streams.stream import Stream
from jsctl.broker.jetstream.streams.ttl import NEVER
from jsctl.broker.store.record import Publish, Row
from jsctl.broker.subject.matching import matches
from jsctl.broker.subject.transforms import compile_transform

HEADER_BYTES_MAX = (1 << 16) - 1
SEARCHED_MAX = 100_000
"""So many subjects are held against patterns of what publishes expect, and one message's more, at
most in a turn; the rest waits for the next one."""
Fields = dict[bytes, bytes]
Increment = tuple[bytes, bytes, bytes, bytes]
"""Subject, headers and payload of the message that is stored, and the number in it."""
_NOTHING = [0, 0]


class Taken:
    """A publish that is to be stored, as it is to be stored."""

    __slots__ = (
        "due_ns",
        "ended",
        "flags",
        "headers",
        "message_id",
        "payload",
        "skipped",
        "subject",
        "value",
    )

    def __init__(self, subject: bytes, headers: bytes, payload: bytes) -> None:
        self.subject = subject
        self.headers = headers
        self.payload = payload
        self.message_id = b""
        self.flags = 0
        self.skipped = False
        """Nobody is interested: the sequence is used up, the message not kept."""
        self.value = b""
        """What a counter stands at with this message."""
        self.due_ns = 0
        """When it is due first, if it is a schedule."""
        self.ended = b""
        """The subject of the schedule that goes with it."""


_ASKED_ABOVE = frozenset({known.INCREMENT, known.EXPECTED_STREAM, known.TTL, known.MSG_ID})
"""Fields that `_by_headers` has judged before it looks for others."""
_EXPECTED = frozenset(
    {known.EXPECTED_LAST_SEQ, known.EXPECTED_LAST_SUBJECT_SEQ, known.EXPECTED_LAST_SUBJECT}
)


class Scheduling(Protocol):
    """The rules for schedules, which are loaded when somebody publishes one."""

    def check(
        self,
        taken: Taken,
        fields: Fields,
        config: StreamConfig,
        last_for: Callable[[bytes], int],
        rows: Sequence[Row],
    ) -> ApiError | None:
        """Why a publish is refused; what it has to be stored with is set if it is not. `rows` are
        what is stored in the same entry before it."""


class Part:
    """A publish of an atomic batch: it is judged with all others once the batch is complete."""

    __slots__ = ("fields", "subject")

    skipped = False

    def __init__(self, subject: bytes, fields: Fields) -> None:
        self.subject = subject
        self.fields = fields


class Checks:
    """The rules of one revision of a stream's config, which may still be on its way to it."""

    def __init__(
        self,
        stream: Stream,
        config: StreamConfig,
        in_flight: InFlight,
        interested: Callable[[bytes], bool],
        scheduling: Callable[[], Scheduling],
    ) -> None:
        self._stream = stream
        self._scheduling = scheduling
        self._store = stream.store
        self._config = config
        self._in_flight = in_flight
        self._interested = interested
        self._by_interest = config.retention.value == "interest"
        self._discard_new = config.discard.value == "new"
        self._limited = self._discard_new and (
            config.max_msgs > 0 or config.max_bytes > 0 or config.discard_new_per_subject
        )
        self._size_max = config.max_msg_size if config.max_msg_size > 0 else 1 << 62
        transform = config.subject_transform
        self._transform = None
        if transform is not None:
            self._transform = compile_transform(transform.src.encode(), transform.dest.encode())
        self.trivial = not (
            config.sealed or self._limited or self._by_interest or self._transform is not None
        )
        """Whether messages without headers need no check but their size."""
        self.message_id = b""
        """The id of the message checked last."""
        self._alone = False
        """It is part of a fast batch."""
        self._next_seq = 0
        self._rows: list[Row] = []
        self._noted = 0
        self._open: dict[bytes, list[int]] = {}
        self._open_bytes = 0
        self._stored: dict[bytes, int] = {}
        """Pattern -> the last sequence that the store has for it."""
        self.searched = 0
        """Subjects that were held against patterns, since whoever looks has set it to 0."""

    def begin(self, next_seq: int, rows: list[Row]) -> None:
        """A new entry is being filled: `rows` are its messages, growing as they are taken."""
        self._next_seq = next_seq
        self._rows = rows
        self._noted = 0
        self._open = {}
        self._open_bytes = 0
        self._stored = {}

    def together(self, batch: Sequence[Publish], first_seq: int) -> list[Increment]:
        """What publishes become that only add to counters, and get sequences from `first_seq` on;
        empty where not all are such."""
        return []

    def check(
        self,
        subject: bytes,
        headers: bytes,
        payload: bytes,
        now_ns: int,
        last_id: bytes,
        *,
        alone: bool = False,
    ) -> Taken | ApiError | int | Part:
        """Take it, refuse it, keep it for its batch unless it is to stand alone, or name the
        sequence that it is a duplicate of."""
        self.message_id = b""
        self._alone = alone
        if self._config.sealed:
            return api_error("JSStreamSealedErr")
        taken = Taken(self._stored_subject(subject), headers, payload)
        refused = self._oversize(taken)
        if refused is not None:
            return refused
        fields = nats_fields(headers) if headers else {}
        if fields:
            if is_batch(fields) and not alone:
                return self._part(taken, fields)
            found = self._by_headers(taken, fields, now_ns, last_id)
            if found is not None:
                return found
        return self._fitting(taken)

    def check_sourced(
        self, subject: bytes, headers: bytes, payload: bytes, now_ns: int
    ) -> Taken | ApiError | int:
        """As `check`, of a message that another stream has accepted before: what it asked for
        beyond being stored counts as far as this stream allows it."""
        self.message_id = b""
        config = self._config
        if config.sealed:
            return api_error("JSStreamSealedErr")
        taken = Taken(self._stored_subject(subject), headers, payload)
        if not headers:
            return self._fitting(taken)
        fields = nats_fields(headers)
        message_id = fields.get(known.MSG_ID, b"")
        if message_id:
            # A mirror has what its origin has.
            duplicate = self._seen(message_id, now_ns) if config.mirror is None else None
            if duplicate is not None:
                return duplicate
            taken.message_id = message_id
            taken.flags |= Flags.IDS
        ttl_ns = parse_ttl(fields.get(known.TTL, b""))
        if ttl_ns is not None and config.allow_msg_ttl:
            taken.flags |= Flags.TTLS
        elif ttl_ns == NEVER:
            taken.flags |= Flags.NEVERS
        if config.allow_rollup_hdrs and not config.deny_purge and known.ROLLUP in fields:
            taken.flags |= Flags.ROLLUPS
        if config.allow_rollup_hdrs and not config.deny_purge and ends_schedule(fields):
            taken.flags |= Flags.SCHEDULES
        return self._fitting(taken)

    def check_made(self, subject: bytes, headers: bytes, payload: bytes) -> Taken | ApiError:
        """As `check`, of a message that a schedule of this stream made."""
        taken = Taken(self._stored_subject(subject), headers, payload)
        taken.flags = Flags.SCHEDULES
        if self._config.allow_msg_ttl:
            taken.flags |= Flags.TTLS
        if known.ROLLUP in headers:
            taken.flags |= Flags.ROLLUPS
        return self._fitting(taken)

    def _fitting(self, taken: Taken) -> Taken | ApiError:
        """What nothing speaks against but that there may be no room, or nobody to have it."""
        refused = self._oversize(taken)
        if refused is not None:
            return refused
        if self._by_interest and not self._interested(taken.subject):
            taken.skipped = True
        elif self._limited:
            text = self._full(taken)
            if text:
                return api_error("JSStreamStoreFailedF", err=text)
        return taken

    def _oversize(self, taken: Taken) -> ApiError | None:
        """Asked before, and again of what is stored, which may have more headers."""
        if len(taken.payload) + len(taken.headers) > self._size_max:
            return api_error("JSStreamMessageExceedsMaximumErr")
        if len(taken.headers) > HEADER_BYTES_MAX:
            return api_error("JSStreamHeaderExceedsMaximumErr")
        return None

    def check_ingest(self, headers: bytes, payload: bytes) -> ApiError | None:
        """Why a message of a fast batch is refused whatever it says."""
        if self._config.sealed:
            return api_error("JSStreamSealedErr")
        if len(payload) + len(headers) > self._size_max:
            return api_error("JSStreamMessageExceedsMaximumErr")
        return None if self._config.allow_batched else api_error("JSBatchPublishDisabledErr")

    def _stored_subject(self, subject: bytes) -> bytes:
        if self._transform is None:
            return subject
        return self._transform.apply(subject) or subject

    # Headers.

    def _by_headers(
        self, taken: Taken, fields: Fields, now_ns: int, last_id: bytes
    ) -> ApiError | int | None:
        refused = self._increment(taken, fields)
        if refused is not None:
            return refused
        expected = fields.get(known.EXPECTED_STREAM)
        if expected and expected != self._stream.name.encode():
            return api_error("JSStreamNotMatchErr")
        refused = self._ttl(taken, fields)
        if refused is not None:
            return refused
        message_id = fields.get(known.MSG_ID, b"")
        if message_id:
            duplicate = self._seen(message_id, now_ns)
            if duplicate is not None:
                return duplicate
            taken.message_id = message_id
            taken.flags |= Flags.IDS
        rest = fields.keys() - _ASKED_ABOVE
        if not rest:  # As with most: nothing of what follows can have anything to say.
            return self._uncounted()
        if rest <= _EXPECTED:
            return self._uncounted() or self._expected(taken, fields)
        return (
            self._of_others(fields)
            or self._uncounted()
            or self._expected(taken, fields)
            or self._scheduled(taken, fields)
            or self._rollup(taken, fields)
            or self._expected_id(fields, last_id)
        )

    def _increment(self, taken: Taken, fields: Fields) -> ApiError | None:
        return counter_refusal(fields)

    def _scheduled(self, taken: Taken, fields: Fields) -> ApiError | None:
        if known.SCHEDULING.isdisjoint(fields):
            return None
        rules = self._scheduling()
        return rules.check(taken, fields, self._config, self._last_for, self._rows)

    def _of_others(self, fields: Fields) -> ApiError | None:
        """What only other streams may say."""
        told = fields.get(known.STREAM_SOURCE)
        return api_error("JSMessageSourceHdrNotAllowedErr") if told else None

    def _uncounted(self) -> ApiError | None:
        """Why a message that adds to no counter is refused."""
        return None

    def _part(self, taken: Taken, fields: Fields) -> ApiError | Part:
        if not self._config.allow_atomic:
            return api_error("JSAtomicPublishDisabledErr")
        return Part(taken.subject, fields)

    def _seen(self, message_id: bytes, now_ns: int) -> int | None:
        self.message_id = message_id
        if self._config.duplicate_window <= 0:
            return None
        waiting = self._in_flight.ids.get(message_id)
        if waiting is not None:
            return waiting[0]
        return self._stream.dedupe.find(message_id, now_ns)

    def _ttl(self, taken: Taken, fields: Fields) -> ApiError | None:
        text = fields.get(known.TTL)
        if not text:
            return None
        config, valid = self._config, parse_ttl(text) is not None
        # The real server looks at this in another order where there is one replica, but in batches.
        early = self._alone or config.num_replicas > 1
        if not config.allow_msg_ttl and (valid or early):
            return api_error("JSMessageTTLDisabledErr")
        if not valid:
            return api_error("JSMessageTTLInvalidErr")
        taken.flags |= Flags.TTLS
        return None

    def _expected(self, taken: Taken, fields: Fields) -> ApiError | None:
        last_seq = self._next_seq - 1 + len(self._rows)
        wanted = known.expected_sequence(fields.get(known.EXPECTED_LAST_SEQ, b""))
        if wanted is not None and wanted != last_seq:
            return api_error("JSStreamWrongLastSequenceErrF", seq=last_seq)
        wanted = known.expected_sequence(fields.get(known.EXPECTED_LAST_SUBJECT_SEQ, b""))
        pattern = fields.get(known.EXPECTED_LAST_SUBJECT)
        if wanted is None:
            return api_error("JSStreamExpectedLastSeqPerSubjectInvalid") if pattern else None
        found = self._last_for(pattern or taken.subject)
        if found != wanted:
            return api_error("JSStreamWrongLastSequenceErrF", seq=found)
        return None

    def _expected_id(self, fields: Fields, last_id: bytes) -> ApiError | None:
        expected = fields.get(known.EXPECTED_LAST_MSG_ID)
        if not expected or expected == last_id:
            return None
        return api_error("JSStreamWrongLastMsgIDErrF", id=last_id.decode("utf-8", "replace"))

    def _rollup(self, taken: Taken, fields: Fields) -> ApiError | None:
        what = known.rollup_of(fields)
        if not what:
            return None
        if not self._config.allow_rollup_hdrs or self._config.deny_purge:
            return api_error("JSStreamRollupFailedF", err="rollup not permitted")
        if what not in (known.ROLLUP_SUBJECT, known.ROLLUP_ALL):
            shown = what.decode("utf-8", "replace")
            return api_error("JSStreamRollupFailedF", err=f'rollup value invalid: "{shown}"')
        taken.flags |= Flags.ROLLUPS
        return None

    # The entry being filled counts as in flight too.

    def _catch_up(self) -> dict[bytes, list[int]]:
        """Subject -> [last sequence, count] of the entry being filled; its size as well."""
        measure = self._store.message_bytes
        for row in self._rows[self._noted :]:
            self._open_bytes += measure(len(row[2]), len(row[3]), len(row[4]))
            entry = self._open.setdefault(row[2], [0, 0])
            entry[0] = row[0]
            entry[1] += 1
        self._noted = len(self._rows)
        return self._open

    def _last_for(self, pattern: bytes) -> int:
        open_subjects = self._catch_up()
        if b"*" in pattern or b">" in pattern:
            self.searched += len(open_subjects) + len(self._in_flight.subjects())
            found = [last for one, (last, _) in open_subjects.items() if matches(one, pattern)]
            last = max(found, default=0)
        else:
            last = open_subjects.get(pattern, _NOTHING)[0]
        return self._standing(last or self._in_flight.last_for(pattern), pattern)

    def _standing(self, last: int, pattern: bytes) -> int:
        """The last sequence, if there is none or this one in flight. A schedule whose end is on its
        way is gone."""
        last = last or self._last_stored(pattern)
        return last if last >= self._in_flight.ended.get(pattern, 0) else 0

    def _last_stored(self, pattern: bytes) -> int:
        """Nothing is applied while an entry is filled, so a pattern is searched for once."""
        if b"*" not in pattern and b">" not in pattern:
            return self._store.last_for(pattern) or 0
        found = self._stored.get(pattern)
        if found is None:
            before = self._store.subjects_searched
            found = self._stored[pattern] = self._store.last_for(pattern) or 0
            self.searched += self._store.subjects_searched - before
        return found

    def _count_for(self, subject: bytes) -> int:
        open_count = self._catch_up().get(subject, _NOTHING)[1]
        return open_count + self._in_flight.count_for(subject) + self._store.retained_for(subject)

    def _full(self, taken: Taken) -> str:
        """Why a stream that discards new messages cannot take this one; empty if it can."""
        config = self._config
        at_subject_limit = False
        if config.max_msgs_per_subject > 0:
            limit = config.max_msgs_per_subject
            at_subject_limit = self._count_for(taken.subject) >= limit
            if at_subject_limit and config.discard_new_per_subject:
                return "maximum messages per subject exceeded"
        self._catch_up()
        messages = self._store.retained_messages + self._in_flight.messages + len(self._rows)
        if 0 < config.max_msgs <= messages and not at_subject_limit:
            return "maximum messages exceeded"
        size = self._store.message_bytes(len(taken.subject), len(taken.headers), len(taken.payload))
        held = self._store.retained_bytes + self._in_flight.bytes + self._open_bytes
        if 0 < config.max_bytes < held + size:
            own = len(taken.headers) + len(taken.payload)
            if not at_subject_limit or self._oldest_size(taken.subject) <= own:
                return "maximum bytes exceeded"
        return ""

    def _oldest_size(self, subject: bytes) -> int:
        """What the message that gives way on a full subject takes up; 0 if it is damaged."""
        seq = self._store.first_for(subject)
        try:
            record = None if seq is None else self._store.load(seq)
        except Damaged:
            return 0
        if record is None:
            return 0
        return self._store.message_bytes(len(subject), len(record.headers), len(record.payload))
