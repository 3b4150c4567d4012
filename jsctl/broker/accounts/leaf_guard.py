"""What may cross the connection of a leaf node, in either direction.

A user's permissions speak of what the leaf node may publish to the hub and subscribe there. The hub
applies both, and tells the leaf node, which applies them too, together with what its own remote
denies: so neither tells interest that would get nothing, or sends what would be refused.
"""

from collections.abc import Iterable

from jsctl.broker.accounts.permissions import CACHED_BYTES_MAX, Permissions
from jsctl.broker.interest.links import without_way
from jsctl.broker.login_options.permissions import (
    PermissionRules,
    ResponsePermission,
    SubjectPermission,
)
from jsctl.broker.subject.patterns import PatternSet
from jsctl.broker.subject.validity import has_wildcard, is_valid_subject
from jsctl.dataclass import dataclass

FREE = (b"$LDS.", b"_GR_.", b"$GR.")
"""Subjects of the servers' own: loops are found by some, replies find back by others."""
PASSING = (b"_R_.", b"$JS.ACK.")
"""What is said on these answers something that was sent before."""
DECISIONS_CACHED_MAX = 1024


@dataclass(frozen=True, slots=True)
class Subjects:
    """Allowed and denied ones; `allow` None allows all that is not denied."""

    allow: tuple[bytes, ...] | None = None
    deny: tuple[bytes, ...] = ()

    @staticmethod
    def of(rule: SubjectPermission | None, *, empty_is_all: bool = False) -> "Subjects":
        """A rule of the configuration, without what it says of single queue groups."""
        if rule is None:
            return Subjects()
        allow = None if rule.allow is None else _plain(rule.allow)
        if empty_is_all and not rule.allow:
            allow = None
        return Subjects(allow, _plain(rule.deny))

    def but(self, more: Iterable[bytes]) -> "Subjects":
        """The same, with more that is denied."""
        return Subjects(self.allow, tuple(dict.fromkeys((*self.deny, *more))))

    @property
    def free(self) -> bool:
        """Whether nothing is denied."""
        return self.allow is None and not self.deny

    def rule(self) -> SubjectPermission:
        """As the configuration has it."""
        allow = None if self.allow is None else _texts(self.allow)
        return SubjectPermission(allow, _texts(self.deny))


class _Lookup:
    """Subjects, to be asked often."""

    __slots__ = ("_allow", "_deny", "free")

    def __init__(self, subjects: Subjects) -> None:
        self._allow = None if subjects.allow is None else PatternSet(subjects.allow)
        self._deny = PatternSet(subjects.deny)
        self.free = subjects.free

    def has(self, subject: bytes) -> bool:
        """Whether a subject of a message is among them."""
        allowed = self._allow is None or self._allow.covers(subject)
        return allowed and not self._deny.covers(subject)

    def meets(self, pattern: bytes) -> bool:
        """Whether interest in a pattern would get anything. A wide one may be told though parts of
        it are denied: messages are looked at one by one."""
        if self._deny.covers(pattern):
            return False
        if self._allow is None or self._allow.covers(pattern):
            return True
        return has_wildcard(pattern) and bool(self._allow.owners_meeting(pattern))


def _plain(entries: Iterable[str]) -> tuple[bytes, ...]:
    found = [entry.encode("utf-8", "replace") for entry in entries if " " not in entry]
    return tuple([entry for entry in found if is_valid_subject(entry)])


def _texts(entries: Iterable[bytes]) -> tuple[str, ...]:
    return tuple(entry.decode(errors="replace") for entry in entries)


class LeafGuard:
    """See the module. `send` is for messages to the other side, `tell` for interest that it is
    told, `take` for what it says; with `responses` it may answer what it was asked."""

    __slots__ = ("_responses", "_send", "_take", "_take_rules", "_taken", "_tell")

    def __init__(
        self,
        send: Subjects,
        tell: Subjects,
        take: Subjects,
        responses: ResponsePermission | None = None,
    ) -> None:
        self._send = Permissions(PermissionRules(publish=send.rule()))
        self._tell = _Lookup(tell)
        self._take = _Lookup(take)
        self._take_rules = Permissions(PermissionRules(publish=take.rule()))
        self._taken: dict[bytes, bool] = {}
        self._responses = None
        if responses is not None:
            self._responses = Permissions(PermissionRules(responses=responses))

    @property
    def tracks_replies(self) -> bool:
        """Whether requests have to be noted, so that they may be answered."""
        return self._responses is not None

    def may_send(self, subject: bytes) -> bool:
        """Whether the other side may have a message."""
        return self._send.may_publish(without_way(subject))

    def deciding(self, subject: bytes) -> int:
        """See `interest.guard.Guard`."""
        return self._send.deciding(subject)

    def may_tell(self, pattern: bytes) -> bool:
        """Whether the other side may know that somebody here listens."""
        return pattern.startswith(FREE) or self._tell.meets(pattern)

    def may_take(self, subject: bytes, now_ns: int) -> bool:
        """Whether the other side may say something."""
        decision = self._taken.get(subject)
        if decision is None:
            own = without_way(subject)
            decision = own.startswith(PASSING) or self._take.has(own)
            if len(self._taken) >= DECISIONS_CACHED_MAX:
                self._taken.clear()
            if len(subject) <= CACHED_BYTES_MAX:
                self._taken[subject] = decision
        if decision or self._responses is None:
            return decision
        return self._responses.may_answer(without_way(subject), now_ns)

    def taking(self, subject: bytes) -> int:
        """See `interest.guard.Guard`."""
        return max(self._take_rules.deciding(subject), 1) if self._take.has(subject) else 0

    @property
    def takes_all(self) -> bool:
        """Whether nothing of what the other side says is refused."""
        return self._take.free

    def note_reply(self, reply: bytes, now_ns: int) -> None:
        """A request with this reply was sent to the other side."""
        if self._responses is not None:
            self._responses.note_reply(without_way(reply), now_ns)
