"""Changes of single keys that `test_reload_every_key` makes, besides those of `test_reload_keys`.

A row is named as its key is: the block, a dot, the key; behind a comma may be what is changed.
"""

from typing import NamedTuple

from tests.contract.test_reload_keys import (
    JETSTREAM,
    ONE,
    REFUSED,
    SECURED,
    TAKEN,
    Row,
    adds,
)

LONE = "server_name: N\nmax_payload: 100000\n"
"""A server to which everybody may connect, without JetStream."""
ACCOUNT_KEY = "ABJHLOVMPA4CI6R5KLNGOB4GSLNIY7IOUPAJC4YFNDLQVIOBYQGUWVLA"
CLUSTER = ("Reloaded: cluster",)
TLS_AGAIN = ("Reloaded: tls = enabled",)
LOGIN = ("Reloaded: authorization username", "Reloaded: authorization password")
LIMITS = ("Reloaded: JetStream limits",)


def in_jetstream(text: str, *said: str) -> Row:
    """Something in the JetStream block."""
    return Row('store"', f'store", {text}', said)


def in_cluster(text: str, *said: str) -> Row:
    """Something in the cluster block."""
    return Row("name: c", f"name: c, {text}", said)


def in_tls(text: str, *said: str) -> Row:
    """Something in the TLS block."""
    return Row("timeout: 2 }\n", f"timeout: 2, {text} }}\n", said)


def in_user(text: str) -> Row:
    """Something in a user."""
    return Row("password: b}", f"password: b, {text}}}", ())


def in_account(text: str) -> Row:
    """Something in an account."""
    return Row("A { users", f"A {{ {text}, users", ())


def exported(text: str) -> Row:
    """One more export."""
    return Row("{stream: x}", f"{{stream: x}}, {{{text}}}", ())


def imported(text: str) -> Row:
    """An import of what is exported."""
    return in_account(f"imports: [ {{stream: {{account: B, subject: x}}{text}}} ]")


def service(text: str = "") -> Row:
    """An import of a service that nobody exported before."""
    export = "Z { exports: [ {service: s} ] }"
    source = "service: {account: Z, subject: s}"
    return Row("A { users", f"{export}\nA {{ imports: [ {{{source}{text}}} ], users", ())


class Unlike(NamedTuple):
    """What the servers make of a change if they do not agree: lines, or a part of a refusal."""

    row: Row
    theirs: tuple[str, ...] | str
    ours: tuple[str, ...] | str


def unlike(row: Row, theirs: tuple[str, ...] | str, ours: tuple[str, ...] | str = ()) -> Unlike:
    """By default ours takes it: the key has no effect, and a warning says so."""
    return Unlike(row, theirs, ours)


SAME: dict[str, Row] = {
    "mappings": adds("mappings { x: y }"),
    "ocsp_cache": adds("ocsp_cache: false", "Reloaded OCSP peer cache"),
    "proxy_protocol": adds("proxy_protocol: false"),
    "cluster.write_timeout": in_cluster("write_timeout: retry", *CLUSTER),
    "cluster.compression": in_cluster("compression: s2_fast", *CLUSTER),
    "compression.mode": in_cluster("compression { mode: s2_auto }", *CLUSTER),
    "compression.rtt_thresholds": in_cluster(
        "compression { mode: s2_auto, rtt_thresholds: [0s, 1s, 2s] }", *CLUSTER
    ),
    "jetstream.enabled": in_jetstream("enabled: true"),
    "jetstream.meta_compact": in_jetstream("meta_compact: 50"),
    "jetstream.meta_compact_size": in_jetstream("meta_compact_size: 1MB"),
    "jetstream.meta_compact_sync": in_jetstream("meta_compact_sync: true"),
    "limits.max_ha_assets": in_jetstream("limits { max_ha_assets: 5 }", *LIMITS),
    "limits.max_request_batch": in_jetstream("limits { max_request_batch: 5 }", *LIMITS),
    "limits.duplicate_window": in_jetstream('limits { duplicate_window: "1m" }', *LIMITS),
    "limits.default_max_consumers": in_jetstream("limits { default_max_consumers: 5 }", *LIMITS),
    "batch.max_inflight_per_stream": in_jetstream(
        "limits { batch { max_inflight_per_stream: 5 } }", *LIMITS
    ),
    "batch.max_inflight_total": in_jetstream(
        "limits { batch { max_inflight_total: 50 } }", *LIMITS
    ),
    "batch.max_msgs": in_jetstream("limits { batch { max_msgs: 50 } }", *LIMITS),
    "batch.timeout": in_jetstream('limits { batch { timeout: "5s" } }', *LIMITS),
    "cluster.authorization.user": Row("user: r", "user: q", CLUSTER),
    "tls.ca_file": in_tls("ca_file: '@CERT'", *TLS_AGAIN),
    "tls.insecure": in_tls("insecure: true", *TLS_AGAIN),
    "tls.cipher_suites": in_tls(
        "cipher_suites: [TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256]", *TLS_AGAIN
    ),
    "tls.curve_preferences": in_tls("curve_preferences: [CurveP256]", *TLS_AGAIN),
    "tls.certs": Row(
        "cert_file: '@CERT', key_file: '@KEY'",
        "certs: [ {cert_file: '@CERT', key_file: '@KEY'} ]",
        (),
    ),
    "tls.allow_insecure_cipher_suites": in_tls("allow_insecure_cipher_suites: true"),
    "authorization.user": adds("authorization { user: u, password: p }", *LOGIN),
    "authorization.token": adds("authorization { token: t }", "Reloaded: authorization token"),
    "authorization.users": adds("authorization { users: [ {user: u, password: p} ] }"),
    "authorization.default_permissions": adds(
        "authorization { users: [ {user: u, password: p} ], default_permissions { publish: x } }"
    ),
    "authorization.proxy_required": adds(
        "authorization { user: u, password: p, proxy_required: false }", *LOGIN
    ),
    "user.user": Row("user: b,", "user: bb,", ()),
    "user.allowed_connection_types": in_user("allowed_connection_types: [STANDARD]"),
    "user.proxy_required": in_user("proxy_required: false"),
    "permissions.subscribe": in_user('permissions {subscribe: "x"}'),
    "permissions.allow_responses": in_user("permissions {allow_responses: true}"),
    "allow_responses.max": in_user("permissions {allow_responses: {max: 3}}"),
    "allow_responses.expires": in_user('permissions {allow_responses: {expires: "1m"}}'),
    "account.nkey": in_account(f"nkey: {ACCOUNT_KEY}"),
    "account.default_permissions": in_account("default_permissions { publish: x }"),
    "msg_trace.dest": in_account("msg_trace { dest: t }"),
    "msg_trace.sampling": in_account("msg_trace { dest: t, sampling: 50 }"),
    "mapping.destination": in_account("mappings { x: [ {destination: y, weight: 100%} ] }"),
    "mapping.weight": in_account("mappings { x: [ {destination: y, weight: 50%} ] }"),
    "mapping.cluster": in_account("mappings { x: [ {destination: y, weight: 50%, cluster: c} ] }"),
    "account.limits.max_subscriptions": in_account("limits { max_subscriptions: 5 }"),
    "account.limits.max_leafnodes": in_account("limits { max_leafnodes: 5 }"),
    "export.stream": exported("stream: y"),
    "export.service": exported("service: s"),
    "export.accounts": exported("service: s, accounts: [A]"),
    "export.response_type": exported("service: s, response_type: stream"),
    "export.response_threshold": exported('service: s, response_threshold: "5s"'),
    "export.latency": exported("service: s, latency: {sampling: 50, subject: l}"),
    "export.account_token_position": exported('service: "s.*", account_token_position: 2'),
    "export.allow_trace": exported("service: s, allow_trace: true"),
    "import.stream": imported(""),
    "import.prefix": imported(", prefix: p"),
    "import.to": imported(", to: p"),
    "import.allow_trace": imported(", allow_trace: true"),
    "import.service": service(),
    "import.share": service(", share: true"),
    **{
        f"account.jetstream.{key}": in_account(f"jetstream {{ {key}: {value} }}")
        for key, value in (
            ("max_memory", "1MB"),
            ("max_store", "1MB"),
            ("max_streams", "5"),
            ("max_consumers", "5"),
            ("max_bytes_required", "true"),
            ("mem_max_stream_bytes", "1MB"),
            ("disk_max_stream_bytes", "1MB"),
            ("max_ack_pending", "5"),
            ("cluster_traffic", "owner"),
        )
    },
}
"""Taken by both, which say the same."""
SAME_REFUSAL: dict[str, Row] = {
    "tls.verify_and_map": in_tls(
        "ca_file: '@CERT', verify_and_map: true", "TLSMap: old=false, new=true"
    ),
    "listen": adds('listen: "127.0.0.1:1"', "Port: old=@PORT, new=1"),
    "leafnodes": adds("leafnodes { port: -1 }", 'LeafNode: field "Host": old=, new=0.0.0.0'),
    "store_dir": Row(
        'store_dir: "@DIR/store" }', '}\nstore_dir: "@DIR/other"', ("jetstream storage directory",)
    ),
    "jetstream.info_queue_limit": in_jetstream(
        "info_queue_limit: 50", "JetStreamInfoQueueLimit: old=10000, new=50"
    ),
    "cluster.host": Row(
        'listen: "127.0.0.1:-1"',
        'host: "127.0.0.2", port: -1',
        ("cluster host: old=127.0.0.1, new=127.0.0.2",),
    ),
    "cluster.port": Row(
        'listen: "127.0.0.1:-1"',
        'host: "127.0.0.1", port: 1',
        ("cluster port: old=@CLUSTER, new=1",),
    ),
}
"""Refused by both in the same words, behind those that all have in common."""
NOT_HERE = " is not supported: "
WITHOUT_OPERATOR = "means nothing without an operator"
DIFFERENT: dict[str, Unlike] = {
    # What has no effect here has none after a reload either.
    "prof_port": unlike(adds("prof_port: 1"), "ProfPort: old=0, new=1"),
    "prof_block_rate": unlike(adds("prof_block_rate: 5"), ("Reloaded: prof_block_rate = 5",)),
    "disable_sublist_cache": unlike(
        adds("disable_sublist_cache: true"), "NoSublistCache: old=false, new=true"
    ),
    "gateway": unlike(adds("gateway { name: g, port: 1 }"), "Gateway: old=", "Gateway"),
    "leafnodes, the first hub": unlike(
        adds('leafnodes { remotes: [ {url: "nats-leaf://127.0.0.1:2"} ] }'),
        (),
        "LeafNode: the server began without hubs",
    ),
    "websocket": unlike(adds("websocket { port: -1, no_tls: true }"), "Websocket: old="),
    "mqtt": unlike(adds("mqtt { port: -1 }"), "MQTT: old="),
    "default_js_domain": unlike(
        adds("default_js_domain { A: D }"), "JsAccDefaultDomain: old=map[], new=map[A:D]"
    ),
    "ocsp": unlike(adds("ocsp: false"), ("Reloaded: OCSP",)),
    "jetstream.max_concurrent_io": unlike(
        in_jetstream("max_concurrent_io: 5"), "JetStreamConcurrentIOs: old=4096, new=5"
    ),
    "jetstream.cipher": unlike(
        in_jetstream("cipher: aes"), "JetStreamCipher: old=ChaCha20-Poly1305, new=AES-GCM"
    ),
    # Other defaults.
    "jetstream.sync": unlike(in_jetstream("sync: always"), "SyncAlways: old=false, new=true"),
    "jetstream.max_outstanding_catchup": unlike(
        in_jetstream("max_outstanding_catchup: 1MB"),
        "JetStreamMaxCatchup: old=0, new=1048576",
        "JetStreamMaxCatchup: old=67108864, new=1048576",
    ),
    "jetstream.max_buffered_size": unlike(
        in_jetstream("max_buffered_size: 1MB"),
        "StreamMaxBufferedSize: old=0, new=1048576",
        "StreamMaxBufferedSize: old=134217728, new=1048576",
    ),
    "jetstream.max_buffered_msgs": unlike(
        in_jetstream("max_buffered_msgs: 50"),
        "StreamMaxBufferedMsgs: old=0, new=50",
        "StreamMaxBufferedMsgs: old=10000, new=50",
    ),
    # nats-server has no such block, or no such key at that place.
    **{
        f"raft.{key}": unlike(
            adds(f'raft {{ {key}: "{value}" }}'),
            'unknown field "raft"',
            f"raft.{key}: old={old}, new={value}",
        )
        for key, old, value in (
            ("heartbeat", "100ms", "50ms"),
            ("election_min", "300ms", "400ms"),
            ("election_max", "600ms", "700ms"),
            ("peer_stale", "2s", "3s"),
            ("peer_offline", "5s", "6s"),
            ("hibernate_after", "1s", "2s"),
        )
    },
    # JetStream as a whole.
    "jetstream, off": unlike(
        Row(JETSTREAM, "", ()), ("Reloaded: JetStream",), "JetStream: old=true, new=false"
    ),
    "jetstream, disabled": unlike(
        Row("jetstream { max", "jetstream { enabled: false, max", ()),
        ("Reloaded: JetStream",),
        "JetStream: old=true, new=false",
    ),
    # Parts of operator mode without the whole, and a file that is not there.
    "resolver": unlike(
        adds("resolver: MEMORY"), "moving to or from an account resolver", WITHOUT_OPERATOR
    ),
    "resolver_preload": unlike(adds("resolver_preload {}"), (), WITHOUT_OPERATOR),
    "resolver_pinned_accounts": unlike(
        adds("resolver_pinned_accounts: [ABC]"), (), "is no public account key"
    ),
    "default_sentinel": unlike(
        adds("default_sentinel: abc"), "requires operators", WITHOUT_OPERATOR
    ),
    "operator": unlike(
        adds("operator: '/nowhere'"), "error parsing operator JWT", "cannot be read"
    ),
    # What is not carried out here is refused, since passing it over would open what it closes.
    **{
        name: unlike(row, theirs, f"{name.partition(',')[0].rpartition('.')[2]}{NOT_HERE}")
        for name, row, theirs in (
            ("ocsp, on", adds("ocsp: true"), ("Reloaded: OCSP",)),
            ("resolver_tls", adds("resolver_tls { cert_file: '@CERT', key_file: '@KEY' }"), ()),
            ("trusted_keys", adds("trusted_keys: [abc]"), 'trust key "abc" required'),
            ("jetstream.key", in_jetstream("key: abc"), "JetStreamKey: old=, new=abc"),
            ("jetstream.prev_key", in_jetstream("prev_key: abc"), "JetStreamOldKey: old="),
            (
                "jetstream.tpm",
                in_jetstream('tpm { keys_file: "@DIR/k", encryption_password: "p" }'),
                "JetStreamTpm: old=",
            ),
            ("cluster.permissions", in_cluster("permissions { import: x }"), CLUSTER),
            (
                "cluster.authorization.permissions",
                Row("password: r", "password: r, permissions { import: x }", ()),
                CLUSTER,
            ),
            (
                "tls.verify_cert_and_check_known_urls",
                in_tls("ca_file: '@CERT', verify_cert_and_check_known_urls: true"),
                "not supported in this context",
            ),
            (
                "tls.connection_rate_limit",
                in_tls("connection_rate_limit: 5"),
                "TLSRateLimit: old=0, new=5",
            ),
            ("tls.cert_store", in_tls("cert_store: WindowsCurrentUser"), "not compatible"),
            ("tls.cert_match_by", in_tls("cert_match_by: Subject"), ()),
            ("tls.cert_match", in_tls("cert_match: x"), ()),
            ("tls.ca_certs_match", in_tls("ca_certs_match: x"), ()),
            ("tls.cert_match_skip_invalid", in_tls("cert_match_skip_invalid: true"), ()),
            ("tls.ocsp_peer", in_tls("ocsp_peer: true"), ()),
            (
                "authorization.auth_callout",
                adds(
                    "authorization { users: [ {user: u, password: p} ],"
                    f" auth_callout {{ issuer: {ACCOUNT_KEY}, auth_users: [u] }} }}"
                ),
                "AuthCallout: old=<nil>",
            ),
            (
                "authorization.proxy_required, true",
                adds("authorization { user: u, password: p, proxy_required: true }"),
                "ProxyRequired: old=false, new=true",
            ),
            ("user.proxy_required, true", in_user("proxy_required: true"), ()),
            ("account.limits.max_payload", in_account("limits { max_payload: 5 }"), ()),
            ("proxy_protocol, true", adds("proxy_protocol: true"), "ProxyProtocol: old=false"),
        )
    },
}
"""What the servers do not agree on; docs/differences.md says why."""
OURS_ALONE: dict[str, tuple[Row, tuple[str, ...] | str]] = {
    "syslog": (adds("syslog: true"), ()),
    "remote_syslog": (adds('remote_syslog: "udp://127.0.0.1:1"'), ()),
    "proxies": (adds(f"proxies {{ trusted: [ {{key: {ONE.public}}} ] }}"), f"proxies{NOT_HERE}"),
    "host": (adds('host: "127.0.0.2"'), "Host: old=127.0.0.1, new=127.0.0.2"),
    "jetstream.scrub": (in_jetstream('scrub: "2h"'), ("Reloaded: scrub = 2h0m0s",)),
    "jetstream.chain_seed": (in_jetstream(f"chain_seed: {ONE.text}"), ("Reloaded: chain_seed",)),
    "jetstream.scrub_rate": (in_jetstream("scrub_rate: 1MB"), ("Reloaded: scrub_rate = 1048576",)),
}
"""nats-server logs elsewhere from then on, falls (2.15.1), does one or the other, or knows no such
key."""
ELSEWHERE = {
    "log_file": "test_the_log_goes_on_in_another_file",
    "https": "test_the_secure_monitoring_port_stays",
    "https_port": "test_the_secure_monitoring_port_stays",
    "tls.cert_file": "test_reload_tls",
    "tls.key_file": "test_reload_tls",
    "certs.cert_file": "row tls.certs",
    "certs.key_file": "row tls.certs",
    "allow_non_tls": "row allow_non_tls",
    "no_fast_producer_stall": "row no_fast_producer_stall",
    "jetstream": "rows jetstream, off and its keys",
    "jetstream.limits": "rows limits.*",
    "limits.batch": "rows batch.*",
    "tls": "rows tls.*",
    "cluster": "rows cluster.*",
    "raft": "rows raft.*",
    "authorization": "rows authorization.*",
    "accounts": "rows accounts, ...",
    "cluster.listen": "rows cluster.listen, its port and its host",
    "jetstream.max_memory_store": "rows jetstream.max_mem, ..., test_limits_of_jetstream_may_grow",
    "jetstream.max_file_store": "rows jetstream.max_file, ..., test_limits_of_jetstream_may_grow",
    "http": "rows http_port and http, its host",
    "max_sub_tokens": "row max_subscription_tokens",
    "cluster.authorization.password": "row cluster.authorization",
    "limits.max_ack_pending": "row jetstream.limits",
    "authorization.password": "row authorization.user",
    "account.users": "rows user.*",
    "account.exports": "row accounts, exports and imports",
    "account.imports": "row accounts, exports and imports",
    "account.jetstream": "row accounts, jetstream",
    "account.mappings": "row accounts, mappings",
    "account.limits": "row accounts, limits",
    "account.limits.max_connections": "row accounts, limits",
    "account.msg_trace": "rows msg_trace.*",
    "user.password": "row accounts, a password",
    "user.nkey": "row accounts, an nkey",
    "user.permissions": "row accounts, permissions",
    "permissions.publish": "row accounts, permissions",
    "latency.sampling": "row export.latency",
    "latency.subject": "row export.latency",
    "source.account": "row import.stream",
    "source.subject": "row import.stream",
}
"""Keys whose change is looked at under another name."""


def named() -> set[str]:
    """All keys that a row is about."""
    tables = (TAKEN, SECURED, REFUSED, SAME, SAME_REFUSAL, DIFFERENT, OURS_ALONE, ELSEWHERE)
    return {name.partition(",")[0] for table in tables for name in table}


def lone(name: str) -> bool:
    """Whether a row is a change of the server to which everybody may connect."""
    return name.startswith("authorization.")
