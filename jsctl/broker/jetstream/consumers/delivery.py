"""What a consumer delivers next, and how a delivery looks on the wire.

`ConsumerDelivery` reads the store at the consumer's position. Rows are peeked first and taken when
it is known that somebody gets them, so that nothing has to be put back. The count of what is
still to be delivered is kept by adding and subtracting; it is computed only after changes of
the stream that cannot be counted.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from itertools import islice, takewhile
from operator import itemgetter

from jsctl.broker.errors import Damaged
from jsctl.broker.jetstream.consumers.acks import ack_prefix
from jsctl.broker.jetstream.consumers.ahead import Ahead
from jsctl.broker.jetstream.consumers.consumer import Consumer
from jsctl.broker.jetstream.consumers.entries import ConsumerProgress
from jsctl.broker.jetstream.consumers.facts import Advisory, AdvisoryKind
from jsctl.broker.jetstream.consumers.redelivery import Redelivery
from jsctl.broker.jetstream.consumers.starting import Choice
from jsctl.broker.protocol.deliveries import Deliveries, Item
from jsctl.broker.store.contents import Contents
from jsctl.broker.store.record import Row
from jsctl.broker.store.seqset import SeqSet
from jsctl.broker.store.stream_store import Removed

BATCH_BYTES_MAX = 8 * 1024 * 1024
"""What one look at the store returns at most; the rest follows in the next turn."""
UNLIMITED = 1 << 40
GONE_REASON = "Message deleted by stream limits"
REMOVED_REASON = "Unacknowledged message was deleted"
"""What is gone is found when it is to be delivered again, or told when it was removed."""
LOST_REASON = "Message is damaged on every replica"

_sequence = itemgetter(0)


def headers_only(row: Row) -> Row:
    """The message without its payload, whose size a header tells."""
    seq, time_ns, subject, headers, payload = row
    head = headers[:-2] if headers else b"NATS/1.0\r\n"
    return seq, time_ns, subject, b"%sNats-Msg-Size: %d\r\n\r\n" % (head, len(payload)), b""


def with_header(headers: bytes, line: bytes) -> bytes:
    """A header block with one more line."""
    return (headers[:-2] if headers else b"NATS/1.0\r\n") + line + b"\r\n\r\n"


class ConsumerDelivery:
    """The reading side of a leading consumer."""

    __slots__ = (
        "_ahead",
        "_formats",
        "_front",
        "_hopeless",
        "_pending",
        "_prefix",
        "_removed",
        "choice",
        "consumer",
        "cursor",
        "damaged",
        "deaf",
        "facts",
        "passed_over",
        "progress",
        "purging",
        "redelivery",
        "store",
    )

    def __init__(
        self, consumer: Consumer, store: Contents, hopeless: Callable[[], SeqSet] = SeqSet
    ) -> None:
        """`hopeless` gives the messages that are damaged on every replica: they are passed over,
        not waited for."""
        config = consumer.config
        self.consumer = consumer
        self.store = store
        self.redelivery = Redelivery(config.ack_wait, config.backoff)
        self._hopeless = hopeless
        self.damaged: tuple[int, int] | None = None
        """Sequences that stopped the last look at the store: they are being repaired."""
        self.passed_over = SeqSet()
        """What was passed over since somebody last took note of it."""
        self.facts: list[Advisory] = []
        self._removed: list[int] = []
        """Pending messages that the stream lost, from between others."""
        self.purging = False
        """What is lost next was purged: `purges` says what becomes of it."""
        prefix = ack_prefix(consumer.stream, consumer.name)
        self._front = prefix + b"1."
        """What replies of first deliveries begin with."""
        self._prefix = prefix.replace(b"%", b"%%")
        self._formats: dict[int, bytes] = {}
        self._ahead = Ahead()
        self.deaf = False
        self.rebase()

    def rebase(self) -> None:
        """Start over from the committed state: new leader, or the consumer was reset."""
        self.choice: Choice | None = None
        """Where to start, while that is being chosen."""
        self.progress = ConsumerProgress(self.consumer.state.copy())
        self.cursor = self.progress.state.next_stream
        self._pending: int | None = None
        self.redelivery.clear()
        self.redelivery.file_pending(self.progress.state)

    def choose_start(self) -> bool:
        """Choose where to begin, if that was never done; False: there is more to be looked at."""
        if self.progress.state.started:
            return True
        choice = self.choice
        if choice is None or choice.store is not self.store:
            choice = self.choice = Choice(self.consumer, self.store)
            self._pending = None
            if choice.search is not None:
                # What comes from now on is behind it.
                self.cursor, self._pending = choice.search.up_to + 1, 0
        if choice.step():
            self._start(choice)
        return self.choice is None

    def _start(self, choice: Choice) -> None:
        self.choice = None
        choice.write(self.progress)
        self.cursor = self.progress.state.next_stream
        if self._pending is not None and choice.search is not None:
            found = self.progress.state.last_seqs
            self._pending += len(found) - sum(map(found.__contains__, choice.gone))

    # How much there is.

    @property
    def num_pending(self) -> int:
        """Messages that are still to be delivered for the first time."""
        count = self._pending
        if count is None:
            filters, state = self.consumer.filters, self.progress.state
            count = self.store.num_pending(filters, self.cursor)
            count += len(self.store.live_of(state.last_seqs))
            self._pending = None if self.deaf else count
        return count

    def stored(self, first: int, count: int, seqs: Sequence[int] | None = None) -> None:
        """The stream took messages from a sequence on; `count` of them pass the filters, these if
        they are known."""
        if self.cursor > first:
            self.forget_count()  # It stands beyond the end: some of them are not for it.
        if self._pending is not None:
            self._pending += count
        if seqs is None:
            self._ahead.forget()
        else:
            self._ahead.stored(first, seqs)

    def removed(self, gone: Sequence[Removed]) -> None:
        """The stream lost these messages: what was delivered, or chosen over, is not counted."""
        state, filters = self.progress.state, self.consumer.filters
        if state.pending and not self.purging:
            for seqs, _ in gone:
                self._removed += state.pending.keys() & set(seqs)
        self.purging = False
        for seqs, subjects in gone:
            if self._pending is None:
                return
            if self.choice is not None:
                self.choice.gone.update(seqs)
            elif state.last_seqs:
                self._pending -= sum(map(state.last_seqs.__contains__, seqs))
            count = len(seqs) - bisect_left(seqs, self.cursor)
            if count and not filters.is_all:
                passing = len(filters.select(subjects))
                if subjects and not passing:
                    continue
                if not subjects or passing < len(subjects):
                    # Some of them were counted, and it is not known which.
                    self.forget_count()
                    return
            self._pending -= count

    def forget_count(self) -> None:
        """The stream changed otherwise: count again when asked."""
        self._pending = None

    def go_deaf(self) -> None:
        """Nobody waits for messages: of those that come and go it is told with the next turn."""
        self.deaf = True
        self.look_anew()

    def replaced(self, store: Contents) -> None:
        """The stream lost messages, or is another one: its contents are these from now on."""
        self.store = store
        self.look_anew()

    def look_anew(self) -> None:
        """The stream changed otherwise, or the filters: nothing is known of what is in front."""
        self.forget_count()
        self._ahead.forget()

    # Peeking and taking.

    def room(self) -> int:
        """How many more messages may be pending."""
        most = self.consumer.config.max_ack_pending
        if most <= 0 or not self.progress.state.acks_needed:
            return UNLIMITED
        return max(0, most - len(self.progress.state.pending))

    @property
    def stalled(self) -> bool:
        """Whether outstanding acks keep new messages back."""
        return self.room() == 0

    def present_again(self, count: int, now_ns: int) -> list[Row]:
        """Messages to be delivered again; those gone from the stream are given up."""
        if not self.redelivery.again:
            return []
        rows: list[Row] = []
        gone: list[int] = []
        lost: list[int] = []
        for seq in list(islice(self.redelivery.again, count)):
            try:
                row = self.store.load(seq)
            except Damaged as error:
                if self._pass_over(seq, seq):
                    lost.append(seq)
                    continue
                self.damaged = (seq, error.last_seq)
                self.redelivery.unqueue(seq)
                self.redelivery.file((seq,), now_ns, self.progress.state.deliveries(seq))
                continue
            if row is None and self.is_gone(seq):
                gone.append(seq)
            elif row is None:
                self.redelivery.unqueue(seq)
                self.redelivery.file((seq,), now_ns, self.progress.state.deliveries(seq))
            else:
                rows.append(row)
        self.give_up(gone, now_ns)
        self._abandon(lost)
        return self._shown(rows)

    def is_gone(self, seq: int) -> bool:
        """Whether a delivered message was removed from the stream. One above its end was not: the
        stream's replica here has not caught up yet, as after a restart."""
        return seq <= self.store.last_seq and not self.store.is_live(seq)

    def _abandon(self, lost: Sequence[int]) -> None:
        """Pending messages that no replica has are not delivered any more. Nobody acknowledged
        them, so they stay in the stream: their bytes may be found again."""
        state = self.progress.state
        for seq in lost:
            self.redelivery.unqueue(seq)
            cseq, times = state.pending[seq][0], state.deliveries(seq)
            kind = AdvisoryKind.TERMINATED
            self.facts.append(Advisory(kind, cseq, seq, times, reason=LOST_REASON))
        if lost:
            self.progress.exhaust(lost)

    def give_up_removed(self, now_ns: int) -> None:
        """Those that the stream lost since the last turn, as far as that is known."""
        pending, first = self.progress.state.pending, self.store.first_seq
        if pending and next(iter(pending)) < first:
            self.give_up(list(takewhile(first.__gt__, pending)), now_ns, REMOVED_REASON)
        self.purging = False
        if self._removed:
            gone = sorted(pending.keys() & set(self._removed))
            self._removed = []
            self.give_up(gone, now_ns, REMOVED_REASON)

    def give_up(self, gone: Sequence[int], now_ns: int, reason: str = GONE_REASON) -> None:
        """Pending messages that are not in the stream any more count as done with."""
        state = self.progress.state
        for seq in gone:
            self.redelivery.unqueue(seq)
            cseq, times = state.pending[seq][0], state.deliveries(seq)
            kind = AdvisoryKind.TERMINATED
            self.facts.append(Advisory(kind, cseq, seq, times, reason=reason))
        if gone:
            self.progress.ack(gone, now_ns)

    def peek_new(self, count: int) -> Sequence[Row]:
        """The next messages, never delivered before. Moves the cursor over what does not pass."""
        if count <= 0:
            return []
        rows: Sequence[Row] = self._chosen(count) if self.progress.state.last_seqs else []
        if not rows and self.damaged is None:
            rows = self._next(count)  # Of the chosen ones none may be left.
        if not rows and self.damaged is None:
            self.cursor = max(self.cursor, self.store.last_seq + 1)
            self._ahead.caught_up(self.cursor)
        return self._shown(rows)

    def _next(self, count: int) -> Sequence[Row]:
        """What can be read next; `damaged` says what stops it."""
        while True:
            filters, cursor = self.consumer.filters, self.cursor
            try:
                known = self._ahead.next(cursor, count, self.store.live_of)
                if known is None:
                    return self.store.next_many(filters, cursor, count, BATCH_BYTES_MAX)
                return self.store.load_many(known, BATCH_BYTES_MAX)
            except Damaged as error:
                first = max(error.first_seq, cursor)
                passed = self._pass_over(first, error.last_seq)
                if not passed:
                    self.damaged = (first, error.last_seq)
                    return []
                self.cursor = passed + 1
                self.forget_count()

    def _pass_over(self, first: int, last: int) -> int:
        """Go past what is lost for good; where that ends, 0 if it does not begin with such."""
        hopeless = self._hopeless()
        if first not in hopeless:
            return 0
        last = min(last, hopeless.next_absent(first) - 1)
        self.passed_over.add_range(first, last)
        return last

    def _chosen(self, count: int) -> list[Row]:
        state = self.progress.state
        at = 0
        while at < len(state.last_seqs):
            some = state.last_seqs[at : at + count]
            try:
                rows = self.store.load_many(some, BATCH_BYTES_MAX)
            except Damaged:
                seq = next(filter(self.store.is_live, some))
                if not self._pass_over(seq, seq):
                    self.damaged = (seq, seq)
                    return []
                at += some.index(seq) + 1
                continue
            if rows:
                return rows
            at += len(some)
        self.progress.skip(state.resume)
        self.cursor = max(self.cursor, state.next_stream)
        return []

    def _shown(self, rows: Sequence[Row]) -> list[Row]:
        if self.consumer.config.headers_only:
            return list(map(headers_only, rows))
        return rows if isinstance(rows, list) else list(rows)

    def take_new(self, rows: Sequence[Row], now_ns: int) -> None:
        """These were delivered for the first time."""
        if not rows:
            return
        state = self.progress.state
        first, last = rows[0][0], rows[-1][0]
        run = last - first + 1 == len(rows)
        seqs: Sequence[int] = range(first, last + 1) if run else list(map(_sequence, rows))
        chosen = bool(state.last_seqs)
        self.progress.deliver(seqs, now_ns)
        self.cursor = max(self.cursor, state.next_stream) if chosen else last + 1
        if self._pending is not None:
            self._pending = max(0, self._pending - len(rows))
        if state.acks_needed:
            self.redelivery.file(seqs, now_ns, 1)

    def take_again(self, rows: Sequence[Row], now_ns: int) -> None:
        """These were delivered once more."""
        if not rows:
            return
        seqs = list(map(_sequence, rows))
        for seq in seqs:
            self.redelivery.unqueue(seq)
        self.progress.redeliver(seqs, now_ns)
        state = self.progress.state
        for seq in seqs:
            self.redelivery.file((seq,), now_ns, state.deliveries(seq))

    # The wire.

    def _format(self, deliveries: int) -> bytes:
        made = self._formats.get(deliveries)
        if made is None:
            made = self._formats[deliveries] = self._prefix + b"%d.%%d.%%d.%%d.%%d" % deliveries
        return made

    def items_new(self, rows: Sequence[Row], inboxes: Iterable[bytes]) -> list[Item]:
        """First deliveries, each to its inbox; call before `take_new`."""
        form = self._format(1)
        first = self.progress.state.delivered_seq + 1
        left = max(self.num_pending, len(rows))
        numbers = zip(range(first, first + len(rows)), range(left - 1, -1, -1), strict=False)
        return [
            (inbox, form % (seq, cseq, time_ns, pending), headers, payload, subject)
            for (seq, time_ns, subject, headers, payload), (cseq, pending), inbox in zip(
                rows, numbers, inboxes, strict=False
            )
        ]

    def together(self, rows: Sequence[Row], inboxes: Sequence[bytes]) -> Deliveries:
        """As `items_new`, for rows without headers that go out at once."""
        first = self.progress.state.delivered_seq + 1
        left = max(self.num_pending, len(rows))
        return Deliveries(self._front, rows, inboxes, first, left - 1)

    def item(self, row: Row, inbox: bytes, ahead: int, again: bool) -> Item:
        """One delivery, `ahead` deliveries of this batch before it; call before taking."""
        seq, time_ns, subject, headers, payload = row
        state = self.progress.state
        deliveries = state.deliveries(seq) + 1 if again else 1
        pending = self.num_pending - (0 if again else ahead + 1)
        cseq = state.delivered_seq + 1 + ahead
        reply = self._format(deliveries) % (seq, cseq, time_ns, max(0, pending))
        return inbox, reply, headers, payload, subject


def size_of(item: Item) -> int:
    """What a delivery counts against max_bytes, windows and rates."""
    return len(item[1]) + len(item[2]) + len(item[3]) + len(item[4])
