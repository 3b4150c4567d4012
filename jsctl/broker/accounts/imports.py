"""What accounts take from each other: stream and service imports, and the way back of replies.

Who listens to what a stream import brings listens in the exporting account as well: each such
subscription has a shadow there, which other servers are told of. A service import is a
subscription in the importing account whose target is a `AccountImport` into the exporting one. The
reply of a request is replaced by one of this server's own (`_R_.`), whose messages are led back.
"""

from collections.abc import Callable

from jsctl.broker.accounts.accounts import Account, Accounts, Jitter
from jsctl.broker.errors import ConfigError
from jsctl.broker.interest.kinds import Served
from jsctl.broker.interest.targets import (
    AccountImport,
    Namespace,
    Shadow,
    StreamImport,
    Subscription,
)
from jsctl.broker.options import ExportOptions, ImportOptions
from jsctl.broker.subject.matching import subset
from jsctl.broker.subject.transforms import Transform, compile_transform

RESPONSES_MAX = 65536
"""Requests whose replies are awaited; at the limit the oldest is given up."""

_TOKEN_RANGE = 1 << 62


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
        self._responses: dict[AccountImport, tuple[Subscription, int]] = {}
        self._shadows: dict[Subscription, list[Subscription]] = {}
        self.now_ns = 0

    def __len__(self) -> int:
        return len(self._responses)

    def install(self) -> None:
        """Put all configured imports in place. Raises ConfigError for one that has no export."""
        for account in self._accounts:
            for one in account.options.imports:
                self._install(account, one)

    def _install(self, account: Account, wanted: ImportOptions) -> None:
        exporter = self._accounts.get(wanted.account)
        export = None if exporter is None else _export(exporter, account, wanted)
        if exporter is None or export is None:
            kind = "service" if wanted.service else "stream"
            raise ConfigError(
                f"{kind} import of {wanted.subject!r} from {wanted.account!r} not authorized",
                remedy=f"export it to account {account.name!r}",
            )
        remote, local = wanted.subject.encode(), (wanted.to or wanted.subject).encode()
        if wanted.service:
            bridge = AccountImport(
                exporter,
                transform=_transform(local, remote),
                service=True,
                share=wanted.share,
                single=export.response_type.lower() == "singleton",
                threshold_ns=export.response_threshold_ns,
                allow_trace=export.allow_trace,
            )
            self._listen(account, _pattern(local), bridge)
        else:
            if wanted.prefix:
                local = wanted.prefix.rstrip(".").encode() + b"." + remote
            forth, back = _transform(remote, local), _transform(local, remote)
            trace = wanted.allow_trace
            one = StreamImport(exporter, _pattern(local), forth, back, allow_trace=trace)
            account.streams.append(one)

    def _listen(self, account: Account, pattern: bytes, bridge: AccountImport) -> None:
        self._add(Subscription(account, pattern, b"", b"", bridge, local_only=True))

    def listened(self, sub: Subscription) -> None:
        """An account that imports streams has one more subscription; imports of imports are none.

        The server's own services listen in every account already: they are not to hear a request
        twice.
        """
        target = sub.target
        if target.served is Served.CAPTURED:
            if target.account is not None:
                return
        elif target.served is not Served.EACH:
            return
        shadows = []
        for one in sub.account.streams:
            pattern = one.exported(sub.subject)
            if pattern:
                way = Shadow(sub, one)
                shadows.append(Subscription(one.exporter, pattern, sub.queue, sub.sid, way))
        if shadows:
            self._shadows[sub] = shadows
            for shadow in shadows:
                self._add(shadow)

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
        self._expire()
        own = b"_R_.%014x" % self._jitter(_TOKEN_RANGE)
        back = AccountImport(
            account, reply=reply, single=bridge.single, threshold_ns=bridge.threshold_ns
        )
        sub = Subscription(bridge.account, own, b"", b"", back)
        self._responses[back] = (sub, self.now_ns + bridge.threshold_ns)
        self._add(sub)
        return own

    def _answered(self, bridge: AccountImport) -> None:
        waiting = self._responses.pop(bridge, None)
        if waiting is None:
            return
        if bridge.single:
            self._remove(waiting[0])
        else:
            self._responses[bridge] = (waiting[0], self.now_ns + bridge.threshold_ns)

    def _expire(self) -> None:
        """Give up the oldest requests that nobody answered in time."""
        while self._responses:
            bridge = next(iter(self._responses))
            sub, until_ns = self._responses[bridge]
            if self.now_ns < until_ns and len(self._responses) < RESPONSES_MAX:
                return
            del self._responses[bridge]
            self._remove(sub)


def _export(exporter: Account, importer: Account, wanted: ImportOptions) -> ExportOptions | None:
    subject = wanted.subject.encode()
    for export in exporter.options.exports:
        open_to_all = _offered(export, importer.name, subject)
        covered = subset(subject, export.subject.encode())
        if export.service == wanted.service and open_to_all and covered:
            return export
    return None


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
