"""INFO and CONNECT between clusters: JSON <-> plain data.

Knows the format only; what a field means for a connection is decided elsewhere.
"""

import base64

from jsctl.broker.errors import ProtocolError
from jsctl.broker.gateways.types import URLS_MAX, GatewaySettings
from jsctl.broker.linking.fields import SERVER_PROTO, TRACING_FROM, Fields, line
from jsctl.dataclass import dataclass

GOSSIP = 1
"""INFO that tells of another cluster."""
SUBS_BEGIN, SUBS_END = 2, 3
"""INFO around the interest of an account: from now on all of it is told."""


@dataclass(frozen=True, slots=True)
class GatewayInfo:
    """What an INFO says."""

    server_id: str
    server_name: str
    gateway: str
    urls: tuple[str, ...]
    """Where the servers of that cluster are reached."""
    command: int
    account: str
    """Whose interest begins or ends; empty for other commands."""
    headers: bool
    traces: bool
    bare: bool
    """It is a broker without JetStream."""
    serves: bool
    """It is one with a JetStream."""


@dataclass(frozen=True, slots=True)
class GatewayConnect:
    """What a dialing server's CONNECT says."""

    user: str
    password: str
    gateway: str


def parse_info(body: bytes) -> GatewayInfo:
    """Read an INFO. Raises ProtocolError when it is no JSON object of the right types."""
    fields = Fields(body, "INFO")
    try:
        account = base64.b64decode(fields.text("gateway_cmd_payload"), validate=True)
    except ValueError as error:
        raise ProtocolError("Parser Error: field 'gateway_cmd_payload' is no base64") from error
    return GatewayInfo(
        server_id=fields.text("server_id"),
        server_name=fields.text("server_name"),
        gateway=fields.text("gateway"),
        urls=fields.texts("gateway_urls")[:URLS_MAX],
        command=fields.number("gateway_cmd"),
        account=account.decode(errors="replace"),
        headers=fields.flag("headers"),
        traces=fields.number("proto") >= TRACING_FROM,
        serves=fields.flag("jsctl") and fields.flag("jetstream"),
        bare=fields.flag("jsctl") and not fields.flag("jetstream") and "jetstream" in fields.raw,
    )


def parse_connect(body: bytes) -> GatewayConnect:
    """Read a CONNECT. Raises ProtocolError when it is no JSON object of the right types."""
    fields = Fields(body, "CONNECT")
    return GatewayConnect(
        user=fields.text("user"),
        password=fields.text("pass"),
        gateway=fields.text("gateway"),
    )


def info_line(settings: GatewaySettings, urls: tuple[str, ...]) -> bytes:
    """This server's INFO; `urls` are those of its whole cluster."""
    secured = settings.block.tls is not None
    fields: dict[str, object] = {
        "server_id": settings.server_id,
        "server_name": settings.server_name,
        "version": settings.version,
        "proto": SERVER_PROTO,
        "go": "",
        "host": settings.host,
        "port": settings.port,
        "headers": settings.headers,
        "max_payload": settings.max_payload,
        "gateway": settings.name,
        "gateway_urls": list(urls),
        "gateway_url": settings.url,
        "gateway_nrp": True,
        "gateway_iom": True,
        "jetstream": settings.jetstream,
        "jsctl": True,
    }
    if settings.block.user:
        fields["auth_required"] = True
    if secured:
        fields["tls_required"] = fields["tls_verify"] = True
    return line("INFO", fields)


def connect_line(settings: GatewaySettings, user: str, password: str, *, secured: bool) -> bytes:
    """This server's CONNECT as the dialing side."""
    fields: dict[str, object] = {"echo": False, "verbose": False, "pedantic": False}
    if user:
        fields.update({"user": user, "pass": password})
    fields.update(
        {
            "tls_required": secured,
            "headers": settings.headers,
            "name": settings.server_id,
            "cluster": "",
            "gateway": settings.name,
        }
    )
    return line("CONNECT", fields)


def gossip_line(server_id: str, gateway: str, urls: tuple[str, ...]) -> bytes:
    """Tells another cluster's server of one more cluster."""
    fields = {
        "server_id": server_id,
        "gateway": gateway,
        "gateway_urls": list(urls),
        "gateway_cmd": GOSSIP,
    }
    return line("INFO", fields)


def route_line(settings: GatewaySettings, gateway: str, urls: tuple[str, ...]) -> bytes:
    """Tells the servers of this cluster of another one. It is not under this server's id: those
    that know nothing of gateways would take it for one of theirs."""
    fields = {
        "server_id": f"GW{settings.server_id}",
        "server_name": settings.server_name,
        "gateway": gateway,
        "gateway_urls": list(urls),
        "gateway_cmd": GOSSIP,
    }
    return line("INFO", fields)


def switch_line(gateway: str, account: str, *, begins: bool) -> bytes:
    """Stands in front of all interest of an account, or behind it."""
    fields = {
        "server_id": "",
        "gateway": gateway,
        "gateway_cmd": SUBS_BEGIN if begins else SUBS_END,
        "gateway_cmd_payload": base64.b64encode(account.encode()).decode(),
    }
    return line("INFO", fields)
