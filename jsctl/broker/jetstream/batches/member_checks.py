"""Whether the messages of an atomic batch may be stored, one after the other.

Each is judged by the stream as it was before the batch, and must not expect anything of what other
messages of the batch do: there is no order in which a reader could see them. The checks run in the
order of the real server; the first refusal refuses the batch.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from jsctl.api.errors import ApiError, api_error
from jsctl.api.stream import StreamConfig
from jsctl.broker.jetstream.batches.atomic import Member
from jsctl.broker.jetstream.streams import publish_headers as known
from jsctl.broker.jetstream.streams.absent import counter_refusal
from jsctl.broker.jetstream.streams.checks import (
    HEADER_BYTES_MAX,
    Checks,
    Fields,
    Scheduling,
    Taken,
)
from jsctl.broker.jetstream.streams.entries import Flags
from jsctl.broker.jetstream.streams.in_flight import InFlight
from jsctl.broker.jetstream.streams.stream import Stream
from jsctl.broker.store.record import Row

if TYPE_CHECKING:
    from jsctl.broker.jetstream.streams.counters import Counting


class MemberChecks(Checks):
    """See the module. `begin` begins a batch. `counting` is that of a stream of counters."""

    def __init__(
        self,
        stream: Stream,
        config: StreamConfig,
        in_flight: InFlight,
        interested: Callable[[bytes], bool],
        scheduling: Callable[[], Scheduling],
        counting: "Counting | None",
    ) -> None:
        super().__init__(stream, config, in_flight, interested, scheduling)
        self._counting = counting

    def begin(self, next_seq: int, rows: list[Row]) -> None:
        """A batch is to be judged: `rows` are its messages, growing as they are taken."""
        super().begin(next_seq, rows)
        self._ids: set[bytes] = set()

    def check_member(self, member: Member, now_ns: int) -> Taken | ApiError:
        """Take it or refuse the batch."""
        subject, headers, payload = member
        if len(headers) > HEADER_BYTES_MAX:
            return api_error("JSStreamHeaderExceedsMaximumErr")
        taken = Taken(self._stored_subject(subject), headers, payload)
        refused = self._by_fields(taken, known.nats_fields(headers), now_ns)
        if refused is not None:
            return refused
        if self._by_interest and not self._interested(taken.subject):
            taken.skipped = True
        elif self._limited:
            text = self._full(taken)
            if text:
                return api_error("JSStreamStoreFailedF", err=text)
        return taken

    def _by_fields(self, taken: Taken, fields: Fields, now_ns: int) -> ApiError | None:
        if fields.get(known.EXPECTED_LAST_MSG_ID):
            header = known.EXPECTED_LAST_MSG_ID.decode()
            return api_error("JSAtomicPublishUnsupportedHeaderBatchErr", header=header)
        expected = fields.get(known.EXPECTED_STREAM)
        if expected and expected != self._stream.name.encode():
            return api_error("JSStreamNotMatchErr")
        if fields.get(known.TTL) and not self._config.allow_msg_ttl:
            return api_error("JSMessageTTLDisabledErr")
        return (
            self._increment(taken, fields)
            or self._ttl(taken, fields)
            or self._duplicate(taken, fields, now_ns)
            or self._of_others(fields)
            or self._total(taken)
            or self._expected_before(taken, fields)
            or self._scheduled(taken, fields)
            or self._rollup(taken, fields)
            or self._rollup_again(taken, fields)
        )

    def _increment(self, taken: Taken, fields: Fields) -> ApiError | None:
        if self._counting is None:
            return counter_refusal(fields)
        return self._counting.read(fields, taken.payload)

    def _total(self, taken: Taken) -> ApiError | None:
        if self._counting is None:
            return None
        seq, last_seq = self._next_seq + len(self._rows), self._last_for(taken.subject)
        refused = self._counting.write(taken, last_seq, seq)
        if refused is not None:
            return refused
        if len(taken.headers) + len(taken.payload) > self._size_max:
            return api_error("JSStreamMessageExceedsMaximumErr")
        self._counting.taken()
        return None

    def _duplicate(self, taken: Taken, fields: Fields, now_ns: int) -> ApiError | None:
        message_id = fields.get(known.MSG_ID, b"")
        if not message_id:
            return None
        if message_id in self._ids:
            return api_error("JSAtomicPublishContainsDuplicateMessageErr")
        if self._config.duplicate_window > 0:
            if message_id in self._in_flight.ids:
                # Whether that one will be there cannot be told yet.
                return api_error("JSStreamDuplicateMessageConflict")
            if self._stream.dedupe.find(message_id, now_ns) is not None:
                return api_error("JSAtomicPublishContainsDuplicateMessageErr")
        self._ids.add(message_id)
        taken.message_id = message_id
        taken.flags |= Flags.IDS
        return None

    def _expected_before(self, taken: Taken, fields: Fields) -> ApiError | None:
        """What a message expects of the stream before the batch."""
        last_seq = self._next_seq - 1 + len(self._rows)
        wanted = known.expected_sequence(fields.get(known.EXPECTED_LAST_SEQ, b""))
        if wanted is not None:
            if wanted != last_seq:
                return api_error("JSStreamWrongLastSequenceErrF", seq=last_seq)
            if self._rows:
                return api_error("JSStreamWrongLastSequenceConstantErr")
        pattern = fields.get(known.EXPECTED_LAST_SUBJECT)
        wanted = known.expected_sequence(fields.get(known.EXPECTED_LAST_SUBJECT_SEQ, b""))
        if wanted is None:
            missing = "JSStreamExpectedLastSeqPerSubjectInvalid"
            return api_error(missing) if pattern else None
        pattern = pattern or taken.subject
        if pattern in self._catch_up():
            return api_error("JSStreamWrongLastSequenceConstantErr")
        found = self._standing(self._in_flight.last_for(pattern), pattern)
        if found != wanted:
            return api_error("JSStreamWrongLastSequenceErrF", seq=found)
        return None

    def _rollup_again(self, taken: Taken, fields: Fields) -> ApiError | None:
        """A rollup may remove nothing that the batch itself stores."""
        what = known.rollup_of(fields)
        if what == known.ROLLUP_ALL and self._rows:
            return api_error("JSStreamRollupFailedF", err="batch rollup all invalid")
        if what == known.ROLLUP_SUBJECT and taken.subject in self._catch_up():
            return api_error("JSStreamRollupFailedF", err="batch rollup sub invalid")
        return None

    def _full(self, taken: Taken) -> str:
        """Why a stream that discards new messages cannot take the batch up to here. What a full
        subject would let go of is not counted: the batch as a whole has to fit."""
        config, store, in_flight = self._config, self._store, self._in_flight
        self._catch_up()
        count = store.retained_messages + in_flight.messages + len(self._rows) + 1
        if 0 < config.max_msgs < count:
            return "maximum messages exceeded"
        size = store.message_bytes(len(taken.subject), len(taken.headers), len(taken.payload))
        size += store.retained_bytes + in_flight.bytes + self._open_bytes
        if 0 < config.max_bytes < size:
            return "maximum bytes exceeded"
        counts = config.discard_new_per_subject and not taken.flags & Flags.ROLLUPS
        if counts and self._count_for(taken.subject) >= config.max_msgs_per_subject:
            return "maximum messages per subject exceeded"
        return ""
