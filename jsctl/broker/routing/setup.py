"""Options, as the parts of the node need them."""

import hashlib
from collections.abc import Sequence

from jsctl import __version__
from jsctl.broker.conf.units import host_text
from jsctl.broker.options import COMPATIBLE_API_LEVEL, COMPATIBLE_VERSION, SYSTEM_ACCOUNT, Options
from jsctl.broker.routing.limits import LINE_BYTES_MAX, RoutingLimits, ServerIdentity
from jsctl.broker.turn import Jitter

NAME_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
PEER_ID_LENGTH = 8


def peer_id(server_name: str) -> str:
    """The short name that a server has in raft groups."""
    digest = hashlib.sha256(server_name.encode()).digest()[:PEER_ID_LENGTH]
    return "".join(NAME_ALPHABET[byte % len(NAME_ALPHABET)] for byte in digest)


def random_name(jitter: Jitter, length: int) -> str:
    """A random name in the alphabet of NUIDs."""
    return "".join(NAME_ALPHABET[jitter(len(NAME_ALPHABET))] for _ in range(length))


def identity(options: Options, server_id: str, host: str, port: int) -> ServerIdentity:
    """What INFO says; the address is that which clients are told."""
    return ServerIdentity(
        server_id=server_id,
        server_name=options.server_name or server_id,
        version=COMPATIBLE_VERSION,
        product_version=__version__,
        host=host,
        port=port,
        cluster=cluster_name(options, server_id),
        domain=options.jetstream.domain,
        jetstream=options.jetstream.enabled,
        headers=not options.client.no_header_support,
        auth_required=options.auth_required and not options.no_auth_user,
        tls_required=options.tls is not None and not options.allow_non_tls,
        tls_verify=options.tls is not None and options.tls.verify,
        tls_available=options.tls is not None and options.allow_non_tls,
        api_level=COMPATIBLE_API_LEVEL,
    )


def cluster_name(options: Options, server_id: str) -> str:
    """The cluster that others are told: of a server alone that hangs on a hub its own name."""
    if options.replicated:
        return options.cluster.name
    if not options.leafnodes.remotes:
        return ""
    return options.cluster.name or options.server_name or server_id


def limits(options: Options) -> RoutingLimits:
    """Limits of client connections."""
    client = options.client
    return RoutingLimits(
        payload_bytes_max=client.payload_bytes_max,
        control_line_bytes_max=min(client.control_line_bytes_max, LINE_BYTES_MAX),
        pending_bytes_max=client.pending_bytes_max,
        pending_bytes_high=client.pending_bytes_max * 3 // 4,
        connections_max=client.connections_max,
        subscriptions_max=max(client.subscriptions_max, 0),
        subscription_tokens_max=max(client.subscription_tokens_max, 0),
        ping_interval_ns=client.ping_interval_ns,
        pings_unanswered_max=client.pings_out_max,
        auth_timeout_ns=options.client_login_ns,
        unfinished_bytes_max=max(client.unfinished_bytes_max, 4 * client.payload_bytes_max),
    )


def system_account(options: Options) -> str:
    """The name of the system account."""
    return options.system_account or SYSTEM_ACCOUNT


def client_urls(
    told: tuple[str, int] | None, reached_at: Sequence[str], port: int
) -> tuple[str, ...]:
    """This server's own client URLs, as clients of all servers are told them.

    `told` is what the configuration wants to be told instead of the hosts.
    """
    if told is not None:
        return (host_text(*told),)
    return tuple(host_text(host, port) for host in reached_at)
