"""What a changed `leafnodes` block asks of a running server: remotes may come, go and be switched
on and off, and certificates may change; all else cannot, in nats-server's words."""

from collections.abc import Callable, Iterable

from jsctl.api.times import format_duration
from jsctl.broker.leafnode_options import LeafNodeOptions, LeafRemote
from jsctl.broker.tls_options import SECOND_NS, HandshakeFirst, TlsOptions


def _seconds(length_ns: int) -> str:
    return f"{length_ns / SECOND_NS:g}"


def _texts(texts: Iterable[str]) -> str:
    return f"[{' '.join(texts)}]"


def _redacted(password: str) -> str:
    return "[REDACTED]" if password else ""


BLOCK: tuple[tuple[str, Callable[[LeafNodeOptions], object]], ...] = (
    ("Host", lambda o: o.host if o.listens else ""),
    ("Port", lambda o: o.port),
    ("Username", lambda o: o.login.user),
    ("Password", lambda o: o.login.password),
    ("Nkey", lambda o: o.login.nkey),
    ("Account", lambda o: o.login.account),
    ("AuthTimeout", lambda o: _seconds(o.login_ns if o.listens else o.login.timeout_ns)),
    ("TLSTimeout", lambda o: _seconds(o.tls.timeout_ns if o.tls is not None else 2 * SECOND_NS)),
    ("TLSPinnedCerts", lambda o: sorted(o.tls.pinned_certs) if o.tls is not None else []),
    ("Advertise", lambda o: o.advertise),
    ("NoAdvertise", lambda o: str(o.no_advertise).lower()),
    ("ReconnectInterval", lambda o: format_duration(o.reconnect_ns)),
    ("WriteDeadline", lambda o: format_duration(o.write_deadline_ns)),
    ("WriteTimeout", lambda o: o.write_timeout.told),
    ("MinVersion", lambda o: o.min_version),
    ("IsolateLeafnodeInterest", lambda o: str(o.isolated).lower()),
    ("DialTimeout", lambda o: format_duration(o.dial_timeout_ns)),
)
"""What a running server cannot change of the block, in nats-server's order."""
REMOTE: tuple[tuple[str, Callable[[LeafRemote], object]], ...] = (
    ("NoRandomize", lambda o: str(o.no_randomize).lower()),
    ("TLSTimeout", lambda o: _seconds(o.tls.timeout_ns if o.tls is not None else 0)),
    ("Hub", lambda o: str(o.hub).lower()),
    ("DenyImports", lambda o: _texts(o.deny_imports)),
    ("DenyExports", lambda o: _texts(o.deny_exports)),
    ("FirstInfoTimeout", lambda o: format_duration(o.first_info_ns)),
    ("DialTimeout", lambda o: format_duration(o.dial_timeout_ns)),
    ("LocalIsolation", lambda o: str(o.isolated).lower()),
    ("RequestIsolation", lambda o: str(o.request_isolation).lower()),
    ("IgnoreDiscoveredServers", lambda o: str(o.ignore_discovered).lower()),
)
"""The same of a remote."""
SECRETS = frozenset({"Password"})


def refusal(old: LeafNodeOptions, new: LeafNodeOptions) -> str:
    """Why the change cannot be taken; empty where it can."""
    if set(old.login.users) != set(new.login.users):
        return 'field "Users" has changed'
    for name, value in BLOCK:
        if (before := value(old)) != (after := value(new)):
            return _field(name, before, after)
    known = {remote.identity: remote for remote in old.remotes}
    for remote in new.remotes:
        one = known.get(remote.identity)
        for name, read in REMOTE if one is not None else ():
            assert one is not None
            if (before := read(one)) != (after := read(remote)):
                return f"remote {remote.text}: {_field(name, before, after)}"
    return ""


def _field(name: str, before: object, after: object) -> str:
    if name in SECRETS:
        before, after = _redacted(str(before)), _redacted(str(after))
    return f'field "{name}": old={before}, new={after}'


def lines(old: LeafNodeOptions, new: LeafNodeOptions) -> list[str]:
    """What the log says of changes that can be taken."""
    found: list[str] = []
    if _first(old.tls) != _first(new.tls):
        first, wait_ns = _first(new.tls)
        found.append(f"Reloaded: LeafNode TLS HandshakeFirst value is: {str(first).lower()}")
        wait = format_duration(wait_ns)
        found.append(f"Reloaded: LeafNode TLS HandshakeFirstFallback value is: {wait}")
    if old.compression != new.compression:
        found.append(f"Reloaded: LeafNode Compression value is: {new.compression.shown}")
    wanted = {remote.identity: remote for remote in new.remotes}
    for remote in old.remotes:
        found += _remote_lines(remote, wanted.get(remote.identity))
    return found


def _remote_lines(old: LeafRemote, new: LeafRemote | None) -> list[str]:
    if new is None:
        return [f"Reloaded: LeafNode Remote {old.text} removed"]
    found: list[str] = []
    if _first(old.tls)[0] != _first(new.tls)[0]:
        value = str(_first(new.tls)[0]).lower()
        found.append(f"Reloaded: LeafNode Remote {old.text} TLS HandshakeFirst value is: {value}")
    if old.compression != new.compression:
        value = new.compression.shown
        found.append(f"Reloaded: LeafNode Remote {old.text} Compression value is: {value}")
    if old.disabled != new.disabled:
        value = str(new.disabled).lower()
        found.append(f"Reloaded: LeafNode Remote {old.text} Disabled value is: {value}")
    return found


def _first(tls: TlsOptions | None) -> tuple[bool, int]:
    if tls is None or tls.handshake_first is HandshakeFirst.NEVER:
        return False, 0
    waits = tls.handshake_first is HandshakeFirst.AUTO
    return True, tls.handshake_first_wait_ns if waits else 0
