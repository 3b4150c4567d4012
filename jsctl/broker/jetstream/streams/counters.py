"""Counters: in a stream that has them each message adds to its subject, and holds the total
(NATS ADR-49).

A publisher says by how much; the total is reckoned by the stream's leader, from what is applied and
what is in flight, and stored as the message. What comes from another counter stream tells the total
there: the difference to what was known of it before is what is added, and what is known of each
origin travels on in a header, so that nothing is counted twice and nothing is left out.

Numbers have as many digits as a header has room for. They are decimals all the way, so that
reading, adding and writing them is linear in their length.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Context, Decimal, Inexact, InvalidOperation, Overflow
from functools import lru_cache
from typing import NamedTuple

from jsctl.api import jsontext
from jsctl.api.codec import dumps
from jsctl.api.errors import ApiError, api_error
from jsctl.api.stream import StreamConfig
from jsctl.api.strict import DecodeError
from jsctl.broker.errors import Damaged
from jsctl.broker.jetstream.streams import publish_headers as known
from jsctl.broker.jetstream.streams.absent import is_ingest
from jsctl.broker.jetstream.streams.checks import (
    Checks,
    Fields,
    Increment,
    Part,
    Scheduling,
    Taken,
)
from jsctl.broker.jetstream.streams.in_flight import InFlight
from jsctl.broker.jetstream.streams.stream import Stream
from jsctl.broker.protocol import headers as blocks
from jsctl.broker.store.record import Publish, Record

_NUMBER = re.compile(rb"[+-]?[0-9]+")
_BODY = re.compile(rb'\{"val":"([+-]?[0-9]+)"\}')
_INCREMENT = re.compile(rb"NATS/1\.0\r\nNats-Incr: *([+-]?[0-9]{1,18})\r\n\r\n")
"""A header block that says nothing else, and not much."""
INCREMENTS_KEPT = 1_024
_EXACT = Context(prec=10_000_000, traps=[Inexact, InvalidOperation, Overflow])
"""Longer than any header: nothing is ever rounded."""
_UNFIT = (
    known.ROLLUP,
    known.EXPECTED_STREAM,
    known.EXPECTED_LAST_MSG_ID,
    known.EXPECTED_LAST_SUBJECT,
)
_UNFIT_NUMBERS = (known.EXPECTED_LAST_SEQ, known.EXPECTED_LAST_SUBJECT_SEQ)
TOTALS_KEPT_MAX = 4_096
"""Totals of so many subjects are at hand without reading their last message."""
Origins = Mapping[str, Mapping[str, str]]
"""Stream -> subject -> the total that was there."""


class Total(NamedTuple):
    """What a subject stands at."""

    value: Decimal
    origins: Origins


class CounterTotals:
    """What the subjects of one stream stand at when all that is in flight is applied.

    `needs` is told of a message that cannot be read here; it says whether another replica may have
    it.
    """

    def __init__(self, stream: Stream, in_flight: InFlight, needs: Callable[[int], bool]) -> None:
        self._store = stream.store
        self._in_flight = in_flight
        self._needs = needs
        self._known: dict[bytes, tuple[int, Total | ApiError]] = {}
        """Subject -> (sequence, what it stands at with that message)."""

    def find(self, subject: bytes, last_seq: int) -> Total | ApiError:
        """The total of a subject whose last message has this sequence."""
        try:
            return self.look(subject, last_seq)
        except Damaged:
            waits = self._needs(last_seq)
            return api_error("JSClusterNotAvailErr" if waits else "JSMessageCounterBrokenErr")

    def look(self, subject: bytes, last_seq: int) -> Total | ApiError:
        """As `find`, without asking others. Raises Damaged."""
        found = self._known.get(subject)
        # One that was not stored in the end, or is gone meanwhile, is not the last one.
        if found is not None and found[0] == last_seq:
            return found[1]
        if not last_seq:
            return Total(Decimal(0), {})
        record = self._in_flight.record(last_seq)
        return _read(self._store.load(last_seq) if record is None else record)

    def note(self, seq: int, subject: bytes, total: Total | ApiError) -> None:
        """It will stand at this with the message `seq`."""
        if len(self._known) >= TOTALS_KEPT_MAX:
            applied = self._store.last_seq
            self._known = {name: one for name, one in self._known.items() if one[0] > applied}
        self._known[subject] = seq, total


class Counting:
    """Makes totals of increments, one message after the other. None is longer than `payload_max`
    says, with its headers."""

    def __init__(self, totals: CounterTotals, payload_max: Callable[[], int]) -> None:
        self._totals = totals
        self._payload_max = payload_max
        self._increment: Decimal | None = None
        self._origin: bytes | None = None
        self._made: tuple[int, bytes, Total | ApiError]

    def forget(self) -> None:
        """The next message has told no increment yet."""
        self._origin = self._increment = None

    def read(self, fields: Fields, payload: bytes) -> ApiError | None:
        """Take the increment of a publish, or say what is wrong with it."""
        self._origin = None
        refused = self._number(fields)
        if refused is not None or self._increment is None:
            return refused
        if payload:
            return api_error("JSMessageIncrPayloadErr")
        if len(fields) == 1:
            return None
        numbers = [known.expected_sequence(fields.get(name, b"")) for name in _UNFIT_NUMBERS]
        if numbers != [None, None] or any([fields.get(name) for name in _UNFIT]):
            return api_error("JSMessageIncrInvalidErr")
        return None

    def read_sourced(self, fields: Fields) -> ApiError | None:
        """The same for a message of another stream: it tells the total there."""
        self._origin = fields.get(known.STREAM_SOURCE)
        return self._number(fields)

    def _number(self, fields: Fields) -> ApiError | None:
        text = fields.get(known.INCREMENT)
        self._increment = None
        if not text:
            return None
        if _NUMBER.fullmatch(text) is None:
            return api_error("JSMessageIncrInvalidErr")
        self._increment = Decimal(text.decode())
        return None

    def missing(self) -> ApiError | None:
        """What is said to a message that has none."""
        return api_error("JSMessageIncrMissingErr") if self._increment is None else None

    def write(self, taken: Taken, last_seq: int, seq: int) -> ApiError | None:
        """Make the message `seq` the total that its subject will stand at, if it is `taken`."""
        increment = self._increment
        if increment is None:
            return api_error("JSMessageIncrMissingErr")
        before = self._totals.find(taken.subject, last_seq)
        if isinstance(before, ApiError):
            return before
        origins = before.origins
        if self._origin is not None:
            found = _advanced(origins, self._origin, taken)
            if found is None:
                return api_error("JSMessageCounterBrokenErr")
            increment, origins = found
            taken.headers = blocks.put(taken.headers, known.INCREMENT, _text(increment))
        value = _EXACT.add(before.value, increment)
        taken.value = _text(value)
        taken.payload = b'{"val":"%b"}' % taken.value
        total: Total | ApiError = Total(value, origins)
        if origins:
            taken.headers = blocks.put(taken.headers, known.COUNTER_SOURCES, dumps(origins))
        elif known.COUNTER_SOURCES in taken.headers:
            # Whoever published it claims to know of origins: that is stored, and counts.
            told = _origins(blocks.get(taken.headers, known.COUNTER_SOURCES))
            total = api_error("JSMessageCounterBrokenErr") if told is None else Total(value, told)
        if len(taken.headers) + len(taken.payload) > self._payload_max():
            return api_error("JSStreamMessageExceedsMaximumErr")
        self._made = seq, taken.subject, total
        return None

    def together(
        self, batch: Sequence[Publish], last_for: Callable[[bytes], int], first_seq: int, most: int
    ) -> list[Increment]:
        """As all the above, of a batch of messages that ask for nothing but to be added, get
        sequences from `first_seq` on, and are not longer than `most`. Empty: not all are such."""
        found: dict[bytes, tuple[int, Decimal]] = {}
        made: list[Increment] = []
        most = min(most, self._payload_max())
        for seq, (subject, reply, headers, payload, _) in enumerate(batch, first_seq):
            told = _INCREMENT.fullmatch(headers)
            if told is None or payload or is_ingest(reply):
                return []
            before = found[subject][1] if subject in found else self._plain(subject, last_for)
            if before is None:
                return []
            value = _EXACT.add(before, _decimal(told[1]))
            found[subject] = seq, value
            text = _text(value)
            body = b'{"val":"%b"}' % text
            if len(headers) + len(body) > most:
                return []
            made.append((subject, headers, body, text))
        for subject, (seq, value) in found.items():
            self._totals.note(seq, subject, Total(value, {}))
        return made

    def _plain(self, subject: bytes, last_for: Callable[[bytes], int]) -> Decimal | None:
        """What a subject stands at that has nothing of other streams, and is not broken."""
        try:
            total = self._totals.look(subject, last_for(subject))
        except Damaged:
            return None
        return None if isinstance(total, ApiError) or total.origins else total.value

    def taken(self) -> None:
        """The message that was written last is stored."""
        self._totals.note(*self._made)


class CounterChecks(Checks):
    """The rules of a stream that has counters."""

    def __init__(
        self,
        stream: Stream,
        config: StreamConfig,
        in_flight: InFlight,
        interested: Callable[[bytes], bool],
        scheduling: Callable[[], Scheduling],
        counting: Counting,
    ) -> None:
        super().__init__(stream, config, in_flight, interested, scheduling)
        self._alike, self.trivial = self.trivial, False
        self._counting = counting

    def together(self, batch: Sequence[Publish], first_seq: int) -> list[Increment]:
        """See `Checks.together`."""
        most = self._size_max if self._alike else 0
        self.begin(first_seq, [])
        return self._counting.together(batch, self._last_for, first_seq, most)

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
        """See `Checks.check`."""
        # Of a message without fields for the server nothing else is asked.
        self._counting.forget()
        return super().check(subject, headers, payload, now_ns, last_id, alone=alone)

    def check_sourced(
        self, subject: bytes, headers: bytes, payload: bytes, now_ns: int
    ) -> Taken | ApiError | int:
        """See `Checks.check_sourced`."""
        refused = self._counting.read_sourced(known.nats_fields(headers))
        return refused or super().check_sourced(subject, headers, payload, now_ns)

    def _increment(self, taken: Taken, fields: Fields) -> ApiError | None:
        return self._counting.read(fields, taken.payload)

    def _uncounted(self) -> ApiError | None:
        return self._counting.missing()

    def _fitting(self, taken: Taken) -> Taken | ApiError:
        seq, last_seq = self._next_seq + len(self._rows), self._last_for(taken.subject)
        found = self._counting.write(taken, last_seq, seq) or super()._fitting(taken)
        if isinstance(found, Taken):
            self._counting.taken()
        return found


@lru_cache(maxsize=INCREMENTS_KEPT)
def _decimal(text: bytes) -> Decimal:
    return Decimal(text.decode())


def _text(number: Decimal) -> bytes:
    return f"{number:f}".encode()


def _read(record: Record | None) -> Total | ApiError:
    """The total that a stored message holds."""
    broken = api_error("JSMessageCounterBrokenErr")
    if record is None:
        return broken
    value = _value(record.payload)
    origins = _origins(blocks.get(record.headers, known.COUNTER_SOURCES))
    return broken if value is None or origins is None else Total(value, origins)


def _value(body: bytes) -> Decimal | None:
    """The number in the body of a counter; None if it is none."""
    found = _BODY.fullmatch(body)
    if found is not None:
        return Decimal(found[1].decode())
    try:
        text = jsontext.parse_object(body).get("val")
    except DecodeError:
        return None
    fits = isinstance(text, str) and _NUMBER.fullmatch(text.encode("utf-8", "replace"))
    return Decimal(text) if isinstance(text, str) and fits else None


def _origins(header: bytes | None) -> Origins | None:
    """What a header tells of origins; None if it is broken."""
    if not header:
        return {}
    try:
        document = jsontext.parse(header)
    except DecodeError:
        return None
    found: dict[str, dict[str, str]] = {}
    if not isinstance(document, dict):
        return {} if document is None else None
    for stream, subjects in document.items():
        if not isinstance(subjects, dict | None):
            return None
        if not all(isinstance(one, str) for one in (subjects or {}).values()):
            return None
        found[stream] = dict(subjects or {})
    return found


def _advanced(origins: Origins, header: bytes, taken: Taken) -> tuple[Decimal, Origins] | None:
    """What an origin added since it was heard of last, and what is known of all origins now."""
    words = header.decode("utf-8", "replace").split(" ")
    stream = words[0]
    subject = words[4] if len(words) >= 5 else taken.subject.decode("utf-8", "replace")
    there = _value(taken.payload)
    if there is None:
        return None
    before = origins.get(stream, {})
    text = before.get(subject, "0")
    last = Decimal(text) if _NUMBER.fullmatch(text.encode("utf-8", "replace")) else Decimal(0)
    told = {**origins, stream: dict(sorted({**before, subject: _text(there).decode()}.items()))}
    return _EXACT.subtract(there, last), dict(sorted(told.items()))
