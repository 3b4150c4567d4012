"""Whether a publish may be a schedule, or end one: the rules of its headers.

They run in the order of the real server; the first refusal wins.
"""

from collections.abc import Callable, Sequence

from jsctl.api.errors import ApiError, api_error
from jsctl.api.stream import StreamConfig
from jsctl.broker.errors import Damaged
from jsctl.broker.jetstream.scheduling.cron import OffsetAt
from jsctl.broker.jetstream.scheduling.patterns import Due, is_no_schedule, next_due
from jsctl.broker.jetstream.streams import publish_headers as known
from jsctl.broker.jetstream.streams.checks import Fields, Taken
from jsctl.broker.jetstream.streams.entries import Flags
from jsctl.broker.jetstream.streams.in_flight import InFlight
from jsctl.broker.jetstream.streams.stream import Stream
from jsctl.broker.ports import ZoneOffset
from jsctl.broker.protocol import headers as blocks
from jsctl.broker.store.record import Row
from jsctl.broker.subject.matching import overlaps
from jsctl.broker.subject.validity import is_valid_literal

LastFor = Callable[[bytes], int]


class ScheduleRules:
    """Implements `checks.Scheduling`. `clock` tells the time in ns, which may go back."""

    def __init__(
        self, stream: Stream, in_flight: InFlight, zones: ZoneOffset, clock: Callable[[], int]
    ) -> None:
        self._stream = stream
        self._in_flight = in_flight
        self._zones = zones
        self._clock = clock

    def check(
        self,
        taken: Taken,
        fields: Fields,
        config: StreamConfig,
        last_for: LastFor,
        rows: Sequence[Row],
    ) -> ApiError | None:
        """See `checks.Scheduling`."""
        due = self.next_due(fields, self._clock())
        refused = due if isinstance(due, ApiError) else None
        if not config.allow_msg_schedules and due is not None:
            return api_error("JSMessageSchedulesDisabledErr")
        if isinstance(due, Due):
            refused = self._schedule(taken, fields, config)
            taken.due_ns = max(due.at_ns, 1)
            taken.flags |= Flags.SCHEDULES
        return refused or self._end(taken, fields, config, last_for, rows)

    def next_due(self, fields: Fields, after_ns: int) -> Due | ApiError | None:
        """When a message is due that was due, or stored, at that time; None if it is none."""
        name, zone = fields.get(known.SCHEDULE_ZONE), None
        if name is not None:
            zone = self._zone(name.decode("utf-8", "replace"))
            if zone is None:
                return api_error("JSMessageSchedulesTimeZoneInvalidErr")
        text = fields.get(known.SCHEDULE, b"").decode("utf-8", "replace")
        if not text:
            return None
        due = next_due(text, zone, after_ns, self._clock())
        if due is None:
            return api_error("JSMessageSchedulesPatternInvalidErr")
        return None if is_no_schedule(due) else due

    def _zone(self, name: str) -> OffsetAt | None:
        zones = self._zones
        if not name or zones(name, 0) is None:
            return None
        return lambda at: zones(name, at) or 0

    def _schedule(self, taken: Taken, fields: Fields, config: StreamConfig) -> ApiError | None:
        ttl = fields.get(known.SCHEDULE_TTL)
        if ttl and known.parse_ttl(ttl) is None:
            return api_error("JSMessageSchedulesTTLInvalidErr")
        if fields.get(known.SCHEDULE_ROLLUP, b"") not in (b"", known.ROLLUP_SUBJECT):
            return api_error("JSMessageSchedulesRollupInvalidErr")
        if ttl and not config.allow_msg_ttl:
            return api_error("JSMessageTTLDisabledErr")
        target = fields.get(known.SCHEDULE_TARGET, b"")
        if not is_valid_literal(target) or target == taken.subject:
            return api_error("JSMessageSchedulesTargetInvalidErr")
        source = fields.get(known.SCHEDULE_SOURCE, b"")
        if source and (source in (target, taken.subject) or not is_valid_literal(source)):
            return api_error("JSMessageSchedulesSourceInvalidErr")
        if not _captures(config, target):
            return api_error("JSMessageSchedulesTargetInvalidErr")
        if source and not _captures(config, source):
            return api_error("JSMessageSchedulesSourceInvalidErr")
        if not fields.get(known.ROLLUP):
            fields[known.ROLLUP] = known.ROLLUP_SUBJECT
            taken.headers = blocks.append(taken.headers, known.ROLLUP, known.ROLLUP_SUBJECT)
        elif known.rollup_of(fields) != known.ROLLUP_SUBJECT:
            return api_error("JSMessageSchedulesRollupInvalidErr")
        return None

    def _end(
        self,
        taken: Taken,
        fields: Fields,
        config: StreamConfig,
        last_for: LastFor,
        rows: Sequence[Row],
    ) -> ApiError | None:
        """Whether a message may take the place of a schedule."""
        following, scheduler = fields.get(known.SCHEDULE_NEXT), fields.get(known.SCHEDULER, b"")
        invalid = api_error("JSMessageSchedulesSchedulerInvalidErr")
        if not following:
            return invalid if scheduler else None
        if following != known.NEXT_PURGE:
            return invalid
        if scheduler == taken.subject or not is_valid_literal(scheduler):
            return invalid
        if not config.allow_msg_schedules:
            return api_error("JSMessageSchedulesDisabledErr")
        last = last_for(scheduler)
        if last and not self._is_schedule(scheduler, last, rows):
            return invalid
        taken.ended = scheduler
        taken.flags |= Flags.SCHEDULES
        return None

    def _is_schedule(self, subject: bytes, seq: int, rows: Sequence[Row]) -> bool:
        """Whether the last message of a subject is a schedule, stored or on its way."""
        if rows and seq >= rows[0][0]:
            return bool(blocks.get(rows[seq - rows[0][0]][3], known.SCHEDULE))
        schedules = self._stream.schedules
        if schedules is not None and schedules.at(subject) == seq:
            return True
        record = self._in_flight.record(seq)
        if record is None:
            if self._in_flight.holder(seq) is not None or seq > self._stream.store.last_seq:
                return False
            try:
                record = self._stream.store.load(seq)
            except Damaged:
                return True
        return record is None or bool(blocks.get(record.headers, known.SCHEDULE))


def _captures(config: StreamConfig, subject: bytes) -> bool:
    return any(overlaps(one.encode(), subject) for one in config.subjects)
