"""Hubs that this server hangs on: which of their addresses to dial, and when again.

A remote is tried for ever. Its addresses take turns; what a hub tells of the other servers of its
cluster is added to what is configured. After a refusal that the next attempt would meet as well,
the hub is left alone for a while.
"""

from dataclasses import field, replace

from jsctl.broker.conf.units import is_address
from jsctl.broker.leafnode_options import GLOBAL_ACCOUNT, LeafNodeOptions, LeafRemote, LeafUrl
from jsctl.broker.leafnodes.types import SYSTEM_DELAY_NS, LeafSettings
from jsctl.broker.linking.fields import split_url
from jsctl.broker.tls_options import TlsOptions
from jsctl.broker.turn import ConnKind, Jitter, LinkDial
from jsctl.dataclass import dataclass

DISCOVERED_MAX = 1024
"""Addresses that a hub may tell of."""


@dataclass(slots=True, eq=False)
class Remote:
    """One remote of the configuration. Times in ns."""

    options: LeafRemote
    urls: list[LeafUrl]
    """To be dialed, the next one first."""
    current: LeafUrl | None = None
    due_ns: int | None = None
    """When to dial; None while there is nothing to do."""
    delay_ns: int = 0
    """To be added to the next pause."""
    attempts: int = 0
    """Failures in a row."""
    connected_once: bool = False
    token: int = 0
    """Of the dial that is under way."""
    dialed_ns: int = 0
    """When it began."""
    conn: int = 0
    """Of the connection that there is."""
    removed: bool = False

    @property
    def account(self) -> str:
        """The local one."""
        return self.options.account or GLOBAL_ACCOUNT

    @property
    def valid(self) -> bool:
        """Whether it is still to be connected."""
        return not self.removed and not self.options.disabled and bool(self.options.urls)

    def next_url(self) -> LeafUrl:
        """The address to dial: the one after the last."""
        if len(self.urls) > 1 and self.urls[0] == self.current:
            self.urls.append(self.urls.pop(0))
        self.current = self.urls[0]
        return self.current

    def discovered(self, told: tuple[str, ...]) -> None:
        """A hub told of the addresses of its cluster."""
        known = {(url.host, url.port) for url in self.options.urls}
        places = [split_url(text) for text in told[:DISCOVERED_MAX]]
        fresh = [place for place in dict.fromkeys(places) if place is not None]
        found = [LeafUrl(*place) for place in fresh if place not in known]
        self.urls = [*found, *self.options.urls]

    def login(self) -> tuple[str, str]:
        """User and password: of the address, else of the first one that has some."""
        urls = [self.current or self.urls[0], *self.options.urls]
        return next(((url.user, url.password) for url in urls if url.user), ("", ""))

    def tls_name(self, url: LeafUrl) -> str:
        """Whose certificate is to be shown at an address: hubs tell of theirs as numbers."""
        if not is_address(url.host):
            return url.host
        return next((one.host for one in self.options.urls if not is_address(one.host)), url.host)


@dataclass(slots=True)
class Remotes:
    """All of them, and the dials that are under way."""

    settings: LeafSettings
    jitter: Jitter
    system_account: str
    remotes: list[Remote] = field(default_factory=list)
    dials: list[LinkDial] = field(default_factory=list)
    _next_token: int = 1

    def configure(self, block: LeafNodeOptions, now_ns: int) -> list[Remote]:
        """Have exactly the remotes of a configuration; those that have to go are returned."""
        wanted = {one.identity: one for one in block.remotes}
        gone: list[Remote] = []
        for remote in list(self.remotes):
            options = wanted.pop(remote.options.identity, None)
            if options is None:
                remote.removed = True
                remote.due_ns = None
                self.remotes.remove(remote)
                gone.append(remote)
                continue
            switched = options.disabled != remote.options.disabled
            remote.options = options
            if switched and options.disabled:
                remote.due_ns = None
                gone.append(remote)
            elif switched and not remote.conn and not remote.token:
                remote.due_ns = now_ns
        for options in wanted.values():
            self._add(options, now_ns)
        return gone

    def _add(self, options: LeafRemote, now_ns: int) -> None:
        urls = list(options.urls)
        if not options.no_randomize:
            for place in range(len(urls) - 1, 0, -1):
                other = self.jitter(place + 1)
                urls[place], urls[other] = urls[other], urls[place]
        remote = Remote(options, urls)
        if remote.valid:
            system = remote.account == self.system_account
            clustered = self.settings.cluster not in ("", self.settings.server_name)
            remote.due_ns = now_ns + (SYSTEM_DELAY_NS if system and clustered else 0)
        self.remotes.append(remote)

    def tick(self, now_ns: int) -> None:
        """Dial what is due."""
        for remote in self.remotes:
            if remote.due_ns is None or now_ns < remote.due_ns:
                continue
            remote.due_ns = None
            if remote.valid and not remote.conn and not remote.token:
                self._dial(remote, now_ns)

    def _dial(self, remote: Remote, now_ns: int) -> None:
        url, options = remote.next_url(), remote.options
        secured = any(one.scheme.lower() == "tls" for one in options.urls)
        tls = options.tls or (TlsOptions() if secured else None)
        remote.token, remote.dialed_ns = self._next_token, now_ns
        self._next_token += 1
        self.dials.append(
            LinkDial(
                remote.token,
                url.host,
                url.port,
                ConnKind.LEAF,
                tls=with_pins(tls, self.settings.pins),
                tls_name=remote.tls_name(url),
                first_info_ns=options.first_info_ns,
                timeout_ns=options.dial_timeout_ns or self.settings.dial_timeout_ns,
                credentials=options.credentials,
            )
        )

    def arrived(self, token: int, conn: int) -> Remote | None:
        """Whose a successful dial is; None when it is not wanted any more."""
        remote = self._of(token)
        if remote is None:
            return None
        remote.token = 0
        if not remote.valid:
            return None
        remote.conn = conn
        return remote

    def failed(self, token: int, now_ns: int) -> Remote | None:
        """A dial failed: plan the next one."""
        remote = self._of(token)
        if remote is None:
            return None
        remote.token = 0
        remote.attempts += 1
        pause_ns = self.settings.reconnect_ns
        # A dial that took its time was a pause as well. With at most half of one more, a network
        # that comes back in the middle of a dial has its link again within two pauses.
        due_ns = remote.dialed_ns + pause_ns + self.jitter(max(pause_ns // 2, 1))
        self._plan(remote, max(due_ns, now_ns))
        return remote

    def closed(self, remote: Remote, now_ns: int) -> None:
        """A remote's connection is gone."""
        remote.conn = 0
        self._plan(remote, now_ns + self.settings.reconnect_ns + remote.delay_ns)
        remote.delay_ns = 0

    def _plan(self, remote: Remote, at_ns: int) -> None:
        remote.due_ns = at_ns if remote.valid else None

    def is_reported(self, remote: Remote) -> bool:
        """Whether the last failure is one for the operator."""
        settings = self.settings
        often = settings.reconnect_reports if remote.connected_once else settings.connect_reports
        return remote.attempts == 1 or (often > 0 and remote.attempts % often == 0)

    def deadline_ns(self) -> int | None:
        """When `tick` has something to do."""
        return min((one.due_ns for one in self.remotes if one.due_ns is not None), default=None)

    def _of(self, token: int) -> Remote | None:
        return next((one for one in self.remotes if one.token == token), None)


def with_pins(tls: TlsOptions | None, pins: tuple[str, ...]) -> TlsOptions | None:
    """The TLS of a remote, with the pinned certificates of the whole block if it has none."""
    if tls is None or tls.pinned_certs or not pins:
        return tls
    return replace(tls, pinned_certs=pins)
