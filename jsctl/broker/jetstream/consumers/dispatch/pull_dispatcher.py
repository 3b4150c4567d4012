"""Who gets the next message of a pull consumer: requests, priority groups and pins.

Requests are judged one by one as in the real server: too small for the message, expired,
without interest, waiting for a pin or for enough backlog. The common case, one plain request,
takes a whole batch at once.
"""

from collections.abc import Callable, Sequence
from enum import Enum
from functools import partial
from itertools import cycle, islice
from operator import itemgetter

from jsctl.api.words import PriorityPolicy
from jsctl.broker.jetstream.consumers.consumer import Consumer
from jsctl.broker.jetstream.consumers.delivery import ConsumerDelivery, size_of, with_header
from jsctl.broker.jetstream.consumers.dispatch.pacing import idle_heartbeat
from jsctl.broker.jetstream.consumers.dispatch.pull import (
    PullRequest,
    WaitQueue,
    parse,
    pending_status,
    refusal,
    status,
)
from jsctl.broker.jetstream.consumers.facts import Advisory, AdvisoryKind, Interest
from jsctl.broker.protocol.deliveries import Item, OutgoingMessage
from jsctl.broker.store.record import Row

TOGETHER_MIN = 32
"""From so many messages on it is worth to keep them together."""
_CROWDED_CHECK_NS = 1_000_000_000
"""How often a full queue is searched for requests that may go."""
_headers = itemgetter(3)
"""Of a row."""


class _Verdict(Enum):
    SERVE = 1
    PASS = 2
    DROP = 3


class PullDispatcher:
    """The waiting requests of a leading pull consumer, and its pinned client."""

    __slots__ = (
        "_checked_ns",
        "_has_interest",
        "_new_id",
        "_policy",
        "_said",
        "consumer",
        "facts",
        "pin",
        "pin_due_ns",
        "pinned_ns",
        "queue",
    )

    def __init__(
        self, consumer: Consumer, has_interest: Interest, new_id: Callable[[], str], now_ns: int
    ) -> None:
        self.consumer = consumer
        self._has_interest = has_interest
        self._new_id = new_id
        self._policy = consumer.config.priority_policy
        self.queue = WaitQueue(
            consumer.config.max_waiting,
            prioritized=self._policy is PriorityPolicy.PRIORITIZED,
            now_ns=now_ns,
        )
        self.pin = ""
        self.pinned_ns = 0
        self.pin_due_ns = 0
        self.facts: list[Advisory] = []
        self._said: list[OutgoingMessage] = []
        self._checked_ns = 0

    def configure(self) -> None:
        """The consumer's config changed."""
        self._policy = self.consumer.config.priority_policy
        self.queue.prioritized = self._policy is PriorityPolicy.PRIORITIZED
        if self._policy is not PriorityPolicy.PINNED_CLIENT:
            self.pin, self.pin_due_ns = "", 0

    # Requests come in.

    def admit(
        self, reply: bytes, payload: bytes, delivery: ConsumerDelivery, now_ns: int
    ) -> list[OutgoingMessage]:
        """Queue a request; returns what it, or others, are told at once."""
        request = parse(reply, payload, now_ns)
        if isinstance(request, str):
            return [_say(reply, status(400, f"Bad Request - {request}"))]
        refused = refusal(request, self.consumer.config, now_ns)
        if refused:
            return [_say(reply, refused)]
        if self._wrong_pin(request, now_ns):
            return [_say(reply, status(423, "Nats-Pin-Id mismatch"))]
        out: list[OutgoingMessage] = []
        if len(self.queue) >= self.queue.room and now_ns - self._checked_ns > _CROWDED_CHECK_NS:
            self._checked_ns = now_ns
            out += self.tend(delivery, now_ns, idle=False)
            self.prune()
        if request.no_wait:
            no = self._no_wait_refusal(request, delivery)
            if no:
                self.queue.last_ns = now_ns
                return [*out, _say(reply, no)]
        if not self.queue.add(request) and not request.heartbeat_ns:
            out.append(_say(reply, status(409, "Exceeded MaxWaiting")))
        return out

    def _wrong_pin(self, request: PullRequest, now_ns: int) -> bool:
        if self._policy is not PriorityPolicy.PINNED_CLIENT or not self.pin:
            return False
        if request.pin == self.pin:
            self.pin_due_ns = now_ns + self.consumer.config.priority_timeout
            return False
        return bool(request.pin)

    def _no_wait_refusal(self, request: PullRequest, delivery: ConsumerDelivery) -> bytes:
        there = delivery.num_pending + len(delivery.redelivery.again)
        if there == 0:
            return b"" if request.expires_ns else status(404, "No Messages")
        if there < self.queue.wanted:
            return status(408, "Requests Pending")
        return b""

    def tend(self, delivery: ConsumerDelivery, now_ns: int, *, idle: bool) -> list[OutgoingMessage]:
        """Expire requests and send heartbeats; `idle` also ends no_wait requests."""
        queue = self.queue
        due = queue.next_due_ns
        hurried = idle and any(request.no_wait for request in queue.requests)
        if not hurried and (due is None or due > now_ns):
            return []
        state = delivery.progress.state
        beat = idle_heartbeat(state.delivered_seq, max(state.delivered_stream, delivery.cursor - 1))
        said, beats = queue.tend(now_ns, self._has_interest, idle=idle, beat=beat)
        return [_say(*one) for one in [*said, *((reply, beat) for reply in beats)]]

    def prune(self) -> int:
        """Drop requests that nobody listens for; how many wait."""
        queue = self.queue
        kept = [request for request in queue.requests if self._has_interest(request.reply)]
        if len(kept) < len(queue.requests):
            queue.requests.clear()
            queue.requests.extend(kept)
        return len(kept)

    # Messages go out.

    def serve(
        self, delivery: ConsumerDelivery, now_ns: int, budget: int, out: list[OutgoingMessage]
    ) -> bool:
        """Hand out messages; False when the budget ended it and there may be more."""
        queue = self.queue
        if not queue.requests:
            return True
        wanted = min(budget, queue.wanted)
        again = self._hand_out(delivery, delivery.present_again(wanted, now_ns), now_ns, out, True)
        if again is None or not queue.requests:
            return True
        if 0 < again == budget:
            return False
        room = delivery.room()
        rows = delivery.peek_new(min(wanted - again, room))
        given = self._give(delivery, rows, now_ns, out)
        done = not queue.requests or not delivery.num_pending
        return done or given < len(rows) or not rows or given >= room

    def _give(
        self,
        delivery: ConsumerDelivery,
        rows: Sequence[Row],
        now_ns: int,
        out: list[OutgoingMessage],
    ) -> int:
        if not rows:
            return 0
        if self._policy is not PriorityPolicy.NONE:
            return self._hand_out(delivery, rows, now_ns, out, False) or 0
        given = 0
        while given < len(rows) and self.queue.requests:
            takers = list(islice(self.queue.requests, len(rows) - given))
            fitting = len(takers) * min(request.left - request.limited for request in takers)
            part = rows[given : given + max(fitting, len(takers))]
            taken = self._give_part(delivery, part, takers, now_ns, out)
            delivery.take_new(part[:taken], now_ns)
            given += taken
            if taken < len(part):
                break
        return given

    def _give_part(
        self,
        delivery: ConsumerDelivery,
        rows: Sequence[Row],
        takers: Sequence[PullRequest],
        now_ns: int,
        out: list[OutgoingMessage],
    ) -> int:
        inboxes = [request.reply for request in takers]
        if len(rows) < TOGETHER_MIN or any(map(_headers, rows)):
            items = delivery.items_new(rows, cycle(inboxes))
            if not self._have_room(takers, len(rows), partial(_size_of_some, items), now_ns):
                return self._share(delivery, items, now_ns, out)
            out += items
        else:
            batch = delivery.together(rows, inboxes)
            if not self._have_room(takers, len(rows), batch.size, now_ns):
                return self._share(delivery, batch.items(), now_ns, out)
            out.append(batch)
        self.queue.serve_round(takers, len(rows), now_ns)
        return len(rows)

    def _have_room(
        self,
        takers: Sequence[PullRequest],
        count: int,
        size_of_some: Callable[[int, int], int],
        now_ns: int,
    ) -> bool:
        """Whether the first requests can have so many messages in turn; they are charged the
        bytes, of every so many-th message from a place on.

        False where one of them, or somebody else, may have to be told something as well.
        """
        sizes = [0] * len(takers)
        for place, request in enumerate(takers):
            if request.left < len(range(place, count, len(takers))) + request.limited:
                return False
            if 0 < request.expires_ns <= now_ns or not self._has_interest(request.reply):
                return False
            if request.limited:
                sizes[place] = size_of_some(place, len(takers))
                if request.bytes_left <= sizes[place]:
                    return False
        for request, size in zip(takers, sizes, strict=True):
            request.bytes_left -= size
        return True

    def _share(
        self,
        delivery: ConsumerDelivery,
        items: Sequence[Item],
        now_ns: int,
        out: list[OutgoingMessage],
    ) -> int:
        """As `_hand_out` for requests without priorities; how many were given."""
        listening: dict[bytes, bool] = {}
        given = 0
        for _, reply, headers, payload, subject in items:
            size = len(reply) + len(headers) + len(payload) + len(subject)
            request = self._next(delivery, size, now_ns, listening, given, False, out)
            if request is None:
                break
            out.append((request.reply, reply, headers, payload, subject))
            given += 1
            self._charge(request, size, now_ns, out)
        return given

    def _hand_out(
        self,
        delivery: ConsumerDelivery,
        rows: Sequence[Row],
        now_ns: int,
        out: list[OutgoingMessage],
        again: bool,
    ) -> int | None:
        """One message to each request in turn; None when rows are left that nobody may have."""
        listening: dict[bytes, bool] = {}
        given = 0
        for row in rows:
            item = delivery.item(row, b"", given, again)
            request = self._next(delivery, size_of(item), now_ns, listening, given, again, out)
            if request is None:
                break
            headers = item[2]
            if self._policy is PriorityPolicy.PINNED_CLIENT:
                headers = with_header(headers, b"Nats-Pin-Id: " + self.pin.encode())
            out.append((request.reply, item[1], headers, item[3], item[4]))
            given += 1
            self._charge(request, size_of(item), now_ns, out)
        (delivery.take_again if again else delivery.take_new)(rows[:given], now_ns)
        return None if given < len(rows) and again else given

    def _charge(
        self, request: PullRequest, size: int, now_ns: int, out: list[OutgoingMessage]
    ) -> None:
        if request.limited:
            request.bytes_left -= size
            if request.bytes_left == 0:
                request.left = 1
        self.queue.served(request, now_ns)
        if request.left <= 0 and request.bytes_left > 0:
            out.append(_say(request.reply, pending_status(409, "Batch Completed", request)))

    def _next(
        self,
        delivery: ConsumerDelivery,
        size: int,
        now_ns: int,
        listening: dict[bytes, bool],
        given: int,
        again: bool,
        out: list[OutgoingMessage],
    ) -> PullRequest | None:
        """The request that gets the next message; drops those that cannot have any."""
        queue = self.queue
        passed = 0
        while queue.requests and passed < len(queue.requests):
            request = queue.requests[0]
            pins = self._pins(request)
            ended = _expired(request, now_ns) or (_too_small(request, size) if pins else b"")
            if ended:
                out.append(_say(request.reply, ended))
                queue.drop()
                continue
            if pins and not self._listens(request, listening):
                queue.drop()
                continue
            verdict = self._judge_pin(request, now_ns, out)
            if verdict is _Verdict.SERVE:
                backlog = delivery.num_pending + (1 if again else -given)
                unacked = len(delivery.progress.state.pending) + (0 if again else given)
                verdict = self._judge_overflow(request, backlog, unacked)
            if verdict is _Verdict.PASS:
                queue.cycle()
                passed += 1
                continue
            if verdict is _Verdict.SERVE:
                # Only whose turn it is learns that the message is too large.
                if small := _too_small(request, size):
                    out.append(_say(request.reply, small))
                elif self._listens(request, listening):
                    return request
            queue.drop()
        return None

    def _listens(self, request: PullRequest, listening: dict[bytes, bool]) -> bool:
        known = listening.get(request.reply)
        if known is None:
            known = listening[request.reply] = self._has_interest(request.reply)
        return known

    def _pins(self, request: PullRequest) -> bool:
        """Whether a request would be pinned: who is gone would keep all others waiting."""
        pinned = self._policy is PriorityPolicy.PINNED_CLIENT
        return pinned and not self.pin and not request.pin and request.group.group != ""

    def _judge_pin(self, request: PullRequest, now_ns: int, out: list[OutgoingMessage]) -> _Verdict:
        if self._policy is not PriorityPolicy.PINNED_CLIENT:
            return _Verdict.SERVE
        if self.pin and request.pin == self.pin:
            return _Verdict.SERVE
        if request.pin:
            out.append(_say(request.reply, pending_status(423, "Nats-Wrong-Pin-Id", request)))
            return _Verdict.DROP
        if self.pin:
            return _Verdict.PASS
        if not request.group.group:
            return _Verdict.SERVE  # An old client, or a person: it cannot say that it is pinned.
        self.pin = request.pin = self._new_id()
        self.pinned_ns = now_ns
        self.pin_due_ns = now_ns + self.consumer.config.priority_timeout
        group = request.group.group
        self.facts.append(Advisory(AdvisoryKind.PINNED, group=group, pin=self.pin))
        return _Verdict.SERVE

    def _judge_overflow(self, request: PullRequest, backlog: int, unacked: int) -> _Verdict:
        group = request.group
        if self._policy is not PriorityPolicy.OVERFLOW:
            return _Verdict.SERVE
        if not group.min_pending and not group.min_ack_pending:
            return _Verdict.SERVE
        enough = 0 < group.min_pending <= backlog or 0 < group.min_ack_pending <= unacked
        return _Verdict.SERVE if enough else _Verdict.PASS

    # Pins.

    def unpin(self, reason: str) -> bool:
        """Release the pinned client; False when there is none."""
        if not self.pin:
            return False
        group = self.consumer.config.priority_groups[0]
        self.pin, self.pin_due_ns = "", 0
        self.facts.append(Advisory(AdvisoryKind.UNPINNED, group=group, reason=reason))
        return True

    def check_pin(self, now_ns: int) -> None:
        """Release a client that did not pull for the priority timeout."""
        if self.pin_due_ns and now_ns >= self.pin_due_ns:
            self.unpin("timeout")

    def take_facts(self) -> list[Advisory]:
        """Advisories since the last call."""
        facts, self.facts = self.facts, []
        return facts

    def close(self, text: str, *, pending: bool = False) -> list[OutgoingMessage]:
        """End all requests with a 409."""
        return [_say(*one) for one in self.queue.close(text, pending=pending)]


def _expired(request: PullRequest, now_ns: int) -> bytes:
    if request.expires_ns and now_ns >= request.expires_ns:
        return pending_status(408, "Request Timeout", request)
    return b""


def _too_small(request: PullRequest, size: int) -> bytes:
    if request.limited and size > request.bytes_left:
        return pending_status(409, "Message Size Exceeds MaxBytes", request)
    return b""


def _size_of_some(items: Sequence[Item], place: int, step: int) -> int:
    return sum([len(r) + len(h) + len(p) + len(s) for _, r, h, p, s in items[place::step]])


def _say(reply: bytes, headers: bytes) -> Item:
    return reply, b"", headers, b"", b""
