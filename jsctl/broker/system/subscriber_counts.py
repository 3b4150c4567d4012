"""`$SYS.DEBUG.SUBSCRIBERS` in a cluster and a super-cluster: every server counts its own, one adds
up."""

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import field

from jsctl.api.codec import dumps
from jsctl.broker.accounts.accounts import Account
from jsctl.broker.interest.targets import Namespace, Sink
from jsctl.broker.options import MILLISECOND_NS
from jsctl.broker.protocol.client import number
from jsctl.broker.routing.router import Router
from jsctl.dataclass import dataclass

COUNT_SUBJECT = b"$SYS.REQ.ACCOUNT.NSUBS"
WAIT_NS = 250 * MILLISECOND_NS
"""Servers without a client of the account do not answer."""
FAR_WAIT_NS = 500 * MILLISECOND_NS
"""The same where other clusters have some: nobody knows how many answer."""
OPEN_MAX = 1_000
"""Questions under way; one more is answered with nothing."""


@dataclass(slots=True)
class _OpenCount:
    account: Namespace
    reply: bytes
    expected: int | None
    until_ns: int
    total: int = 0
    answers: int = 0


@dataclass(slots=True)
class SubscriberCounts:
    """Questions under way; the owner of the sink that hears the answers."""

    router: Router
    system: Account
    inbox: bytes
    """Prefix of subjects for answers, this server's own, with a dot at its end."""
    _open: dict[bytes, _OpenCount] = field(default_factory=dict)
    _next: int = 0

    def listen(self) -> None:
        """Be ready for answers."""
        self.router.subscribe(self.system, self.inbox + b"*", Sink(self, self.system))

    def ask(
        self, account: Namespace, words: Sequence[bytes], reply: bytes, servers: int | None
    ) -> None:
        """Count the subscriptions of an account that a subject reaches, those of one queue group if
        there is a second word, on `servers` servers; None: on those that answer in time."""
        if len(self._open) >= OPEN_MAX:
            return
        self._next += 1
        inbox = b"%s%d" % (self.inbox, self._next)
        until_ns = self.router.now_ns + (FAR_WAIT_NS if servers is None else WAIT_NS)
        self._open[inbox] = _OpenCount(account, reply, servers, until_ns)
        body = {"acc": account.name, "subject": words[0].decode("utf-8", "replace")}
        if len(words) > 1:
            body["queue"] = b64encode(words[1]).decode()
        self.router.publish(self.system, COUNT_SUBJECT, dumps(body), reply=inbox)

    def take(self, sink: Sink) -> None:
        """Answers came."""
        for subject, _, _, payload, _ in sink.take():
            open_ = self._open.get(subject)
            if open_ is None:
                continue
            open_.answers += 1
            open_.total += max(number(payload), 0)
            if open_.expected is not None and open_.answers >= open_.expected:
                self._finish(subject)

    def tick(self, now_ns: int) -> None:
        """Answer with what is there after a while."""
        for inbox, open_ in list(self._open.items()):
            if now_ns >= open_.until_ns:
                self._finish(inbox)

    def next_due_ns(self) -> int | None:
        """When `tick` has something to do."""
        return min((open_.until_ns for open_ in self._open.values()), default=None)

    def _finish(self, inbox: bytes) -> None:
        open_ = self._open.pop(inbox)
        self.router.answer(open_.account, open_.reply, b"%d" % open_.total)
