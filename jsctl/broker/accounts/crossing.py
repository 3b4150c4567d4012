"""Requests that service imports lead into other accounts, and their replies on the way back.

What is decided here holds for every message, traced or not: which ways there are, what the other
account is told of who asks, and where the reply goes. Stream imports are no such ways: who
listens through one listens in the exporting account itself, see `Shadow`.
"""

from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from jsctl.broker.accounts.accounts import Account, Jitter
from jsctl.broker.interest.links import is_request
from jsctl.broker.interest.outbound import Origin, kind_of
from jsctl.broker.interest.targets import (
    AccountImport,
    Namespace,
    SublistResult,
)

CROSSINGS_MAX = 8
"""Accounts that one message may be led through by chained imports."""

LeadBack = Callable[[Namespace, AccountImport, bytes, bytes], bytes]


class _Everybody(Container[bytes]):
    """All queue groups, for a message whose sender knew none of those that it comes to: it was
    mapped, or led into another account."""

    def __contains__(self, name: object) -> bool:
        return True


EVERYBODY = _Everybody()


class Way(NamedTuple):
    """One way out of an account: the subject on the other side, and who listens there.

    `origin` is None for a reply from another server: it was sent to this one alone, which passes
    it on to whomever it concerns, as if it came from here.
    """

    bridge: AccountImport
    origin: Origin
    subject: bytes
    plan: SublistResult

    def shows(self, subject: bytes, shown: bytes) -> bytes:
        """The subject that receivers see of a message that was sent to `subject` and is shown as
        `shown`: a consumer's delivery to who asked for it keeps that of what is stored."""
        return shown if self.bridge.response and shown != subject else self.subject


class Crossings:
    """The ways that the message in hand takes. `lead_back` gives the reply to use behind one,
    `clusters` the other clusters, the nearest first."""

    def __init__(
        self,
        jitter: Jitter,
        lead_back: LeadBack,
        clusters: Callable[[], Sequence[str]] = lambda: (),
    ) -> None:
        self._jitter = jitter
        self.lead_back = lead_back
        self._clusters = clusters
        self._taken: list[AccountImport] = []
        """The ways that lead the message in hand, the last one last."""
        self.asking = True
        """Whether it may be a request to JetStream where it is led; no answer is."""

    @property
    def inside(self) -> bool:
        """Whether the message in hand came into its account this way: streams do not export it."""
        return bool(self._taken)

    @contextmanager
    def answers(self) -> Iterator[None]:
        """What is published meanwhile is an answer, or a delivery."""
        self.asking = False
        try:
            yield
        finally:
            self.asking = True

    def ways(self, origin: Origin, plan: SublistResult, subject: bytes) -> Iterator[Way]:
        """Where a message goes on. Requests of a kind that does not cross here have crossed."""
        if len(self._taken) >= CROSSINGS_MAX:
            return
        crosses = kind_of(origin).crosses
        for bridge in plan.bridges:
            if (not crosses and not bridge.response) or bridge in self._taken:
                continue
            mapped = self._mapped(bridge, subject)
            if mapped and not (is_request(mapped) and self._is_answer(bridge)):
                other = bridge.account.sublist.match(mapped)
                yield Way(bridge, origin if crosses else None, mapped, other)

    def _is_answer(self, bridge: AccountImport) -> bool:
        """Whether who asked chose where it goes, and may not be allowed what is asked there."""
        return not self.asking or bridge.response or any(one.response for one in self._taken)

    def _mapped(self, bridge: AccountImport, subject: bytes) -> bytes:
        """The subject on the other side: mappings of that account hold for what is led there."""
        mapped, account = bridge.map_subject(subject), bridge.account
        if mapped and isinstance(account, Account) and account.mappings:
            return account.map_subject(mapped, self._jitter)
        return mapped

    def enter(
        self,
        way: Way,
        account: Namespace,
        subject: bytes,
        reply: bytes,
        headers: bytes | None,
    ) -> tuple[bytes, bytes | None]:
        """Take a way: the reply and the headers of the message behind it. `leave` ends it."""
        back = self.lead_back(account, way.bridge, subject, reply)
        if way.bridge.service:
            headers = self._introduced(way.origin, account, way.bridge, headers)
        self._taken.append(way.bridge)
        return back, headers

    def leave(self) -> None:
        """The message has been delivered behind the last way."""
        self._taken.pop()

    def _introduced(
        self, origin: Origin, account: Namespace, bridge: AccountImport, headers: bytes | None
    ) -> bytes:
        """The headers of a request, telling the service who asks."""
        from jsctl.broker.accounts.request_info import introduce, pass_on  # see `lazy`

        asker = None if origin is None else origin.facts()
        system = bridge.account.is_system
        clusters = self._clusters()
        services = [one for one in self._taken if one.service]
        if not services:
            shared = bridge.share
            return introduce(
                asker, account.name, headers, shared=shared, system=system, clusters=clusters
            )
        before = services[-1].share
        shared = bridge.share and not before
        system = system and not before
        return pass_on(
            asker, account.name, headers or b"", shared=shared, system=system, clusters=clusters
        )
