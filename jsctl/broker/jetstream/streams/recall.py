"""What the messages of a stream tell of a state that is lost: where the log's end is gone."""

from jsctl.broker.errors import Damaged
from jsctl.broker.jetstream.streams.publish_headers import MSG_ID, TTL, nats_fields, parse_ttl
from jsctl.broker.jetstream.streams.stream import Stream

STEP = 1_024


def recall(stream: Stream) -> None:
    """Take from the messages behind the last known state what their entries would have brought: ids
    within the window, times to live, schedules. Positions of sources are sought when needed.
    """
    store = stream.store
    known = 0 if stream.bounds is None else stream.bounds.last_seq
    if known >= store.last_seq:
        return
    stream.positions.clear()
    first = max(known + 1, store.first_seq)
    while seqs := store.live_seqs(first, store.last_seq, STEP):
        for seq in seqs:
            _learn(stream, seq)
        first = seqs[-1] + 1
    stream.dedupe.expire(store.last_time_ns)
    if stream.schedules is not None:
        stream.schedules.scan = 1


def _learn(stream: Stream, seq: int) -> None:
    try:
        row = stream.store.load(seq)
    except Damaged:
        return
    fields = nats_fields(row.headers) if row is not None and row.headers else {}
    stream.last_msg_id = fields.get(MSG_ID, b"")
    if row is None:
        return
    if stream.last_msg_id:
        stream.dedupe.add(stream.last_msg_id, seq, row.time_ns)
    ttl_ns = parse_ttl(fields[TTL]) if stream.config.allow_msg_ttl and TTL in fields else 0
    if ttl_ns:
        stream.ttls.add(seq, row.time_ns, ttl_ns)
