"""What a consumer may do, told from its log and from what its clients did.

first deliveries    in order, of what is stored and wanted, nothing left out
again               only what waits for an ack: after the ack wait or when a client put it back,
                    and no more often than allowed
done                only what a client acknowledged, or what is gone from the stream
ack floor           below everything that waits, and never back
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import cast

from jsctl.api.words import AckPolicy
from jsctl.broker.assets.replicas.consumer_replica import ConsumerReplica
from jsctl.broker.jetstream.consumers.consumer import filters_of
from jsctl.broker.jetstream.consumers.dispatch.push_dispatcher import RATE_BURST_BYTES
from jsctl.broker.jetstream.consumers.entries import ConsumerEntryKind, apply_progress
from jsctl.broker.jetstream.consumers.state import ConsumerState, Death
from tests.simulation.stream_checks import Books, is_memory
from tests.simulation.violation import Violation
from tests.simulation.world import SECOND

CLOCK_RATE_MAX = 1.02
HELD_NS_MAX = 200_000_000
"""Deliveries wait for their entry by that much more or less, while the bucket goes on filling."""
STEP_NS = 5_000_000
"""Deadlines are rounded by this much at most."""


@dataclass
class Told:
    """What clients said to consumers, by (stream, consumer)."""

    acked: dict[tuple[str, str], set[int]] = field(default_factory=dict)
    ended: dict[tuple[str, str], set[int]] = field(default_factory=dict)
    put_back: dict[tuple[str, str], set[int]] = field(default_factory=dict)

    def ack(self, stream: str, consumer: str, seq: int) -> None:
        """A message was acknowledged by a client that had it."""
        self.acked.setdefault((stream, consumer), set()).add(seq)

    def term(self, stream: str, consumer: str, seq: int) -> None:
        """A client never wants a message again."""
        self.ended.setdefault((stream, consumer), set()).add(seq)

    def nak(self, stream: str, consumer: str, seq: int) -> None:
        """A client wants a message again at once."""
        self.put_back.setdefault((stream, consumer), set()).add(seq)


@dataclass
class Waiting:
    """A message without an ack."""

    time_ns: int
    term: int
    count: int = 1


class ConsumerBooks:
    """One consumer, from the entries that were committed. Takes operations as its state does."""

    def __init__(
        self,
        unit: ConsumerReplica,
        told: Told,
        books: Callable[[], Books | None],
        passed_over: Callable[[], Collection[int]],
        stream_index: Callable[[], int],
        consumed: Callable[[], set[int]],
        letters: Callable[[], set[bytes] | None],
    ) -> None:
        assignment = unit.assignment
        self.group = unit.group.name
        self.config = config = assignment.config
        self.stream, self.name = assignment.stream, assignment.name
        self.filters = filters_of(config)
        self.needs_acks = config.ack_policy is not AckPolicy.NONE
        self.replicated = not is_memory(unit.group.name)
        """Whether it always had followers: then deliveries leave when they are committed."""
        self.key = (self.stream, self.name)
        self.first = 0
        """From here on it delivers; 0 before it knows."""
        self.last = 0
        self.since = 0
        """It began when the stream's log went up to here: of what is removed by then, nobody asked
        it whether it needs that."""
        self.consumed_before: set[int] = set()
        """Of what was there when it began, what was on its way out: it has no claim to that."""
        self.pending: dict[int, Waiting] = {}
        self.done: set[int] = set()
        self.exhausted: set[int] = set()
        self._told = told
        self.books = books
        self.passed_over = passed_over
        """Messages that it may leave out, as they are lost for good."""
        self._stream_index = stream_index
        self._consumed = consumed
        self._letters = letters
        self.dead: dict[int, Death] = {}
        """Given up, and to be stored elsewhere."""
        self.buried: set[bytes] = set()
        """Subjects of all letters that there were ever to be."""
        self._cseq = 0
        self._floor = 0
        self._term = 0
        self._sender: object = None
        self._since_ns = 0
        self._tokens = 0.0
        self._seen: dict[int, int] = {}
        """Sequence -> count of the last delivery that left."""

    def apply(self, term: int, data: bytes) -> None:
        """Take one committed entry."""
        self._term = term
        if data[0] == ConsumerEntryKind.PROGRESS:
            # The entry is carried out here instead of on a state.
            apply_progress(cast("ConsumerState", self), data)

    def _broken(self, text: str) -> Violation:
        return Violation(f"{self.name} of {self.stream} {text}")

    def wants(self, seq: int) -> bool:
        """Whether a stored message is one for this consumer."""
        books = self.books()
        subject = "" if books is None else books.subjects[seq].decode()
        return not self.filters or subject in self.filters

    def _left_out(self, start: int, stop: int) -> Iterable[int]:
        books = self.books()
        rows = () if books is None else books.model.rows
        left = [seq for seq in rows if start <= seq < stop and self.wants(seq)]
        gone = self.passed_over() if left else ()
        return [seq for seq in left if seq not in gone]

    # Operations

    def start(self, first: int, resume: int, last_seqs: Sequence[int]) -> None:
        """It begins before `first`."""
        self.consumed_before = self._consumed()
        self.first, self.last = first, first - 1
        self.since = self._stream_index()
        self._floor = first - 1

    def deliver(self, seqs: Sequence[int], first_seq: int, time_ns: int) -> None:
        """First deliveries."""
        if first_seq != self._cseq + 1:
            raise self._broken(f"counts {first_seq} behind {self._cseq}")
        books = self.books()
        assert books is not None
        for seq in seqs:
            if seq <= self.last:
                raise self._broken(f"delivers {seq} as new behind {self.last}")
            if seq not in books.values:
                raise self._broken(f"delivers {seq}, which is not stored")
            if not self.wants(seq):
                raise self._broken(f"delivers {seq}, which its filters do not match")
            for left in self._left_out(self.last + 1, seq):
                raise self._broken(f"leaves {left} out")
            self.last = seq
            if self.needs_acks:
                self.pending[seq] = Waiting(time_ns, self._term)
            else:
                self.done.add(seq)
        self._cseq += len(seqs)
        if 0 < self.config.max_ack_pending < len(self.pending):
            raise self._broken(f"has {len(self.pending)} messages without an ack")

    def redeliver(self, seqs: Sequence[int], first_seq: int, time_ns: int) -> None:
        """Deliveries again."""
        self._cseq = first_seq + len(seqs) - 1
        for seq in seqs:
            held = self.pending.get(seq)
            if held is None:
                raise self._broken(f"delivers {seq} again, which waits for no ack")
            waited = time_ns - held.time_ns
            asked = seq in self._told.put_back.get(self.key, ())
            # Another leader has another clock.
            if held.term == self._term and not asked and waited + STEP_NS < self.config.ack_wait:
                raise self._broken(f"delivers {seq} again after {waited} ns")
            held.time_ns, held.term, held.count = time_ns, self._term, held.count + 1
            if 0 < self.config.max_deliver < held.count:
                raise self._broken(f"delivers {seq} {held.count} times")

    def touch(self, times: Iterable[tuple[int, int]]) -> None:
        """A wait begins anew, which no client here asks for."""
        raise self._broken("lets a wait begin anew")

    def ack(self, seqs: Collection[int], time_ns: int) -> None:
        """These are done with."""
        books = self.books()
        acked = self._told.acked.get(self.key, set())
        for seq in seqs:
            gone = books is None or seq not in books.model.rows
            if seq in self.pending and not gone and seq not in acked:
                raise self._broken(f"counts {seq} as acknowledged, which nobody did")
            self._finish(seq)

    def ack_all(self, seq: int, cseq: int, time_ns: int) -> None:
        """Everything up to a sequence is done."""
        if seq > max(self._told.acked.get(self.key, ()), default=0):
            raise self._broken(f"counts all up to {seq} as acknowledged, which nobody did")
        for one in [held for held in self.pending if held <= seq]:
            self._finish(one)

    def _finish(self, seq: int) -> None:
        if self.pending.pop(seq, None) is not None:
            self.done.add(seq)

    def exhaust(self, seqs: Collection[int]) -> None:
        """These were delivered often enough."""
        for seq in seqs:
            held = self.pending.pop(seq, None)
            often = held is None or 0 < self.config.max_deliver <= held.count
            if held is not None and not often and seq not in self.passed_over():
                raise self._broken(f"gives {seq} up after {held.count} deliveries")
            self.exhausted.add(seq)

    def bury(self, seq: int, death: Death) -> None:
        """This one is given up, and to be stored elsewhere."""
        held = self.pending.pop(seq, None)
        if held is None:
            raise self._broken(f"gives {seq} up, which waits for no ack")
        often = 0 < self.config.max_deliver <= held.count
        asked = seq in self._told.ended.get(self.key, ())
        if not (asked if death.terminated else often) or death.deliveries != held.count:
            raise self._broken(f"gives {seq} up after {held.count} deliveries: {death}")
        self.dead[seq] = death
        self.buried.add(self._letter(seq, death))

    def _letter(self, seq: int, death: Death) -> bytes:
        return f"dead.{self.stream}.{self.name}.{seq}.{death.time_ns}".encode()

    def settle(self, seqs: Collection[int]) -> None:
        """These are stored elsewhere, or are gone."""
        books, letters = self.books(), self._letters()
        for seq in seqs:
            death = self.dead.pop(seq)
            there = books is None or seq in books.model.rows
            if there and letters is not None and self._letter(seq, death) not in letters:
                raise self._broken(f"takes {seq} for stored, which is not")
            self.done.add(seq)

    def skip(self, up_to: int) -> None:
        """Nothing up to here is wanted."""
        for left in self._left_out(self.last + 1, up_to + 1):
            raise self._broken(f"skips {left}")
        self.last = max(self.last, up_to)

    def move(self, up_to: int, gone: Collection[int]) -> None:
        """A purge left nothing up to here, nor these."""
        self.skip(up_to)
        self.ack([seq for seq in self.pending if seq <= up_to or seq in gone], 0)

    # What others may know

    def delivers(self, seq: int, count: int, payload: bytes) -> None:
        """A delivery leaves a server."""
        books = self.books()
        if books is None or books.values.get(seq) != payload:
            raise self._broken(f"sends {payload[:20]!r} as {seq}, which is not stored like that")
        refusal = self.refusal(seq, count)
        if refusal:
            raise self._broken(refusal)
        if self.needs_acks and self.replicated:
            self._seen[seq] = count

    def refusal(self, seq: int, count: int) -> str:
        """Why a delivery must not leave; empty if it may."""
        if 0 < self.config.max_deliver < count:
            return f"sends {seq} {count} times"
        if not (self.needs_acks and self.replicated):
            return ""
        held = self.pending.get(seq)
        if seq > self.last or (held is not None and count > held.count):
            return f"sends {seq} for the time {count} before that is committed"
        if count <= self._seen.get(seq, 0):
            return f"sends {seq} for the time {count} again"
        return ""

    def is_done(self, seq: int) -> bool:
        """Whether a message was delivered, and waits for no ack."""
        return seq <= self.last and seq not in self.pending

    def meter(self, sender: object, now_ns: int, size: int) -> None:
        """A delivery of so many bytes leaves: a bucket of tokens allows it, which does not get
        fuller than a burst however long nothing is sent; each leader begins with a full one."""
        rate = self.config.rate_limit_bps // 8
        if not rate:
            return
        if sender is not self._sender:
            self._sender, self._since_ns, self._tokens = sender, now_ns, float(RATE_BURST_BYTES)
        gained = rate * (now_ns - self._since_ns) * CLOCK_RATE_MAX / SECOND
        self._tokens = min(self._tokens + gained, float(RATE_BURST_BYTES))
        self._since_ns = now_ns
        if self._tokens < -rate * HELD_NS_MAX / SECOND:
            raise self._broken(f"sends {size} bytes with {self._tokens:.0f} tokens")
        self._tokens -= size

    def handled(self) -> set[int]:
        """What clients are done with, whether its committed log says so or not: one that is deleted
        takes acks along that were not committed yet, of deliveries that need not be either."""
        said = self._told.acked.get(self.key, set()) | self._told.ended.get(self.key, set())
        return self.done | {seq for seq in said if seq in self.pending or seq > self.last}

    def needs(self, seq: int) -> bool:
        """Whether a message that is stored is still to be consumed."""
        if not self.first or seq < self.first or not self.wants(seq):
            return False
        return seq > self.last or seq in self.pending or seq in self.dead

    def missing(self) -> list[int]:
        """What is still to be delivered, or to be acknowledged."""
        books = self.books()
        rows = () if books is None else books.model.rows
        return [seq for seq in rows if not self.first or self.needs(seq)]

    def compare(self, server: str, state: ConsumerState) -> None:
        """A replica that stands where this stands."""
        if list(state.pending) != list(self.pending):
            raise self._broken(f"waits on {server} for other acks: {list(state.pending)[:9]}")
        for seq, held in self.pending.items():
            if state.deliveries(seq) != held.count:
                raise self._broken(f"counts other deliveries of {seq} on {server}")
        if state.dead != self.dead:
            raise self._broken(f"has other dead letters on {server}: {list(state.dead)[:9]}")
        floor = state.floor_stream
        if floor >= min(self.pending, default=floor + 1) or floor > max(self.last, 0):
            raise self._broken(f"has its ack floor at {floor} on {server}")
        if floor < self._floor:
            raise self._broken(f"takes its ack floor back from {self._floor} to {floor}")
        if self.first and not self.pending and self.needs_acks and floor != state.delivered_stream:
            raise self._broken(f"has nothing waiting above its ack floor {floor} on {server}")
        self._floor = floor
