"""Every key of nats-server's configuration: whether a running server takes a change of it.

Each row is a change of one key, and what the log says of it on both servers: lines, or the reason
for which the reload is refused as a whole.
"""

import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.contract.conftest import KINDS as CONTRACT_KINDS
from tests.support.certificates import make_certificates
from tests.support.kept import kept
from tests.support.login import Caller, Seed
from tests.support.reloading import KINDS, Reloading
from tests.support.waiting import wait_for

ONE, TWO = Seed(31), Seed(32)
CLUSTER = """cluster {
    name: c
    listen: "127.0.0.1:-1"
    authorization { user: r, password: r }
}"""
ACCOUNTS = """accounts {
    A { users: [ {user: a, password: a} ] }
    B { exports: [ {stream: x} ], users: [ {user: b, password: b}, {nkey: @ONE} ] }
}""".replace("@ONE", ONE.public)
JETSTREAM = 'jetstream { max_mem: 64MB, max_file: 64MB, store_dir: "@DIR/store" }'
BASE = f"""server_name: N
max_connections: 1000
max_payload: 100000
{JETSTREAM}
{ACCOUNTS}
no_auth_user: a
"""
MEMBER = f"""server_name: N
max_payload: 100000
{ACCOUNTS}
{CLUSTER}
"""
"""A cluster of its own: nats-server has JetStream in a cluster only with routes to others."""


def base_of(name: str) -> str:
    """The base that a row is a change of."""
    return MEMBER if name.startswith("cluster") else BASE


class Row(NamedTuple):
    """What is replaced in the base (nothing: something is added), by what, and what is said."""

    old: str
    new: str
    said: tuple[str, ...]


def adds(new: str, *said: str) -> Row:
    """A row of a key that the base does not have."""
    return Row("", new, said)


def limits(old: str, new: str, *said: str) -> Row:
    """A row of a key in a block of the base."""
    return Row(old, new, said)


UNSUPPORTED = "config reload not supported for "
TAKEN = {
    "trace": adds("trace: true", "Reloaded: trace = true"),
    "trace_verbose": adds(
        "trace_verbose: true", "Reloaded: trace = true", "Reloaded: trace_verbose = true"
    ),
    "trace_headers": adds(
        "trace_headers: true", "Reloaded: trace = true", "Reloaded: trace_headers = true"
    ),
    "debug": adds("debug: true", "Reloaded: debug = true"),
    "logtime": adds("logtime: false", "Reloaded: logtime = false"),
    "logtime_utc": adds("logtime_utc: true", "Reloaded: logtime_utc = true"),
    "max_traced_msg_len": adds("max_traced_msg_len: 10", "Reloaded: max_traced_msg_len = 10"),
    "max_connections": Row(
        "max_connections: 1000", "max_connections: 50", ("Reloaded: max_connections = 50",)
    ),
    "max_payload": Row(
        "max_payload: 100000", "max_payload: 2000", ("Reloaded: max_payload = 2000",)
    ),
    "max_control_line": adds("max_control_line: 2048", "Reloaded: max_control_line = 2048"),
    "ping_interval": adds('ping_interval: "90s"', "Reloaded: ping_interval = 1m30s"),
    "ping_max": adds("ping_max: 5", "Reloaded: ping_max = 5"),
    "write_deadline": adds('write_deadline: "3s"', "Reloaded: write_deadline = 3s"),
    "no_fast_producer_stall": adds(
        "no_fast_producer_stall: true", "Reloaded: fast producers will not be stalled"
    ),
    "connect_error_reports": adds(
        "connect_error_reports: 5", "Reloaded: connect_error_reports = 5"
    ),
    "reconnect_error_reports": adds(
        "reconnect_error_reports: 5", "Reloaded: reconnect_error_reports = 5"
    ),
    "client_advertise": adds('client_advertise: "me:1234"', "Reload: client_advertise = me:1234"),
    "server_tags": adds('server_tags: ["a:b"]', "Reloaded: tags"),
    "server_metadata": adds("server_metadata { a: b }", "Reloaded: metadata"),
    "pid_file": adds("pid_file: '@DIR/p.pid'", "Reloaded: pid_file = @DIR/p.pid"),
    "ports_file_dir": adds("ports_file_dir: '@DIR'", "Reloaded: ports_file_dir = @DIR"),
    "authorization.timeout": adds(
        "authorization { timeout: 3 }", "Reloaded: authorization timeout = 3"
    ),
    "accounts, a password": Row("password: a", "password: z", ()),
    "accounts, permissions": Row("password: a", 'password: a, permissions {publish: "x"}', ()),
    "accounts, an nkey": Row(ONE.public, TWO.public, ()),
    "accounts, a new one": Row("A { users", "C { }\n A { users", ()),
    "accounts, exports and imports": Row(
        "A { users",
        "A { imports: [ {stream: {account: B, subject: x}} ], users",
        (),
    ),
    "accounts, mappings": Row("A { users", "A { mappings { x: y }, users", ()),
    "accounts, limits": Row("A { users", "A { limits { max_conn: 5 }, users", ()),
    "accounts, jetstream": Row("A { users", "A { jetstream: enabled, users", ()),
    "jetstream.limits": Row(
        'store"', 'store", limits { max_ack_pending: 70 }', ("Reloaded: JetStream limits",)
    ),
    "cluster.authorization": Row("password: r", "password: s", ("Reloaded: cluster",)),
    "cluster.authorization.timeout": Row(
        "password: r", "password: r, timeout: 5", ("Reloaded: cluster",)
    ),
    "cluster.name": Row("name: c", "name: d", ("Reloaded: cluster",)),
    "cluster.routes": Row(
        "name: c", 'name: c, routes: ["nats://127.0.0.1:2"]', ("Reloaded: cluster routes",)
    ),
    "cluster.tls": Row(
        "name: c",
        "name: c, tls { cert_file: '@CERT', key_file: '@KEY', ca_file: '@CERT' }",
        ("Reloaded: cluster",),
    ),
    **{
        f"cluster.{key}": Row("name: c", f"name: c, {key}: {value}", ("Reloaded: cluster",))
        for key, value in (
            ("advertise", '"me:1"'),
            ("no_advertise", "true"),
            ("connect_retries", "3"),
            ("connect_backoff", "true"),
            ("pool_size", "5"),
            ("accounts", "[A]"),
            ("ping_interval", '"5s"'),
            ("ping_max", "5"),
            ("write_deadline", '"5s"'),
        )
    },
}
TLS = "tls { cert_file: '@CERT', key_file: '@KEY', timeout: 2 }\nauthorization { timeout: 2 }"
SECURED = {
    "tls": Row(TLS, "authorization { timeout: 2 }", ("Reloaded: tls = disabled",)),
    "tls.verify": Row(
        "timeout: 2 }\n",
        "timeout: 2, ca_file: '@CERT', verify: true }\n",
        ("Reloaded: tls = enabled",),
    ),
    "tls.timeout": Row("timeout: 2 }\n", "timeout: 3 }\n", ("Reloaded: tls timeout = 3",)),
    "tls.pinned_certs": Row(
        "timeout: 2 }\n",
        f'timeout: 2, pinned_certs: ["{"a" * 64}"] }}\n',
        ("Reloaded: 1 pinned_certs",),
    ),
    "tls.handshake_first": Row(
        "timeout: 2 }\n",
        "timeout: 2, handshake_first: true }\n",
        ("Reloaded: Client TLS handshake first: true",),
    ),
    "tls.handshake_first, a time": Row(
        "timeout: 2 }\n",
        'timeout: 2, handshake_first: "300ms" }\n',
        (
            "Reloaded: Client TLS handshake first: true",
            "Reloaded: Client TLS handshake first fallback delay: 300ms",
        ),
    ),
    "tls.min_version": Row(
        "timeout: 2 }\n", 'timeout: 2, min_version: "1.3" }\n', ("Reloaded: tls = enabled",)
    ),
}
REFUSED = {
    "server_name": Row("server_name: N", "server_name: M", ("ServerName: old=N, new=M",)),
    "host": adds('listen: "127.0.0.2:@PORT"', "Host: old=127.0.0.1, new=127.0.0.2"),
    "port": adds('listen: "127.0.0.1:1"', "Port: old=@PORT, new=1"),
    "http_port": adds('http: "127.0.0.1:1"', "HTTPPort: old=@HTTP, new=1"),
    "http, its host": adds('http: "127.0.0.2:@HTTP"', "HTTPHost: old=127.0.0.1, new=127.0.0.2"),
    "http_base_path": adds("http_base_path: /x", "HTTPBasePath: old=, new=/x"),
    "max_subscriptions": adds("max_subscriptions: 10", "MaxSubs: old=0, new=10"),
    "max_subscription_tokens": adds("max_subscription_tokens: 5", "MaxSubTokens: old=0, new=5"),
    "max_pending": adds("max_pending: 100000000", "MaxPending: old=67108864, new=100000000"),
    "max_closed_clients": adds("max_closed_clients: 5", "MaxClosedClients: old=10000, new=5"),
    "write_timeout": adds('write_timeout: "retry"', "WriteTimeout: old=, new=retry"),
    "lame_duck_duration": adds('lame_duck_duration: "60s"', "LameDuckDuration: old=2m0s, new=1m0s"),
    "lame_duck_grace_period": adds(
        'lame_duck_grace_period: "5s"', "LameDuckGracePeriod: old=10s, new=5s"
    ),
    "no_header_support": adds("no_header_support: true", "NoHeaderSupport: old=false, new=true"),
    "feature_flags": adds(
        "feature_flags { js_ack_fc_v2: true }",
        "FeatureFlags: old=map[], new=map[js_ack_fc_v2:true]",
    ),
    "log_size_limit": adds("log_size_limit: 100000", "LogSizeLimit: old=0, new=100000"),
    "log_max_num": adds("log_max_num: 3", "LogMaxFiles: old=0, new=3"),
    "no_auth_user": Row("no_auth_user: a", "no_auth_user: b", ("NoAuthUser: old=a, new=b",)),
    "no_auth_user, none": Row("no_auth_user: a", "", ("NoAuthUser: old=a, new=",)),
    "system_account": adds("system_account: A", "SystemAccount: old=, new=A"),
    "no_system_account": adds("no_system_account: true", "NoSystemAccount: old=false, new=true"),
    "jetstream.max_mem, less": Row(
        "max_mem: 64", "max_mem: 63", ("decreasing jetstream max memory and store",)
    ),
    "jetstream.max_file, less": Row(
        "max_file: 64", "max_file: 63", ("decreasing jetstream max memory and store",)
    ),
    "jetstream.max_mem, none": Row("max_mem: 64MB,", "", ("jetstream max memory and max store",)),
    "jetstream.store_dir": Row("/store", "/other", ("jetstream storage directory",)),
    **{
        f"jetstream.{key}": Row('store"', f'store", {key}: {value}', (said,))
        for key, value, said in (
            ("domain", "D", "JetStreamDomain: old=, new=D"),
            ("unique_tag", "az", "JetStreamUniqueTag: old=, new=az"),
            ("strict", "false", "NoJetStreamStrict: old=false, new=true"),
            ("sync_interval", '"1m"', "SyncInterval: old=2m0s, new=1m0s"),
            ("request_queue_limit", "50", "JetStreamRequestQueueLimit: old=10000, new=50"),
            ("extension_hint", "will_extend", "JetStreamExtHint: old=, new=will_extend"),
        )
    },
    "allow_non_tls": adds("allow_non_tls: true", "AllowNonTLS: old=false, new=true"),
    "cluster.listen, its port": Row(
        '127.0.0.1:-1"', '127.0.0.1:1"', ("cluster port: old=@CLUSTER, new=1",)
    ),
    "cluster.listen, its host": Row(
        '"127.0.0.1:-1"', '"127.0.0.2:-1"', ("cluster host: old=127.0.0.1, new=127.0.0.2",)
    ),
    "cluster": Row(CLUSTER, "", ("cluster host: old=127.0.0.1, new=",)),
}
"""Reasons, behind the words that all have in common."""
INVALID = {
    "cluster.accounts": Row(
        "name: c",
        "name: c, accounts: [X]",
        ('unable to add account "X" to the list of dedicated routes: account missing',),
    ),
    "max_pending, too low": adds(
        "max_pending: 10000", "max_payload (100000) cannot be higher than max_pending (10000)"
    ),
    "no such key": adds("nonsense: 1", 'unknown field "nonsense"'),
    "no_auth_user, no user": Row("user: a, ", "user: z, ", ("not present",)),
    "an import without an export": Row(
        "A { users",
        "A { imports: [ {stream: {account: B, subject: y}} ], users",
        ("not authorized",),
    ),
    "a certificate that is not there": adds(
        "tls { cert_file: '/nowhere', key_file: '@KEY' }", "o such file or directory"
    ),
}


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for everything."""
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def plain(certificates: Path) -> Iterator[Callable[[str], Reloading]]:
    """One server of each kind for the base; each row begins and ends with that."""
    yield from kept(lambda kind: Reloading(kind, filled(BASE, certificates)))


@pytest.fixture(scope="module")
def member(certificates: Path) -> Iterator[Callable[[str], Reloading]]:
    """One server of each kind for the base with a cluster."""
    yield from kept(lambda kind: Reloading(kind, filled(MEMBER, certificates)))


@pytest.fixture
def server(
    name: str,
    kind: str,
    plain: Callable[[str], Reloading],
    member: Callable[[str], Reloading],
) -> Reloading:
    """The one for a row."""
    return member(kind) if base_of(name) is MEMBER else plain(kind)


@pytest.fixture(scope="module")
def secure(certificates: Path) -> Iterator[Callable[[str], Reloading]]:
    """The same with TLS."""
    yield from kept(lambda kind: Reloading(kind, filled(TLS + "\n", certificates)))


def filled(text: str, certificates: Path) -> str:
    """A configuration with the files' places in it."""
    found = text.replace("@CERT", str(certificates / "cert.pem"))
    return found.replace("@KEY", str(certificates / "key.pem"))


def changed(base: str, row: Row) -> str:
    """The base with a row's change."""
    assert row.old in base
    return base.replace(row.old, row.new, 1) if row.old else f"{row.new}\n{base}"


def told(server: Reloading, text: str) -> str:
    """What a row says, with this server's places in it."""
    text = text.replace("@DIR", str(server.broker.directory)).replace("@PORT", str(server.port))
    text = text.replace("@HTTP", server.broker.monitor_url.rpartition(":")[2])
    if "@CLUSTER" in text:
        page = server.broker.monitor("/varz")
        assert isinstance(page, dict) and isinstance(page["cluster"], dict)
        text = text.replace("@CLUSTER", str(page["cluster"]["cluster_port"]))
    return text


def take(server: Reloading, base: str, row: Row) -> None:
    """A row is taken, says what it has to, and so is the way back."""
    lines = server.must_reload(changed(base, row))
    assert lines == [told(server, one) for one in row.said]
    server.must_reload(base)


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("name", list(TAKEN))
def test_a_change_that_is_taken(server: Reloading, name: str, certificates: Path) -> None:
    row = TAKEN[name]
    row = row._replace(new=filled(row.new, certificates))
    take(server, filled(base_of(name), certificates), row)


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("name", list(SECURED))
def test_a_change_of_tls(
    kind: str, name: str, secure: Callable[[str], Reloading], certificates: Path
) -> None:
    row = SECURED[name]
    row = Row(filled(row.old, certificates), filled(row.new, certificates), row.said)
    take(secure(kind), filled(TLS + "\n", certificates), row)


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("name", list(REFUSED))
def test_a_change_that_is_refused(server: Reloading, name: str) -> None:
    row = REFUSED[name]
    config = told(server, changed(base_of(name), row))
    assert server.must_refuse(config) == UNSUPPORTED + told(server, row.said[0])


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("name", list(INVALID))
def test_what_is_wrong_is_refused(server: Reloading, name: str, certificates: Path) -> None:
    row = INVALID[name]
    reason = server.must_refuse(filled(changed(base_of(name), row), certificates))
    assert row.said[0] in reason


@pytest.mark.parametrize("kind", list(KINDS))
def test_limits_of_jetstream_may_grow(kind: str) -> None:
    with Reloading(kind, JETSTREAM) as server:
        assert server.must_reload(JETSTREAM.replace(": 64", ": 65")) == [
            "Reloaded: JetStream max_mem_store = 65.00 MB",
            "Reloaded: JetStream max_file_store = 65.00 MB",
        ]
        page = server.broker.monitor("/jsz")
        assert isinstance(page, dict) and isinstance(page["config"], dict)
        assert page["config"]["max_storage"] == 65 << 20


@pytest.mark.parametrize("kind", list(KINDS))
def test_limits_that_the_machine_sets_may_not_be_set(kind: str) -> None:
    with Reloading(kind, JETSTREAM.replace("max_mem: 64MB, ", "")) as server:
        reason = server.must_refuse(JETSTREAM)
        assert reason == UNSUPPORTED + "jetstream dynamic max memory and store"


@pytest.mark.parametrize("kind", list(KINDS))
def test_the_log_goes_on_in_another_file(kind: str) -> None:
    with Reloading(kind, "debug: false") as server:
        moved = server.broker.directory / "moved.log"
        server.file.write_text(server.broker.filled("log_file: '@DIR/moved.log'"))
        server.broker.signal(signal.SIGHUP)
        server.broker.wait_log(f"Reloaded: log_file = {moved}")
        wait_for(
            lambda: moved.exists() and "Reloaded server configuration" in moved.read_text(),
            "the end of the reload in the new file",
        )


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_server_without_a_file_has_nothing_to_reload(kind: str) -> None:
    with CONTRACT_KINDS[kind]() as broker:
        broker.signal(signal.SIGHUP)
        broker.wait_log("can only reload config when a file is provided using -c or --config")


@pytest.mark.parametrize("kind", list(KINDS))
def test_one_bad_key_among_good_ones_leaves_everything_as_it_was(
    kind: str, plain: Callable[[str], Reloading]
) -> None:
    server = plain(kind)
    with Caller(server.port) as caller:
        assert caller.login({"user": "b", "pass": "b"})
        caller.ask(b"SUB x 1\r\n")
        before = {page: pages(server, page) for page in PAGES}
        much = BASE.replace("max_payload: 100000", "max_payload: 10\ndebug: true")
        much = much.replace("password: b", 'password: q, permissions {publish: "z"}')
        much = much.replace("server_name: N", "server_name: M").replace(
            "A { users", "C { }, A { users"
        )
        assert server.must_refuse(much) == UNSUPPORTED + "ServerName: old=N, new=M"
        assert {page: pages(server, page) for page in PAGES} == before
        assert caller.ask(b"PUB x 20\r\naaaaaaaaaaaaaaaaaaaa\r\n")[0] == "MSG x 1 20"


PAGES = (
    "/varz",
    "/accountz",
    "/connz?auth=1&subs=1",
    "/accstatz?unused=1",
    "/subsz",
    "/jsz?accounts=1",
)
MOVING = {
    "now",
    "uptime",
    "cpu",
    "mem",
    "http_req_stats",
    "total",
    "in_msgs",
    "last_activity",
    "update_time",
    "idle",
    "rtt",
    "api",
    "cache_hit_rate",
    "num_cache",
    "max_fanout",
    "avg_fanout",
    "num_inserts",
    "num_removes",
    "num_matches",
}
"""What differs between two looks at a server that is left alone."""


def pages(server: Reloading, path: str) -> object:
    """A monitoring page without what changes by itself."""
    return still(server.broker.monitor(path))


def still(page: object) -> object:
    """The same of any part of it."""
    if isinstance(page, dict):
        return {key: still(one) for key, one in page.items() if key not in MOVING}
    return [still(one) for one in page] if isinstance(page, list) else page
