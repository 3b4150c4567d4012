"""Messages that a consumer gave up, on their way to where its metadata wants them.

That a message was given up is an operation of the consumer's log. From then on it is dead: it is
not delivered any more, and the stream keeps it. Whoever leads publishes it under a subject of its
own, made of what the log says of it, and expects nothing to be stored there yet; when it is told
that the letter is stored, now or before, the log says so, and the message counts as acknowledged.
So it makes no difference how often, and by whom, a letter is sent.
"""

from collections.abc import Sequence

from jsctl.api.consumer import ConsumerConfig
from jsctl.api.errors import api_error
from jsctl.api.jsontext import parse_object
from jsctl.api.stream import StreamConfig
from jsctl.api.times import format_time
from jsctl.api.words import AckPolicy
from jsctl.broker.errors import Damaged
from jsctl.broker.jetstream.consumers.acks import Captured
from jsctl.broker.jetstream.consumers.consumer import DEAD_LETTERS_KEY, Consumer
from jsctl.broker.jetstream.consumers.delivery import ConsumerDelivery
from jsctl.broker.jetstream.consumers.state import Death
from jsctl.broker.jetstream.streams.publish_headers import parse_number
from jsctl.broker.protocol import headers as blocks
from jsctl.broker.protocol.deliveries import Item
from jsctl.broker.store.record import Record
from jsctl.broker.subject.matching import overlaps
from jsctl.broker.subject.validity import is_valid_literal

SUBJECT_BYTES_MAX = 200
DEAD_MAX = 10_000
"""So many wait at most; what is given up beyond is told by an advisory only."""
SENT_MAX = 256
"""Letters under way."""
RETRY_NS = 2_000_000_000
"""When a letter without an answer, or with an error, is sent again."""
_STORED_ALREADY = api_error("JSStreamWrongLastSequenceErrF", seq=0).err_code
_STRIPPED = (b"Nats-Expected-", b"Nats-Schedule", b"Nats-Batch-", b"Dead-Letter-")
_DROPPED = (b"Nats-Msg-Id:", b"Nats-Rollup:", b"Nats-TTL:", b"Nats-Incr:", b"Nats-Stream-Source:")


class LetterBox:
    """The dead letters of one consumer while this server leads it. `inbox` is where answers come
    in; nobody else knows it."""

    def __init__(self, stream: str, consumer: str, inbox: bytes) -> None:
        self._stream = stream.encode()
        self._consumer = consumer.encode()
        self._inbox = inbox
        self._sent: dict[int, int] = {}
        """Sequence -> when it was sent last."""
        self.pattern = inbox + b".*"

    def turn(
        self,
        consumer: Consumer,
        delivery: ConsumerDelivery,
        answers: Sequence[Captured],
        now_ns: int,
    ) -> list[Item]:
        """Note what is stored; what is to be published now: letters of what is dead for sure."""
        progress, store, wanted = delivery.progress, delivery.store, consumer.dead_letters_to
        dead = progress.state.dead
        over = {seq for seq in map(_stored_one, answers) if seq in dead}
        self._sent = {seq: at for seq, at in self._sent.items() if wanted and seq in dead}
        letters: list[Item] = []
        for seq in self._due(consumer.state.dead, dead, now_ns) if wanted else ():
            try:
                record = store.load(seq)
            except Damaged:
                record = None
            if record is not None:
                letters.append(self._letter(wanted, record, dead[seq]))
            elif delivery.is_gone(seq):
                over.add(seq)
            self._sent[seq] = now_ns
        if over:
            progress.settle(sorted(over))
        return letters

    def _due(
        self, committed: dict[int, Death], dead: dict[int, Death], now_ns: int
    ) -> Sequence[int]:
        sent = self._sent
        room = SENT_MAX - sum(at + RETRY_NS > now_ns for at in sent.values())
        if room <= 0:
            return ()
        due = [seq for seq in committed if seq in dead and sent.get(seq, 0) + RETRY_NS <= now_ns]
        if len(due) > room:
            # Those that nobody takes do not keep others from being sent.
            due.sort(key=lambda seq: sent.get(seq, 0))
        return due[:room]

    def next_due_ns(self, dead: dict[int, Death]) -> int | None:
        """When the next letter is sent again, if no answer comes."""
        if not dead or not self._sent:
            return None
        return min(self._sent.values()) + RETRY_NS

    def _letter(self, wanted: bytes, record: Record, death: Death) -> Item:
        name = b"%b.%b.%d.%d" % (self._stream, self._consumer, record.seq, death.time_ns)
        reason = death.reason.replace("\r", " ").replace("\n", " ").encode()
        fields = (
            (b"Dead-Letter-Stream", self._stream),
            (b"Dead-Letter-Consumer", self._consumer),
            (b"Dead-Letter-Sequence", b"%d" % record.seq),
            (b"Dead-Letter-Subject", record.subject),
            (b"Dead-Letter-Deliveries", b"%d" % death.deliveries),
            (b"Dead-Letter-Reason", b"terminated" if death.terminated else b"max deliveries"),
            (b"Dead-Letter-Text", reason),
            (b"Dead-Letter-Time", format_time(death.time_ns).encode()),
            (b"Nats-Msg-Id", name),
            (b"Nats-Expected-Last-Subject-Sequence", b"0"),
        )
        lines = record.headers.split(b"\r\n")[1:-2] if record.headers else []
        kept = [line for line in lines if not line.startswith((*_STRIPPED, *_DROPPED))]
        own = blocks.build([field for field in fields if field[1]])
        headers = b"\r\n".join([blocks.VERSION, *kept, own[len(blocks.VERSION) + 2 :]])
        subject = b"%b.%b" % (wanted, name)
        return subject, b"%b.%d" % (self._inbox, record.seq), headers, record.payload, b""


def _stored_one(answer: Captured) -> int:
    """Of which message a letter is in a stream, since now or before; 0 if that is not said."""
    token = answer[0].rpartition(b".")[2]
    try:
        document = parse_object(answer[3])
    except ValueError:
        return 0
    error = document.get("error")
    before = isinstance(error, dict) and error.get("err_code") == _STORED_ALREADY
    if not (before or (error is None and document.get("seq"))):
        return 0
    return parse_number(token) or 0


def bury(
    consumer: Consumer,
    delivery: ConsumerDelivery,
    seqs: Sequence[int],
    now_ns: int,
    reason: str | None = None,
) -> int:
    """How many of these, the first ones, are given up as dead letters: none where nobody wants
    them. With a reason a client terminated them."""
    progress = delivery.progress
    state, explicit = progress.state, consumer.config.ack_policy is AckPolicy.EXPLICIT
    room = DEAD_MAX - len(state.dead) if consumer.dead_letters_to and explicit else 0
    buried = [seq for seq in seqs[: max(room, 0)] if seq in state.pending]
    for seq in buried:
        delivery.redelivery.unqueue(seq)
        death = Death(now_ns, state.deliveries(seq), reason is not None, reason or "")
        progress.bury(seq, death)
    return len(buried)


def check_target(config: ConsumerConfig, stream: StreamConfig, limits: object) -> None:
    """Refuse metadata that names no subject for dead letters, or one that the consumer's own
    stream would take. Raises ApiError."""
    wanted = config.metadata.get(DEAD_LETTERS_KEY, "").encode()
    if not wanted:
        return
    if len(wanted) > SUBJECT_BYTES_MAX or not is_valid_literal(wanted):
        raise api_error("JSConsumerCreateErrF", err=f"{DEAD_LETTERS_KEY} is not a subject")
    if any(overlaps(one.encode(), wanted + b".>") for one in stream.subjects):
        text = f"{DEAD_LETTERS_KEY} leads back to the stream of the consumer"
        raise api_error("JSConsumerCreateErrF", err=text)
