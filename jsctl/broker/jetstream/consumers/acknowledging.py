"""What clients say of what was delivered to them, at the consumer's leader, and what follows.

A message is done with, wanted again or put off. Each is a step in the entry of the turn. Whoever
wants to hear that it counts is answered; of what was not delivered as far as known here, nobody is
told that it is done.
"""

from collections.abc import Iterable, Sequence

from jsctl.api.words import AckPolicy
from jsctl.broker.accel.columns import PLAIN_ACKS
from jsctl.broker.jetstream.consumers.acks import Ack, Captured, fold, nak_delay, parse
from jsctl.broker.jetstream.consumers.consumer import Consumer
from jsctl.broker.jetstream.consumers.dead_letters import bury
from jsctl.broker.jetstream.consumers.defaults import sample_percent
from jsctl.broker.jetstream.consumers.delivery import ConsumerDelivery
from jsctl.broker.jetstream.consumers.facts import Advisory, AdvisoryKind
from jsctl.broker.protocol.deliveries import Item, OutgoingMessage
from jsctl.broker.turn import Jitter

NEXT = b"+NXT"
"""Done, and more is wanted: a pull request follows."""
ANY = (1 << 63) - 1


class Acknowledging:
    """See the module; of one consumer that wants acknowledgements."""

    __slots__ = ("_consumer", "_delivery", "_facts", "_jitter", "_sample")

    def __init__(self, consumer: Consumer, delivery: ConsumerDelivery, jitter: Jitter) -> None:
        self._consumer = consumer
        self._delivery = delivery
        self._jitter = jitter
        self._facts: list[Advisory] = []
        self.configure()

    def configure(self) -> None:
        """The consumer's config may have changed."""
        self._sample = sample_percent(self._consumer.config)
        """Of a hundred acks it is told how long they took."""

    def take_facts(self) -> list[Advisory]:
        """What is to be told of since the last time."""
        facts, self._facts = self._facts, []
        return facts

    def take(
        self, acks: Sequence[Captured], now_ns: int, answers: list[OutgoingMessage]
    ) -> list[Ack]:
        """What clients said; adds to `answers`. Those who want more besides."""
        progress = self._delivery.progress
        if self._consumer.config.ack_policy is AckPolicy.EXPLICIT:
            state = progress.state
            is_open = state.is_unacked if state.redelivered else state.pending.__contains__
            done, replies, others = fold(acks, is_open, self._known_up_to())
            if done:
                self._measure(done, now_ns)
                progress.ack(done, now_ns)
            answers.extend(_answer(reply) for reply in replies)
        else:
            others = [ack for ack in map(parse, acks) if ack is not None]
        more = [ack for ack in others if ack.seq and self._take_one(ack, now_ns, answers)]
        self._delivery.redelivery.trim(progress.state)
        return more

    def _known_up_to(self) -> int:
        """What is done with is answered up to here: what was delivered. Who has flow control goes
        by what was sent to him, though the consumer may have been set back meanwhile."""
        flows = self._consumer.config.flow_control
        return ANY if flows else self._delivery.progress.state.delivered_stream

    def _take_one(self, ack: Ack, now_ns: int, answers: list[OutgoingMessage]) -> bool:
        """Whether it asks for more, too."""
        word, known = ack.word, ack.seq <= self._known_up_to()
        if word.startswith(NEXT):
            if known:
                self._done(ack, now_ns)
            return True
        if word.startswith(b"-NAK"):
            self._nak(ack, now_ns)
        elif word == b"+WPI":
            self._wait_anew(ack.seq, now_ns)
        elif word.startswith(b"+TERM"):
            if not known:
                return False
            self._terminate(ack, now_ns)
        elif word in PLAIN_ACKS:
            if not known:
                return False
            self._done(ack, now_ns)
        if ack.reply:
            answers.append(_answer(ack.reply))
        return False

    def _done(self, ack: Ack, now_ns: int) -> None:
        progress = self._delivery.progress
        if self._consumer.config.ack_policy is not AckPolicy.EXPLICIT:
            self.ack_all(ack.seq, ack.cseq, now_ns)
        elif progress.state.is_unacked(ack.seq):
            self._measure((ack.seq,), now_ns)
            progress.ack((ack.seq,), now_ns)

    def ack_all(self, seq: int, cseq: int, now_ns: int) -> None:
        """Numbers come from clients: only what was delivered counts."""
        progress = self._delivery.progress
        state = progress.state
        seq, cseq = min(seq, state.delivered_stream), min(cseq, state.delivered_seq)
        if seq > state.floor_stream and cseq > 0:
            # The floor may be the number of a redelivery, above those of what came behind it.
            progress.ack_all(seq, max(cseq, state.floor_seq + 1), now_ns)
        late = [one for one in state.redelivered if one <= seq and one not in state.pending]
        if late:
            progress.ack(late, now_ns)

    def _terminate(self, ack: Ack, now_ns: int) -> None:
        reason = ack.word[len(b"+TERM") :].strip().decode("utf-8", "replace")
        if not bury(self._consumer, self._delivery, (ack.seq,), now_ns, reason):
            self._done(ack, now_ns)
        self._tell(AdvisoryKind.TERMINATED, ack, reason)

    def _nak(self, ack: Ack, now_ns: int) -> None:
        delivery = self._delivery
        state = delivery.progress.state
        if ack.seq not in state.pending:
            return
        self._tell(AdvisoryKind.NAKED, ack)
        delay = nak_delay(ack.word)
        if delay is None:
            self.deliver_again((ack.seq,), now_ns)
            return
        wait = delivery.redelivery.wait_of(state.deliveries(ack.seq))
        self._wait_anew(ack.seq, now_ns + delay - wait, asked=True)

    def _wait_anew(self, seq: int, from_ns: int, *, asked: bool = False) -> None:
        """`asked`: it is a client's delay that is waited for."""
        delivery = self._delivery
        state = delivery.progress.state
        if seq in state.pending:
            delivery.redelivery.unqueue(seq)
            note = delivery.progress.delay if asked else delivery.progress.touch
            note([(seq, from_ns)])
            delivery.redelivery.file((seq,), from_ns, state.deliveries(seq))

    def deliver_again(self, seqs: Sequence[int], now_ns: int) -> None:
        """Except what was delivered as often as it may be."""
        consumer, delivery = self._consumer, self._delivery
        state, most = delivery.progress.state, consumer.config.max_deliver
        over = [seq for seq in seqs if state.deliveries(seq) >= most] if most > 0 else []
        if over:
            for seq in over:
                times = state.deliveries(seq)
                fact = Advisory(AdvisoryKind.MAX_DELIVERIES, stream_seq=seq, deliveries=times)
                self._facts.append(fact)
                delivery.redelivery.unqueue(seq)
            delivery.progress.exhaust(over[bury(consumer, delivery, over, now_ns) :])
            seqs = [seq for seq in seqs if seq in state.pending]
        delivery.redelivery.queue(seqs)

    def _tell(self, kind: AdvisoryKind, ack: Ack, reason: str = "") -> None:
        self._facts.append(Advisory(kind, ack.cseq, ack.seq, ack.deliveries, reason))

    def _measure(self, done: Iterable[int], now_ns: int) -> None:
        """Report how long some acks took, if the config asks for samples."""
        if not self._sample:
            return
        state = self._delivery.progress.state
        for seq in filter(state.pending.__contains__, done):
            if self._sample < 100 and self._jitter(100) >= self._sample:
                continue
            cseq, time_ns = state.pending[seq]
            kind, times = AdvisoryKind.ACK_METRIC, state.deliveries(seq)
            self._facts.append(Advisory(kind, cseq, seq, times, ack_time_ns=now_ns - time_ns))


def _answer(reply: bytes) -> Item:
    return reply, b"", b"", b"", b""
