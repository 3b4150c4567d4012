"""Other clusters: which of their addresses to dial, and when again.

A cluster that is configured is tried for ever, one that others told of a few times. All its
addresses are tried before there is a pause.
"""

from dataclasses import field, replace

from jsctl.broker.conf.units import host_text, is_address
from jsctl.broker.gateway_options import GatewayUrl, RemoteGateway
from jsctl.broker.gateways.types import (
    CONNECT_RETRY_FIRST_NS,
    CONNECT_RETRY_MAX_NS,
    CONNECT_RETRY_NS,
    FIRST_INFO_NS,
    IMPLICIT_RETRIES,
    RECONNECT_JITTER_NS,
    REMOTES_MAX,
    URLS_MAX,
    GatewaySettings,
)
from jsctl.broker.linking.fields import split_url
from jsctl.broker.tls_options import HandshakeFirst, TlsOptions
from jsctl.broker.turn import ConnKind, Jitter, LinkDial
from jsctl.dataclass import dataclass

Place = tuple[str, int]


@dataclass(slots=True, eq=False)
class RemoteCluster:
    """One other cluster. Times in ns."""

    name: str
    configured: RemoteGateway | None
    """None: others told of it."""
    urls: dict[Place, GatewayUrl] = field(default_factory=dict)
    untried: list[GatewayUrl] = field(default_factory=list)
    """Addresses that are still to be dialed before the next pause."""
    current: GatewayUrl | None = None
    due_ns: int | None = None
    """When to dial; None while there is nothing to do."""
    pause_ns: int = 0
    attempts: int = 0
    """Rounds in a row that led nowhere."""
    connected_once: bool = False
    token: int = 0
    """Of the dial that is under way."""
    dialed_ns: int = 0
    """When it began."""
    conn: int = 0
    """Of the connection that there is."""

    @property
    def is_implicit(self) -> bool:
        """Whether only others told of it."""
        return self.configured is None

    @property
    def addresses(self) -> tuple[str, ...]:
        """As others are told them."""
        return tuple(host_text(*place) for place in self.urls)

    def told(self, urls: tuple[str, ...]) -> None:
        """More addresses are known."""
        for place in map(split_url, urls):
            if place is not None and place not in self.urls and len(self.urls) < URLS_MAX:
                self.urls[place] = GatewayUrl(*place)

    def renew(self, urls: tuple[str, ...]) -> None:
        """These are all addresses that there are, besides what is configured; if none is of use,
        those that are known stay."""
        before, self.urls = self.urls, {}
        for url in self.configured.urls if self.configured is not None else ():
            self.urls[url.host, url.port] = url
        self.told(urls)
        self.urls = self.urls or before

    def tls_name(self, url: GatewayUrl) -> str:
        """Whose certificate is to be shown at an address: servers tell of themselves as numbers."""
        hosts = [url.host, *(one.host for one in self.urls.values())]
        return next((host for host in hosts if not is_address(host)), url.host)


@dataclass(slots=True)
class RemoteClusters:
    """All of them, and the dials that are under way."""

    settings: GatewaySettings
    jitter: Jitter
    clusters: dict[str, RemoteCluster] = field(default_factory=dict)
    dials: list[LinkDial] = field(default_factory=list)
    _next_token: int = 1

    def configure(self, now_ns: int) -> None:
        """Take the configured clusters, and dial them at once."""
        for one in self.settings.block.others:
            made = self.clusters[one.name] = RemoteCluster(one.name, one, due_ns=now_ns)
            made.renew(())

    def change_settings(self, settings: GatewaySettings) -> None:
        """The next dials are made as it is configured now; the clusters are the same ones."""
        self.settings = settings
        for one in settings.block.others:
            self.clusters[one.name].configured = one

    def learn(self, name: str, urls: tuple[str, ...], now_ns: int) -> RemoteCluster | None:
        """Somebody told of a cluster: dial it, unless it is known. One that is new is returned."""
        if not name or name == self.settings.name:
            return None
        known = self.clusters.get(name)
        if known is not None:
            known.told(urls)
            return None
        made = RemoteCluster(name, None, due_ns=now_ns)
        made.told(urls)
        if not made.urls or len(self.clusters) >= REMOTES_MAX:
            return None
        self.clusters[name] = made
        return made

    def tick(self, now_ns: int) -> None:
        """Dial what is due."""
        for remote in list(self.clusters.values()):
            if remote.due_ns is None or now_ns < remote.due_ns:
                continue
            remote.due_ns = None
            if not (remote.conn or remote.token):
                self._dial(remote, now_ns)

    def _dial(self, remote: RemoteCluster, now_ns: int) -> None:
        if not remote.untried:
            remote.untried = list(remote.urls.values())
            for place in range(len(remote.untried) - 1, 0, -1):
                other = self.jitter(place + 1)
                urls = remote.untried
                urls[place], urls[other] = urls[other], urls[place]
        url = remote.current = remote.untried.pop()
        remote.token, remote.dialed_ns = self._next_token, now_ns
        self._next_token += 1
        self.dials.append(
            LinkDial(
                remote.token,
                url.host,
                url.port,
                ConnKind.GATEWAY,
                tls=self.tls_of(remote),
                tls_name=remote.tls_name(url),
                first_info_ns=FIRST_INFO_NS,
                timeout_ns=self.settings.block.dial_timeout_ns,
            )
        )

    def tls_of(self, remote: RemoteCluster) -> TlsOptions | None:
        """How connections to a cluster are secured: before all else."""
        own = remote.configured.tls if remote.configured is not None else None
        block = self.settings.block.tls
        found = own or block
        if found is None:
            return None
        pins = found.pinned_certs or (block.pinned_certs if block is not None else ())
        return replace(found, handshake_first=HandshakeFirst.ALWAYS, pinned_certs=pins)

    def arrived(self, token: int, conn: int) -> RemoteCluster | None:
        """Whose a successful dial is; None when it is not wanted any more."""
        remote = self._of(token)
        if remote is None:
            return None
        remote.token, remote.conn = 0, conn
        return remote

    def failed(self, token: int, now_ns: int, *, wanted: bool) -> RemoteCluster | None:
        """A dial failed: plan the next one. `wanted`: that cluster has a connection to here, so it
        is there, whoever told of it."""
        remote = self._of(token)
        if remote is None:
            return None
        remote.token = 0
        self.retry(remote, now_ns, wanted=wanted)
        return remote

    def retry(self, remote: RemoteCluster, now_ns: int, *, wanted: bool) -> None:
        """A dial led nowhere: the next address, or a pause; or it is given up."""
        if remote.untried:
            remote.due_ns = now_ns
            return
        remote.attempts += 1
        retries = max(self.settings.block.connect_retries, IMPLICIT_RETRIES)
        if remote.is_implicit and remote.attempts > retries and not wanted:
            self.clusters.pop(remote.name, None)
            remote.due_ns = None
            return
        remote.pause_ns = self._pause(remote)
        # A dial that took its time was a pause as well.
        due_ns = remote.dialed_ns + remote.pause_ns + self.jitter(RECONNECT_JITTER_NS)
        remote.due_ns = max(due_ns, now_ns)

    def _pause(self, remote: RemoteCluster) -> int:
        if not remote.connected_once and remote.pause_ns < CONNECT_RETRY_NS:
            return min(max(remote.pause_ns * 2, CONNECT_RETRY_FIRST_NS), CONNECT_RETRY_NS)
        if self.settings.block.connect_backoff:
            return min(max(remote.pause_ns * 2, CONNECT_RETRY_NS), CONNECT_RETRY_MAX_NS)
        return CONNECT_RETRY_NS

    def connected(self, remote: RemoteCluster) -> None:
        """The other side is who it is to be: retries start afresh."""
        remote.attempts = remote.pause_ns = 0
        remote.untried.clear()
        remote.connected_once = True

    def closed(self, remote: RemoteCluster, now_ns: int, *, linked: bool, wanted: bool) -> None:
        """A cluster's connection is gone; one that carried messages is replaced almost at once, but
        no sooner than a pause after it was dialed: the other side may turn it away again."""
        remote.conn = 0
        if linked:
            due_ns = max(remote.dialed_ns + CONNECT_RETRY_NS, now_ns)
            remote.due_ns = due_ns + self.jitter(RECONNECT_JITTER_NS)
        else:
            self.retry(remote, now_ns, wanted=wanted)

    def is_reported(self, remote: RemoteCluster) -> bool:
        """Whether the last failure is one for the operator."""
        settings = self.settings
        often = settings.reconnect_reports if remote.connected_once else settings.connect_reports
        return remote.attempts == 1 or (often > 0 and remote.attempts % often == 0)

    def deadline_ns(self) -> int | None:
        """When `tick` has something to do."""
        due = (one.due_ns for one in self.clusters.values() if one.due_ns is not None)
        return min(due, default=None)

    def _of(self, token: int) -> RemoteCluster | None:
        return next((one for one in self.clusters.values() if one.token == token), None)
