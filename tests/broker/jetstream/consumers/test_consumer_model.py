"""Random lives of consumers against a naive model, through crashes and copies."""

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from jsctl.api.consumer import ConsumerConfig
from jsctl.api.words import AckPolicy
from jsctl.broker.jetstream.consumers.consumer import Consumer
from jsctl.broker.jetstream.consumers.defaults import with_defaults
from jsctl.broker.jetstream.consumers.entries import ConsumerProgress, apply_progress
from jsctl.broker.jetstream.consumers.facts import AdvisoryKind, ConsumerTurn
from jsctl.broker.jetstream.consumers.leader import ConsumerLeader
from jsctl.broker.jetstream.consumers.state import ConsumerState
from jsctl.broker.protocol.deliveries import OutgoingMessage, singly
from jsctl.broker.store.frame import frame_of
from jsctl.broker.store.memory_store import MemoryStore
from tests.support.quick import examples

SECOND = 1_000_000_000
START = 1_700_000_000 * SECOND
MESSAGES = 12
MAX_DELIVER = 4


@dataclass
class World:
    """A consumer on a store, and what a client and a model know about it."""

    replicated: bool
    filtered: bool
    now: int = START
    index: int = 0
    store: MemoryStore = field(default_factory=MemoryStore)
    log: list[tuple[bytes, int]] = field(default_factory=list)
    seen: dict[int, list[int]] = field(default_factory=dict)
    """Stream sequence -> delivery counts the client saw."""
    replies: dict[int, bytes] = field(default_factory=dict)
    safe: set[int] = field(default_factory=set)
    """Acks that were answered."""
    done: set[int] = field(default_factory=set)
    """Acks that were sent, or messages that were given up."""
    crashed: bool = False

    def __post_init__(self) -> None:
        config = ConsumerConfig(
            durable_name="C",
            ack_policy=AckPolicy.EXPLICIT,
            ack_wait=SECOND,
            max_deliver=MAX_DELIVER,
            max_ack_pending=5,
            filter_subject="a" if self.filtered else "",
        )
        self.config = with_defaults(config)
        self.consumer = Consumer("S", "C", self.config)
        self.lead()

    def lead(self) -> None:
        self.leader = ConsumerLeader(
            self.consumer,
            self.store,
            replicated=self.replicated,
            has_interest=lambda subject: True,
            jitter=lambda n: 0,
            new_id=lambda: "ID",
            now_ns=self.now,
        )
        self.finish(self.leader.turn(self.now))

    def publish(self, count: int) -> None:
        last = self.store.last_seq
        rows = [
            (last + i, self.now, b"a" if (last + i) % 3 else b"b", b"", b"x")
            for i in range(1, count + 1)
        ]
        self.index += 1
        self.store.append(frame_of(rows), self.index)
        filters = self.consumer.filters
        seqs = [row[0] for row in rows if filters.match(row[2])]
        self.leader.stored(last + 1, len(seqs), seqs if count % 3 else None)
        self.finish(self.leader.turn(self.now))

    def pull(self, count: int) -> None:
        payload = b'{"batch":%d,"expires":100000000000}' % count
        self.finish(self.leader.turn(self.now, pulls=[(b"", b"in", b"", payload, None)]))

    def ack(self, pick: int, word: bytes) -> None:
        if not self.replies:
            return
        seq = sorted(self.replies)[pick % len(self.replies)]
        if word in (b"+ACK", b"+TERM"):
            self.done.add(seq)
        answer = b"ok.%d" % seq if word == b"+ACK" else b""
        made = self.leader.turn(self.now, acks=[(self.replies[seq], answer, b"", word, None)])
        self.finish(made)

    def tick(self, ns: int) -> None:
        self.now += ns
        self.finish(self.leader.turn(self.now))

    def finish(self, made: ConsumerTurn) -> None:
        self.take(made.publish)
        for fact in made.advisories:
            if fact.kind is AdvisoryKind.MAX_DELIVERIES:
                self.done.add(fact.stream_seq)
        if made.entry is not None:
            self.log.append((made.entry, made.ticket))
        if not self.replicated:
            self.commit()

    def commit(self) -> None:
        log, self.log = self.log, []
        for entry, ticket in log:
            self.consumer.apply(1, entry)
            self.take(self.leader.committed(ticket))

    def crash(self) -> None:
        """The log's tail is lost; another server leads, from a snapshot."""
        self.crashed = self.crashed or bool(self.log)
        self.log.clear()
        other = Consumer("S", "C", self.config)
        other.restore(self.consumer.snapshot())
        assert other.state.facts() == self.consumer.state.facts()
        self.consumer = other
        self.done &= self.safe | {seq for seq in self.seen if seq not in other.state.pending}
        self.lead()

    def take(self, said: list[OutgoingMessage]) -> None:
        items = singly(said)
        for subject, reply, _, _, shown in items:
            if subject.startswith(b"ok."):
                self.safe.add(int(subject[3:]))
            if not shown:
                continue
            tokens = reply.split(b".")
            times, seq = int(tokens[4]), int(tokens[5])
            assert seq not in self.safe, "an answered ack is for ever"
            assert times <= MAX_DELIVER
            counts = self.seen.setdefault(seq, [])
            if not self.crashed:
                assert times == (counts[-1] if counts else 0) + 1, "each delivery counts"
            counts.append(times)
            self.replies[seq] = reply

    def check(self) -> None:
        self.commit()
        state, working = self.consumer.state, self.leader.delivery.progress.state
        assert state.facts() == working.facts()
        assert len(state.pending) <= 5
        assert list(state.pending) == sorted(state.pending)
        assert state.floor_stream <= state.delivered_stream
        assert all(seq > state.floor_stream for seq in state.pending)
        assert not self.safe.intersection(state.pending)
        held = self.leader.delivery
        assert held.num_pending == self.store.num_pending(self.consumer.filters, held.cursor)

    def drain(self) -> None:
        """A client that acknowledges everything gets everything that is left."""
        for _ in range(20 * MESSAGES):
            self.pull(5)
            self.commit()
            for seq in list(self.consumer.state.pending):
                if seq in self.replies:
                    self.ack(sorted(self.replies).index(seq), b"+ACK")
            self.commit()
            self.tick(SECOND + 10_000_000)
            self.commit()
        wanted = {seq for seq in range(1, self.store.last_seq + 1) if seq % 3 or not self.filtered}
        assert set(self.seen) == wanted, "no message is skipped"
        assert not self.consumer.state.pending
        state = self.consumer.state
        assert (state.floor_seq, state.floor_stream) == (
            state.delivered_seq,
            state.delivered_stream,
        )


STEPS = st.one_of(
    st.tuples(st.just("publish"), st.integers(1, 4)),
    st.tuples(st.just("pull"), st.integers(1, 6)),
    st.tuples(
        st.just("ack"),
        st.integers(0, MESSAGES),
        st.sampled_from([b"+ACK", b"+ACK", b"+TERM", b"-NAK", b"-NAK 1s", b"+WPI", b"?"]),
    ),
    st.tuples(st.just("tick"), st.sampled_from([1000, 400_000_000, SECOND + 20_000_000])),
    st.tuples(st.just("commit")),
    st.tuples(st.just("crash")),
)


@settings(max_examples=examples(60), deadline=None)
@given(st.booleans(), st.booleans(), st.lists(STEPS, max_size=25))
def test_nothing_is_skipped_or_comes_again_without_reason(
    replicated: bool, filtered: bool, steps: list[tuple[str, *tuple[int, ...]]]
) -> None:
    world = World(replicated, filtered)
    world.publish(3)
    for name, *arguments in steps:
        getattr(world, name)(*arguments)
    world.check()
    world.drain()
    world.check()


OPS = st.one_of(
    st.tuples(st.just("deliver"), st.lists(st.integers(1, 5), min_size=1, max_size=6)),
    st.tuples(st.just("ack"), st.lists(st.integers(1, 60), min_size=1, max_size=6, unique=True)),
    st.tuples(st.just("redeliver"), st.lists(st.integers(1, 60), min_size=1, max_size=3)),
    st.tuples(st.just("exhaust"), st.lists(st.integers(1, 60), min_size=1, max_size=3)),
    st.tuples(st.just("ack_all"), st.integers(1, 60)),
    st.tuples(st.just("skip"), st.integers(1, 60)),
)


@settings(max_examples=examples(150), deadline=None)
@given(st.booleans(), st.lists(OPS, max_size=30))
def test_entries_and_snapshots_carry_the_whole_state(
    acks_needed: bool, ops: list[tuple[str, object]]
) -> None:
    made, copied = ConsumerState(acks_needed=acks_needed), ConsumerState(acks_needed=acks_needed)
    progress, now = ConsumerProgress(made), START
    progress.start(1, 0, ())
    model: dict[int, int] = {}
    for name, argument in ops:
        now += 7
        if isinstance(argument, list) and name == "deliver":
            seqs, at = [], made.delivered_stream
            for step in argument:
                at += step
                seqs.append(at)
            model.update({seq: made.delivered_seq + 1 + i for i, seq in enumerate(seqs)})
            progress.deliver(seqs, now)
        elif isinstance(argument, list) and name == "redeliver":
            progress.redeliver(argument, now)
        elif isinstance(argument, list):
            model = {seq: at for seq, at in model.items() if seq not in argument}
            getattr(progress, name)(*([argument, now] if name == "ack" else [argument]))
        elif isinstance(argument, int) and name == "ack_all":
            if argument in model:
                cseq = model[argument]
                if cseq > made.floor_seq and argument > made.floor_stream:
                    model = {seq: at for seq, at in model.items() if seq > argument}
                progress.ack_all(argument, cseq, now)
        elif isinstance(argument, int):
            progress.skip(argument)
    assert {seq: held[0] for seq, held in made.pending.items()} == (model if acks_needed else {})
    entry = progress.take(3)
    assert entry is not None
    apply_progress(copied, entry)
    assert copied.facts() == made.facts()
    restored = ConsumerState(acks_needed=acks_needed)
    restored.decode(made.encode())
    assert restored.facts() == made.facts()
    assert made.copy().facts() == made.facts()
