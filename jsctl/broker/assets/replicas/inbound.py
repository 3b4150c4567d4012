"""What a leading stream takes from other streams: its mirror's origin, or its sources.

The origin is asked over its API and delivers to a subject that only this stream listens to, as
between nats-servers, so that it may be led by any server, be in another account, or be at a server
of another make. Where to begin follows from what this stream has stored: a mirror goes on behind
its last sequence, a source behind the position that came with its last message. Whoever leads next
begins there as well.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from itertools import islice

from jsctl.api.errors import ApiErrorBody, api_error
from jsctl.api.stream import SourceInfo, StreamConfig
from jsctl.broker.assets.replicas.facts import MirrorCaughtUp
from jsctl.broker.assets.replicas.listening import Listening
from jsctl.broker.assets.replicas.replica_context import ReplicaContext
from jsctl.broker.interest.targets import Sink
from jsctl.broker.jetstream.sourcing.asking import Metadata, Request, Start, farewell
from jsctl.broker.jetstream.sourcing.origin import UpstreamOrigin, mirror_of, sources_of
from jsctl.broker.jetstream.sourcing.position_search import PositionSearch
from jsctl.broker.jetstream.sourcing.upstream import Phase, Upstream
from jsctl.broker.jetstream.streams.admission import StreamLeader
from jsctl.broker.jetstream.streams.positions import SourcePosition
from jsctl.broker.jetstream.streams.sequencer import Admitted
from jsctl.broker.jetstream.streams.stream import Stream
from jsctl.broker.protocol.deliveries import OutgoingMessage
from jsctl.dataclass import dataclass

ARRIVALS_MAX = 4_096
"""Messages that one origin hands in at a time."""
FULL_NS = 250_000_000
"""How soon it is tried again to store what this stream, server or account had no room for."""
SUFFIX_LENGTH = 8
_LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_NOTHING = SourcePosition(0, "")

Propose = Callable[[Admitted], bool]
"""Put what was admitted into the log; False if that takes nothing."""


@dataclass(slots=True)
class InboundLine:
    """One origin, and how it is heard."""

    upstream: Upstream
    listening: Listening
    answering: Listening
    """To answers; `reply` is where they go."""
    answers: Sink
    arrivals: Sink
    reply: bytes = b""
    retry_ns: int = 0
    """When to try again to store what did not fit; 0: nothing waits for that."""
    search: PositionSearch | None = None
    """While it is not known up to where the stream has it."""
    former: UpstreamOrigin | None = None
    """As it was read until now; its consumer goes when there is another one, so that nothing is let
    go of in between."""

    def end(self) -> None:
        """Listen to nothing any more."""
        self.listening.end()
        self.answering.end()


@dataclass(slots=True)
class Inbound:
    """See the module. `owner` of the sinks is woken when something comes in."""

    context: ReplicaContext
    account: str
    stream: Stream
    admission: StreamLeader
    owner: object
    propose: Propose
    _lines: dict[str, InboundLine] = field(default_factory=dict)
    """By index name; a mirror's has an empty one."""
    _config: StreamConfig | None = None
    _told_caught_up: bool = False

    # What there is to be taken

    @property
    def is_open(self) -> bool:
        """Whether the stream has origins."""
        return bool(self._lines)

    def follow(self) -> None:
        """The stream's config may be another one: begin with what is new, end what is gone."""
        config, before = self.stream.config, self._config
        if before is not None and (config.mirror, config.sources) == (
            before.mirror,
            before.sources,
        ):
            return
        self._config = config
        domain = self.context.domain
        mirror = mirror_of(self.account, config, domain)
        wanted = list(sources_of(self.account, config, domain)) if mirror is None else [mirror]
        keys = {origin.key for origin in wanted}
        for key in [key for key in self._lines if key not in keys]:
            line = self._lines.pop(key)
            line.end()
            self._bid_farewell(line)
        lines = {}
        for origin in wanted:
            known = self._lines.get(origin.key)
            if known is not None and known.upstream.origin.consumer != origin.consumer:
                # Its name has to do with how many sources there are of one stream.
                known.former = known.former or known.upstream.origin
                durable = self._durable(origin, known.upstream.identity)
                known.upstream.read_by(origin, durable, self.context.now_ns)
            lines[origin.key] = known or self._line(origin)
        self._lines = lines

    def _bid_farewell(self, line: InboundLine) -> None:
        self._leave_former(line)
        if line.upstream.origin.declared.consumer is None:
            self._publish(farewell(line.upstream.origin))

    def _leave_former(self, line: InboundLine) -> None:
        former, line.former = line.former, None
        if former is not None and former.consumer != line.upstream.origin.consumer:
            self._publish(farewell(former))

    def leave(self) -> None:
        """The stream is deleted: origins need to keep nothing for it."""
        for line in self._lines.values():
            self._bid_farewell(line)

    def _line(self, origin: UpstreamOrigin) -> InboundLine:
        who = Metadata(self.stream.name, self.account, self.context.domain)
        upstream = Upstream(origin, self._durable(origin, ""), who, self.context.now_ns)
        known = origin.is_mirror or origin.key in self.stream.positions
        store = self.stream.store
        search = PositionSearch(origin, store) if not known and store.retained_messages else None
        messages, answers = (Listening(self.context, self.account) for _ in range(2))
        return InboundLine(upstream, messages, answers, Sink(), Sink(), search=search)

    def _durable(self, origin: UpstreamOrigin, identity: str) -> SourcePosition:
        """Up to where this stream has what an origin holds."""
        if origin.is_mirror:
            return SourcePosition(self.stream.store.last_seq, identity)
        return self.stream.positions.get(origin.key, _NOTHING)

    def end(self) -> None:
        """Another server leads: it asks for itself."""
        for line in self._lines.values():
            line.end()
        self._lines.clear()

    def listen_anew(self) -> None:
        """The account has come, or is gone."""
        for line in self._lines.values():
            line.listening.anew()
            line.answering.anew()

    # Once a turn

    def run(self) -> bool:
        """Take what came in, and ask for more; whether there is more to be taken at once."""
        more = False
        now_ns = self.context.now_ns
        for line in self._lines.values():
            upstream = line.upstream
            if line.search is not None:
                more = self._look_back(line, line.search) or more
                continue
            for _, _, headers, payload, _ in line.answers.take():
                upstream.answered(headers, payload, now_ns)
            if line.former is not None and upstream.phase is Phase.MESSAGES:
                self._leave_former(line)
            if upstream.phase is Phase.MESSAGES and line.arrivals.messages:
                upstream.take(line.arrivals.take(), now_ns)
                self._tell_caught_up(upstream)
            more = self._store(line) or more
            upstream.tick(now_ns)
            if upstream.wants_to_ask(now_ns):
                self._ask(line)
            self._answer_flow(line)
        return more

    def _tell_caught_up(self, upstream: Upstream) -> None:
        if upstream.caught_up and not self._told_caught_up and upstream.origin.is_mirror:
            self.context.facts.append(MirrorCaughtUp(self.account, self.stream.name))
        self._told_caught_up = upstream.caught_up

    def _look_back(self, line: InboundLine, search: PositionSearch) -> bool:
        """Find out where to go on by what is stored; whether there is more to be looked at."""
        if not search.step():
            return True
        key = line.upstream.origin.key
        if not self.propose(self.admission.sourced({key: search.found})):
            return False
        line.upstream.seq, line.upstream.identity = search.found
        line.search = None
        return True

    def _store(self, line: InboundLine) -> bool:
        upstream, now_ns = line.upstream, self.context.now_ns
        origin = upstream.origin
        if upstream.skipped_to and origin.is_mirror:
            self._begin_behind(upstream)
        if not upstream.queue or now_ns < line.retry_ns:
            return False
        line.retry_ns = 0
        some = list(islice(upstream.queue, ARRIVALS_MAX))
        made, count, error = self.admission.admit_sourced(origin.key, some, now_ns)
        if made.entries and not self.propose(made):
            line.retry_ns = now_ns + FULL_NS
            return False
        upstream.taken(count, None if error is None else error.body())
        if error is not None:
            line.retry_ns = now_ns + FULL_NS
        return error is None and bool(upstream.queue)

    def _begin_behind(self, upstream: Upstream) -> None:
        """An origin that begins late has its mirror begin there, too."""
        store, first = self.stream.store, upstream.skipped_to + 1
        begins = not store.retained_messages and first > self.admission.next_seq
        if not begins or self.propose(self.admission.begin_at(first)):
            upstream.skipped_to = 0

    def _ask(self, line: InboundLine) -> None:
        """Listen on a new subject, so that an older consumer is not heard, and ask."""
        upstream, account = line.upstream, self.account
        line.listening.end()
        line.arrivals = Sink(self.owner, arrivals=True)
        deliver = upstream.origin.deliver_subject(self._suffix())
        if not (line.reply and upstream.is_unanswered):
            # A question may overtake the news of who waits for its answer, where they take other
            # ways, and each one would: the next answer is waited for where the last one was.
            line.answering.end()
            line.answers, line.reply = Sink(self.owner), f"$JSC.R.{self._suffix()}".encode()
            line.answering.to(line.reply, line.answers)
        line.listening.to(deliver, line.arrivals)
        made = upstream.ask(
            self._start(upstream.origin), deliver, self._suffix(), self.context.now_ns
        )
        if self.context.traffic.wanted(account, made.subject):
            self._publish(made, line.reply)
        else:
            upstream.failed(_unheard(upstream.origin), self.context.now_ns)

    @staticmethod
    def _start(origin: UpstreamOrigin) -> Start:
        declared = origin.declared
        return Start(declared.opt_start_seq, declared.opt_start_time)

    def _suffix(self) -> str:
        jitter = self.context.jitter
        return "".join([_LETTERS[jitter(len(_LETTERS))] for _ in range(SUFFIX_LENGTH)])

    def _publish(self, made: Request, reply: bytes = b"") -> None:
        item = (made.subject, reply, made.headers, made.payload, b"")
        self.context.traffic.ask(self.account, item)

    def applied(self) -> None:
        """Entries were applied: answers to flow control may be due."""
        for line in self._lines.values():
            self._answer_flow(line)

    def _answer_flow(self, line: InboundLine) -> None:
        upstream = line.upstream
        due = upstream.answers_to_flow(self._durable(upstream.origin, upstream.identity))
        if due:
            items: list[OutgoingMessage] = [(to, b"", head, b"", b"") for to, head in due]
            self.context.traffic.deliver(self.account, items)

    def next_due_ns(self) -> int | None:
        """When there is something to do even if nothing comes in."""
        return min(self._due(), default=None) if self._lines else None

    def _due(self) -> Iterator[int]:
        for line in self._lines.values():
            due_ns = line.upstream.next_due_ns()
            if line.search is not None:
                due_ns = self.context.now_ns + FULL_NS
            if due_ns is not None:
                yield due_ns
            if line.retry_ns:
                yield line.retry_ns

    @property
    def is_caught_up(self) -> bool:
        """Whether a mirror has nearly all of its origin, as far as that can be told."""
        line = self._lines.get("")
        return line is not None and line.upstream.caught_up

    # For operators

    def infos(self) -> Sequence[SourceInfo]:
        """How far each origin is taken, in the order of the config."""
        return [self._info(line.upstream) for line in self._lines.values()]

    def _info(self, upstream: Upstream) -> SourceInfo:
        declared, now_ns = upstream.origin.declared, self.context.now_ns
        known = self.stream.positions.get(upstream.origin.key, _NOTHING)
        return SourceInfo(
            name=declared.name,
            external=declared.external,
            lag=upstream.lag,
            seq=known.seq,
            # Clients take 0 for never.
            active=max(now_ns - upstream.heard_ns, 1) if upstream.heard_ns else -1,
            error=upstream.error or upstream.blocked,
            filter_subject=declared.filter_subject,
            subject_transforms=declared.subject_transforms,
        )


def _unheard(origin: UpstreamOrigin) -> ApiErrorBody:
    kind = "Mirror" if origin.is_mirror else "Source"
    return api_error(f"JS{kind}ConsumerSetupFailedErrF", err="no responders").body()
