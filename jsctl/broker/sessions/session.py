"""One client connection: what it said in CONNECT, what it may do, what it subscribed to.

Operations come in one at a time, from the lane or as a list from the parser; what goes out is
written through the router's delivery. A session never reads a clock: `now_ns` is the turn's.

States. A connection is either `authorized` or waits for CONNECT (with a deadline), or waits for
a password check (`waiting`); `closing` holds the reason once it is to go. Until CONNECT says
otherwise it is verbose and pedantic and hears itself, as with the real server.
"""

import itertools

from jsctl.broker.accel.contract import ANSWERS, HEADERS, HEARS
from jsctl.broker.accounts.accounts import Account
from jsctl.broker.accounts.auth import authenticate, uninvited
from jsctl.broker.accounts.identity import Check, ClientIdentity, new_challenge
from jsctl.broker.accounts.permissions import Permissions
from jsctl.broker.interest.kinds import CLIENT
from jsctl.broker.interest.links import BROKERS, GATEWAY_REPLY
from jsctl.broker.interest.outbound import ClientFacts
from jsctl.broker.interest.targets import ClientPeer, SublistResult, Subscription
from jsctl.broker.protocol import writer
from jsctl.broker.protocol.client import Head
from jsctl.broker.protocol.intake import Intake
from jsctl.broker.protocol.ops import (
    PAYLOAD_TOO_LARGE,
    Bad,
    ClientOp,
    Connect,
    Info,
    Ok,
    PeerError,
    Ping,
    Pong,
    Publish,
    Subscribe,
    Unsubscribe,
)
from jsctl.broker.routing.fans import Fans
from jsctl.broker.routing.trace import Trace
from jsctl.broker.sessions import refusals, standing
from jsctl.broker.sessions.greeting import Greeting, read_connect
from jsctl.broker.sessions.keepalive import KeepAlive, Probe
from jsctl.broker.sessions.refusals import AUTH_FAILURE, AUTH_VIOLATION, Refusal, refusal
from jsctl.broker.sessions.session_context import SessionContext
from jsctl.broker.subject.validity import is_valid_literal, is_valid_subject
from jsctl.broker.turn import Accepted, Verify

RESERVED_REPLIES = (b"_R_.", b"$JS.ACK.", GATEWAY_REPLY)
NOT_ANSWERED = (GATEWAY_REPLY, BROKERS, b"$NRG.")
WITH_REPLY = b"with Reply of"
PLANS_CACHED_MAX = 4096
CACHED_BYTES_MAX = 512
"""Longer subjects and lines are not cached for each client; there is one for all."""
KEPT_SUBSCRIPTIONS_MAX = 64
"""Subscriptions of a closed session that monitoring can still show."""

DENIED = SublistResult((), ())
"""Stands for "may not publish this" among cached plans; compared by identity."""


class ClientSession(ClientPeer):
    """The state of one client connection."""

    __slots__ = (
        "account",
        "alive",
        "authorized",
        "challenge",
        "check",
        "connected",
        "context",
        "fans",
        "fast",
        "flags",
        "generation",
        "greeting",
        "heads",
        "held",
        "identity",
        "in_bytes",
        "in_messages",
        "intake",
        "kept",
        "last_in_ns",
        "no_responders",
        "payload_max",
        "pedantic",
        "permissions",
        "plans",
        "pong_sent",
        "remote",
        "started_ns",
        "stopped_ns",
        "user",
        "verbose",
        "waiting",
    )

    def __init__(
        self, context: SessionContext, accepted: Accepted, client_id: int, now_ns: int
    ) -> None:
        super().__init__(accepted.conn, CLIENT, client_id)
        self.context = context
        self.remote = accepted
        self.account: Account = context.router.accounts.default
        self.user = ""
        self.identity: ClientIdentity | None = None
        self.challenge = b""
        self.permissions: Permissions | None = None
        self.authorized = False
        self.connected = False
        self.waiting = False
        self.check: Check | None = None
        self.greeting = Greeting()
        self.verbose = self.pedantic = True
        self.no_responders = self.fast = self.pong_sent = False
        self.kept: tuple[Subscription, ...] = ()
        self.intake = Intake()
        self.held = 0
        self.payload_max = context.limits.payload_bytes_max
        self.heads: dict[bytes, Head] = {}
        self.plans: dict[bytes, SublistResult] = {}
        self.generation = -1
        self.fans: Fans | None = None
        self.flags = 0
        """What the lane's loop has to know of it."""
        self.in_messages = self.in_bytes = self.stopped_ns = 0
        self.started_ns = self.last_in_ns = now_ns
        self.alive = KeepAlive(context.limits)

    def start(self, now_ns: int) -> None:
        """Greet the client and set its first deadline."""
        logins = self.context.router.accounts.logins
        self.challenge = new_challenge(self.context.router.jitter) if logins.challenges else b""
        self._info({"nonce": self.challenge.decode()} if self.challenge else {})
        identity = uninvited(logins)
        if identity is not None:
            self._accept(identity)
        self.alive.await_login(now_ns)
        if self.authorized:
            self.alive.await_connect(now_ns, self.context.router.jitter)

    def facts(self) -> ClientFacts:
        """Who it is."""
        return standing.facts(self)

    def write(self, data: bytes) -> None:
        """Send bytes to the client."""
        self.context.router.delivery.write(self, data)

    def error(self, text: bytes) -> None:
        """Send an -ERR line."""
        self.write(writer.error(text))

    def close(self, reason: str, text: bytes = b"") -> None:
        """Let the client go, after an -ERR if there is a text for it."""
        if self.closing:
            return
        if text:
            self.error(text)
        self.closing = reason
        self.fast, self.fans = False, None
        # Closed sessions are remembered for long, without what only open ones need.
        self.intake, self.heads, self.plans, self.check = Intake(), {}, {}, None
        self.kept = tuple(itertools.islice(self.subscriptions.values(), KEPT_SUBSCRIPTIONS_MAX))
        self.drop_subscriptions()
        if self.authorized:
            self.account.connections -= 1
            self.authorized = False
        self.stopped_ns = self.context.router.now_ns
        self.context.closes.append((self, reason))

    def drop_subscriptions(self) -> None:
        """Remove all subscriptions."""
        for sub in self.subscriptions.values():
            self.context.router.unsubscribe(sub)
        self.subscriptions.clear()

    def _info(self, extra: dict[str, writer.Json]) -> None:
        fields = self.context.identity.fields(
            payload_bytes_max=standing.payload_max(self),
            client_id=self.client_id,
            client_ip=self.remote.remote_host,
            auth_required=self.context.router.accounts.logins.asks,
        )
        self.write(writer.info(fields | extra))

    def send_info(self) -> None:
        """Tell the client that INFO changed, if it can take that and has been greeted."""
        if self.greeting.protocol >= 1 and self.pong_sent and not self.closing:
            self._info({})

    # -- operations ----------------------------------------------------------------------

    def take(self, op: ClientOp) -> None:
        """Carry out one operation."""
        if not self.authorized and not isinstance(op, Connect | Bad):
            self.close(AUTH_FAILURE, AUTH_VIOLATION)
        elif isinstance(op, Publish):
            self.publish(op)
        elif isinstance(op, Subscribe):
            self._subscribe(op)
        elif isinstance(op, Unsubscribe):
            self._unsubscribe(op)
        elif isinstance(op, Connect):
            self._connect(op.body)
        elif isinstance(op, Ping):
            self._ping()
        elif isinstance(op, Pong):
            self.alive.pong(self.context.router.now_ns)
        elif isinstance(op, Bad):
            self.close(op.reason, op.text)
        elif isinstance(op, PeerError):
            self.close("Client Closed")
        else:
            assert isinstance(op, Info | Ok)

    def _ok(self) -> None:
        if self.verbose:
            self.write(writer.OK)

    def _ping(self) -> None:
        self.write(writer.PONG)
        if self.connected and not self.pong_sent and self.greeting.protocol >= 1:
            extra: dict[str, writer.Json] = {
                "connect_info": True,
                "remote_account": self.account.name,
            }
            if self.account.is_system:
                extra["acc_is_sys"] = True
            self._info(extra)
        self.pong_sent = self.pong_sent or self.connected

    def _connect(self, body: bytes) -> None:
        greeting = read_connect(body)
        if greeting is None or self.check is not None:
            # As it worked on while its password is checked, the verdict to come is on that one.
            self.close("Protocol Violation" if greeting is None else "Client Closed")
            return
        self.drop_subscriptions()
        self.greeting, self.name = greeting, greeting.name
        self.fast = False
        logins = self.context.router.accounts.logins
        outcome = authenticate(
            logins, greeting.credentials, self.challenge, seen=standing.seen(self)
        )
        if isinstance(outcome, Check):
            self.check = outcome
            self.waiting = True
            self.context.verifies.append(Verify(self.conn, outcome.password, outcome.hashed))
        else:
            self._connected(outcome)

    def verified(self, ok: bool) -> None:
        """The outcome of the password check that the session waits for."""
        check, self.check = self.check, None
        self.waiting = False
        if check is not None and not self.closing:
            self._connected(check.identity if ok else None)

    def _connected(self, identity: ClientIdentity | None) -> None:
        greeting = self.greeting
        self.user = greeting.credentials.shown
        if identity is None or greeting.names_account:
            self.close(AUTH_FAILURE, AUTH_VIOLATION)
            return
        first = not self.authorized
        if not self._accept(identity):
            return
        self.connected = True
        self.headers = greeting.headers and self.context.identity.headers
        self.verbose, self.pedantic, self.echo = greeting.verbose, greeting.pedantic, greeting.echo
        self.no_responders = greeting.no_responders
        if greeting.protocol not in (0, 1):
            self.close("Bad Client Protocol Version", b"invalid client protocol")
        elif self.no_responders and not self.headers:
            self.close("No Responders Requires Headers", b"no responders requires headers support")
        elif identity.vouched is not None and not identity.vouched.subscriptions_max:
            self.close(*refusals.SUBSCRIPTIONS_FULL)
        else:
            self._ok()
            self.refresh()
            if first:
                now_ns = self.context.router.now_ns
                self.alive.greeted(now_ns - self.started_ns)
                self.alive.begin(now_ns, self.context.router.jitter)

    def _accept(self, identity: ClientIdentity) -> bool:
        """Take on an identity; False when its account is full (the session closes then)."""
        if self.authorized:
            self.account.connections -= 1
            self.authorized = False
        self.user = identity.user or self.user
        if identity.account.connections_over(1 + identity.account.leafs):
            self.close(*refusals.ACCOUNT_FULL)
            return False
        self.account, self.identity = identity.account, identity
        self.alive.leaves(identity.leaves_ns)
        self.account.connections += 1
        rules = identity.permissions
        self.permissions = Permissions(rules) if rules is not None else None
        self.tracks_replies = rules is not None and rules.responses is not None
        self.plans.clear()
        self.authorized, self.generation, self.fans = True, -1, None
        return True

    def refresh(self) -> None:
        """Whether the lane's quick way is open to this client, which may have other limits now."""
        self.payload_max = standing.payload_max(self)
        self.fast = (
            self.authorized
            and self.connected
            and not self.closing
            and not self.verbose
            and not self.pedantic
            and not self.tracks_replies
            and not self.account.mappings
            and self.payload_max >= self.context.limits.payload_bytes_max
        )
        takes_headers = self.headers and not self.account.traced
        self.flags = HEADERS * takes_headers + ANSWERS * self.no_responders + HEARS * self.echo

    # -- publishing ----------------------------------------------------------------------

    def plan_for(self, subject: bytes) -> SublistResult:
        """Where this client's messages on a subject go; DENIED when it may not publish it."""
        sublist = self.account.sublist
        plans = self.plans
        if self.generation != sublist.generation:
            plans.clear()
            self.generation = sublist.generation
        plan = plans.get(subject)
        if plan is None:
            if len(plans) >= PLANS_CACHED_MAX:
                plans.clear()
            plan = sublist.match(subject) if self.may_publish(subject) else DENIED
            self.context.effort.left -= plan.built
            if len(subject) <= CACHED_BYTES_MAX:
                plans[subject] = plan
        if plan.spread:
            self.context.effort.left -= plan.spread
        return plan

    def may_publish(self, subject: bytes) -> bool:
        """Whether this client's permissions let it."""
        if subject.startswith((GATEWAY_REPLY, BROKERS)):
            return False
        if subject.startswith(b"$NRG.") and not self.account.is_system:
            return False
        return self.permissions is None or self.permissions.may_publish(subject)

    def admits(self, subject: bytes) -> bool:
        """Whether this client may have something published; it is told if it may not."""
        allowed = self.may_publish(subject)
        if not allowed:
            self.deny_publish(subject)
        return allowed

    def deny_publish(self, subject: bytes, trace: Trace | None = None, way: bytes = b"to") -> None:
        """Tell that a message was dropped: its subject, or reply, is not for this client."""
        text = b'Permissions Violation for Publish %s "%s"' % (way, subject)
        if trace is not None:
            trace.failed(text.decode(errors="replace"))
        self.error(text)
        self.context.refuse(self, Refusal(text, subject))

    def publish(self, op: Publish) -> None:
        """Check and route one message."""
        headers = op.headers
        if headers is not None and not self.headers:
            self.close("Message Header Violation")
            return
        size = len(op.payload) + len(headers or b"")
        if size > self.payload_max:
            self.close(PAYLOAD_TOO_LARGE.reason, PAYLOAD_TOO_LARGE.text)
            return
        self.in_messages += 1
        self.in_bytes += size
        self.account.in_messages += 1
        self.account.in_bytes += size
        tracing = self.context.router.tracing
        if headers is not None and tracing.concerns(self.account, headers):
            self._traced(op, headers)
        else:
            self.route(op)

    def _traced(self, op: Publish, headers: bytes) -> None:
        tracing = self.context.router.tracing
        begun = tracing.begin(self, self.account, op.subject, headers, op.payload)
        if not begun.skip:
            self.route(op._replace(headers=begun.headers), begun.trace)
            tracing.keep(begun.trace)

    def route(self, op: Publish, trace: Trace | None = None) -> None:
        """Check and route one message that has been counted; `trace` notes what happens."""
        subject, reply, headers, payload = op
        plan = self.plan_for(subject)
        if plan is DENIED and not self._may_answer(subject):
            self.deny_publish(subject, trace)
            return
        if reply.startswith(RESERVED_REPLIES):
            self.deny_publish(reply, trace, WITH_REPLY)
            return
        if self.pedantic and not is_valid_literal(subject):
            self.error(b"Invalid Publish Subject")
        self._ok()
        router = self.context.router
        if self.account.mappings:
            subject = self.account.map_subject(subject, router.jitter)
            if trace is not None and subject != op.subject:
                trace.note("sm", to=subject.decode(errors="replace"))
            plan = self.account.sublist.match(subject) if subject else DENIED
        elif plan is DENIED:
            plan = self.account.sublist.match(subject)
        rest = (self, self.account, plan, subject, reply)
        if trace is not None:
            reached = router.tracing.one(trace, *rest, headers or b"", payload, subject)
        else:
            reached = not plan.empty and router.delivery.one(*rest, headers, payload, subject)
        if not reached and reply:
            self.nobody(subject, reply)

    def note_reply(self, reply: bytes) -> None:
        """A request with this reply was delivered to it: it may answer that one."""
        if self.permissions is not None:
            self.permissions.note_reply(reply, self.context.router.now_ns)

    def _may_answer(self, subject: bytes) -> bool:
        if self.permissions is None or subject.startswith(NOT_ANSWERED):
            return False
        return self.permissions.may_answer(subject, self.context.router.now_ns)

    def nobody(self, subject: bytes, reply: bytes) -> None:
        """Nobody got a request: send the 503 to the client's own inbox if it wants that."""
        if not self.no_responders or self.closing:
            return
        for sub, session in self.account.sublist.match(reply).clients:
            if session is self:
                self.write(writer.no_responders(subject, sub.sid, reply))
                self.out_messages += 1
                sub.delivered += 1
                if sub.maximum and sub.delivered >= sub.maximum:
                    self.context.router.expire(self, sub)
                return

    # -- subscribing ---------------------------------------------------------------------

    def _subscribe(self, op: Subscribe) -> None:
        count, own_max = len(self.subscriptions), standing.subscriptions_max(self)
        refused = refusal(op, self.context.limits, own_max, self.permissions, count)
        if refused:
            self.error(refused)
            self.context.refuse(self, Refusal(refused, op.subject, op.queue, op.sid))
            return
        if op.sid not in self.subscriptions:
            if not is_valid_subject(op.subject):
                self.error(b"Invalid Subject")
                return
            rules = self.permissions
            denied = None if rules is None else rules.denied_within(op.subject, op.queue)
            sub = Subscription(self.account, op.subject, op.queue, op.sid, self, denied=denied)
            self.subscriptions[op.sid] = sub
            self.context.router.add(sub)
        self._ok()

    def _unsubscribe(self, op: Unsubscribe) -> None:
        sub = self.subscriptions.get(op.sid)
        if sub is not None:
            if op.maximum and sub.delivered < op.maximum:
                sub.maximum = op.maximum
                self.account.sublist.touch(sub.subject)
            else:
                del self.subscriptions[op.sid]
                self.context.router.unsubscribe(sub)
        self._ok()

    # -- time ----------------------------------------------------------------------------

    def tick(self, now_ns: int) -> None:
        """Do what is due: auth timeout, ping, stale. Moves the deadline."""
        if self.closing or now_ns < self.alive.deadline_ns:
            return
        if not self.authorized:
            self.close("Authentication Timeout", b"Authentication Timeout")
            return
        if standing.has_expired(self, now_ns):
            return
        probe = self.alive.due(now_ns, self.last_in_ns)
        if probe is Probe.GIVE_UP:
            self.close("Stale Connection", b"Stale Connection")
        elif probe is Probe.PING:
            self.write(writer.PING)
