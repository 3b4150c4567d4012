"""DIRECT.GET: messages of a stream as they are, from any replica that is fresh.

Answers are raw messages, not JSON; refusals are status headers.
"""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from jsctl.api import jsontext
from jsctl.api.codec import DecodeError, decode
from jsctl.api.requests import MsgGetRequest
from jsctl.api.times import format_time, parse_time
from jsctl.broker.errors import Damaged
from jsctl.broker.handlers.decisions import Replies, Reply
from jsctl.broker.handlers.stream_messages import damage_text, find, last_of
from jsctl.broker.jetstream.api_levels import level_exceeded
from jsctl.broker.jetstream.streams.stream import Stream
from jsctl.broker.store.record import Record
from jsctl.broker.subject.matching import Filters

MULTI_LAST_MAX = 1024
BATCH_BYTES_MAX = 64 << 20
"""Where a batch ends if the request names no size."""
_START = b"NATS/1.0\r\n"
_END = b"\r\n"
_PLAIN = MsgGetRequest()
_KEYS = frozenset(
    [
        *("seq", "last_by_subj", "next_by_subj", "batch", "max_bytes", "start_time"),
        *("multi_last", "up_to_seq", "up_to_time", "no_hdr"),
    ]
)
_BY_SEQ = re.compile(rb'\{"seq": ?([1-9]\d{0,17})\}')
"""What clients send who want one message; everything else is read as JSON."""
STEP_RECORDS = 256
"""Messages of a batch that are read at a time."""


def _status(code: int, text: str) -> Replies:
    return Replies([Reply(b"", b"NATS/1.0 %d %b\r\n\r\n" % (code, text.encode()))])


Piece = list[Reply] | Damaged
"""Of a batch: messages, or the damage in front of which it stands. It looks once more when the
next piece is asked for."""


def begin(
    stream: Stream, payload: bytes, subject: bytes = b"", headers: bytes = b""
) -> tuple[Replies, Iterator[Piece] | None]:
    """What a replica answers to one request at once, and the pieces of a batch that follow.

    `subject` is the one in `DIRECT.GET.<stream>.<subject>`: its last message is wanted. The
    pieces are read from the stream one at a time, as it is by then. Raises Damaged.
    """
    if level_exceeded(headers):
        return _status(412, "Required Api Level"), None
    if subject and not payload:
        return _single(stream, last_of(stream, subject), _PLAIN), None
    if not subject and (plain := _BY_SEQ.fullmatch(payload)):
        return _single(stream, stream.store.load(int(plain[1])), _PLAIN), None
    known = _understood(payload, subject)
    if isinstance(known, Replies):
        return known, None
    if subject:
        return _last_by_subject(stream, known, subject), None
    if known.multi_last:
        return _multi_last(stream, known), None
    if known.batch:
        pieces = _batch(stream, known)
        first = next(pieces)
        if isinstance(first, Damaged):
            raise first
        return Replies(first), pieces
    return _single(stream, find(stream, known), known), None


def _understood(payload: bytes, subject: bytes) -> MsgGetRequest | Replies:
    if not payload.strip() and not subject:
        return _status(408, "Empty Request")
    try:
        body = _decoded(payload)
    except (DecodeError, TypeError, ValueError):
        return _status(408, "Malformed Request")
    if subject:
        return body
    starts = body.seq or body.last_by_subj or body.next_by_subj or body.start_time
    if not starts and not body.multi_last:
        return _status(408, "Empty Request")
    if not _is_sensible(body):
        return _status(408, "Bad Request")
    return body


def _decoded(payload: bytes) -> MsgGetRequest:
    """One document, in which unknown keys do not matter. Raises DecodeError."""
    document = jsontext.parse_exactly(payload)
    if isinstance(document, dict):
        document = jsontext.only(document, _KEYS)
    return decode(MsgGetRequest, {} if document is None else document, strict=True)


def _is_sensible(body: MsgGetRequest) -> bool:
    ways = sum(map(bool, (body.last_by_subj, body.next_by_subj, body.multi_last)))
    if ways > 1 or (body.seq and body.start_time) or (body.up_to_seq and body.up_to_time):
        return False
    return not (body.last_by_subj and (body.seq or body.start_time or body.batch > 0))


def _last_by_subject(stream: Stream, body: MsgGetRequest, subject: bytes) -> Replies:
    if body != MsgGetRequest(no_hdr=body.no_hdr, max_bytes=body.max_bytes):
        return _status(408, "Bad Request")
    wanted = MsgGetRequest(last_by_subj=subject.decode("utf-8", "replace"))
    return _single(stream, find(stream, wanted), body)


def _single(stream: Stream, record: Record | None, body: MsgGetRequest) -> Replies:
    if record is None:
        return _status(404, "Message Not Found")
    return Replies([_message(stream, record, body.no_hdr)])


def _message(stream: Stream, record: Record, bare: bool, extra: bytes = b"") -> Reply:
    if bare:
        return Reply(record.payload, b"")
    head = record.headers[: -len(_END)] if record.headers else _START
    headers = b"%bNats-Stream: %b\r\nNats-Subject: %b\r\nNats-Sequence: %d\r\n%b%b\r\n" % (
        head,
        stream.name.encode(),
        record.subject,
        record.seq,
        _time_stamp(record.time_ns),
        extra,
    )
    return Reply(record.payload, headers)


@lru_cache(maxsize=1024)
def _time_stamp(time_ns: int) -> bytes:
    """Messages that were stored together have one time."""
    return b"Nats-Time-Stamp: %b\r\n" % format_time(time_ns).encode()


def refusal(damage: Damaged) -> Reply:
    """What is said instead of messages that cannot be read, and of all behind them."""
    return _status(500, damage_text(damage)).messages[0]


def _batch(stream: Stream, body: MsgGetRequest) -> Iterator[Piece]:
    """Up to `batch` messages from a point on, one at least, until their size has reached the
    maximum, then the end of the batch. Less than none are none, and the end."""
    store = stream.store
    start = store.seq_at_time(parse_time(body.start_time)) if body.start_time else body.seq
    filters = Filters((body.next_by_subj.encode(),)) if body.next_by_subj else Filters()
    rest = _bytes_max(body)
    last = count = 0
    pending = store.num_pending(filters, start) if body.batch < 0 else 0
    while count < body.batch and rest > 0:
        try:
            rows = store.next_many(filters, start, min(body.batch - count, STEP_RECORDS), rest)
        except Damaged as damage:
            yield damage
            continue
        if not rows:
            break
        pending = pending if count else store.num_pending(filters, start)
        some: list[Record] = []
        for record in map(Record._make, rows):
            if rest <= 0:
                break
            rest -= _size(record)
            some.append(record)
        yield _series(stream, some, pending, last, bare=body.no_hdr)
        start, last = rows[-1][0] + 1, some[-1].seq
        pending, count = max(0, pending - len(some)), count + len(some)
    if count or body.batch < 0:
        yield [_end_of_batch(pending, last, b"")]
    else:
        yield _status(404, "Message Not Found").messages


def _bytes_max(body: MsgGetRequest) -> int:
    """How large messages may be before the next one: it is not asked for less than one."""
    return max(1, body.max_bytes) if body.max_bytes else BATCH_BYTES_MAX


def _size(record: Record) -> int:
    return len(record.subject) + len(record.headers) + len(record.payload)


def _series(
    stream: Stream, found: Iterable[Record], pending: int, last: int, *, bare: bool = False
) -> list[Reply]:
    """Messages of a batch; so many were pending and `last` was told before them."""
    messages: list[Reply] = []
    for record in found:
        pending -= 1
        extra = b"Nats-Num-Pending: %d\r\nNats-Last-Sequence: %d\r\n" % (max(0, pending), last)
        messages.append(_message(stream, record, bare, extra))
        last = record.seq
    return messages


def _end_of_batch(pending: int, last: int, more: bytes) -> Reply:
    fields = b"Nats-Num-Pending: %d\r\nNats-Last-Sequence: %d\r\n" % (pending, last)
    return Reply(b"", b"NATS/1.0 204 EOB\r\n" + fields + more + _END)


def _multi_last(stream: Stream, body: MsgGetRequest) -> Replies:
    """The last message of each subject, as of one moment of the stream, from `seq` on.

    Who reads them in portions asks once more behind the last one: that is the end, not an error.
    They have their headers in any case: nobody could tell whose they are.
    """
    store = stream.store
    up_to = body.up_to_seq or store.last_seq
    if body.up_to_time:
        up_to = store.seq_at_time(parse_time(body.up_to_time)) - 1
    filters = Filters(subject.encode() for subject in body.multi_last)
    lasts = store.multi_last(filters, up_to, MULTI_LAST_MAX + 1)
    seqs = [seq for seq in lasts if seq >= body.seq]
    store.expect_known(seqs[0] if seqs else 0)
    if not lasts:
        return _status(404, "No Results")
    if len(lasts) > MULTI_LAST_MAX:
        return _status(413, "Too Many Results")
    wanted = seqs[: body.batch] if body.batch > 0 else seqs
    records: list[Record] = []
    rest = _bytes_max(body)
    for seq in wanted:
        if rest <= 0:
            break
        record = store.load(seq)
        if record is None:
            continue
        rest -= _size(record)
        records.append(record)
    more = b"Nats-UpTo-Sequence: %d\r\n" % up_to
    messages = _series(stream, records, len(seqs), 0)
    last = records[-1].seq if records else 0
    return Replies([*messages, _end_of_batch(len(seqs) - len(records), last, more)])
