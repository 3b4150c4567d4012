"""Why a route handshake is refused: pure checks of a peer's CONNECT and first INFO."""

import hmac
from collections.abc import Container

from jsctl.broker.routes.state import Link
from jsctl.broker.routes.types import MeshOptions
from jsctl.broker.routes.wire import RouteConnect, RouteInfo


def _same(given: str, expected: str) -> bool:
    """Compared in a time that tells nothing; also what is no UTF-8 may be given."""
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), expected.encode())


def connect_refusal(options: MeshOptions, connect: RouteConnect) -> tuple[str, str] | None:
    """(text for -ERR, close reason) for a CONNECT that is refused whatever its cluster."""
    if connect.lang:
        return "attempted to connect to route port", "Wrong Port"
    if connect.gateway:
        text = f'Rejecting connection from gateway "{connect.gateway}" on the Route port'
        return text, "Wrong Gateway"
    if options.user and not (
        _same(connect.user, options.user) and _same(connect.password, options.password)
    ):
        return "Authorization Violation", "Authentication Failure"
    return None


def place_refusal(
    options: MeshOptions, known_accounts: Container[str], link: Link, info: RouteInfo
) -> str:
    """Why a first INFO may not lead to a link, by its pool and account; empty when it may."""
    account, size = link.account, max(options.pool_size, info.pool_size)
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
