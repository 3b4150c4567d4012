"""Consumers that a stream's leader has for other streams, which mirror or source this one.

Nothing of them is logged or told to others: where they stand is known to who asked for them, and
who leads next is asked again. So an origin costs no raft group and no write. They end with the
leadership, or when nobody listens for their threshold.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field

from jsctl.api.consumer import ConsumerConfig
from jsctl.broker.assets.replicas.listening import Listening
from jsctl.broker.assets.replicas.replica_context import ReplicaContext
from jsctl.broker.interest.targets import Sink
from jsctl.broker.jetstream.consumers.acks import flow_pattern
from jsctl.broker.jetstream.consumers.consumer import Consumer
from jsctl.broker.jetstream.consumers.leader import ConsumerLeader
from jsctl.broker.jetstream.consumers.readers import Readers
from jsctl.broker.jetstream.streams.stream import Stream
from jsctl.broker.store.seqset import SeqSet
from jsctl.broker.store.stream_store import Removed
from jsctl.broker.subject.matching import Filters
from jsctl.broker.turn import LogLevel
from jsctl.dataclass import dataclass

LOOK_NS = 250_000_000
"""How often is looked whether somebody listens to a consumer that nobody listened to."""
CONSUMERS_MAX = 1_000
"""Of one stream; who asks for more is refused until others have ended."""
_NAME_LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
NAME_LENGTH = 8


class DirectConsumer:
    """One of them; implements `run_queue.Runner` and `readers.Reader`."""

    __slots__ = ("_due_ns", "_index", "_listening", "_of", "consumer", "flow", "leader", "run_name")

    def __init__(self, of: "DirectConsumers", config: ConsumerConfig) -> None:
        context = of.context
        self._of = of
        self.consumer = Consumer(of.stream.name, config.name, config, created_ns=context.now_ns)
        self.run_name = f"{of.group} {config.name}"
        self.flow = Sink(self)
        self.leader = ConsumerLeader(
            self.consumer,
            of.stream.store,
            replicated=False,
            has_interest=lambda subject: context.traffic.reached(of.account, subject),
            jitter=context.jitter,
            new_id=of.new_name,
            now_ns=context.now_ns,
            hopeless=of.hopeless,
        )
        self._listening = Listening(context, of.account)
        self._listening.to(flow_pattern(of.stream.name, config.name), self.flow)
        self._index = 0
        self._due_ns: int | None = None

    def begin(self) -> None:
        """Choose where to start: it is told before anything is delivered."""
        turn = self.leader.turn(self._of.context.now_ns, most=0)
        assert turn.entry is not None and not turn.publish, "a start, and nothing more"
        self._index = self.consumer.apply(1, turn.entry)

    def run(self) -> None:
        """Deliver; what is written down counts at once, as there is nobody else."""
        context, of = self._of.context, self._of
        turn = self.leader.turn(
            context.now_ns, flow=self.flow.take(), most=context.queue.deliveries
        )
        said = turn.publish
        if turn.entry is not None:
            self._index += 1
            self.consumer.apply(self._index, turn.entry)
            said += self.leader.committed(turn.ticket)
        if said:
            context.traffic.deliver(of.account, said)
        if turn.damaged is not None:
            context.damaged[of.group] = turn.damaged[0]
        for first, last in turn.passed_over.ranges():
            text = f"'{of.account} > {of.stream.name}' gives messages {first} to {last} to no other"
            context.log(LogLevel.ERROR, f"{text} stream: no replica has them")
        self._due_ns = turn.next_due_ns
        if self.leader.push is not None and not self.leader.push.active:
            look_ns = context.now_ns + LOOK_NS
            self._due_ns = look_ns if self._due_ns is None else min(self._due_ns, look_ns)
        if turn.inactive:
            of.remove(self.consumer.name)
            self._due_ns = None
        elif turn.again:
            context.queue.wake_again(self.run_name, self)

    def next_due_ns(self) -> int | None:
        """When `run` has to be called even if nothing happens."""
        return self._due_ns

    def listen_anew(self) -> None:
        """The account has come, or is gone."""
        self._listening.anew()

    def wake(self) -> None:
        """Have a turn."""
        self._of.context.queue.wake(self.run_name, self)

    def end(self) -> None:
        """It is over."""
        self._of.readers.remove(self)
        self._listening.end()
        self.flow = Sink()  # The former one holds this consumer.

    # Reader

    def stored(self, first: int, count: int, seqs: Sequence[int] | None) -> bool:
        """The stream took messages."""
        self.leader.stored(first, count, seqs)
        self.wake()
        return True

    def removed(self, gone: Sequence[Removed]) -> None:
        """The stream lost these messages."""
        self.leader.removed(gone)
        self.wake()

    def stream_changed(self) -> None:
        """The stream lost messages, or has some back."""
        self.leader.stream_changed(self._of.stream.store)
        self.wake()

    def purged(self, pattern: bytes) -> None:
        """The stream was purged."""
        self.leader.purged(pattern)
        self.wake()


@dataclass(slots=True)
class DirectConsumers:
    """See the module; of one stream, while this server leads it."""

    context: ReplicaContext
    account: str
    stream: Stream
    group: str
    readers: Readers
    """The stream's."""
    hopeless: Callable[[], SeqSet]
    """Messages whose bytes are damaged on every voter."""
    _by_name: dict[str, DirectConsumer] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self._by_name)

    def __iter__(self) -> Iterator[DirectConsumer]:
        return iter(self._by_name.values())

    @property
    def is_full(self) -> bool:
        """Whether there may not be another one."""
        return len(self._by_name) >= CONSUMERS_MAX

    def new_name(self) -> str:
        """A random name."""
        jitter = self.context.jitter
        return "".join([_NAME_LETTERS[jitter(len(_NAME_LETTERS))] for _ in range(NAME_LENGTH)])

    def add(self, config: ConsumerConfig) -> DirectConsumer:
        """Make one; its start is chosen at once, so that it can be told."""
        assert config.name not in self._by_name, "names are random"
        made = self._by_name[config.name] = DirectConsumer(self, config)
        self.readers.add(made, made.consumer.filters)
        made.begin()
        made.wake()
        return made

    def remove(self, name: str) -> None:
        """One is over."""
        found = self._by_name.pop(name, None)
        if found is not None:
            found.end()

    def retire(self) -> dict[str, Filters]:
        """All of them are over; what each was for, by its name."""
        gone = {name: one.consumer.filters for name, one in self._by_name.items()}
        self.end()
        return gone

    def listen_anew(self) -> None:
        """The account has come, or is gone."""
        for one in self:
            one.listen_anew()

    def end(self) -> None:
        """Nobody has any more: another server leads."""
        for one in self:
            one.end()
            self.context.queue.forget(one.run_name)
        self._by_name.clear()
