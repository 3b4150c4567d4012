"""The `tls`, `cluster`, `jetstream` and `raft` blocks."""

import re

from jsctl.broker.compression_options import FAST
from jsctl.broker.conf.fields import (
    Field,
    Reading,
    Section,
    array,
    boolean,
    compression,
    count,
    duration,
    filled,
    ignored,
    in_range,
    inert,
    int32,
    integer,
    listen,
    make,
    mapping,
    one_of,
    path,
    port,
    positive,
    rejected,
    size,
    text,
    texts,
    timeout,
    unless_off,
    unless_zero,
    unused,
    word,
    write_timeout,
    wrong_kind,
)
from jsctl.broker.conf.tree import ConfigNode
from jsctl.broker.conf.units import duration_ns, route_url
from jsctl.broker.conf.users import login_time, login_word, user_seed
from jsctl.broker.errors import ConfigError
from jsctl.broker.options import (
    KIB,
    MINUTE_NS,
    SECOND_NS,
    ClusterOptions,
    JetStreamLimits,
    JetStreamOptions,
    SyncMode,
    Url,
)
from jsctl.broker.passwords import looks_hashed
from jsctl.broker.tls_options import HandshakeFirst, TlsOptions

META_COMPACT = "the log of the meta group is compacted as all others, and keeps nobody waiting"
NOT_EXTENDED = "JetStream is not extended over leaf nodes: give this one a domain of its own"
CLUSTER_PING_MAX_NS = 30 * SECOND_NS
CURVES = ("X25519", "CURVEP256", "CURVEP384", "CURVEP521", "X25519MLKEM768")
CURVES_KNOWN = CURVES[:-1]
"""Those that can be named alone."""
CLUSTER_DEFAULTS = ClusterOptions()
LIMITS = JetStreamLimits()
PIN = re.compile(r"[0-9a-f]{64}")


def handshake_first(node: ConfigNode, reading: Reading) -> tuple[HandshakeFirst, int | None]:
    """A boolean, "auto", or a duration to wait for the client's first byte."""
    if isinstance(node.content, bool):
        return (HandshakeFirst.ALWAYS if node.content else HandshakeFirst.NEVER, None)
    value = text(node, reading).lower()
    if value in ("auto", "auto_fallback"):
        return (HandshakeFirst.AUTO, None)
    if value in ("true", "on", "false", "off"):
        return (HandshakeFirst.ALWAYS if value in ("true", "on") else HandshakeFirst.NEVER, None)
    wait = duration_ns(value)
    if wait is None or wait <= 0:
        raise node.error(f"{value!r} is not known", 'write true, "auto" or a duration')
    return (HandshakeFirst.AUTO, wait)


def handshake_time(node: ConfigNode, reading: Reading) -> int:
    """How long a handshake may take; what is not above zero is the default."""
    value = timeout(node, reading)
    return value if value > 0 else TlsOptions().timeout_ns


def ciphers(node: ConfigNode, reading: Reading) -> tuple[str, ...]:
    """At least one name; which ones OpenSSL has shows when the certificates are loaded."""
    found = texts(node, reading)
    if not found:
        raise node.error("error parsing tls config, 'cipher_suites' cannot be empty", "remove it")
    return tuple(name.upper() for name in found)


def curves(node: ConfigNode, reading: Reading) -> tuple[str, ...]:
    """The one curve to use: OpenSSL's choice among several cannot be narrowed from here."""
    found = texts(node, reading)
    if not found:
        raise node.error(
            "error parsing tls config, 'curve_preferences' cannot be empty", "remove it"
        )
    for name in found:
        if name.upper() not in CURVES:
            raise node.error(f"unrecognized curve preference {name}", f"use {', '.join(CURVES)}")
    if len(found) > 1 or found[0].upper() not in CURVES_KNOWN:
        raise node.error("only one curve can be chosen", f"use one of {', '.join(CURVES_KNOWN)}")
    return (found[0].upper(),)


def pins(node: ConfigNode, reading: Reading) -> tuple[str, ...]:
    """SHA-256 digests in hex."""
    found = tuple(pin.lower() for pin in texts(node, reading))
    if not found:
        raise node.error("it is empty: every key would be taken", "name one, or remove it")
    for pin in found:
        if not PIN.fullmatch(pin):
            raise node.error(f"{pin!r} is no pinned certificate", "write 64 hexadecimal digits")
    return found


def one_certificate(node: ConfigNode, reading: Reading) -> dict[str, object]:
    """`certs`: an array of one `{cert_file, key_file}`."""
    items = array(node)
    if len(items) != 1:
        raise node.error("exactly one certificate is supported", "keep one entry")
    return CERTIFICATE.read(items[0], reading, "certs")


def tls(node: ConfigNode, reading: Reading) -> TlsOptions:
    """A `tls` block of servers; see `client_tls`."""
    found = client_tls(node, reading)
    if found.map_users:
        why = "verify_and_map is not supported: servers are not looked up by their certificates"
        raise node.error(why, "use verify, and users with passwords or nkeys")
    return found


def client_tls(node: ConfigNode, reading: Reading) -> TlsOptions:
    """A `tls` block; needs a certificate and its key."""
    found = TLS.read(node, reading, "tls")
    certificate = found.pop("certificate", None)
    if isinstance(certificate, dict):
        found |= certificate
    first = found.pop("first", None)
    if isinstance(first, tuple):
        found["handshake_first"] = first[0]
        if first[1] is not None:
            found["handshake_first_wait_ns"] = first[1]
    if found.get("map_users"):
        found["verify"] = True
    result = make(TlsOptions, found)
    complete_pair(node, result.cert_file, result.key_file)
    return result


def complete_pair(node: ConfigNode, cert_file: str, key_file: str) -> None:
    """A certificate and its key are of no use without each other."""
    if not cert_file and key_file:
        raise node.error("missing 'cert_file' in TLS configuration", "add it")
    if cert_file and not key_file:
        raise node.error("missing 'key_file' in TLS configuration", "add it")


def route_urls(node: ConfigNode, reading: Reading) -> tuple[Url, ...]:
    """An array of URLs; duplicates are dropped with a warning."""
    found: dict[Url, None] = {}
    for item in array(node):
        value = text(item, reading)
        url = route_url(value)
        if url is None:
            raise item.error(f"{value!r} is no route", "write nats://host:port")
        if url in found:
            reading.warnings.append(f"{item.place}: duplicate url in route configuration: {value}")
        found[url] = None
    return tuple(found)


def cluster_authorization(node: ConfigNode, reading: Reading) -> dict[str, object]:
    """`{user, password, timeout}` of the cluster; no token, no users array."""
    for name, value in mapping(node).items():
        if name.lower() in ("token", "users"):
            raise value.error(
                f"cluster authorization does not allow {name!r}", "use user and password"
            )
    found = CLUSTER_AUTHORIZATION.read(node, reading, "cluster authorization")
    if found.get("password") and not found.get("user"):
        raise node.error(
            "a password without a user: every server could join", "add the user of the routes"
        )
    return found


def route_password(node: ConfigNode, reading: Reading) -> str:
    """The password of routes: plain, as both ends of a route have to know it."""
    value = login_word(node, reading)
    if looks_hashed(value):
        raise node.error(
            "a bcrypt hash is not taken for routes: it would be the password itself",
            "write the plain password, from a variable of the environment if need be",
        )
    return value


def cluster_ping(node: ConfigNode, reading: Reading) -> int:
    """At most 30 seconds, which what is not above zero stands for, too."""
    value = duration(node, reading)
    if value <= 0:
        return CLUSTER_DEFAULTS.ping_interval_ns
    if value > CLUSTER_PING_MAX_NS:
        reading.warnings.append(f"{node.place}: cluster ping_interval is limited to 30s")
    return min(value, CLUSTER_PING_MAX_NS)


def cluster(node: ConfigNode, reading: Reading) -> ClusterOptions:
    """The `cluster` block."""
    found = CLUSTER.read(node, reading, "cluster")
    address = found.pop("listen", None)
    if isinstance(address, tuple):
        found |= {"host": address[0], "port": address[1]}
    login = found.pop("login", None)
    if isinstance(login, dict):
        found |= login
    return make(ClusterOptions, found)


def store_limit(node: ConfigNode, reading: Reading) -> int:
    """Bytes; not negative but for -1."""
    value = size(node, reading)
    if value < -1:
        raise node.error(f"{value} is no limit", "write a size such as 1G")
    return value


def sync(node: ConfigNode, reading: Reading) -> tuple[SyncMode | None, int | None]:
    """(mode, interval): always, interval, never, or a duration, which is the interval alone."""
    if isinstance(node.content, str):
        for mode in SyncMode:
            if node.content.lower() == mode.value:
                return (mode, None)
        if duration_ns(node.content) is None:
            raise node.error(
                f"{node.content!r} is neither a mode nor a duration",
                'write always, interval, never, or for example "2m"',
            )
    return (None, duration(node, reading))


def merge_sync(node: ConfigNode, found: dict[str, object], reading: Reading) -> None:
    """Fold `sync` and `sync_interval` into mode and interval.

    A duration alone does not weaken the default: acknowledged stays durable until somebody
    writes `sync: interval`. That is said, since nats-server would sync at that interval only.
    """
    intervals = False
    for key in ("sync_given", "sync_interval_given"):
        mode, interval = sync_pair(found.pop(key, None))
        if mode is not None:
            found["sync"] = mode
        if interval is not None:
            intervals = True
            found["sync_interval_ns"] = interval
    if intervals and found.get("sync") is not SyncMode.INTERVAL:
        reading.no_effect(
            node,
            '"sync_interval"',
            "every acknowledged message is synced; write sync: interval to change that",
        )


def scrub_interval(node: ConfigNode, reading: Reading) -> int:
    """How often all that is stored is read: `never`, or a duration of a minute or more."""
    if isinstance(node.content, str) and node.content.lower() == "never":
        return 0
    value = duration(node, reading)
    if value < MINUTE_NS:
        raise node.error(f"{node.content!r} is too often", 'write never, or for example "24h"')
    return value


def scrub_rate(node: ConfigNode, reading: Reading) -> int:
    """Bytes in a second."""
    value = size(node, reading)
    if value < KIB:
        raise node.error(f"{value} bytes in a second are too few", "write a size such as 32MB")
    return value


def sync_pair(value: object) -> tuple[object, object]:
    """The two halves of what `sync` has read."""
    return (value[0], value[1]) if isinstance(value, tuple) else (None, None)


def domain(node: ConfigNode, reading: Reading) -> str:
    """A JetStream domain."""
    value = word(node, reading)
    if any(char in value for char in ".*>"):
        raise node.error(f"domain {value!r} may not contain '.', '*' or '>'", "use - or _")
    return value


def jetstream(node: ConfigNode, reading: Reading) -> JetStreamOptions:
    """`jetstream: true`, `enabled`, `disabled`, or a map."""
    if isinstance(node.content, bool):
        return JetStreamOptions(enabled=node.content)
    if isinstance(node.content, str):
        state = one_of("enabled", "enable", "disabled", "disable")(node, reading)
        return JetStreamOptions(enabled=str(state).startswith("enable"))
    if not isinstance(node.content, dict):
        raise wrong_kind(node, "true, enabled, disabled or a map { ... }")
    found: dict[str, object] = {"enabled": True} | JETSTREAM.read(node, reading, "jetstream")
    merge_sync(node, found, reading)
    if found["enabled"] and found.get("extension_hint") == "will_extend":
        reading.no_effect(node, '"extension_hint"', NOT_EXTENDED)
    limits: dict[str, object] = {}
    block = found.pop("limits", None)
    for name in ("request_queue_max", "info_queue_max", "catchup_bytes_max",
                 "buffered_bytes_max", "buffered_messages_max"):  # fmt: skip
        if name in found:
            limits[name] = found.pop(name)
    if isinstance(block, dict):
        limits |= block
    return make(JetStreamOptions, {**found, "limits": make(JetStreamLimits, limits)})


def js_limits(node: ConfigNode, reading: Reading) -> dict[str, object]:
    """The `limits` block."""
    found = JS_LIMITS.read(node, reading, "jetstream limits")
    batch = found.pop("batch", None)
    return found | (batch if isinstance(batch, dict) else {})


def js_batch(node: ConfigNode, reading: Reading) -> dict[str, object]:
    """The `batch` block of the limits."""
    return JS_BATCH.read(node, reading, "batch")


def certificate_section() -> tuple[Field, Field]:
    """The two fields that certificates have everywhere."""
    return (Field(("cert_file",), "cert_file", path), Field(("key_file",), "key_file", path))


def tls_version(node: ConfigNode, reading: Reading) -> str:
    """1.2 or 1.3, with or without quotes."""
    value = str(node.content)
    if value not in ("1.2", "1.3"):
        raise ConfigError(
            f"TLS version {value} is not supported",
            place=str(node.place),
            remedy="write 1.2 or 1.3",
        )
    return value


CERTIFICATE = Section(*certificate_section())
TLS = Section(
    *certificate_section(),
    Field(("ca_file",), "ca_file", filled("all public authorities would count")),
    Field(("verify",), "verify", boolean),
    Field(("verify_and_map",), "map_users", boolean),
    unless_off(
        "verify_cert_and_check_known_urls",
        why="names in certificates are not compared with the routes",
        remedy="use an authority of the cluster's own, and pinned_certs",
    ),
    Field(("insecure",), "insecure", boolean),
    Field(("timeout",), "timeout_ns", handshake_time),
    Field(("min_version", "minimum_version"), "min_version", tls_version),
    Field(("cipher_suites",), "ciphers", ciphers),
    Field(("pinned_certs",), "pinned_certs", pins),
    Field(("handshake_first", "first", "immediate"), "first", handshake_first),
    Field(("certs", "certificates"), "certificate", one_certificate),
    Field(("curve_preferences",), "curves", curves),
    ignored("allow_insecure_cipher_suites", why="insecure suites stay off"),
    rejected(
        "connection_rate_limit",
        why="handshakes are not counted",
        remedy="limit them before the server, and remove it",
    ),
    *(
        rejected(name, why="certificates come from files", remedy="use cert_file and ca_file")
        for name in (
            "cert_store",
            "cert_match_by",
            "cert_match",
            "ca_certs_match",
            "cert_match_skip_invalid",
        )
    ),
    unless_off(
        "ocsp_peer",
        why="nobody is asked whether a certificate was revoked",
        remedy="use pinned_certs, and remove it",
    ),
    once=True,
)
CLUSTER_AUTHORIZATION = Section(
    Field(("user", "username"), "user", login_word),
    Field(("password", "pass"), "password", route_password),
    Field(("timeout",), "auth_timeout_ns", login_time),
    rejected(
        "permissions",
        "default_permissions",
        "default_permission",
        why="what crosses a route is not filtered",
        remedy="use permissions of users, or accounts",
    ),
    once=True,
)
CLUSTER = Section(
    Field(("name",), "name", word),
    Field(("listen",), "listen", listen),
    Field(("port",), "port", port),
    Field(("host", "net"), "host", text),
    Field(("authorization",), "login", cluster_authorization),
    Field(("routes",), "routes", route_urls),
    Field(("tls",), "tls", tls),
    Field(("advertise", "cluster_advertise"), "advertise", text),
    Field(("no_advertise",), "no_advertise", boolean),
    Field(("connect_retries",), "connect_retries", int32),
    Field(("connect_backoff",), "connect_backoff", boolean),
    rejected(
        "permissions",
        why="what crosses a route is not filtered",
        remedy="use permissions of users, or accounts",
    ),
    Field(("pool_size",), "pool_size", unless_zero(in_range(-1, 1024), CLUSTER_DEFAULTS.pool_size)),
    Field(("accounts",), "accounts", texts),
    Field(("compression",), "compression", compression(FAST)),
    Field(("ping_interval",), "ping_interval_ns", cluster_ping),
    Field(("ping_max",), "pings_out_max", unless_zero(int32, CLUSTER_DEFAULTS.pings_out_max)),
    Field(("write_deadline",), "write_deadline_ns", positive(0)),
    Field(("write_timeout",), "write_timeout", write_timeout),
    once=frozenset({"login", "tls"}),
)
JS_BATCH = Section(
    Field(("max_inflight_per_stream",), "batches_per_stream_max", count),
    Field(("max_inflight_total",), "batches_total_max", count),
    Field(("max_msgs",), "batch_messages_max", count),
    Field(("timeout",), "batch_timeout_ns", positive(LIMITS.batch_timeout_ns)),
)
JS_LIMITS = Section(
    Field(("max_ack_pending",), "ack_pending_max", integer),
    Field(("max_ha_assets",), "ha_assets_max", integer),
    Field(("max_request_batch",), "request_batch_max", integer),
    Field(("duplicate_window",), "duplicate_window_ns", duration),
    Field(
        ("default_max_consumers",),
        "consumers_default_max",
        unless_zero(integer, LIMITS.consumers_default_max),
    ),
    Field(("batch",), "batch", js_batch),
)
JETSTREAM = Section(
    Field(("store_dir", "store", "storedir"), "store_dir", path),
    Field(("sync",), "sync_given", sync),
    Field(("sync_interval",), "sync_interval_given", sync),
    Field(("scrub",), "scrub_ns", scrub_interval),
    Field(("scrub_rate",), "scrub_rate", scrub_rate),
    Field(("chain_seed",), "chain_seed", user_seed("chain_seed")),
    Field(("max_memory_store", "max_mem_store", "max_mem"), "memory_bytes_max", store_limit),
    Field(("max_file_store", "max_file"), "store_bytes_max", store_limit),
    Field(("domain",), "domain", domain),
    Field(("enabled", "enable"), "enabled", boolean),
    Field(("strict",), "strict", boolean),
    Field(("unique_tag",), "unique_tag", lambda n, r: text(n, r).lower()),
    Field(("extension_hint",), "extension_hint", one_of("no_extend", "will_extend")),
    Field(("limits",), "limits", js_limits),
    Field(
        ("request_queue_limit",),
        "request_queue_max",
        unless_zero(count, LIMITS.request_queue_max),
    ),
    inert(Field(("info_queue_limit",), "info_queue_max", count)),
    inert(Field(("max_outstanding_catchup",), "catchup_bytes_max", size)),
    inert(Field(("max_buffered_size",), "buffered_bytes_max", size)),
    inert(Field(("max_buffered_msgs",), "buffered_messages_max", count)),
    unused("meta_compact", read=count, why=META_COMPACT),
    unused("meta_compact_size", read=size, why=META_COMPACT),
    unused("meta_compact_sync", read=boolean, why=META_COMPACT),
    ignored("max_concurrent_io", why="one thread does all file work"),
    rejected(
        "key",
        "ek",
        "encryption_key",
        why="files are not encrypted",
        remedy="encrypt the disk and remove it",
    ),
    rejected(
        "prev_key",
        "prev_ek",
        "prev_encryption_key",
        why="files are not encrypted",
        remedy="encrypt the disk and remove it",
    ),
    ignored("cipher", why="files are not encrypted"),
    rejected("tpm", why="files are not encrypted", remedy="encrypt the disk and remove it"),
)
