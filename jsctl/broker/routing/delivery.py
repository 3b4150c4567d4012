"""Messages put into the hands of their targets: clients, sinks, links to other servers.

`one` does everything that the protocol knows, message by message. `run` and `rows` are the
lane's: many messages of one subject to a plan that is `simple`, with one join per target; `many`
does so for what the broker itself publishes.
"""

from collections.abc import Callable, Sequence
from itertools import repeat
from typing import NamedTuple

from jsctl.broker.accounts.crossing import Crossings, LeadBack
from jsctl.broker.interest.kinds import BROKER, CAPTURED, EACH, SHADOW
from jsctl.broker.interest.outbound import Origin, Outbound
from jsctl.broker.interest.targets import (
    Captured,
    ClientPeer,
    Namespace,
    QueueGroup,
    RouteLink,
    Shadow,
    Sink,
    SublistResult,
    Subscription,
)
from jsctl.broker.protocol import writer
from jsctl.broker.protocol.deliveries import Deliveries, Item
from jsctl.broker.turn import Jitter

ACK_PREFIX = b"$JS.ACK."
Row = tuple[bytes, bytes, bytes, bytes]
"""(subject, reply, headers, payload); what is not there is empty."""


class Shape(NamedTuple):
    """What messages of the lane have in common; `header_size` is -1 without header blocks."""

    header_size: int
    size: int
    with_reply: bool


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
        self._expire = expire
        self.crossings = Crossings(lead_back)
        self.now_ns = 0
        self.touched: list[Outbound] = []
        self.dirty: list[Sink] = []

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
        self._capture(sink)

    def _capture(self, sink: Sink) -> None:
        if not sink.dirty:
            sink.dirty = True
            self.dirty.append(sink)

    def run(
        self,
        origin: ClientPeer,
        account: Namespace,
        plan: SublistResult,
        subject: bytes,
        reply: bytes,
        payloads: list[bytes],
    ) -> bool:
        """Messages of equal size without headers, all with the same subject and reply."""
        count = len(payloads)
        reached = False
        size = len(payloads[0])
        last = b"%s%d\r\n" % (reply + b" " if reply else b"", size)
        for sub, session in plan.clients:
            if session.closing or (session is origin and not session.echo):
                continue
            head = b"%s%s%s%s" % (session.kind.verb, subject, sub.infix, last)
            self._write_run(origin, session, head, payloads)
            sub.delivered += count
            _sent(session, account, count, count * size)
            reached = True
        for sink in plan.sinks:
            rows = zip(repeat(subject), repeat(reply), repeat(b""), payloads, repeat(origin))
            sink.messages.extend(rows)
            self._capture(sink)
            reached = True
        for link in plan.links:
            if not origin.kind.reaches(link.kind):
                continue
            head = b"%s%s %s" % (link.kind.verb, _prefix(link, account, subject), last)
            self._write_run(origin, link, head, payloads)
            _sent(link, account, count, count * size)
            reached = True
        return reached

    def _write_run(
        self, origin: ClientPeer, target: Outbound, head: bytes, payloads: list[bytes]
    ) -> None:
        self.write(target, head)
        self.write(target, (b"\r\n" + head).join(payloads))
        self.write(target, b"\r\n")
        if target.congested:
            target.producers.add(origin.conn)

    def rows(
        self,
        origin: ClientPeer,
        account: Namespace,
        plan: SublistResult,
        shape: Shape,
        rows: list[Row],
    ) -> bool:
        """Messages of one shape, whose subjects all have the targets of `plan`."""
        count = len(rows)
        reached = False
        for sub, session in plan.clients:
            if session.closing or (session is origin and not session.echo):
                continue
            with_headers = shape.header_size >= 0 and session.headers
            kind = session.kind
            verb = kind.header_verb if with_headers else kind.verb
            self._write_rows(origin, session, verb, sub.infix, with_headers, shape, rows)
            sub.delivered += count
            skipped = 0 if with_headers else max(shape.header_size, 0)
            _sent(session, account, count, count * (shape.size - skipped))
            reached = True
        for sink in plan.sinks:
            sink.messages += [(*row, origin) for row in rows]
            self._capture(sink)
            reached = True
        for link in plan.links:
            kind = link.kind
            if not origin.kind.reaches(kind):
                continue
            with_headers = shape.header_size >= 0
            verb = kind.header_verb if with_headers else kind.verb
            verb += _prefix(link, account, b"")
            self._write_rows(origin, link, verb, b" ", with_headers, shape, rows)
            _sent(link, account, count, count * shape.size)
            reached = True
        return reached

    def _write_rows(
        self,
        origin: ClientPeer,
        target: Outbound,
        verb: bytes,
        infix: bytes,
        with_headers: bool,
        shape: Shape,
        rows: list[Row],
    ) -> None:
        blank = b" " if shape.with_reply else b""
        if with_headers:
            tail = b"%s%d %d\r\n" % (blank, shape.header_size, shape.size)
            parts = [
                b"%s%s%s%s%s%s%s\r\n" % (verb, subject, infix, reply, tail, headers, data)
                for subject, reply, headers, data in rows
            ]
        else:
            tail = b"%s%d\r\n" % (blank, shape.size - max(shape.header_size, 0))
            parts = [
                b"%s%s%s%s%s%s\r\n" % (verb, subject, infix, reply, tail, data)
                for subject, reply, _, data in rows
            ]
        self.write(target, b"".join(parts))
        if target.congested:
            target.producers.add(origin.conn)

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
        queues: tuple[bytes, ...] = (),
    ) -> bool:
        """One message to everybody whom it concerns; whether anybody got it.

        `subject` was matched, `shown` is what receivers see. `queues` are the groups to serve
        when whoever sent the message on to this server has drawn them (see `PeerKind.draws`).
        """
        reached = False
        for sub, session in plan.clients:
            if self.to_client(sub, session, origin, shown, reply, headers, payload):
                reached = True
        for sink in plan.sinks:
            sink.messages.append((shown, reply, headers or b"", payload, origin))
            self._capture(sink)
            reached = True
        if plan.bridges or plan.shadows:
            message = (subject, shown, reply, headers, payload)
            reached |= self._across(origin, account, plan, *message)
        kind = BROKER if origin is None else origin.kind
        if not kind.draws:
            for group in plan.groups:
                if group.name in queues and group.local:
                    drawn = self._jitter(len(group.local))
                    rest = (origin, subject, shown, reply, headers, payload)
                    reached |= self._to_member(group, drawn, *rest)
            if not kind.relayed:
                return reached
        if plan.groups or plan.links:
            reached |= self._beyond(origin, account, plan, subject, reply, headers, payload, shown)
        return reached

    def many(self, account: Namespace, plan: SublistResult, items: Sequence[Item]) -> None:
        """Messages of the broker itself, whose subjects all have the targets of `plan`."""
        if not plan.sole:
            for subject, reply, headers, payload, deliver_as in items:
                shown = deliver_as or subject
                self.one(None, account, plan, subject, reply, headers or None, payload, shown)
            return
        sub, session = plan.clients[0]
        if session.closing:
            return
        sid, capable, verb = sub.sid, session.headers, session.kind.verb
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
        sub.delivered += len(items)
        _sent(session, account, len(items), size)
        self.write(session, b"".join(parts))

    def together(self, account: Namespace, plan: SublistResult, made: Deliveries) -> None:
        """As `many` for a plan that is `sole`."""
        sub, session = plan.clients[0]
        if session.closing:
            return
        sub.delivered += len(made)
        _sent(session, account, len(made), sum(made.lengths))
        self.write(session, made.frames(session.kind.verb, sub.infix))

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
            there, seen = way.bridge.account, way.subject
            back, told = self.crossings.enter(way, account, subject, reply, headers)
            try:
                reached |= self.one(way.origin, there, way.plan, seen, back, told, payload, seen)
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
    ) -> bool:
        """Queue groups, and one message for each link that is concerned."""
        reached = False
        kind = BROKER if origin is None else origin.kind
        targets: dict[RouteLink, list[bytes]] = {
            link: [] for link in plan.links if kind.reaches(link.kind)
        }
        for group in plan.groups if kind.draws else ():
            link = self._to_group(group, origin, subject, shown, reply, headers, payload)
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
    ) -> RouteLink | bool:
        """Draw a member: the link of a remote one, or whether a local one was served.

        When no local member can take the message, the first remote one gets it.
        """
        drawn = self._jitter(group.total)
        if drawn < len(group.local):
            if self._to_member(group, drawn, origin, subject, shown, reply, headers, payload):
                return True
            drawn = len(group.local)
        return group.remote_member(drawn) or False

    def _to_member(
        self,
        group: QueueGroup,
        drawn: int,
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
            sub = local[(drawn + offset) % len(local)]
            target = sub.target
            if target.served is EACH and self.to_client(
                sub, target, origin, shown, reply, headers, payload
            ):
                return True
            if target.served is CAPTURED:
                target.messages.append((shown, reply, headers or b"", payload, origin))
                self._capture(target)
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
    ) -> bool:
        """One message to who listens through a stream import, unless a service import led it."""
        sub, seen = shadow.sub, shadow.way.seen(subject, shown)
        target = sub.target
        if self.crossings.inside or not seen:
            return False
        if target.served is CAPTURED:
            self.capture(target, (seen, reply, headers or b"", payload, origin))
            return True
        return target.served is EACH and self.to_client(
            sub, target, origin, seen, reply, headers, payload
        )

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

    def to_server(
        self, link: RouteLink, account: Namespace, subject: bytes, headers: bytes, payload: bytes
    ) -> None:
        """One message to another server, whatever its interest is as far as known here."""
        self.to_link(link, None, account, subject, b"", [], headers or None, payload, subject)

    def to_link(
        self,
        link: RouteLink,
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
        if shown is not subject and reply.startswith(ACK_PREFIX):
            reply = reply + b"@" + shown
        prefix = _prefix(link, account, subject)
        verb = link.kind.verb if headers is None else link.kind.header_verb
        self.write(link, writer.routed(verb, prefix, reply, queues, headers, payload))
        _sent(link, account, 1, len(headers or b"") + len(payload))
        if link.congested and origin is not None and origin.kind.pauses:
            link.producers.add(origin.conn)


def _sent(target: Outbound, account: Namespace, count: int, size: int) -> None:
    """Count messages that went out, `size` bytes together."""
    target.out_messages += count
    target.payload_bytes_out += size
    account.out_messages += count
    account.out_bytes += size


def _prefix(link: RouteLink, account: Namespace, subject: bytes) -> bytes:
    return subject if link.account is not None else account.wire_name + b" " + subject
