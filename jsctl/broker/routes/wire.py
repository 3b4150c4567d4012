"""INFO and CONNECT of the route protocol: JSON <-> plain data.

Knows the format only; what a field means for a connection is decided in `mesh`.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from jsctl.api.jsontext import parse_object
from jsctl.api.strict import DecodeError
from jsctl.broker.errors import ProtocolError
from jsctl.broker.routes.types import MeshOptions
from jsctl.broker.subject.transforms import fnv1a32
from jsctl.broker.turn import Jitter

ROUTE_PROTO = 3
"""Level of the route protocol spoken here: accounts and message tracing."""
TRACING_FROM = 3
"""Peers of this level trace messages."""

GOSSIP_DEFAULT = 0
GOSSIP_DISABLED = 1
GOSSIP_OVERRIDE = 2

PING = b"PING\r\n"
PONG = b"PONG\r\n"

NONCE_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
NONCE_LENGTH = 15
INFO_BYTES_MAX = 1 << 20
"""An INFO or CONNECT of a server; it tells of the whole cluster's client URLs."""


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
    lame_duck: bool
    gateway: str
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
    fields = _object(body, "INFO")
    urls = fields.get("connect_urls") or []
    if not isinstance(urls, list) or not all(isinstance(url, str) for url in urls):
        raise ProtocolError("Parser Error: INFO field 'connect_urls'")
    info = RouteInfo(
        server_id=_text(fields, "server_id"),
        server_name=_text(fields, "server_name"),
        cluster=_text(fields, "cluster"),
        cluster_dynamic=_flag(fields, "cluster_dynamic"),
        host=_text(fields, "host"),
        port=_number(fields, "port"),
        ip=_text(fields, "ip"),
        pool_size=_number(fields, "route_pool_size"),
        pool_index=_number(fields, "route_pool_idx"),
        account=_text(fields, "route_account"),
        account_request=_text(fields, "route_acc_add_reqid"),
        gossip_mode=_number(fields, "gossip_mode"),
        compression=_text(fields, "compression"),
        connect_urls=tuple(urls),
        lame_duck=_flag(fields, "ldm"),
        gateway=_text(fields, "gateway"),
        jetstream=_flag(fields, "jetstream"),
        native=_flag(fields, "jsctl"),
        domain=_text(fields, "domain"),
        version=_text(fields, "version"),
        traces=_number(fields, "proto") >= TRACING_FROM,
        raw=fields,
    )
    if not info.server_id:
        raise ProtocolError("Parser Error: INFO without server_id")
    return info


def parse_connect(body: bytes) -> RouteConnect:
    """Read a CONNECT. Raises ProtocolError when it is no JSON object of the right types."""
    fields = _object(body, "CONNECT")
    return RouteConnect(
        name=_text(fields, "name"),
        cluster=_text(fields, "cluster"),
        cluster_dynamic=_flag(fields, "cluster_dynamic"),
        user=_text(fields, "user"),
        password=_text(fields, "pass"),
        lang=_text(fields, "lang"),
        gateway=_text(fields, "gateway"),
    )


def info_line(
    options: MeshOptions,
    cluster: str,
    *,
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
        "proto": ROUTE_PROTO,
        "go": "",
        "host": options.host,
        "port": options.port,
        "headers": True,
        "max_payload": options.max_payload,
        "cluster": cluster,
        "compression": "off",
        "lnoc": True,
        "lnocu": True,
        "jsctl": True,
    }
    optional: dict[str, object] = {
        "auth_required": bool(options.user),
        "jetstream": options.jetstream,
        "ip": join_url(options.host, options.port) if options.advertised else "",
        "nonce": nonce,
        "cluster_dynamic": options.cluster_dynamic,
        "domain": options.domain,
        "connect_urls": [] if options.no_advertise else list(options.client_urls),
        "route_pool_size": max(options.pool_size, 0),
        "route_pool_idx": index,
        "route_account": account,
        "gossip_mode": gossip_mode,
        "ldm": lame_duck,
    }
    fields.update((key, value) for key, value in optional.items() if value)
    return _line("INFO", fields)


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
    return _line("INFO", fields)


def account_answer_line(info: RouteInfo) -> bytes:
    """The answer to a peer that gives an account a link of its own: the same INFO without it."""
    return _line("INFO", {k: v for k, v in info.raw.items() if k != "route_account"})


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
    return _line("CONNECT", fields)


def new_nonce(jitter: Jitter) -> str:
    """A nonce for an INFO; nobody signs it on routes, peers only expect one."""
    return "".join(NONCE_LETTERS[jitter(len(NONCE_LETTERS))] for _ in range(NONCE_LENGTH))


def error_line(text: str) -> bytes:
    """A `-ERR` line."""
    return f"-ERR '{text}'\r\n".encode()


def split_url(url: str) -> tuple[str, int] | None:
    """Host and port of `nats-route://host:port/`; None when it is something else."""
    rest = url.partition("://")[2] or url
    authority = rest.partition("/")[0].rpartition("@")[2]
    host, _, port = authority.rpartition(":")
    host = host.strip("[]")
    if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        return None
    return host, int(port)


def join_url(host: str, port: int) -> str:
    """The route URL of an address."""
    return f"nats-route://[{host}]:{port}/" if ":" in host else f"nats-route://{host}:{port}/"


def _line(word: str, fields: Mapping[str, object]) -> bytes:
    return f"{word} {json.dumps(fields, separators=(',', ':'))} \r\n".encode()


def _object(body: bytes, word: str) -> dict[str, object]:
    try:
        return parse_object(body, bytes_max=INFO_BYTES_MAX)
    except DecodeError as error:
        raise ProtocolError(f"Parser Error: {word} is no JSON object") from error


def _text(fields: Mapping[str, object], key: str) -> str:
    value = fields.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ProtocolError(f"Parser Error: field '{key}' is no string")
    return value


def _number(fields: Mapping[str, object], key: str) -> int:
    value = fields.get(key)
    if value is None:
        return 0
    if not isinstance(value, int) or isinstance(value, bool):
        raise ProtocolError(f"Parser Error: field '{key}' is no number")
    return value


def _flag(fields: Mapping[str, object], key: str) -> bool:
    value = fields.get(key)
    if value is not None and not isinstance(value, bool):
        raise ProtocolError(f"Parser Error: field '{key}' is no boolean")
    return bool(value)
