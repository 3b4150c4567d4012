"""What accounts take from each other: stream and service imports, and the way back of replies.

Who listens to what a stream import brings listens in the exporting account as well: each such
subscription has a shadow there, which other servers are told of. A service import is a
subscription in the importing account whose target is a `AccountImport` into the exporting one. The
reply of a request is replaced by one of this server's own (`_R_.`), whose messages are led back. It
ends as the first one where that speaks to a stream itself: fast batches are made of replies.
"""

from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

from jsctl.broker.accel.columns import FAST_INGEST
from jsctl.broker.accounts.accounts import Account, Accounts, Jitter
from jsctl.broker.errors import ConfigError
from jsctl.broker.interest.kinds import Served
from jsctl.broker.interest.targets import (
    AccountImport,
    LeafLink,
    Namespace,
    Shadow,
    StreamImport,
    Subscription,
)
from jsctl.broker.options import AccountOptions, ExportOptions, ImportOptions
from jsctl.broker.subject.matching import overlaps, subset
from jsctl.broker.subject.transforms import Transform, compile_transform

RESPONSES_MAX = 65536
"""Requests of an account whose replies are awaited; at the limit its oldest is given up."""

_TOKEN_RANGE = 1 << 62
_INGEST_WORDS = 6
"""Tokens behind the prefix of a fast batch's reply."""

Waiting = dict[AccountImport, tuple[Subscription, int]]
"""Ways back of an account's requests, the oldest first, with when each is given up."""


class Wiring(NamedTuple):
    """All that one import depends on: while this stays the same, so does what was made of it."""

    importer: Account
    wanted: ImportOptions
    exporter: Account
    export: ExportOptions


class Imports:
    """All imports of a server, and the requests that are under way through them."""

    def __init__(
        self,
        accounts: Accounts,
        jitter: Jitter,
        add: Callable[[Subscription], None],
        remove: Callable[[Subscription], None],
    ) -> None:
        self._accounts = accounts
        self._jitter = jitter
        self._add = add
        self._remove = remove
        self._responses: dict[Namespace, Waiting] = {}
        self._shadows: dict[Subscription, list[Subscription]] = {}
        self._services: dict[Wiring, Subscription] = {}
        self._streams: dict[Wiring, StreamImport] = {}
        self.now_ns = 0

    def __len__(self) -> int:
        return sum(map(len, self._responses.values()))

    def of(self, account: Account) -> list[Wiring]:
        """Those of an account that are in effect."""
        return [one for one in (*self._services, *self._streams) if one.importer is account]

    def install(self) -> None:
        """Have all imports that are configured now, and no others; those that stay are not
        touched, and neither is what listens through them.

        Raises ConfigError for one that has no export, or would lead requests round in a circle, and
        has changed nothing then. Where accounts are not configured, but bring their own JWTs, such
        imports are left out instead: others are not to suffer for them.
        """
        wanted = dict.fromkeys(self._authorized())
        circle = _circle([one for one in wanted if one.wanted.service])
        if circle and not self._accounts.logins.by_claims:
            raise _goes_round(circle[0])
        for one in circle:
            del wanted[one]
        services: dict[Wiring, AccountImport] = {}
        streams: dict[Wiring, StreamImport] = {}
        for one in list(wanted):
            if one in self._services or one in self._streams:
                continue
            try:
                if one.wanted.service:
                    services[one] = _bridge(one)
                else:
                    streams[one] = _stream(one)
            except ConfigError:
                if not self._accounts.logins.by_claims:
                    raise
                del wanted[one]
        for wiring, bridge in services.items():
            local = _pattern(_local(wiring.wanted))
            sub = Subscription(wiring.importer, local, b"", b"", bridge, local_only=True)
            self._services[wiring] = sub
            self._add(sub)
        for wiring in [one for one in self._services if one not in wanted]:
            self._remove(self._services.pop(wiring))
        kept = {one: made for one, made in self._streams.items() if one in wanted}
        self._stream_imports({**kept, **streams})
        self._give_up_removed()

    def _authorized(self) -> Iterator[Wiring]:
        offers = {account: Offers(account.options.exports) for account in self._accounts}
        for account in self._accounts:
            for one in account.options.imports:
                try:
                    yield self._wiring(offers, account, one)
                except ConfigError:
                    if not self._accounts.logins.by_claims:
                        raise

    def _wiring(
        self, offers: dict[Account, "Offers"], account: Account, wanted: ImportOptions
    ) -> Wiring:
        exporter = self._accounts.get(wanted.account)
        export = None if exporter is None else offers[exporter].of(account.name, wanted)
        if exporter is None or export is None:
            kind = "service" if wanted.service else "stream"
            raise ConfigError(
                f"{kind} import of {wanted.subject!r} from {wanted.account!r} not authorized",
                remedy=f"export it to account {account.name!r}",
            )
        return Wiring(account, wanted, exporter, export)

    def _stream_imports(self, streams: dict[Wiring, StreamImport]) -> None:
        """Have these, and let the subscriptions of accounts whose imports changed follow."""
        importers: dict[Account, list[StreamImport]] = {one.importer: [] for one in self._streams}
        for one, made in streams.items():
            importers.setdefault(one.importer, []).append(made)
        self._streams = streams
        for account, now in importers.items():
            if now != account.streams:
                account.streams = now
                for sub in list(account.sublist):
                    self._follow(sub)

    def _follow(self, sub: Subscription) -> None:
        """Cast the shadows that are missing, then take away those that are left over."""
        if sub.local_only:
            return
        before = self._shadows.pop(sub, [])
        ways = {_way(shadow) for shadow in before}
        self.listened(sub, ways)
        streams = sub.account.streams
        kept = [shadow for shadow in before if _way(shadow) in streams]
        if kept:
            self._shadows.setdefault(sub, []).extend(kept)
        for shadow in before:
            if _way(shadow) not in streams:
                self._remove(shadow)

    def listened(self, sub: Subscription, known: Collection[StreamImport | None] = ()) -> None:
        """An account that imports streams has one more subscription; imports of imports are none.

        The server's own services listen in every account already: they are not to hear a request
        twice. Of `known` imports the subscription has its shadows.
        """
        target = sub.target
        if target.served is Served.CAPTURED:
            if target.account is not None:
                return
        elif target.served is not Served.EACH and not isinstance(target, LeafLink):
            return
        shadows = []
        for one in sub.account.streams:
            pattern = b"" if one in known else one.exported(sub.subject)
            if pattern:
                way = Shadow(sub, one)
                words = (one.exporter, pattern, sub.queue, sub.sid, way)
                shadows.append(Subscription(*words, weight=sub.weight, origin=sub.origin))
        if shadows:
            self._shadows[sub] = shadows
            for shadow in shadows:
                self._add(shadow)

    def shadows_of(self, sub: Subscription) -> Collection[Subscription]:
        """What stands for a subscription in exporting accounts."""
        return self._shadows.get(sub, ())

    def left(self, sub: Subscription) -> None:
        """A subscription has ended, and so do its shadows."""
        for shadow in self._shadows.pop(sub, ()):
            self._remove(shadow)

    def lead_back(
        self, account: Namespace, bridge: AccountImport, subject: bytes, reply: bytes
    ) -> bytes:
        """The reply to use behind `bridge` for a message of `account`."""
        if bridge.response:
            self._answered(bridge)
        if not bridge.service or not reply:
            return reply
        waiting = self._responses.setdefault(account, {})
        self._expire(waiting)
        own = b"_R_.%014x" % self._jitter(_TOKEN_RANGE) + _ingest_words(reply)
        back = AccountImport(
            account, reply=reply, single=bridge.single, threshold_ns=bridge.threshold_ns
        )
        sub = Subscription(bridge.account, own, b"", b"", back)
        waiting[back] = (sub, self.now_ns + bridge.threshold_ns)
        self._add(sub)
        return own

    def _answered(self, bridge: AccountImport) -> None:
        waiting = self._responses.get(bridge.account, {})
        found = waiting.pop(bridge, None)
        if found is None:
            return
        if bridge.single:
            self._remove(found[0])
        else:
            waiting[bridge] = (found[0], self.now_ns + bridge.threshold_ns)

    def _expire(self, waiting: Waiting) -> None:
        """Give up the oldest requests that nobody answered in time."""
        while waiting:
            bridge = next(iter(waiting))
            sub, until_ns = waiting[bridge]
            if self.now_ns < until_ns and len(waiting) < RESPONSES_MAX:
                return
            del waiting[bridge]
            self._remove(sub)

    def _give_up_removed(self) -> None:
        """Nobody waits in accounts that are gone."""
        for account in list(self._responses):
            if self._accounts.get(account.name) is not account:
                for sub, _ in self._responses.pop(account).values():
                    self._remove(sub)


class Offers:
    """What an account exports, and to whom: thousands may take something of one, each its own."""

    def __init__(self, exports: Collection[ExportOptions]) -> None:
        self._same: dict[tuple[bool, str], list[ExportOptions]] = {}
        """By their very words."""
        self._wide: dict[tuple[bool, str], list[ExportOptions]] = {}
        """Those with wildcards by whom they name; by nobody if they name none."""
        for one in exports:
            self._same.setdefault((one.service, one.subject), []).append(one)
            if one.subject.endswith(">") or "*" in one.subject:
                named = () if one.account_token_position else one.accounts
                for name in dict.fromkeys(named or ("",)):
                    self._wide.setdefault((one.service, name), []).append(one)

    def of(self, importer: str, wanted: ImportOptions) -> ExportOptions | None:
        """The export that an import may rely on. One in the very words of the import decides: what
        it keeps for some accounts, a wider one does not give to others, as in nats-server."""
        subject = wanted.subject.encode()
        same = self._same.get((wanted.service, wanted.subject), ())
        found = [one for one in same if one.accounts or one.account_token_position] or same
        if not found:
            names = (importer, "")
            wide = [one for name in names for one in self._wide.get((wanted.service, name), ())]
            found = [one for one in wide if subset(subject, one.subject.encode())]
        return next((one for one in found if _offered(one, importer, subject)), None)


def _circle(services: Collection[Wiring]) -> list[Wiring]:
    """Those by which a request would cross again and again, by each of the ways that there are."""
    of_importer: dict[Account, list[Wiring]] = {}
    for one in services:
        of_importer.setdefault(one.importer, []).append(one)
    left = {
        one: [
            other
            for other in of_importer.get(one.exporter, ())
            if overlaps(one.wanted.subject.encode(), _pattern(_local(other.wanted)))
        ]
        for one in services
    }
    while ends := [one for one, others in left.items() if left.keys().isdisjoint(others)]:
        for one in ends:
            del left[one]
    return list(left)


def _goes_round(one: Wiring) -> ConfigError:
    return ConfigError(
        f"service import of {one.wanted.subject!r} from {one.wanted.account!r}: import forms a"
        " cycle",
        remedy=f"{one.importer.name!r} is to import nothing that comes back to it",
    )


def takes_service(options: AccountOptions, subject: bytes) -> bool:
    """Whether requests to a subject go to another account."""
    services = [one for one in options.imports if one.service]
    return any([subset(subject, _pattern(_local(one))) for one in services])


def _local(wanted: ImportOptions) -> bytes:
    return (wanted.to or wanted.subject).encode()


def _way(shadow: Subscription) -> StreamImport | None:
    return shadow.target.way if isinstance(shadow.target, Shadow) else None


def _bridge(wiring: Wiring) -> AccountImport:
    wanted, export = wiring.wanted, wiring.export
    return AccountImport(
        wiring.exporter,
        transform=_transform(_local(wanted), wanted.subject.encode()),
        service=True,
        share=wanted.share,
        single=export.response_type.lower() == "singleton",
        threshold_ns=export.response_threshold_ns,
        allow_trace=export.allow_trace,
    )


def _stream(wiring: Wiring) -> StreamImport:
    wanted = wiring.wanted
    remote, local = wanted.subject.encode(), _local(wanted)
    if wanted.prefix:
        local = wanted.prefix.rstrip(".").encode() + b"." + remote
    forth, back = _transform(remote, local), _transform(local, remote)
    return StreamImport(
        wiring.exporter, _pattern(local), forth, back, allow_trace=wanted.allow_trace
    )


def _offered(export: ExportOptions, importer: str, subject: bytes) -> bool:
    """Whether an account may import a subject: a token that has to name it comes first."""
    position = export.account_token_position
    if position:
        tokens = subject.split(b".")
        return position <= len(tokens) and tokens[position - 1] == importer.encode()
    return not export.accounts or importer in export.accounts


def _pattern(subject: bytes) -> bytes:
    """A local subject as a pattern: `$n` stands for a wildcard there."""
    return b".".join(
        [b"*" if one[:1] == b"$" and one[1:].isdigit() else one for one in subject.split(b".")]
    )


def _transform(source: bytes, destination: bytes) -> Transform:
    """A mapping in which wildcards of the destination are filled in order.

    A source with `$n` tokens gives its wildcards those numbers.
    """
    order = [one[1:] for one in source.split(b".") if one[:1] == b"$" and one[1:].isdigit()]
    pieces = destination.split(b".")
    ordinal = 0
    for position, piece in enumerate(pieces):
        if piece == b"*":
            ordinal += 1
            name = b"%d" % ordinal
            if order and name not in order:
                raise ConfigError("not all wildcards are used", remedy=f"got {source!r}")
            number = order.index(name) + 1 if order else ordinal
            pieces[position] = b"$%d" % number
    return compile_transform(_pattern(source), b".".join(pieces))


def _ingest_words(reply: bytes) -> bytes:
    """What the reply of a fast batch says, to follow another prefix. One that has too few words
    says nothing behind that one either."""
    if not reply.endswith(FAST_INGEST):
        return b""
    prefix, *words = reply.rsplit(b".", _INGEST_WORDS)
    whole = len(words) == _INGEST_WORDS and prefix
    return b"." + b".".join(words) if whole else FAST_INGEST
