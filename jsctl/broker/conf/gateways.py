"""The `gateway` block: where servers of other clusters may connect, and where those are."""

from urllib.parse import unquote, urlsplit

from jsctl.broker.conf.blocks import route_password, tls
from jsctl.broker.conf.fields import (
    Field,
    Reading,
    Section,
    array,
    boolean,
    int32,
    listen,
    make,
    port,
    positive,
    rejected,
    remote_url,
    text,
    word,
    write_timeout,
)
from jsctl.broker.conf.tree import ConfigNode
from jsctl.broker.conf.users import login_time, login_word
from jsctl.broker.gateway_options import GatewayOptions, GatewayUrl, RemoteGateway


def gateway(node: ConfigNode, reading: Reading) -> GatewayOptions:
    """The whole block."""
    found = GATEWAY.read(node, reading, "gateway")
    address, login = found.pop("listen", None), found.pop("login", None)
    if isinstance(address, tuple):
        found |= {"host": address[0], "port": address[1]}
    if isinstance(login, dict):
        found |= login
    made = make(GatewayOptions, found)
    if made.name and not made.port:
        raise node.error(
            f"gateway {made.name!r} has no port specified (select -1 for random port)", "add port"
        )
    if made.port and not made.name:
        raise node.error("gateway has no name", "add name")
    return made


def authorization(node: ConfigNode, reading: Reading) -> dict[str, object]:
    """One user and its password."""
    found = AUTHORIZATION.read(node, reading, "gateway authorization")
    if found.get("password") and not found.get("user"):
        raise node.error(
            "a password without a user: every cluster could connect", "add the user of gateways"
        )
    return found


def remotes(node: ConfigNode, reading: Reading) -> tuple[RemoteGateway, ...]:
    """Each has a name and somewhere to be."""
    made: list[RemoteGateway] = []
    for number, item in enumerate(array(node)):
        found = REMOTE.read(item, reading, "gateways")
        given = (found.pop("url", None), *_listed(found.pop("urls", None)))
        urls = tuple(dict.fromkeys(url for url in given if isinstance(url, GatewayUrl)))
        if not found.get("name"):
            raise item.error(f"gateway in the list {number} has no name", "add it")
        if not urls:
            raise item.error(f"gateway {found['name']!r} has no URL", "add url")
        made.append(make(RemoteGateway, found | {"urls": urls}))
    return tuple(made)


def _listed(value: object) -> tuple[object, ...]:
    return value if isinstance(value, tuple) else ()


def remote(node: ConfigNode, reading: Reading) -> GatewayUrl:
    """Where a server of another cluster is."""
    value = remote_url(node, reading)
    parts = urlsplit(value if "://" in value else f"nats://{value}")
    if not parts.hostname:
        raise node.error("error parsing url: it names no host", "write nats://host:7222")
    if not parts.port:
        raise node.error("error parsing url: it names no port", "write nats://host:7222")
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    return GatewayUrl(parts.hostname, parts.port, user, password, parts.scheme == "tls")


def listed(node: ConfigNode, reading: Reading) -> tuple[GatewayUrl, ...]:
    """An array of those."""
    return tuple(remote(item, reading) for item in array(node))


AUTHORIZATION = Section(
    Field(("user", "username"), "user", login_word),
    Field(("password", "pass"), "password", route_password),
    Field(("timeout",), "auth_timeout_ns", login_time),
    rejected(
        "users",
        why="Gateway authorization does not allow multiple users",
        remedy="use user and password",
    ),
    rejected(
        "token",
        why="Gateway authorization does not support tokens",
        remedy="use user and password",
    ),
    once=True,
)
REMOTE = Section(
    Field(("name",), "name", word),
    Field(("tls",), "tls", tls),
    Field(("url",), "url", remote),
    Field(("urls",), "urls", listed),
    once=frozenset({"name", "tls"}),
)
GATEWAY = Section(
    Field(("listen",), "listen", listen),
    Field(("port",), "port", port),
    Field(("host", "net"), "host", text),
    Field(("name",), "name", word),
    Field(("authorization",), "login", authorization),
    Field(("tls",), "tls", tls),
    Field(("advertise",), "advertise", text),
    Field(("connect_retries",), "connect_retries", int32),
    Field(("connect_backoff",), "connect_backoff", boolean),
    Field(("gateways",), "remotes", remotes),
    Field(("reject_unknown_cluster", "reject_unknown"), "reject_unknown", boolean),
    Field(("write_deadline",), "write_deadline_ns", positive(0)),
    Field(("write_timeout",), "write_timeout", write_timeout),
    once=frozenset({"name", "login", "tls"}),
)
