"""A consumer while this server leads it.

Theory of operation. `turn` is called whenever something concerns the consumer: acks and pulls
came in, the stream grew, a deadline passed. It works on a copy of the replicated state that
runs ahead of the log, writes every step down in one PROGRESS entry, and says what to publish.
The copy is rebuilt from the committed state when the consumer was reset.

What must not be seen before the entry is safe is held under the entry's ticket: answers to acks
always; for replicated consumers that want acks, deliveries too, and with them everything said
later, so that order on the wire is order of events.
"""

from collections import deque
from collections.abc import Callable, Sequence

from jsctl.api.words import AckPolicy
from jsctl.broker.jetstream.api_levels import level_exceeded
from jsctl.broker.jetstream.consumers import purges
from jsctl.broker.jetstream.consumers.acknowledging import NEXT, Acknowledging
from jsctl.broker.jetstream.consumers.acks import Captured
from jsctl.broker.jetstream.consumers.consumer import Consumer
from jsctl.broker.jetstream.consumers.dead_letters import LetterBox
from jsctl.broker.jetstream.consumers.delivery import ConsumerDelivery
from jsctl.broker.jetstream.consumers.dispatch.pull import status
from jsctl.broker.jetstream.consumers.dispatch.pull_dispatcher import PullDispatcher
from jsctl.broker.jetstream.consumers.dispatch.push_dispatcher import PushDispatcher
from jsctl.broker.jetstream.consumers.facts import ConsumerTurn, Interest
from jsctl.broker.jetstream.consumers.starting import takes_long
from jsctl.broker.jetstream.consumers.state import ConsumerState
from jsctl.broker.protocol.deliveries import OutgoingMessage
from jsctl.broker.store.contents import Contents
from jsctl.broker.store.seqset import SeqSet
from jsctl.broker.store.stream_store import Removed
from jsctl.broker.turn import Jitter

DELIVERIES_MAX = 1024
"""Messages that one consumer delivers at a time, unless it is told otherwise."""
INACTIVE_REMINDER_NS = 1_000_000_000
"""An unused consumer that is still there after this asks again to be deleted."""
SKIP_WORTH_LOGGING = 1024
"""Passed over messages that are worth telling the followers about."""


class ConsumerLeader:
    """The leading side of one consumer. `replicated`: more than one peer."""

    __slots__ = (
        "_acks",
        "_config_seen",
        "_epoch_seen",
        "_held",
        "_hold_deliveries",
        "_letters",
        "_purged",
        "_ticket",
        "_used_ns",
        "consumer",
        "delivery",
        "pull",
        "push",
    )

    def __init__(
        self,
        consumer: Consumer,
        store: Contents,
        *,
        replicated: bool,
        has_interest: Interest,
        jitter: Jitter,
        new_id: Callable[[], str],
        now_ns: int,
        hopeless: Callable[[], SeqSet] = SeqSet,
    ) -> None:
        self.consumer = consumer
        self.delivery = ConsumerDelivery(consumer, store, hopeless)
        self._acks = Acknowledging(consumer, self.delivery, jitter)
        self._ticket = 0
        self._held: deque[tuple[int, list[OutgoingMessage]]] = deque()
        self._purged: list[int] = []
        """Up to which sequences purges have left nothing for this consumer."""
        self._used_ns = now_ns
        self._epoch_seen = consumer.epoch
        self._config_seen = consumer.config_revision
        self.pull: PullDispatcher | None = None
        self.push: PushDispatcher | None = None
        config = consumer.config
        if config.deliver_subject:
            self.push = PushDispatcher(consumer, has_interest, new_id, now_ns)
            self.push.start_replay(store.last_seq)
        else:
            self.pull = PullDispatcher(consumer, has_interest, new_id, now_ns)
        self._letters: LetterBox | None = None
        """Once messages that are given up are wanted elsewhere."""
        self.scale(replicated)

    def scale(self, replicated: bool) -> None:
        """The group has now more than one peer, or only one."""
        config = self.consumer.config
        waits = config.ack_policy in (AckPolicy.ALL, AckPolicy.EXPLICIT)
        self._hold_deliveries = replicated and waits and not config.flow_control

    # What the stream and the log tell.

    def _is_idle(self) -> bool:
        """Whether messages that come and go are no reason for a turn: nobody waits for one, and no
        ack is waited for. Who comes to be served is the reason for another turn."""
        state = self.delivery.progress.state
        if state.pending or not state.started:
            return False
        if self.pull is not None:
            return not self.pull.queue.requests
        return self.push is not None and not self.push.active

    def stored(self, first: int, count: int, seqs: Sequence[int] | None = None) -> bool:
        """The local stream replica stored messages from a sequence on; `count` are for it, these if
        they are known. Returned is whether a turn is needed."""
        self.delivery.stored(first, count, seqs)
        if not self._is_idle():
            return True
        if self.consumer.filters.is_all:
            self.delivery.go_deaf()
        return False

    def removed(self, gone: Sequence[Removed]) -> bool:
        """These messages were removed from the local stream replica; the same is returned."""
        self.delivery.removed(gone)
        return not self._is_idle()

    def stream_changed(self, store: Contents) -> None:
        """Messages were removed from the local stream replica, or it was replaced: it has these."""
        self.delivery.replaced(store)

    def purged(self, pattern: bytes) -> None:
        """The local stream replica was purged of a pattern; empty: of everything."""
        self.delivery.purging = True
        up_to = purges.left_before(self.consumer, self.delivery.store, pattern)
        if up_to is not None:
            self._purged.append(up_to)

    @property
    def lacks_letters(self) -> bool:
        """Whether messages that are given up are wanted elsewhere, and nobody hears yet what is
        stored there."""
        consumer = self.consumer
        return self._letters is None and bool(consumer.dead_letters_to or consumer.state.dead)

    def open_letters(self, inbox: bytes) -> bytes:
        """What is given up is to be stored elsewhere, and answers to that come to an inbox; the
        pattern to hear. Told to turns as `stored`."""
        self._letters = LetterBox(self.consumer.stream, self.consumer.name, inbox)
        return self._letters.pattern

    def committed(self, ticket: int) -> list[OutgoingMessage]:
        """The entry of a turn was applied: what may be published now."""
        out: list[OutgoingMessage] = []
        while self._held and self._held[0][0] <= ticket:
            out += self._held.popleft()[1]
        return out

    @property
    def ready(self) -> bool:
        """Whether the start position is committed, so that a create may be answered."""
        return self.consumer.state.started

    @property
    def state(self) -> ConsumerState:
        """What was delivered and acknowledged, entries that are not committed yet included."""
        return self.delivery.progress.state

    # The turn.

    def turn(
        self,
        now_ns: int,
        *,
        acks: Sequence[Captured] = (),
        pulls: Sequence[Captured] = (),
        flow: Sequence[Captured] = (),
        stored: Sequence[Captured] = (),
        most: int = DELIVERIES_MAX,
    ) -> ConsumerTurn:
        """Take what came in, deliver up to `most` messages, and say what is to be done."""
        while not self.choose_start(now_ns):
            pass  # Who has no time for it asks before.
        self.delivery.deaf = False
        made = ConsumerTurn()
        answers: list[OutgoingMessage] = []
        said: list[OutgoingMessage] = []
        for up_to in self._purged:
            purges.follow(self.delivery, up_to)
        self._purged = []
        self.delivery.give_up_removed(now_ns)
        if acks:
            self._take_acks(acks, now_ns, answers, said)
        self._take_flow(flow, now_ns)
        self._look_at_deadlines(now_ns)
        if self._letters is not None:
            made.letters = self._letters.turn(self.consumer, self.delivery, stored, now_ns)
        if pulls:
            self._take_pulls(pulls, now_ns, said)
        self._deliver(now_ns, most, said, made)
        self._seal(made, answers, said)
        self._finish(made, now_ns)
        return made

    def follow_log(self, now_ns: int) -> None:
        """Take what applied entries changed from outside: a reset, the config, a pause."""
        consumer, delivery = self.consumer, self.delivery
        if consumer.epoch != self._epoch_seen:
            self._epoch_seen = consumer.epoch
            delivery.rebase()
        if consumer.config_revision != self._config_seen:
            self._config_seen = consumer.config_revision
            self._configure(now_ns)

    def begun(self) -> ConsumerTurn:
        """In place of a turn, when that took long: its answer comes before deliveries."""
        self._seal(made := ConsumerTurn(again=True), [], [])
        return made

    @property
    def searches(self) -> bool:
        """Whether it is still to be chosen where to begin, and that takes long."""
        delivery = self.delivery
        return not self.state.started and takes_long(self.consumer, delivery.store)

    def choose_start(self, now_ns: int) -> bool:
        """Choose where to begin, if that was never done; False: that goes on in the next turn."""
        self.follow_log(now_ns)
        return self.delivery.choose_start()

    def _configure(self, now_ns: int) -> None:
        config, delivery = self.consumer.config, self.delivery
        delivery.redelivery.set_waits(config.ack_wait, config.backoff)
        delivery.redelivery.file_pending(delivery.progress.state)
        delivery.look_anew()
        self._acks.configure()
        if self.push is not None:
            self.push.configure(now_ns)
        if self.pull is not None:
            self.pull.configure()

    # What clients say of deliveries.

    def _take_acks(
        self,
        acks: Sequence[Captured],
        now_ns: int,
        answers: list[OutgoingMessage],
        said: list[OutgoingMessage],
    ) -> None:
        if self.consumer.config.ack_policy is AckPolicy.NONE:
            return
        for ack in self._acks.take(acks, now_ns, answers):
            self._pull(ack.reply, ack.word[len(NEXT) :], now_ns, said)
        self._used_ns = now_ns

    def _take_flow(self, flow: Sequence[Captured], now_ns: int) -> None:
        if self.push is None:
            return
        for subject, _, headers, _, _ in flow:
            acked = self.push.answered(subject, headers)
            if acked is not None:
                self._acks.ack_all(*acked, now_ns)

    # Deadlines.

    def _look_at_deadlines(self, now_ns: int) -> None:
        redelivery = self.delivery.redelivery
        due = redelivery.next_due_ns
        if due is not None and due <= now_ns:
            found = redelivery.take_due(self.delivery.progress.state, now_ns)
            gone = sorted(filter(self.delivery.is_gone, found))
            if gone:
                self.delivery.give_up(gone, now_ns)
                found = sorted(set(found).difference(gone))
            self._acks.deliver_again(found, now_ns)
        if self.pull is not None:
            self.pull.check_pin(now_ns)

    # Pulls and deliveries.

    def _take_pulls(
        self, pulls: Sequence[Captured], now_ns: int, said: list[OutgoingMessage]
    ) -> None:
        for _, reply, headers, payload, _ in pulls:
            if reply and not _asks_too_much(headers):
                self._pull(reply, payload, now_ns, said)
            elif reply:
                said.append((reply, b"", status(412, "Required Api Level"), b"", b""))

    def _pull(self, reply: bytes, payload: bytes, now_ns: int, said: list[OutgoingMessage]) -> None:
        if self.pull is None:
            said.append((reply, b"", status(409, "Consumer is push based"), b"", b""))
        elif reply:
            said += self.pull.admit(reply, payload, self.delivery, now_ns)
        self._used_ns = now_ns

    def _deliver(
        self, now_ns: int, most: int, said: list[OutgoingMessage], made: ConsumerTurn
    ) -> None:
        delivery = self.delivery
        delivery.damaged = None
        paused = self.consumer.pause_until_ns > now_ns
        if self.push is not None:
            if self.push.look(now_ns) and not paused:
                made.again = not self.push.serve(delivery, now_ns, most, said)
            said += self.push.tend(delivery, now_ns)
        elif self.pull is not None:
            is_due = self.pull.queue.is_due(now_ns)
            if not paused:
                made.again = not self.pull.serve(delivery, now_ns, most, said)
            # Acks or repairs that are waited for keep a no_wait request until the next heartbeat
            # or end.
            waits = delivery.stalled or delivery.damaged is not None
            stalled = waits and not paused and not is_due
            idle = not made.again and not stalled
            said += self.pull.tend(delivery, now_ns, idle=idle)
        made.damaged = delivery.damaged
        made.passed_over, delivery.passed_over = delivery.passed_over, SeqSet()

    def _seal(
        self, made: ConsumerTurn, answers: list[OutgoingMessage], said: list[OutgoingMessage]
    ) -> None:
        """Write the entry, and decide what has to wait for it."""
        delivery = self.delivery
        progress = delivery.progress
        passed = delivery.cursor - progress.state.next_stream
        if passed > SKIP_WORTH_LOGGING and not progress.state.last_seqs:
            progress.skip(delivery.cursor - 1)
        made.entry = progress.take(self.consumer.epoch)
        if made.entry is not None:
            self._ticket = made.ticket = self._ticket + 1
            self._held.append((self._ticket, []))
        if self._hold_deliveries and self._held:
            self._held[-1][1].extend(said)
        else:
            made.publish = said
        if answers and self._held:
            self._held[-1][1].extend(answers)
        else:
            made.publish += answers

    def _finish(self, made: ConsumerTurn, now_ns: int) -> None:
        made.advisories = self._acks.take_facts() + self.delivery.facts
        self.delivery.facts = []
        if self.pull is not None:
            made.advisories += self.pull.take_facts()
        idle_due = self._inactive_at(now_ns)
        due = [at for at in self._deadlines(now_ns) if at]
        if idle_due is not None:
            made.inactive = idle_due <= now_ns
            due.append(now_ns + INACTIVE_REMINDER_NS if made.inactive else idle_due)
        made.next_due_ns = min(due, default=None)

    def _deadlines(self, now_ns: int) -> list[int | None]:
        until = self.consumer.pause_until_ns
        due = [self.delivery.redelivery.next_due_ns, until if until > now_ns else None]
        if self.push is not None:
            due.append(self.push.next_due_ns)
        if self.pull is not None:
            due += [self.pull.queue.next_due_ns, self.pull.pin_due_ns]
        if self._letters is not None:
            due.append(self._letters.next_due_ns(self.delivery.progress.state.dead))
        return due

    # Inactivity.

    def _inactive_at(self, now_ns: int) -> int | None:
        """When the consumer will have been unused for its threshold; None while it is used."""
        threshold = self.consumer.config.inactive_threshold
        if threshold <= 0:
            return None
        if self.push is not None:
            return None if self.push.active else self.push.since_ns + threshold
        assert self.pull is not None
        since = max(self.pull.queue.last_ns, self._used_ns)
        if since + threshold > now_ns:
            return since + threshold
        if self.pull.prune():
            return now_ns + threshold
        return max(since, self._last_ack_due()) + threshold

    def _last_ack_due(self) -> int:
        """When the last pending ack is expected at the latest; 0 when none is pending."""
        delivery = self.delivery
        state, wait_of = delivery.progress.state, delivery.redelivery.wait_of
        held = state.pending.items()
        return max((t + wait_of(state.deliveries(seq)) for seq, (_, t) in held), default=0)

    # The end.

    def close(
        self, text: str, *, pending: bool = False, pulls: Sequence[Captured] = ()
    ) -> list[OutgoingMessage]:
        """Leadership ends: what waiting pulls are told, e.g. `Leadership Change`, and `pulls` that
        nobody has looked at.

        What is held for entries that are not committed is dropped: the next leader delivers
        again what its log does not know.
        """
        self._held.clear()
        waiting = [] if self.pull is None else self.pull.close(text, pending=pending)
        told = status(409, text)
        return [*waiting, *[(item[1], b"", told, b"", b"") for item in pulls if item[1]]]

    def unpin(self, reason: str = "admin") -> bool:
        """Release the pinned client; advisories follow with the next turn."""
        return self.pull is not None and self.pull.unpin(reason)


CONSUMER_DELETED = "Consumer Deleted"
LEADERSHIP_CHANGE = "Leadership Change"


def is_answer(said: OutgoingMessage) -> bool:
    """Whether this says that an ack counts, and nothing else."""
    return isinstance(said, tuple) and not any(said[1:])


def _asks_too_much(headers: bytes) -> bool:
    return level_exceeded(headers)
