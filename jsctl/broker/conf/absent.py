"""The blocks `websocket` and `mqtt`: clients that would come by other protocols.

They are taken with a warning, so that one file serves both servers; but what is in them is read as
nats-server reads it, and what that refuses is refused here. An operator who mistypes what is to
keep others out hears of it, whoever serves the file in the end. Files of certificates are not
opened. What they say of users is checked when the whole file is known: `Reading.later`.
"""

from urllib.parse import urlsplit

from jsctl.broker.conf.blocks import (
    CERTIFICATE,
    CURVES,
    TLS,
    complete_pair,
)
from jsctl.broker.conf.fields import (
    Field,
    Found,
    Reader,
    Reading,
    Section,
    array,
    boolean,
    duration,
    in_range,
    integer,
    listen,
    mapping,
    not_negative,
    port,
    quiet,
    rejected,
    text,
    texts,
    timeout,
    wrong_kind,
)
from jsctl.broker.conf.tree import ConfigNode
from jsctl.broker.conf.units import duration_ns
from jsctl.broker.conf.users import secret
from jsctl.broker.errors import ConfigError
from jsctl.broker.options import Options


def curve_names(node: ConfigNode, reading: Reading) -> tuple[str, ...]:
    """All that nats-server knows."""
    found = texts(node, reading)
    if not found:
        raise node.error("'curve_preferences' cannot be empty", "remove it")
    for name in found:
        if name.upper() not in CURVES:
            raise node.error(f"unrecognized curve preference {name}", f"use {', '.join(CURVES)}")
    return found


def certificates(node: ConfigNode, reading: Reading) -> None:
    """An array of `{cert_file, key_file}`."""
    for item in array(node):
        CERTIFICATE.read(item, reading, "certs")


def windows_alone(node: ConfigNode, _: Reading) -> None:
    """A store of certificates that only Windows has."""
    raise node.error("cert_store not compatible with current operating system", "use cert_file")


def listening_tls() -> Reader:
    """A reader of a `tls` block: what this server could not carry out matters to nobody here."""
    names = quiet("ocsp_peer", "cert_match_by", "cert_match", "ca_certs_match")
    others: tuple[Field, ...] = (
        names,
        quiet("cert_match_skip_invalid"),
        Field(("verify_and_map",), "", boolean),
        Field(("connection_rate_limit",), "", integer),
        Field(("cert_store",), "", windows_alone),
        Field(("certs", "certificates"), "", certificates),
        Field(("curve_preferences",), "", curve_names),
        rejected(
            "verify_cert_and_check_known_urls",
            why="not supported in this context",
            remedy="remove it",
        ),
    )
    section = Section(*dict.fromkeys(TLS.by_name.values()), *others, once=True)

    def read(node: ConfigNode, reading: Reading) -> bool:
        found = section.read(node, reading, "tls")
        complete_pair(node, str(found.get("cert_file", "")), str(found.get("key_file", "")))
        return True

    return read


def listens(found: Found) -> bool:
    """Whether there is a port; 0 is none."""
    address = found.get("listen")
    return bool(address[1] if isinstance(address, tuple) else found.get("port"))


ADDRESS = (
    Field(("listen",), "listen", listen),
    Field(("port",), "port", port),
    Field(("host", "net"), "", text),
)
CREDENTIALS = (
    Field(("user", "username"), "user", text),
    Field(("password", "pass"), "", secret),
)
LISTENING_TLS = listening_tls()

HEADERS_TAKEN = frozenset({"host", "content-length", "connection", "upgrade", "nats-no-masking"})
"""What the server itself says in the answer to an upgrade."""


def websocket(node: ConfigNode, reading: Reading) -> None:
    """Clients that are web pages."""
    found = _of_users(WEBSOCKET, node, reading, "websocket")
    if listens(found) and not (found.get("tls") or found.get("no_tls")):
        raise node.error("websocket requires TLS configuration", "add tls, or no_tls: true")
    if listens(found) and found.get("jwt_cookie"):
        raise node.error(
            "trusted operators or trusted keys configuration is required for JWT authentication"
            f" via cookie {found['jwt_cookie']!r}",
            "remove jwt_cookie",
        )
    reading.no_effect(node, '"websocket"', "nothing listens for websockets")


def mqtt(node: ConfigNode, reading: Reading) -> None:
    """Clients that speak MQTT."""
    _of_users(MQTT, node, reading, "mqtt")
    reading.no_effect(node, '"mqtt"', "nothing listens for MQTT")


def _of_users(section: Section, node: ConfigNode, reading: Reading, name: str) -> Found:
    """Read a block; without a port its users may be any, as in nats-server."""
    before = len(reading.later)
    found = section.read(node, reading, name)
    if not listens(found):
        del reading.later[before:]
    return found


def _simple_authorization(kind: str) -> Reader:
    def read(node: ConfigNode, reading: Reading) -> None:
        found = SIMPLE_AUTHORIZATION.read(node, reading, f"{kind} authorization")
        alone(node, reading, found, kind)

    return read


def alone(node: ConfigNode, reading: Reading, found: Found, kind: str) -> None:
    """A block's single user or token excludes users of accounts."""
    given = next((key for key in ("user", "token") if found.get(key)), "")

    def look(options: Options) -> ConfigError | None:
        if not given or not options.all_users:
            return None
        what = "username" if given == "user" else "token"
        return node.error(
            f"{kind} authentication {what} not compatible with presence of users/nkeys",
            "remove it: the users log in there, too",
        )

    reading.later.append(look)


def known_user(node: ConfigNode, reading: Reading) -> str:
    """A reader of a user that the file has to have."""
    name = text(node, reading)

    def look(options: Options) -> ConfigError | None:
        if not name or name in {one.name or one.nkey for one in options.all_users}:
            return None
        return node.error(
            f"no_auth_user: {name!r} not present as user or nkey in authorization block or account"
            " configuration",
            "add the user or correct the name",
        )

    reading.later.append(look)
    return name


def handshake_time(node: ConfigNode, _: Reading) -> int:
    """Seconds, or a duration."""
    content = node.content
    if isinstance(content, int) and not isinstance(content, bool):
        return content
    found = duration_ns(content) if isinstance(content, str) else None
    if found is None:
        raise wrong_kind(node, "seconds or a duration", 'write for example "2s"')
    return found


def origins(node: ConfigNode, reading: Reading) -> tuple[str, ...]:
    """Absolute URLs of web pages."""
    found = texts(node, reading)
    for origin in found:
        try:
            parts = urlsplit(origin)
            sound = parts.scheme in ("http", "https") and bool(parts.hostname)
            sound = sound and parts.port != 0
        except ValueError:
            sound = False
        if not sound:
            raise node.error(
                f"unable to parse allowed origin {origin!r}",
                "write https://host or https://host:port",
            )
    return found


def headers(node: ConfigNode, reading: Reading) -> None:
    """Names and values that the answer to an upgrade has besides the server's own."""
    for name, value in mapping(node).items():
        lower = name.lower()
        if lower in HEADERS_TAKEN or lower.startswith("sec-websocket-"):
            raise value.error(f"invalid header {name!r} not allowed", "remove it")
        text(value, reading)


SIMPLE_AUTHORIZATION = Section(
    *CREDENTIALS,
    Field(("token",), "token", secret),
    Field(("timeout",), "", timeout),
    once=True,
)
WEBSOCKET = Section(
    *ADDRESS,
    Field(("advertise",), "", text),
    Field(("no_tls",), "no_tls", boolean),
    Field(("tls",), "tls", LISTENING_TLS),
    Field(("same_origin",), "", boolean),
    Field(
        (
            "allowed_origins",
            "allowed_origin",
            "allow_origins",
            "allow_origin",
            "origins",
            "origin",
        ),
        "",
        origins,
    ),
    Field(("handshake_timeout",), "", handshake_time),
    Field(("compression", "compress"), "", boolean),
    Field(("authorization", "authentication"), "", _simple_authorization("websocket")),
    Field(("jwt_cookie",), "jwt_cookie", text),
    Field(("user_cookie",), "", text),
    Field(("pass_cookie",), "", text),
    Field(("token_cookie",), "", text),
    Field(("no_auth_user",), "", known_user),
    Field(("headers",), "", headers),
    Field(("ping_interval",), "", duration),
)
MQTT = Section(
    *ADDRESS,
    Field(("tls",), "", LISTENING_TLS),
    Field(("authorization", "authentication"), "", _simple_authorization("mqtt")),
    Field(("no_auth_user",), "", known_user),
    Field(("ack_wait", "ackwait"), "", not_negative),
    Field(("js_api_timeout", "api_timeout"), "", not_negative),
    Field(("max_ack_pending", "max_pending", "max_inflight"), "", in_range(0, 0xFFFF)),
    Field(("js_domain",), "", text),
    Field(("stream_replicas",), "", integer),
    quiet("consumer_replicas"),
    Field(("consumer_memory_storage",), "", boolean),
    Field(("consumer_inactive_threshold", "consumer_auto_cleanup"), "", duration),
    Field(("reject_qos2_publish",), "", boolean),
    Field(("downgrade_qos2_subscribe",), "", boolean),
)
