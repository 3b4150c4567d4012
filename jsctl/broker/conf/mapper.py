"""A parsed configuration file -> `Options`: the top level table and the public entry points."""

from collections.abc import Mapping
from dataclasses import fields

from jsctl.broker.conf.absent import mqtt, websocket
from jsctl.broker.conf.accounts import accounts, mappings
from jsctl.broker.conf.blocks import client_tls, cluster, jetstream
from jsctl.broker.conf.digest import digest
from jsctl.broker.conf.fields import (
    Field,
    Reader,
    Reading,
    Section,
    boolean,
    count,
    duration,
    ignored,
    inert,
    int32,
    integer,
    listen,
    make,
    mapping,
    path,
    port,
    positive,
    quiet,
    rejected,
    size,
    text,
    texts,
    unless_off,
    unless_zero,
    word,
    write_timeout,
)
from jsctl.broker.conf.gateways import gateway
from jsctl.broker.conf.leafnodes import leafnodes
from jsctl.broker.conf.parser import ReadFile, parse, read_file
from jsctl.broker.conf.raft import raft
from jsctl.broker.conf.tree import ConfigNode
from jsctl.broker.conf.users import authorization
from jsctl.broker.errors import ConfigError, ConfigErrors
from jsctl.broker.options import (
    ClientLimits,
    JetStreamOptions,
    Listen,
    LogOptions,
    MonitorOptions,
    Options,
)
from jsctl.dataclass import dataclass

PARTS: dict[str, type] = {
    "listen": Listen,
    "log": LogOptions,
    "monitoring": MonitorOptions,
    "client": ClientLimits,
}
"""Attributes of `Options` that collect flat options of the file, written `part.attribute`."""
CLIENT = ClientLimits()
KNOWN_FLAGS = ("js_ack_fc_v2", "js_api_reply_v2", "js_raft_delete_range", "js_snapshot_sources")


@dataclass(frozen=True, slots=True)
class LoadedConfig:
    """A configuration file's options and what only a strict test of it refuses."""

    options: Options
    strict_errors: tuple[ConfigError, ...] = ()


def load(path: str, environment: Mapping[str, str], read: ReadFile = read_file) -> LoadedConfig:
    """Read a file. Raises ConfigError, or ConfigErrors for wrong options."""
    return from_text(read(path), path, environment, read)


def from_text(
    source: str, name: str, environment: Mapping[str, str], read: ReadFile = read_file
) -> LoadedConfig:
    """The same for a text that is at hand; `name` stands for the file in errors."""
    root = parse(source, name, environment, read)
    reading = Reading()
    found = TOP.read(root, reading)
    if not mapping(root):
        raise ConfigError("config has no values or is empty", place=name, remedy="write an option")
    if reading.errors:
        raise ConfigErrors(sorted(reading.errors, key=_position))
    values = assemble(found)
    values |= {
        "config_file": name,
        "config_digest": digest(root),
        "warnings": tuple(reading.warnings),
    }
    if any(name in values for name in OPERATOR_PARTS):
        from jsctl.broker.conf.operators import put_together

        parts = {name: values.pop(name) for name in OPERATOR_PARTS if name in values}
        put_together(parts, values, reading.warnings)
        values["warnings"] = tuple(reading.warnings)
    options = make(Options, values)
    if wrong := [error for look in reading.later if (error := look(options)) is not None]:
        raise ConfigErrors(sorted(wrong, key=_position))
    return LoadedConfig(options, tuple(reading.strict_errors))


def _position(error: ConfigError) -> tuple[str, int, int]:
    file, _, rest = error.place.rpartition(":")
    file, _, line = file.rpartition(":")
    numeric = line.isdecimal() and rest.isdecimal()
    return (file, int(line), int(rest)) if numeric else (error.place, 0, 0)


def assemble(found: dict[str, object]) -> dict[str, object]:
    """Attributes of `Options` from what the table has found, parts put together."""
    values: dict[str, object] = {}
    parts: dict[str, dict[str, object]] = {}
    for name, value in found.items():
        part, dot, attribute = name.partition(".")
        if not dot:
            values[name] = value
        elif attribute.startswith("*"):
            names = [f.name for f in fields(PARTS[part])]
            assert isinstance(value, tuple)
            wanted = attribute.removeprefix("*").split(",")
            assert set(wanted) <= set(names)
            parts.setdefault(part, {}).update(zip(wanted, value, strict=True))
        else:
            parts.setdefault(part, {})[attribute] = value
    for part, content in parts.items():
        if part in PARTS:
            values[part] = make(PARTS[part], content)
    store_dir = values.pop("store_dir", None)
    if store_dir is not None:
        values["jetstream"] = with_store_dir(values.get("jetstream"), str(store_dir))
    return values


def with_store_dir(block: object, store_dir: str) -> JetStreamOptions:
    """The top level `store_dir` in the JetStream block. Raises ConfigError if it has another."""
    options = block if isinstance(block, JetStreamOptions) else JetStreamOptions()
    if options.store_dir and options.store_dir != store_dir:
        raise ConfigError(
            f"duplicate store directory: {options.store_dir!r} and {store_dir!r}",
            place="store_dir",
            remedy="keep the one in the jetstream block",
        )
    attributes = {f.name: getattr(options, f.name) for f in fields(options)}
    return make(JetStreamOptions, {**attributes, "store_dir": store_dir})


def max_connections(node: ConfigNode, reading: Reading) -> int:
    """A limit; negative allows none, like 0."""
    return max(0, integer(node, reading))


def base_path(node: ConfigNode, reading: Reading) -> str:
    """A path with a leading slash and without a trailing one."""
    return "/" + text(node, reading).strip("/")


def metadata(node: ConfigNode, reading: Reading) -> tuple[tuple[str, str], ...]:
    """A map of strings."""
    return tuple((name, text(value, reading)) for name, value in mapping(node).items())


def feature_flags(node: ConfigNode, reading: Reading) -> tuple[tuple[str, bool], ...]:
    """A map of booleans; unknown names are warned of."""
    found = []
    for name, value in mapping(node).items():
        found.append((name, boolean(value, reading)))
        known = "is unknown" if name not in KNOWN_FLAGS else "changes nothing here"
        reading.no_effect(value, f'feature flag "{name}"', known)
    return tuple(found)


def lame_duck_duration(node: ConfigNode, reading: Reading) -> int:
    """At least 30 seconds."""
    value = duration(node, reading)
    if value < 30 * 1_000_000_000:
        raise node.error("invalid lame_duck_duration, minimum is 30s", 'write "30s" or more')
    return value


def lame_duck_grace(node: ConfigNode, reading: Reading) -> int:
    """Not negative."""
    value = duration(node, reading)
    if value < 0:
        raise node.error("invalid lame_duck_grace_period, needs to be positive")
    return value


def tags(node: ConfigNode, reading: Reading) -> tuple[str, ...]:
    """Server tags in lower case, as all who ask for servers by tags compare them; no doubles."""
    found = (tag.strip().lower() for tag in texts(node, reading))
    return tuple(dict.fromkeys(filter(None, found)))


def no_ocsp(node: ConfigNode, reading: Reading) -> None:
    """`ocsp`: off, or a map whose mode is `never`; a response is neither stapled nor asked for."""
    mode = node.content
    if isinstance(mode, dict):
        mode = next((one.content for key, one in mode.items() if key.lower() == "mode"), "auto")
    if mode is not False and not (isinstance(mode, str) and mode.lower() == "never"):
        raise node.error(
            "ocsp is not supported: nobody is told whether a certificate was revoked",
            "remove it, and replace certificates before they have to be revoked",
        )
    reading.no_effect(node, '"ocsp"')


def of_operators(part: str) -> Reader:
    """A reader of one part of operator mode, which most servers never load."""

    def read(node: ConfigNode, reading: Reading) -> object:
        from jsctl.broker.conf import operators

        readers: dict[str, Reader] = {
            "operators": operators.operators,
            "resolver": operators.resolver,
            "preload": operators.preload,
            "pinned": operators.pinned,
        }
        return readers[part](node, reading)

    return read


OPERATOR_PARTS = (
    "operators",
    "resolver",
    "resolver_preload",
    "resolver_pinned_accounts",
    "default_sentinel",
)
"""What the table has found of operator mode, to be put together when all is read."""
GUARDED = frozenset(
    {
        "auth",
        "accounts",
        "tls",
        "cluster",
        "leafnodes",
        "gateway",
        "no_auth_user",
        "system_account",
        *OPERATOR_PARTS,
    }
)
"""What says who may connect."""
TOP = Section(
    Field(("listen",), "listen.*host,port", listen),
    Field(("port",), "listen.port", port),
    Field(("host", "net"), "listen.host", text),
    Field(("client_advertise",), "client_advertise", text),
    Field(("server_name",), "server_name", word),
    Field(("server_tags",), "server_tags", tags),
    Field(("server_metadata",), "server_metadata", metadata),
    Field(("debug",), "log.debug", boolean),
    Field(("trace",), "log.trace", boolean),
    Field(("trace_verbose",), "log.trace_verbose", boolean),
    Field(("trace_headers",), "log.trace_headers", boolean),
    Field(("logtime",), "log.logtime", boolean),
    Field(("logtime_utc",), "log.logtime_utc", boolean),
    Field(("log_file", "logfile"), "log.file", path),
    Field(("log_size_limit", "logfile_size_limit"), "log.size_bytes_max", size),
    Field(("log_max_num", "logfile_max_num"), "log.files_max", int32),
    Field(("max_traced_msg_len",), "log.traced_bytes_max", integer),
    ignored("syslog", why="log to stderr or a file"),
    ignored("remote_syslog", why="log to stderr or a file"),
    Field(("pid_file", "pidfile"), "pid_file", path),
    Field(("ports_file_dir",), "ports_file_dir", path),
    ignored("prof_port"),
    ignored("prof_block_rate"),
    Field(("http",), "monitoring.*host,port", listen),
    Field(("https",), "monitoring.*host,https_port", listen),
    Field(("http_port", "monitor_port"), "monitoring.port", port),
    Field(("https_port",), "monitoring.https_port", port),
    Field(("http_base_path",), "monitoring.base_path", base_path),
    Field(
        ("max_control_line",),
        "client.control_line_bytes_max",
        unless_zero(int32, CLIENT.control_line_bytes_max),
    ),
    Field(
        ("max_payload",),
        "client.payload_bytes_max",
        unless_zero(int32, CLIENT.payload_bytes_max),
    ),
    Field(
        ("max_pending",), "client.pending_bytes_max", unless_zero(size, CLIENT.pending_bytes_max)
    ),
    Field(("max_connections", "max_conn"), "client.connections_max", max_connections),
    Field(("max_subscriptions", "max_subs"), "client.subscriptions_max", integer),
    Field(("max_sub_tokens", "max_subscription_tokens"), "client.subscription_tokens_max", count),
    Field(("ping_interval",), "client.ping_interval_ns", positive(CLIENT.ping_interval_ns)),
    Field(("ping_max",), "client.pings_out_max", unless_zero(count, CLIENT.pings_out_max)),
    Field(("write_deadline",), "client.write_deadline_ns", duration),
    Field(("write_timeout",), "client.write_timeout", write_timeout),
    Field(
        ("max_closed_clients",),
        "client.closed_clients_max",
        unless_zero(count, CLIENT.closed_clients_max),
    ),
    Field(("no_header_support",), "client.no_header_support", boolean),
    inert(Field(("no_fast_producer_stall",), "client.no_fast_producer_stall", boolean)),
    Field(("lame_duck_duration",), "lame_duck_duration_ns", lame_duck_duration),
    Field(("lame_duck_grace_period",), "lame_duck_grace_ns", lame_duck_grace),
    Field(("no_auth_user",), "no_auth_user", text),
    Field(("system_account", "system"), "system_account", text),
    Field(("no_system_account", "no_system", "no_sys_acc"), "no_system_account", boolean),
    Field(("authorization",), "auth", authorization),
    Field(("accounts",), "accounts", accounts),
    Field(("mappings", "maps"), "mappings", mappings),
    Field(("tls",), "tls", client_tls),
    Field(("allow_non_tls",), "allow_non_tls", boolean),
    Field(("cluster",), "cluster", cluster),
    Field(("jetstream",), "jetstream", jetstream),
    Field(("store_dir", "storedir"), "store_dir", path),
    Field(("raft",), "raft", raft),
    Field(("feature_flags",), "feature_flags", feature_flags),
    Field(("connect_error_reports",), "connect_error_reports", count),
    Field(("reconnect_error_reports",), "reconnect_error_reports", count),
    quiet("disable_sublist_cache", "no_sublist_cache"),
    Field(("gateway",), "gateway", gateway),
    Field(("leafnodes", "leaf"), "leafnodes", leafnodes),
    Field(("websocket", "ws"), "", websocket),
    Field(("mqtt",), "", mqtt),
    Field(("ocsp",), "", no_ocsp),
    ignored("ocsp_cache"),
    unless_off(
        "proxies",
        why="a trusted proxy's signature is not verified",
        remedy="remove it",
    ),
    unless_off(
        "proxy_protocol",
        why="the address that a proxy tells is not read",
        remedy="connect without the PROXY protocol, and remove it",
    ),
    ignored("default_js_domain"),
    Field(
        ("operator", "operators", "roots", "root", "root_operators", "root_operator"),
        "operators",
        of_operators("operators"),
    ),
    Field(
        ("resolver", "account_resolver", "accounts_resolver"), "resolver", of_operators("resolver")
    ),
    Field(("resolver_preload",), "resolver_preload", of_operators("preload")),
    Field(("resolver_pinned_accounts",), "resolver_pinned_accounts", of_operators("pinned")),
    Field(("default_sentinel",), "default_sentinel", text),
    rejected(
        "resolver_tls",
        why="no JWT is fetched by URL",
        remedy="remove it, and write resolver: MEMORY or a resolver of type full",
    ),
    rejected(
        "trusted_keys",
        "trusted",
        why="without the operator's JWT nobody knows what that demands",
        remedy="use operator: FILE",
    ),
    once=GUARDED,
)
