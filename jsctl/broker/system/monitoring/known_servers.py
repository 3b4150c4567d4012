"""Which other servers a server knows of: each listens to requests for itself in the system account,
in this cluster, in others and behind leaf nodes."""

from collections.abc import Iterable

from jsctl.broker.interest.targets import Subscription
from jsctl.broker.system.server import ServerParts

OWN_REQUESTS = b"$SYS.REQ.SERVER."
EVERYBODY = "PING"
"""What stands in the place of an id in requests for all servers."""


def known_servers(server: ServerParts) -> int:
    """How many there are beside this one."""
    found: set[str] = set()
    if server.links is not None:
        found.update(peer.server_id for peer in server.links.mesh.peers())
    for link in server.router.routes:
        found |= _told(link.subscriptions.values())
    if server.gates is not None:
        for gate in server.gates.links():
            found |= _told(server.gates.routing.heard_of(gate))
    if server.leafs is not None:
        for leaf in server.leafs.links():
            found |= _told(leaf.subscriptions.values())
    return len(found - {EVERYBODY, server.identity.server_id})


def _told(subs: Iterable[Subscription]) -> set[str]:
    return {
        sub.subject.split(b".", 4)[3].decode(errors="replace")
        for sub in subs
        if sub.account.is_system and sub.subject.startswith(OWN_REQUESTS)
    }
