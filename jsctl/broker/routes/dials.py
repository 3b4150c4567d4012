"""Which addresses to dial, and when again: the retry side of the mesh.

An explicit (configured) address is tried for ever, an implicit (gossiped) one a few times.
Pauses carry jitter, so that two servers which dropped each other's link as a duplicate do not
do so again.
"""

from jsctl.broker.routes.state import RouteAddress
from jsctl.broker.routes.types import (
    DIAL_BACKOFF_MAX_NS,
    DIAL_RETRY_FIRST_NS,
    DIAL_RETRY_NS,
    IMPLICIT_RETRIES,
    RECONNECT_JITTER_NS,
    MeshOptions,
    RouteUrl,
)
from jsctl.broker.turn import ONLY_OWN, Dial, Jitter


class DialSchedule:
    """The addresses of the mesh, with the dials that are under way."""

    def __init__(self, options: MeshOptions, jitter: Jitter) -> None:
        self._options = options
        self._jitter = jitter
        self._tokens: dict[int, tuple[RouteAddress, str]] = {}
        self._next_token = 1
        self.targets: list[RouteAddress] = []
        self.dials: list[Dial] = []
        self.stopped = False

    def configure(self, now_ns: int) -> None:
        """Take the configured routes and dial them at once."""
        for url in self._options.routes:
            self._configure(url, now_ns)

    def _configure(self, url: RouteUrl, now_ns: int) -> None:
        self.targets.append(
            RouteAddress(
                host=url.host,
                port=url.port,
                user=url.user or self._options.user,
                password=url.password or self._options.password,
                explicit=True,
                due_ns=now_ns,
            )
        )

    def change_options(self, options: MeshOptions, now_ns: int) -> list[RouteAddress]:
        """Take other options: dial new routes, forget those that are gone; these are returned."""
        before, self._options = self._options, options
        gone_urls = [one for one in before.routes if one not in options.routes]
        places = {(one.host, one.port) for one in gone_urls}
        gone = [one for one in self.targets if one.explicit and (one.host, one.port) in places]
        for target in gone:
            self.forget(target)
            self._tokens = {t: one for t, one in self._tokens.items() if one[0] is not target}
        for target in self.targets:
            if (target.user, target.password) == (before.user, before.password):
                target.user, target.password = options.user, options.password
        for url in options.routes:
            if url not in before.routes:
                self._configure(url, now_ns)
        return gone

    def learn(self, server_id: str, host: str, port: int, gossip_mode: int, now_ns: int) -> bool:
        """Take an address from gossip; False when it is known already."""
        for target in self.targets:
            if target.server_id == server_id or (target.host, target.port) == (host, port):
                return False
        self.targets.append(
            RouteAddress(
                host=host,
                port=port,
                user=self._options.user,
                password=self._options.password,
                explicit=False,
                server_id=server_id,
                gossip_mode=gossip_mode,
                retries_left=max(self._options.connect_retries, IMPLICIT_RETRIES),
                due_ns=now_ns,
            )
        )
        return True

    def dial(self, target: RouteAddress, account: str) -> None:
        """Open a connection for the pool (account "") or for one account."""
        if self.stopped or account in target.inflight:
            return
        target.inflight.add(account)
        token = self._next_token
        self._next_token += 1
        self._tokens[token] = (target, account)
        self.dials.append(Dial(token, target.host, target.port, own=tuple(sorted(target.own))))

    def arrived(self, token: int) -> tuple[RouteAddress, str] | None:
        """What a successful dial was for; None when it is not wanted any more."""
        return self._tokens.pop(token, None)

    def failed(self, token: int, reason: str, now_ns: int) -> RouteAddress | None:
        """A dial failed: plan the next one, unless nobody else is there. Returns its target."""
        purpose = self._tokens.pop(token, None)
        if purpose is None:
            return None
        target, account = purpose
        target.inflight.discard(account)
        if reason == ONLY_OWN:
            self.forget(target)
        else:
            self.retry(target, now_ns)
        return target

    def retry(self, target: RouteAddress, now_ns: int) -> None:
        """Look at a target again after its pause; forgets an implicit one out of retries."""
        if not target.explicit:
            if target.retries_left <= 0:
                self.forget(target)
                return
            target.retries_left -= 1
        target.pause_ns = self._pause(target)
        due_ns = now_ns + target.pause_ns + self._jitter(RECONNECT_JITTER_NS)
        target.due_ns = due_ns if target.due_ns is None else min(due_ns, target.due_ns)

    def soon(self, target: RouteAddress, now_ns: int) -> None:
        """A working connection was lost: look again almost at once."""
        target.due_ns = now_ns + self._jitter(RECONNECT_JITTER_NS)

    def met_itself(self, target: RouteAddress, address: str) -> None:
        """This server was behind an address: a name may stand for others as well."""
        if address == target.host or address in target.own:
            self.forget(target)
        else:
            target.own.add(address)

    def forget(self, target: RouteAddress) -> None:
        """Never dial it again."""
        target.due_ns = None
        if target in self.targets:
            self.targets.remove(target)

    def connected(self, target: RouteAddress, server_id: str) -> None:
        """The peer confirmed a connection: retries start afresh."""
        target.server_id = server_id
        target.connected_once = True
        target.pause_ns = 0
        if not target.explicit:
            target.retries_left = max(self._options.connect_retries, IMPLICIT_RETRIES)

    def take_due(self, now_ns: int) -> list[RouteAddress]:
        """Targets whose time has come; they rest until planned again."""
        due = [t for t in self.targets if t.due_ns is not None and t.due_ns <= now_ns]
        for target in due:
            target.due_ns = None
        return due

    def deadline_ns(self) -> int | None:
        """The next time that `take_due` has something."""
        return min((t.due_ns for t in self.targets if t.due_ns is not None), default=None)

    def _pause(self, target: RouteAddress) -> int:
        if not target.connected_once and target.pause_ns < DIAL_RETRY_NS:
            return min(max(target.pause_ns * 2, DIAL_RETRY_FIRST_NS), DIAL_RETRY_NS)
        if self._options.connect_backoff:
            return min(max(target.pause_ns * 2, DIAL_RETRY_NS), DIAL_BACKOFF_MAX_NS)
        return DIAL_RETRY_NS
