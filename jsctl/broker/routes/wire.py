"""INFO and CONNECT of the route protocol: JSON <-> plain data.

Knows the format only; what a field means for a connection is decided in `mesh`.
"""

from collections.abc import Mapping
from dataclasses import field

from jsctl.broker.errors import ProtocolError
from jsctl.broker.linking.fields import SERVER_PROTO, TRACING_FROM, Fields, line
from jsctl.broker.routes.types import MeshOptions
from jsctl.broker.subject.transforms import fnv1a32
from jsctl.dataclass import dataclass

GOSSIP_DEFAULT = 0
GOSSIP_DISABLED = 1
GOSSIP_OVERRIDE = 2


@dataclass(frozen=True, slots=True)
class RouteInfo:
    """What a peer's INFO says. `raw` keeps all of it, because gossip passes it on whole."""

    server_id: str
    server_name: str
    cluster: str
    cluster_dynamic: bool
    host: str
    port: int
    ip: str
    pool_size: int
    pool_index: int
    account: str
    account_request: str
    gossip_mode: int
    compression: str
    connect_urls: tuple[str, ...]
    leafnode_urls: tuple[str, ...]
    lame_duck: bool
    gateway: str
    gateway_urls: tuple[str, ...]
    gateway_url: str
    jetstream: bool
    native: bool
    domain: str
    version: str
    traces: bool
    raw: Mapping[str, object] = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class RouteConnect:
    """What a dialing peer's CONNECT says."""

    name: str
    cluster: str
    cluster_dynamic: bool
    user: str
    password: str
    lang: str
    gateway: str


def pool_index(account: str, size: int) -> int:
    """Which of `size` pooled links carries an account."""
    return fnv1a32(account.encode()) % size if size > 1 else 0


def parse_info(body: bytes) -> RouteInfo:
    """Read an INFO. Raises ProtocolError when it is no JSON object of the right types."""
    fields = Fields(body, "INFO")
    info = RouteInfo(
        server_id=fields.text("server_id"),
        server_name=fields.text("server_name"),
        cluster=fields.text("cluster"),
        cluster_dynamic=fields.flag("cluster_dynamic"),
        host=fields.text("host"),
        port=fields.number("port"),
        ip=fields.text("ip"),
        pool_size=fields.number("route_pool_size"),
        pool_index=fields.number("route_pool_idx"),
        account=fields.text("route_account"),
        account_request=fields.text("route_acc_add_reqid"),
        gossip_mode=fields.number("gossip_mode"),
        compression=fields.text("compression"),
        connect_urls=fields.texts("connect_urls"),
        leafnode_urls=fields.texts("leafnode_urls"),
        lame_duck=fields.flag("ldm"),
        gateway=fields.text("gateway"),
        gateway_urls=fields.texts("gateway_urls"),
        gateway_url=fields.text("gateway_url"),
        jetstream=fields.flag("jetstream"),
        native=fields.flag("jsctl"),
        domain=fields.text("domain"),
        version=fields.text("version"),
        traces=fields.number("proto") >= TRACING_FROM,
        raw=fields.raw,
    )
    if not info.server_id:
        raise ProtocolError("Parser Error: INFO without server_id")
    return info


def parse_connect(body: bytes) -> RouteConnect:
    """Read a CONNECT. Raises ProtocolError when it is no JSON object of the right types."""
    fields = Fields(body, "CONNECT")
    return RouteConnect(
        name=fields.text("name"),
        cluster=fields.text("cluster"),
        cluster_dynamic=fields.flag("cluster_dynamic"),
        user=fields.text("user"),
        password=fields.text("pass"),
        lang=fields.text("lang"),
        gateway=fields.text("gateway"),
    )


def info_line(
    options: MeshOptions,
    cluster: str,
    *,
    compression: str,
    nonce: str = "",
    account: str = "",
    index: int = 0,
    gossip_mode: int = GOSSIP_DEFAULT,
    lame_duck: bool = False,
) -> bytes:
    """This server's INFO for one connection."""
    fields: dict[str, object] = {
        "server_id": options.server_id,
        "server_name": options.server_name,
        "version": options.version,
        "proto": SERVER_PROTO,
        "go": "",
        "host": options.host,
        "port": options.port,
        "headers": True,
        "max_payload": options.max_payload,
        "cluster": cluster,
        "lnoc": True,
        "lnocu": True,
        "jsctl": True,
    }
    optional: dict[str, object] = {
        "compression": compression,
        "auth_required": bool(options.user),
        "jetstream": options.jetstream,
        "ip": join_url(options.host, options.port) if options.advertised else "",
        "nonce": nonce,
        "cluster_dynamic": options.cluster_dynamic,
        "domain": options.domain,
        "connect_urls": [] if options.no_advertise else list(options.client_urls),
        "leafnode_urls": [options.leafnode_url] if options.leafnode_url else [],
        "gateway_url": options.gateway_url,
        "route_pool_size": max(options.pool_size, 0),
        "route_pool_idx": index,
        "route_account": account,
        "gossip_mode": gossip_mode,
        "ldm": lame_duck,
    }
    fields.update((key, value) for key, value in optional.items() if value)
    return line("INFO", fields)


def gossip_line(info: RouteInfo, url: str, mode: int, account: str = "") -> bytes:
    """A peer's INFO as it is told to the others: no nonce, reachable at `url`."""
    fields = {key: value for key, value in info.raw.items() if key != "nonce"}
    fields["ip"] = info.ip or url
    fields.pop("gossip_mode", None)
    fields.pop("route_account", None)
    if account:
        fields["route_account"] = account
    if mode:
        fields["gossip_mode"] = mode
    return line("INFO", fields)


def account_answer_line(info: RouteInfo) -> bytes:
    """The answer to a peer that gives an account a link of its own: the same INFO without it."""
    return line("INFO", {k: v for k, v in info.raw.items() if k != "route_account"})


def connect_line(options: MeshOptions, cluster: str, user: str, password: str) -> bytes:
    """This server's CONNECT as the dialing side."""
    fields: dict[str, object] = {"echo": True, "verbose": False, "pedantic": False}
    if user:
        fields.update({"user": user, "pass": password})
    fields.update(
        {
            "tls_required": False,
            "headers": True,
            "name": options.server_id,
            "cluster": cluster,
            "lnoc": True,
            "lnocu": True,
        }
    )
    if options.cluster_dynamic:
        fields["cluster_dynamic"] = True
    return line("CONNECT", fields)


def join_url(host: str, port: int) -> str:
    """The route URL of an address."""
    return f"nats-route://[{host}]:{port}/" if ":" in host else f"nats-route://{host}:{port}/"
