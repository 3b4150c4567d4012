"""What a user may publish and subscribe to (client protocol 1.9).

A user without any rule may do everything; such users have no `Permissions` at all, so that the
lane has nothing to ask. Subscribe entries may name a queue: `"foo v1"` speaks only of queue
subscriptions whose queue `v1` matches.
"""

from collections.abc import Iterable, Sequence

from jsctl.broker.login_options.permissions import PermissionRules, SubjectPermission
from jsctl.broker.subject.matching import Filters, matches, overlaps, subset
from jsctl.broker.subject.patterns import PatternSet

DECISIONS_CACHED_MAX = 1024
CACHED_BYTES_MAX = 512
"""Longer subjects are looked up each time: what a connection makes the server keep is small."""
REPLIES_TRACKED_MAX = 4096
"""Replies a client may still answer; the oldest are forgotten."""

_ANYTHING = SubjectPermission()


def _encoded(entries: Iterable[str]) -> tuple[bytes, ...]:
    return tuple(entry.encode() for entry in entries)


def _queue_of(entry: bytes) -> tuple[bytes, bytes]:
    subject, _, queue = entry.partition(b" ")
    return subject, queue.strip()


def _covers(entries: Sequence[tuple[bytes, bytes]], subject: bytes, queue: bytes) -> bool:
    return any(subset(subject, pattern) for pattern, group in entries if _is_of(group, queue))


def _is_of(group: bytes, queue: bytes) -> bool:
    """Whether an entry for a queue group, or for none, speaks of a subscription."""
    return not group or (queue != b"" and matches(queue, group))


def _allows(entries: Sequence[tuple[bytes, bytes]], subject: bytes, queue: bytes) -> bool:
    """Where entries name groups for a subject, its other groups are closed: what is allowed without
    a group is only who listens alone then."""
    groups = [group for pattern, group in entries if group and subset(subject, pattern)]
    if queue and groups:
        return any(matches(queue, group) for group in groups)
    return _covers(entries, subject, queue)


class Permissions:
    """One connection's permissions, with its decisions and its open replies."""

    __slots__ = (
        "_allow_sub",
        "_decisions",
        "_deny_sub",
        "_pub_allow",
        "_pub_deny",
        "_replies",
        "rules",
    )

    def __init__(self, rules: PermissionRules) -> None:
        self.rules = rules
        publish = rules.publish or _ANYTHING
        subscribe = rules.subscribe or _ANYTHING
        allow = publish.allow
        if allow is None and rules.responses is not None:
            allow = ()
        self._pub_allow = None if allow is None else PatternSet(_encoded(allow))
        self._pub_deny = PatternSet(_encoded(publish.deny))
        self._allow_sub: list[tuple[bytes, bytes]] | None = None
        if subscribe.allow is not None:
            self._allow_sub = [_queue_of(one) for one in _encoded(subscribe.allow)]
        self._deny_sub = [_queue_of(one) for one in _encoded(subscribe.deny)]
        self._decisions: dict[bytes, bool] = {}
        self._replies: dict[bytes, list[int]] = {}

    @property
    def tracks_replies(self) -> bool:
        """Whether deliveries with a reply have to be noted."""
        return self.rules.responses is not None

    def take_replies(self, before: "Permissions") -> None:
        """What may be answered still may, if answers are allowed at all."""
        self._replies = before._replies

    def may_publish(self, subject: bytes) -> bool:
        """Whether the allow and deny lists let a message pass; replies apart."""
        decision = self._decisions.get(subject)
        if decision is None:
            allow = self._pub_allow
            decision = allow is None or allow.covers(subject)
            decision = decision and not self._pub_deny.covers(subject)
            if len(self._decisions) >= DECISIONS_CACHED_MAX:
                self._decisions.clear()
            if len(subject) <= CACHED_BYTES_MAX:
                self._decisions[subject] = decision
        return decision

    def deciding(self, subject: bytes) -> int:
        """How many tokens, from the first on, decide together with their number whether messages
        on a subject may pass."""
        allow = 0 if self._pub_allow is None else self._pub_allow.deciding(subject)
        return max(allow, self._pub_deny.deciding(subject))

    def note_reply(self, reply: bytes, now_ns: int) -> None:
        """A request with this reply was delivered to the client."""
        self._replies.pop(reply, None)
        if len(self._replies) >= REPLIES_TRACKED_MAX:
            del self._replies[next(iter(self._replies))]
        self._replies[reply] = [now_ns, 0]

    def may_answer(self, subject: bytes, now_ns: int) -> bool:
        """Whether `subject` is a reply that may still be answered; counts as an answer."""
        responses = self.rules.responses
        noted = self._replies.get(subject)
        if responses is None or noted is None:
            return False
        late = responses.expires_ns > 0 and now_ns - noted[0] > responses.expires_ns
        if late or 0 <= responses.messages_max <= noted[1]:
            del self._replies[subject]
            return False
        noted[1] += 1
        if noted[1] == responses.messages_max:
            # It is no open one any more, and is not to take the place of one that is.
            del self._replies[subject]
        return True

    def may_subscribe(self, subject: bytes, queue: bytes) -> bool:
        """Whether SUB is allowed; narrower denials filter deliveries instead."""
        if self._allow_sub is not None and not _allows(self._allow_sub, subject, queue):
            return False
        return not _covers(self._deny_sub, subject, queue)

    def denied_within(self, subject: bytes, queue: bytes = b"") -> Filters | None:
        """What must not be delivered to a permitted subscription; None for nothing."""
        inner = [
            pattern
            for pattern, group in self._deny_sub
            if _is_of(group, queue) and overlaps(pattern, subject) and not subset(subject, pattern)
        ]
        return Filters(inner) if inner else None
