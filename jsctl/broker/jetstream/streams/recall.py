"""What the messages of a stream tell of a state that is lost: where the log's end is gone."""

from jsctl.broker.errors import Damaged
from jsctl.broker.jetstream.streams.publish_headers import MSG_ID, TTL, nats_fields, parse_ttl
from jsctl.broker.jetstream.streams.stream import Stream
from jsctl.broker.jetstream.streams.ttl import NEVER
from jsctl.broker.store.frame import frame_of
from jsctl.broker.store.record import Record

STEP = 1_024


def recall(stream: Stream) -> None:
    """Take from the messages behind those that the log has told of what their entries would have
    brought: ids within the window, times to live, schedules, links of the chain. Positions of
    sources are sought when needed. Nothing is taken twice.
    """
    store, known = stream.store, stream.chained.last_seq
    if known >= store.last_seq:
        return
    stream.positions.clear()
    first = max(known + 1, store.first_seq)
    while seqs := store.live_seqs(first, store.last_seq, STEP):
        for seq in seqs:
            try:
                row = store.load(seq)
            except Damaged:
                continue
            if row is not None:
                _learn(stream, row)
        first = seqs[-1] + 1
    stream.chained.last_seq = store.last_seq
    stream.dedupe.expire(store.last_time_ns)
    if stream.schedules is not None:
        stream.schedules.scan = 1


def _learn(stream: Stream, row: Record) -> None:
    fields = nats_fields(row.headers) if row.headers else {}
    stream.last_msg_id = fields.get(MSG_ID, b"")
    if stream.last_msg_id:
        stream.dedupe.add(stream.last_msg_id, row.seq, row.time_ns)
    ttl_ns = parse_ttl(fields[TTL]) if TTL in fields else None
    if ttl_ns == NEVER or (ttl_ns and stream.config.allow_msg_ttl):
        stream.ttls.add(row.seq, row.time_ns, ttl_ns)
    if stream.chained.chain is not None:
        stream.chained.stored(frame_of([row]))
