"""Messages that are traced: who begins a trace, and the way of such a message, noted step by step.

The way is that of `Deliverer`, whose leaves do the delivering; what is here decides only what to
note, and what not to deliver. Messages that are not traced never come here.
"""

from collections.abc import Container, Sequence

from jsctl.broker.accounts.accounts import Account
from jsctl.broker.accounts.crossing import EVERYBODY, Way
from jsctl.broker.interest.kinds import ROUTE, PeerKind, Served
from jsctl.broker.interest.links import GatewayLink
from jsctl.broker.interest.outbound import Origin, Outbound, kind_of
from jsctl.broker.interest.targets import (
    AccountImport,
    AnyLink,
    ClientPeer,
    LeafLink,
    Namespace,
    QueueGroup,
    RouteLink,
    Shadow,
    Sink,
    SublistResult,
    Subscription,
)
from jsctl.broker.protocol import headers as block
from jsctl.broker.protocol.ops import Routed
from jsctl.broker.routing.concerned import concerns, elsewhere
from jsctl.broker.routing.delivery import Deliverer
from jsctl.broker.routing.shown import captured_as
from jsctl.broker.routing.trace import (
    CLIENT_CLOSED,
    DEST,
    DISABLED,
    HOP,
    NO_ECHO,
    NO_SUPPORT,
    ONLY,
    ONLY_NO_SUPPORT,
    ORIGIN,
    PUB_DENIED,
    SUB_DENIED,
    SUB_EXCEEDED,
    TRACEPARENT,
    Trace,
    is_sampled,
    read_headers,
)
from jsctl.broker.subject.validity import is_valid_literal
from jsctl.broker.turn import Jitter

YES = ("1", "true", "on")
RESPONSE_NS = 10_000_000_000
"""How long events of other servers find their way back through a service import."""
PENDING_MAX = 4096
"""Traces whose streams have not judged yet; beyond it they are told without that."""
WAIT_NS = 2_000_000_000


class Begun:
    """What comes of a message with a trace header: how it goes on, if it does."""

    __slots__ = ("headers", "skip", "trace")

    def __init__(self, headers: bytes, trace: Trace | None = None, *, skip: bool = False) -> None:
        self.headers = headers
        self.trace = trace
        self.skip = skip


class Tracing:
    """Traced messages of all accounts. `take` gives the traces that are complete."""

    def __init__(self, delivery: Deliverer, jitter: Jitter) -> None:
        self._delivery = delivery
        self._jitter = jitter
        self.open: list[Trace] = []
        """Those that `take` has not given yet. Only changed here."""

    def take(self) -> list[Trace]:
        """Traces that can be told; those that a stream has still to judge wait, not for ever."""
        now_ns, full = self._delivery.now_ns, len(self.open) > PENDING_MAX
        done: list[Trace] = []
        waiting: list[Trace] = []
        for one in self.open:
            ready = full or not one.waiting or now_ns - one.now_ns > WAIT_NS
            (done if ready else waiting).append(one)
        self.open = waiting
        return done

    # -- beginnings ----------------------------------------------------------------------

    def concerns(self, account: Account, headers: bytes) -> bool:
        """Whether a message may have to be traced."""
        if DEST in headers:
            return True
        return account.traced and TRACEPARENT.search(headers) is not None

    def routed(
        self,
        link: AnyLink,
        account: Account,
        plan: SublistResult,
        op: Routed,
        reply: bytes,
        shown: bytes,
        queues: Container[bytes],
        said: bytes = b"",
    ) -> None:
        """The same from another server; `said` is its subject before it was mapped."""
        assert op.headers is not None
        said = said or op.subject
        begun = self.begin(link, account, said, op.headers, op.payload)
        if begun.skip:
            return
        if begun.trace is not None and said != op.subject:
            begun.trace.note("sm", to=op.subject.decode(errors="replace"))
        reply, shown = self._delivery.heard(link, account, reply, shown)
        rest = (account, plan, op.subject, reply, begun.headers, op.payload, shown, queues)
        if begun.trace is None:
            self._delivery.one(link, *rest)
        else:
            self.one(begun.trace, link, *rest)
            self.keep(begun.trace)

    def keep(self, trace: Trace | None) -> None:
        """A message has been routed: its trace is told as soon as it is complete."""
        if trace is not None:
            self.open.append(trace)

    def begin(
        self,
        origin: Outbound,
        account: Account,
        subject: bytes,
        headers: bytes,
        payload: bytes,
    ) -> Begun:
        """A message comes in that may have to be traced; `keep` ends what begins here."""
        header, sent_on = read_headers(headers), not origin.kind.draws
        wanted = header.get(DEST.decode())
        if wanted is not None and DISABLED.decode() in wanted:
            return Begun(headers)
        only = False
        if wanted is not None:
            dest = wanted[0].encode()
            only = header.get(ONLY, [""])[0].lower() in YES
        elif is_sampled(header) and account.traced:
            dest = account.options.trace_subject.encode()
            if not sent_on and not self._drawn(account):
                return Begun(block.set_value(headers, DEST, DISABLED))
        else:
            return Begun(headers)
        if ORIGIN in header or (wanted is not None and not self._may_have_told(origin, dest)):
            return Begun(block.set_value(headers, DEST, DISABLED), skip=only)
        if not is_valid_literal(dest):
            return Begun(headers, skip=only)
        if not origin.admits(dest):
            return Begun(headers, skip=True)
        hop = header.get(HOP.decode(), [""])[0] if sent_on else ""
        size = len(headers) + len(payload)
        now_ns = self._delivery.now_ns
        trace = Trace(account, dest, only, hop, header, size, now_ns)
        _ingress(trace, origin, account, subject)
        return Begun(headers, trace)

    def _may_have_told(self, origin: Outbound, dest: bytes) -> bool:
        """Whether a leaf node or hub may have events published where its message says."""
        guard = origin.guard if isinstance(origin, LeafLink) else None
        return guard is None or guard.may_take(dest, self._delivery.now_ns)

    def _drawn(self, account: Account) -> bool:
        percent = account.options.trace_sampling
        return not 0 < percent < 100 or self._jitter(100) < percent

    # -- the way of a message ------------------------------------------------------------

    def one(
        self,
        trace: Trace,
        origin: Origin,
        account: Namespace,
        plan: SublistResult,
        subject: bytes,
        reply: bytes,
        headers: bytes,
        payload: bytes,
        shown: bytes,
        queues: Container[bytes] = (),
    ) -> bool:
        """As `Delivery.one`, with notes."""
        if plan.returns:
            rest = (subject, reply, headers, payload, shown, queues)
            return self._delivery.one(origin, account, plan, *rest)
        message = (subject, reply, headers, payload)
        way = _Way(self._delivery, trace, origin, account, *message)
        reached = way.receivers(plan, shown)
        for step in self._delivery.crossings.ways(origin, plan, subject):
            reached |= self._across(way, step, subject, step.shows(subject, shown))
        return way.groups_and_links(plan, shown, queues) or reached

    def _across(self, way: "_Way", step: Way, subject: bytes, shown: bytes) -> bool:
        trace, account, delivery = way.trace, way.account, self._delivery
        bridge = step.bridge
        source, to = subject.decode(errors="replace"), step.subject.decode(errors="replace")
        trace.note("si", **{"acc": bridge.account.name, "from": source, "to": to})
        if (trace.only and not bridge.allow_trace) or step.plan.empty:
            return False
        back, told = delivery.crossings.enter(step, account, subject, way.reply, way.headers)
        try:
            headers = told or b""
            rest = (step.origin, bridge.account, step.plan, step.subject, back)
            if bridge.allow_trace:
                headers = self._led_back(trace, account, bridge, subject, headers)
                return self.one(trace, *rest, headers, way.payload, shown, EVERYBODY)
            headers = block.set_value(headers, DEST, DISABLED)
            return delivery.one(*rest, headers, way.payload, shown, EVERYBODY)
        finally:
            delivery.crossings.leave()

    def _led_back(
        self,
        trace: Trace,
        account: Namespace,
        bridge: AccountImport,
        subject: bytes,
        headers: bytes,
    ) -> bytes:
        """Headers whose destination other servers can use in the exporting account."""
        if not bridge.service:
            return headers
        way = AccountImport(
            bridge.account, transform=bridge.transform, service=True, threshold_ns=RESPONSE_NS
        )
        dest = self._delivery.crossings.lead_back(account, way, subject, trace.dest)
        return block.set_value(headers, DEST, dest)


class _Way:
    """One message in one account."""

    __slots__ = (
        "_delivery",
        "_leafs",
        "account",
        "headers",
        "origin",
        "payload",
        "reply",
        "subject",
        "trace",
    )

    def __init__(
        self,
        delivery: Deliverer,
        trace: Trace,
        origin: Origin,
        account: Namespace,
        subject: bytes,
        reply: bytes,
        headers: bytes,
        payload: bytes,
    ) -> None:
        self._delivery = delivery
        self._leafs: set[tuple[LeafLink, bytes]] = set()
        """What has been told of leaf nodes that stream imports lead to: each gets it once."""
        self.trace = trace
        self.origin = origin
        self.account = account
        self.subject = subject
        self.reply = reply
        self.headers = headers
        self.payload = payload

    def receivers(self, plan: SublistResult, shown: bytes) -> bool:
        """Clients and sinks that are not in a queue group."""
        reached = False
        for sub, session in plan.clients:
            reached |= self._client(sub, session, shown)
        for sink in plan.sinks:
            reached |= self._sink(sink, self.subject, shown)
        if not self._delivery.crossings.inside:
            for outer, shadow in plan.shadows:
                reached |= self._shadow(outer, shadow, shown)
        return reached

    def groups_and_links(self, plan: SublistResult, shown: bytes, queues: Container[bytes]) -> bool:
        """Queue groups, and one message for each other server that is concerned."""
        reached = False
        kind = kind_of(self.origin)
        targets: dict[AnyLink, list[bytes]] = {
            link: [] for link in plan.links if self._concerns(link, kind)
        }
        for group in plan.groups:
            if not kind.draws and group.name not in queues:
                continue
            served = self._group(group, kind, shown)
            link = served or elsewhere(group, plan, kind, self._delivery.draw)
            if link is True:
                reached = True
            elif link:
                targets.setdefault(link, []).append(group.name)
        self._delivery.end_shadows()
        for link, names in targets.items():
            reached |= self._link(link, names, shown)
        return reached

    def _concerns(self, link: AnyLink, kind: PeerKind) -> bool:
        """Whether the message goes on over a link; one that may not have it is told of."""
        if concerns(link, self.origin, kind, self.subject):
            return True
        guard = link.guard if isinstance(link, LeafLink) else None
        if guard is not None and not guard.may_send(self.subject) and kind.reaches(link.kind):
            self.trace.to_server(link, self.trace.next_hop(), PUB_DENIED)
        return False

    def _group(self, group: QueueGroup, kind: PeerKind, shown: bytes) -> AnyLink | bool:
        """As `Deliverer._to_group`."""
        near, delivery = len(group.local), self._delivery
        total = group.total if kind.reaches(ROUTE) else near
        drawn = delivery.draw(total) if total else 0
        if drawn < near:
            if self._member(group, drawn, shown):
                return True
            drawn = near
        if drawn < total:
            return group.remote_member(drawn - near)
        last = delivery.last_of(group, self.origin, self.subject)
        if last is None:
            return False
        target = last.target
        if isinstance(target, RouteLink | LeafLink | GatewayLink):
            return target
        assert isinstance(target, Shadow)
        return self._shadow(last, target, shown, [group.name])

    def _member(self, group: QueueGroup, drawn: int, shown: bytes) -> bool:
        for offset in range(len(group.local)):
            sub = group.local[(drawn + offset) % len(group.local)]
            target = sub.target
            if target.served is Served.CAPTURED:
                return self._sink(target, self.subject, shown)
            if target.served is Served.EACH and self._client(sub, target, shown):
                return True
            if target.served is Served.SHADOW and self._shadow(sub, target, shown):
                return True
        return False

    def _shadow(
        self, outer: Subscription, shadow: Shadow, shown: bytes, queues: Sequence[bytes] = ()
    ) -> bool:
        sub, way, delivery = shadow.sub, shadow.way, self._delivery
        if delivery.crossings.inside:
            return False
        if way.allow_trace and isinstance(sub.target, LeafLink):
            return self._leaf(shadow, sub.target, shown, queues)
        to = way.seen(self.subject, self.subject).decode(errors="replace")
        self.trace.note("se", acc=sub.account.name, to=to)
        if not way.allow_trace:
            message = (self.subject, shown, self.reply, self.headers, self.payload)
            return self.trace.only or delivery.to_shadow(shadow, self.origin, *message, queues)
        target, seen = sub.target, way.seen(self.subject, shown)
        if target.served is Served.CAPTURED:
            return self._sink(target, way.seen(self.subject, self.subject), seen)
        return target.served is Served.EACH and self._client(sub, target, seen, outer.subject)

    def _leaf(self, shadow: Shadow, link: LeafLink, shown: bytes, queues: Sequence[bytes]) -> bool:
        trace, there = self.trace, shadow.way.seen(self.subject, self.subject)
        if not there or not concerns(link, self.origin, kind_of(self.origin), there):
            return False
        silent = trace.only and not link.traces
        headers = self.headers
        if (link, there) not in self._leafs:
            self._leafs.add((link, there))
            hop, account = trace.next_hop(), shadow.sub.account.name
            headers = block.set_value(headers, HOP, hop.encode())
            error = ONLY_NO_SUPPORT if silent else "" if link.traces else NO_SUPPORT
            trace.to_server(link, hop, error, account)
        message = (self.subject, shown, self.reply, headers, self.payload)
        return not silent and self._delivery.to_shadow(shadow, self.origin, *message, queues)

    def _client(
        self, sub: Subscription, session: ClientPeer, shown: bytes, pattern: bytes = b""
    ) -> bool:
        error = self._obstacle(sub, session, shown)
        if not error and not self.trace.only:
            self._delivery.to_client(
                sub, session, self.origin, shown, self.reply, self.headers, self.payload
            )
        self.trace.to_client(sub, pattern or sub.subject, session, error)
        return not error

    def _obstacle(self, sub: Subscription, session: ClientPeer, shown: bytes) -> str:
        if session is self.origin and not session.echo:
            return NO_ECHO
        if sub.denied is not None and sub.denied.match(shown):
            return SUB_DENIED
        if session.closing:
            return CLIENT_CLOSED
        if sub.maximum and sub.delivered >= sub.maximum and not self.trace.only:
            return SUB_EXCEEDED
        return ""

    def _sink(self, sink: Sink, subject: bytes, shown: bytes) -> bool:
        trace, headers = self.trace, self.headers
        shown = captured_as(sink, self.origin, subject, shown)
        origin: Origin | Trace = self.origin
        if sink.stream:
            if not trace.only:
                # What the stream delivers later is another message.
                headers = block.set_value(headers, DEST, DISABLED)
            trace.reached_stream(sink.stream)
            origin = trace
            sink.traced = True
        elif sink.service:
            # nats-server answers these in another account, which does not let them be traced.
            names = {"from": shown.decode(errors="replace"), "to": shown.decode(errors="replace")}
            trace.note("si", **{"acc": sink.service, **names})
        if trace.only and not sink.stream:
            return True
        self._delivery.capture(sink, (shown, self.reply, headers, self.payload, origin))
        return True

    def _link(self, link: AnyLink, names: list[bytes], shown: bytes) -> bool:
        trace = self.trace
        hop = trace.next_hop()
        if trace.only and not link.traces:
            trace.to_server(link, hop, ONLY_NO_SUPPORT)
            return False
        headers = block.set_value(self.headers, HOP, hop.encode())
        self._delivery.to_link(
            link,
            self.origin,
            self.account,
            self.subject,
            self.reply,
            names,
            headers,
            self.payload,
            shown,
        )
        trace.to_server(link, hop, "" if link.traces else NO_SUPPORT)
        return True


def _ingress(trace: Trace, origin: Outbound, account: Account, subject: bytes) -> None:
    event = trace.note("in", kind=origin.kind.number, cid=origin.number)
    if origin.name:
        event.fields["name"] = origin.name
    event.fields |= {"acc": account.name, "subj": subject.decode(errors="replace")}
