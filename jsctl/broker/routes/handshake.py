"""A route handshake: what this server says of itself, and pure checks of a peer's CONNECT and first
INFO, which tell why it is refused."""

import hmac
from collections.abc import Collection, Container

from jsctl.broker.linking.fields import UNAUTHORIZED, new_nonce
from jsctl.broker.routes import wire
from jsctl.broker.routes.state import Link, RouteAddress, RoutePeer
from jsctl.broker.routes.types import POOL_SIZE_MAX, MeshOptions
from jsctl.broker.routes.wire import RouteConnect, RouteInfo
from jsctl.broker.turn import Jitter

ACCOUNT_REFUSALS = (
    "No route for account",
    "Unable to lookup account",
    "Not possible to have a dedicated route",
)


def _same(given: str, expected: str) -> bool:
    """Compared in a time that tells nothing; also what is no UTF-8 may be given."""
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), expected.encode())


def hello(
    options: MeshOptions, cluster: str, link: Link, told: str, jitter: Jitter, *, lame_duck: bool
) -> bytes:
    """This server's INFO on a connection; `told` is what is said of its compression."""
    solicited = link.solicited
    return wire.info_line(
        options,
        cluster,
        compression=told,
        nonce=new_nonce(jitter),
        account=link.account if solicited else "",
        index=link.index if solicited and not link.account else 0,
        gossip_mode=link.gossip_mode if solicited else 0,
        lame_duck=lame_duck,
    )


def connect_refusal(options: MeshOptions, connect: RouteConnect) -> tuple[str, str] | None:
    """(text for -ERR, close reason) for a CONNECT that is refused whatever its cluster."""
    if connect.lang:
        return "attempted to connect to route port", "Wrong Port"
    if connect.gateway:
        text = f'Rejecting connection from gateway "{connect.gateway}" on the Route port'
        return text, "Wrong Gateway"
    if not may_connect(options, connect.user, connect.password):
        return UNAUTHORIZED
    return None


def may_connect(options: MeshOptions, user: str, password: str) -> bool:
    """Whether a peer's credentials are those of the cluster; one without any takes all."""
    return not options.user or (_same(user, options.user) and _same(password, options.password))


def loses_place(
    link: Link, before: MeshOptions, options: MeshOptions, gone: Collection[RouteAddress]
) -> bool:
    """Whether a link has to go for changed options: its route is not configured any more, or
    accounts get other links than before."""
    dialed = link.target or (link.peer.target if link.peer is not None else None)
    moved = (options.pool_size, options.pinned) != (before.pool_size, before.pinned)
    return moved or dialed in gone


def place_refusal(
    options: MeshOptions, known_accounts: Container[str], link: Link, info: RouteInfo
) -> str:
    """Why a first INFO may not lead to a link, by its pool and account; empty when it may."""
    account, size = link.account, max(options.pool_size, info.pool_size)
    if size > POOL_SIZE_MAX:
        return f"Invalid route pool size: {size}"
    if account and account not in known_accounts:
        return f'Unable to lookup account "{account}": account missing'
    if options.pool_size < 1 or info.pool_size < 1:
        if account:
            return (
                f'Not possible to have a dedicated route for account "{account}"'
                " between those servers"
            )
        return ""
    if link.solicited and info.pool_index != 0:
        return f"Route pool index should not be set but is set to {info.pool_index}"
    if not link.solicited and not 0 <= info.pool_index < size:
        return f"Invalid route pool index: {info.pool_index} - pool size is {info.pool_size}"
    if account and account not in options.pinned:
        return f'No route for account "{account}"'
    return ""


def refuses_account(text: str) -> bool:
    """Whether a -ERR says that an account gets no link of its own; after any other one, as for a
    handshake that took too long, it is dialed again."""
    return any(words in text for words in ACCOUNT_REFUSALS)


def yields(old: Link, new: Link, peer: RoutePeer, server_id: str) -> bool:
    """Whether the link that has the place makes room at `server_id`. See the mesh's docstring."""
    if new.solicited:
        return False
    wins = peer.info.native and old.solicited and server_id < peer.server_id
    if peer.no_pool:
        return peer.info.native and old.solicited and not old.confirmed and not wins
    return not wins
