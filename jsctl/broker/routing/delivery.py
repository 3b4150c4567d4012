"""Messages put into the hands of their targets: clients, sinks, links to other servers.

`one` does everything that the protocol knows, message by message. `put` is for what the lane's loop
has done to many of them; `many` does so for what the broker itself publishes.
"""

from collections.abc import Callable, Container, Sequence
from functools import partial

from jsctl.broker.accel.contract import Outputs, drawn, next_lot
from jsctl.broker.accounts.crossing import EVERYBODY, Crossings, LeadBack
from jsctl.broker.interest.kinds import BROKER, CAPTURED, EACH, ROUTE, SHADOW
from jsctl.broker.interest.links import GatewayLink
from jsctl.broker.interest.outbound import Origin, Outbound, kind_of
from jsctl.broker.interest.targets import (
    AnyLink,
    Captured,
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
from jsctl.broker.pieces import Piece, total
from jsctl.broker.protocol import writer
from jsctl.broker.protocol.deliveries import Item, Together
from jsctl.broker.routing.concerned import concerns, distance, elsewhere, is_for
from jsctl.broker.routing.shown import captured_as, telling
from jsctl.broker.turn import Jitter

FROM_LEAF = b"LMSG "
"""A message that a leaf node has sent, as servers of a cluster pass it on."""


class Deliverer:
    """Collects what goes out of a turn. `expire` removes a subscription at its maximum.

    `lead_back` gives the reply to use in another account, see `Imports`.
    """

    def __init__(
        self,
        jitter: Jitter,
        expire: Callable[[ClientPeer, Subscription], None],
        lead_back: LeadBack,
    ) -> None:
        self._jitter = jitter
        self.lot = 0
        """State of draws in queue groups, shared with the lane's loop; 0 until somebody draws."""
        self.spread = 0  # What the messages of `one` cost so far; see `SublistResult`.
        self._expire = expire
        self.crossings = Crossings(jitter, lead_back)
        self.now_ns = 0
        self.touched: list[Outbound] = []
        self.dirty: list[Sink] = []
        self._shadowed: dict[tuple[LeafLink, bytes], tuple[list[bytes], Callable[[], None]]] = {}
        """What leaf nodes get of one message through stream imports: once, with all groups."""

    def write(self, target: Outbound, data: bytes) -> None:
        """Append bytes to a connection's output of this turn."""
        target.out.append(data)
        target.out_bytes += len(data)
        if not target.touched:
            target.touched = True
            self.touched.append(target)

    def capture(self, sink: Sink, message: Captured) -> None:
        """Put one message into a sink."""
        sink.messages.append(message)
        if not sink.dirty:
            sink.dirty = True
            self.dirty.append(sink)

    def put(self, origin: Outbound, account: Namespace, outputs: Outputs) -> None:
        """What the lane's loop made of messages of `origin`."""
        written, captured, delivered = outputs
        pauses = origin.kind.pauses
        for target, pieces, count, size in written:
            target.out += pieces
            target.out_bytes += sum(map(len, pieces))
            if not target.touched:
                target.touched = True
                self.touched.append(target)
            _sent(target, account, count, size)
            if pauses and target.congested:
                target.producers.add(origin.conn)
        for sink, rows in captured:
            sink.messages += rows
            if not sink.dirty:
                sink.dirty = True
                self.dirty.append(sink)
        for subs, count in delivered:
            for sub in subs:
                sub.delivered += count

    def one(
        self,
        origin: Origin,
        account: Namespace,
        plan: SublistResult,
        subject: bytes,
        reply: bytes,
        headers: bytes | None,
        payload: bytes,
        shown: bytes,
        queues: Container[bytes] = (),
    ) -> bool:
        """One message to everybody whom it concerns; whether anybody got it.

        `subject` was matched, `shown` is what receivers see. `queues` are the groups to serve
        when whoever sent the message on to this server has chosen them (see `PeerKind.draws`).
        """
        reached = False
        self.spread += plan.spread
        for sub, session in plan.clients:
            if self.to_client(sub, session, origin, shown, reply, headers, payload):
                reached = True
        for sink in plan.sinks:
            named = captured_as(sink, origin, subject, shown)
            self.capture(sink, (named, reply, headers or b"", payload, origin))
            reached = True
        if plan.bridges or plan.shadows:
            message = (subject, shown, reply, headers, payload)
            reached |= self._across(origin, account, plan, *message)
        if plan.groups or plan.links:
            rest = (plan, subject, reply, headers, payload, shown, queues)
            reached |= self._beyond(origin, account, *rest)
        if self._shadowed:
            self.end_shadows()
        return reached

    def heard(
        self, origin: Origin, account: Namespace, reply: bytes, shown: bytes
    ) -> tuple[bytes, bytes]:
        """The reply and the subject of a message as receivers see them."""
        return reply, shown

    def many(self, account: Namespace, plan: SublistResult, items: Sequence[Item]) -> None:
        """Messages of the broker itself, whose subjects all have the targets of `plan`."""
        if plan.lone is not None:
            self._many_to_link(plan.lone, account, items)
            return
        if not plan.sole:
            for subject, reply, headers, payload, deliver_as in items:
                shown = deliver_as or subject
                self.one(None, account, plan, subject, reply, headers or None, payload, shown)
            return
        sub, session = plan.clients[0]
        if session.closing:
            return
        sid, capable, verb = sub.sid, session.headers, session.kind.verb
        if len(items) == 1:
            # One acknowledgement each is what publishers get that wait for it.
            subject, reply, headers, payload, shown = items[0]
            if not reply and not headers:
                size = len(payload)
                data = b"%s%s %s %d\r\n%s\r\n" % (verb, shown or subject, sid, size, payload)
                self.worded(account, plan, 1, size, data)
                return
        header_verb = session.kind.header_verb
        parts = [
            writer.header_message(header_verb, shown or subject, sid, reply, headers, payload)
            if headers and capable
            else b"%s%s %s %s %d\r\n%s\r\n"
            % (verb, shown or subject, sid, reply, len(payload), payload)
            if reply
            else writer.message(verb, shown or subject, sid, reply, payload)
            for subject, reply, headers, payload, shown in items
        ]
        size = sum([len(item[3]) for item in items])
        if capable:
            size += sum([len(item[2]) for item in items])
        self.worded(account, plan, len(items), size, b"".join(parts))

    def together(self, account: Namespace, plan: SublistResult, made: Together) -> None:
        """As `many` for a plan that is `sole`, or has a `lone` link."""
        link, count, size = plan.lone, len(made), made.payload_bytes
        if link is not None:
            _sent(link, account, count, size)
            self.write(link, made.routed(link.kind.verb + prefix_of(link, account, b"")))
            return
        sub, session = plan.clients[0]
        if not session.closing:
            data = made.frames(session.kind.verb, sub.infix)
            self.worded(account, plan, count, size, data)

    def worded(
        self, account: Namespace, plan: SublistResult, count: int, size: int, data: bytes
    ) -> None:
        """Messages for the one client of a plan that is `sole`, as it reads them."""
        # As `_sent` and `write`, without the calls: it is done for each answer.
        sub, session = plan.clients[0]
        sub.delivered += count
        session.out_messages += count
        session.payload_bytes_out += size
        account.out_messages += count
        account.out_bytes += size
        session.out.append(data)
        session.out_bytes += len(data)
        if not session.touched:
            session.touched = True
            self.touched.append(session)

    def _many_to_link(self, link: RouteLink, account: Namespace, items: Sequence[Item]) -> None:
        parts: list[bytes] = []
        size, front = 0, prefix_of(link, account, b"")
        for subject, reply, headers, payload, shown in items:
            verb = link.kind.header_verb if headers else link.kind.verb
            told = telling(reply, subject, shown or subject)
            parts.append(writer.routed(verb, front + subject, told, (), headers or None, payload))
            size += len(headers) + len(payload)
        _sent(link, account, len(items), size)
        self.write(link, b"".join(parts))

    def _across(
        self,
        origin: Origin,
        account: Namespace,
        plan: SublistResult,
        subject: bytes,
        shown: bytes,
        reply: bytes,
        headers: bytes | None,
        payload: bytes,
    ) -> bool:
        """To the listeners and the services of other accounts."""
        reached = False
        for _, shadow in plan.shadows:
            reached |= self.to_shadow(shadow, origin, subject, shown, reply, headers, payload)
        for way in self.crossings.ways(origin, plan, subject):
            if way.plan.empty:
                continue
            back, told = self.crossings.enter(way, account, subject, reply, headers)
            rest = (way.subject, back, told, payload, way.shows(subject, shown), EVERYBODY)
            try:
                reached |= self.one(way.origin, way.bridge.account, way.plan, *rest)
            finally:
                self.crossings.leave()
        return reached

    def _beyond(
        self,
        origin: Origin,
        account: Namespace,
        plan: SublistResult,
        subject: bytes,
        reply: bytes,
        headers: bytes | None,
        payload: bytes,
        shown: bytes,
        queues: Container[bytes],
    ) -> bool:
        """Queue groups, and one message for each link that is concerned."""
        reached = False
        kind = BROKER if origin is None else origin.kind
        targets: dict[AnyLink, list[bytes]] = {}
        if plan.leafs:
            targets = {link: [] for link in plan.links if concerns(link, origin, kind, subject)}
        elif not kind.meshed:
            targets = {link: [] for link in plan.links if kind.reaches(link.kind)}
        for group in plan.groups:
            if not kind.draws and group.name not in queues:
                continue
            rest = (subject, shown, reply, headers, payload)
            link = self._to_group(group, origin, *rest) or elsewhere(group, plan, kind, self.draw)
            if link is True:
                reached = True
            elif link:
                targets.setdefault(link, []).append(group.name)
        for link, names in targets.items():
            self.to_link(link, origin, account, subject, reply, names, headers, payload, shown)
        return reached or bool(targets)

    def _to_group(
        self,
        group: QueueGroup,
        origin: Origin,
        subject: bytes,
        shown: bytes,
        reply: bytes,
        headers: bytes | None,
        payload: bytes,
    ) -> AnyLink | bool:
        """Draw a member: the link of a remote one, or whether one was served.

        When no local member can take the message, the first remote one gets it; leaf nodes come
        last.
        """
        near = len(group.local)
        total = group.total if kind_of(origin).reaches(ROUTE) else near
        place = self.draw(total) if total else 0
        if place < near:
            if self._to_member(group, place, origin, subject, shown, reply, headers, payload):
                return True
            place = near
        if place < total:
            return group.remote_member(place - near)
        last = self.last_of(group, origin, subject)
        if last is None:
            return False
        target = last.target
        if isinstance(target, RouteLink | LeafLink | GatewayLink):
            return target
        assert isinstance(target, Shadow)
        names = [group.name]
        return self.to_shadow(target, origin, subject, shown, reply, headers, payload, names)

    def last_of(self, group: QueueGroup, origin: Origin, subject: bytes) -> Subscription | None:
        """Draw one of the leaf nodes that may have a message, by the members behind them; where
        there is none, the nearest other cluster gets it."""
        kind = kind_of(origin)
        found = [sub for sub in group.last if is_for(sub, origin, kind, subject)]
        if len(found) < 2:
            return found[0] if found else None
        beyond = [sub for sub in found if isinstance(sub.target, GatewayLink)]
        if len(beyond) == len(found):
            return min(beyond, key=distance)
        found = [sub for sub in found if not isinstance(sub.target, GatewayLink)]
        place = self.draw(sum([sub.weight for sub in found]))
        for sub in found:
            place -= sub.weight
            if place < 0:
                break
        return sub

    def begin_draws(self) -> None:
        """Have the draws begin, by chance."""
        self.lot = self.lot or self._jitter(1 << 32) << 32 | self._jitter(1 << 32) | 1

    def draw(self, count: int) -> int:
        """A number below `count`."""
        self.begin_draws()
        self.lot = next_lot(self.lot)
        return drawn(self.lot, count)

    def _to_member(
        self,
        group: QueueGroup,
        place: int,
        origin: Origin,
        subject: bytes,
        shown: bytes,
        reply: bytes,
        headers: bytes | None,
        payload: bytes,
    ) -> bool:
        """Serve one local member of a group, the drawn one or the next that can take it."""
        local = group.local
        for offset in range(len(local)):
            sub = local[(place + offset) % len(local)]
            target = sub.target
            if target.served is EACH and self.to_client(
                sub, target, origin, shown, reply, headers, payload
            ):
                return True
            if target.served is CAPTURED:
                named = captured_as(target, origin, subject, shown)
                self.capture(target, (named, reply, headers or b"", payload, origin))
                return True
            if target.served is SHADOW and self.to_shadow(
                target, origin, subject, shown, reply, headers, payload
            ):
                return True
        return False

    def to_shadow(
        self,
        shadow: Shadow,
        origin: Origin,
        subject: bytes,
        shown: bytes,
        reply: bytes,
        headers: bytes | None,
        payload: bytes,
        queues: Sequence[bytes] = (),
    ) -> bool:
        """One message to who listens through a stream import, unless a service import led it."""
        sub, seen = shadow.sub, shadow.way.seen(subject, shown)
        target = sub.target
        if self.crossings.inside or not seen:
            return False
        if isinstance(target, LeafLink):
            there = shadow.way.seen(subject, subject)
            if not there or not concerns(target, origin, kind_of(origin), there):
                return False
            shown = there if shown == subject else shown
            names: list[bytes] = []
            words = (origin, sub.account, there, reply, names, headers, payload, shown)
            send = partial(self.to_link, target, *words)
            self._shadowed.setdefault((target, there), (names, send))[0].extend(queues)
            return True
        if target.served is CAPTURED:
            named = captured_as(target, origin, shadow.way.seen(subject, subject), seen)
            self.capture(target, (named, reply, headers or b"", payload, origin))
            return True
        return target.served is EACH and self.to_client(
            sub, target, origin, seen, reply, headers, payload
        )

    def end_shadows(self) -> None:
        """Send what `to_shadow` has for leaf nodes of the last message."""
        while self._shadowed:
            self._shadowed.popitem()[1][1]()

    def to_client(
        self,
        sub: Subscription,
        session: ClientPeer,
        origin: Origin,
        shown: bytes,
        reply: bytes,
        headers: bytes | None,
        payload: bytes,
    ) -> bool:
        """One message to a client, if it can take it."""
        if session.closing or (session is origin and not session.echo):
            return False
        if sub.denied is not None and sub.denied.match(shown):
            return False
        if sub.maximum and sub.delivered >= sub.maximum:
            return False
        sub.delivered += 1
        kind, size = session.kind, len(payload)
        if headers is not None and session.headers:
            size += len(headers)
            data = writer.header_message(kind.header_verb, shown, sub.sid, reply, headers, payload)
        elif reply:
            data = b"%s%s%s%s %d\r\n%s\r\n" % (kind.verb, shown, sub.infix, reply, size, payload)
        else:
            data = b"%s%s%s%d\r\n%s\r\n" % (kind.verb, shown, sub.infix, size, payload)
        _sent(session, sub.account, 1, size)
        self.write(session, data)
        if session.congested and origin is not None and origin.kind.pauses:
            session.producers.add(origin.conn)
        if reply and session.tracks_replies:
            session.note_reply(reply)
        if sub.maximum and sub.delivered >= sub.maximum:
            self._expire(session, sub)
        return True

    def to_link(
        self,
        link: AnyLink,
        origin: Origin,
        account: Namespace,
        subject: bytes,
        reply: bytes,
        queues: list[bytes],
        headers: bytes | None,
        payload: bytes,
        shown: bytes,
    ) -> None:
        """One message to another server, for plain subscriptions and the groups named."""
        reply = telling(reply, subject, shown)
        prefix = prefix_of(link, account, subject)
        verb = link.kind.verb if headers is None else link.kind.header_verb
        _sent(link, account, 1, len(headers or b"") + len(payload))
        if isinstance(link, LeafLink):
            if link.tracks_replies and reply and link.guard is not None:
                link.guard.note_reply(reply, self.now_ns)
        elif origin is not None and isinstance(link, RouteLink) and origin.cluster_in(account):
            # Told in any case how long the headers are, and the other server keeps it from leaf
            # nodes of that cluster.
            prefix, verb = origin.cluster + b" " + prefix, FROM_LEAF
            headers = headers or b""
        self.write(link, writer.routed(verb, prefix, reply, queues, headers, payload))
        if link.congested and origin is not None and origin.kind.pauses:
            link.producers.add(origin.conn)

    def pieces(
        self,
        link: AnyLink,
        account: Namespace,
        subject: bytes,
        payload: Sequence[Piece],
    ) -> None:
        """One message of the broker itself to another server, its payload not copied."""
        size = total(payload)
        head = b"%s%s %d\r\n" % (link.kind.verb, prefix_of(link, account, subject), size)
        self.write(link, head)
        link.out += (*payload, b"\r\n")
        link.out_bytes += size + 2
        _sent(link, account, 1, size)


def _sent(target: Outbound, account: Namespace, count: int, size: int) -> None:
    """Count messages that went out, `size` bytes together."""
    target.out_messages += count
    target.payload_bytes_out += size
    account.out_messages += count
    account.out_bytes += size


def prefix_of(link: AnyLink, account: Namespace, subject: bytes) -> bytes:
    """What stands behind the verb of a message on a link: its account, if needed, and subject."""
    return subject if link.account is not None else account.wire_name + b" " + subject
