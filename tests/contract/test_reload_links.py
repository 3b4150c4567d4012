"""Every key of `leafnodes` and `gateway`: what a reload makes of a change, on both servers."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from jsctl.testing import HOST
from tests.contract.test_reload_keys import UNSUPPORTED, filled
from tests.support.certificates import make_certificates
from tests.support.gateways import gateway_port, linked
from tests.support.kept import kept
from tests.support.login import Seed
from tests.support.reloading import KINDS, Reloading
from tests.support.waiting import wait_for

PAIR = "cert_file: '@CERT', key_file: '@KEY', ca_file: '@CERT'"
FILES = "cert_file: '@CERT', key_file: '@KEY', ca_file: '@CA'"
BASE = """server_name: N
system_account: SYS
accounts {
    SYS { users: [ {user: s, password: s} ] }
    A { users: [ {user: a, password: a} ] }
    B { users: [ {user: b, password: b} ] }
}
no_auth_user: a
leafnodes {
    listen: "127.0.0.1:-1"
    authorization { user: l, password: l, account: A }
    remotes: [ { url: "nats-leaf://127.0.0.1:2", account: A } ]
}
gateway {
    name: g
    listen: "127.0.0.1:-1"
    authorization { user: g, password: g }
    gateways: [ { name: h, url: "nats://127.0.0.1:3" } ]
}
"""
SECURED = (
    BASE.replace("{ user: l,", "{ timeout: 5, user: l,")
    .replace("{ user: g,", "{ timeout: 5, user: g,")
    .replace("    authorization { t", f"    tls {{ {PAIR}, verify: true }}\n    authorization {{ t")
    .replace('2", account: A', f'2", account: A, tls {{ {PAIR} }}')
    .replace("name: h", f"name: h, tls {{ {PAIR} }}")
)
TEXT = 'urls=["nats-leaf://127.0.0.1:2"], account="A"'
Change = tuple[str, str]
Said = tuple[str, ...] | str
"""Lines, or a part of a refusal."""


def door(text: str) -> Change:
    """Something in the block of leaf nodes."""
    return ("leafnodes {\n", f"leafnodes {{\n    {text}\n")


def hub(text: str) -> Change:
    """Something in the hub that this server hangs on."""
    return ('2", account: A', f'2", account: A, {text}')


def gate(text: str) -> Change:
    """Something in the block of gateways."""
    return ("    name: g\n", f"    name: g\n    {text}\n")


def leaf(field: str, before: str, after: str) -> str:
    """Why a change of that block is refused."""
    return f'{UNSUPPORTED}LeafNode: field "{field}": old={before}, new={after}'


def far(field: str, before: str, after: str) -> str:
    """Why a change of a hub is refused."""
    return f'{UNSUPPORTED}LeafNode: remote {TEXT}: field "{field}": old={before}, new={after}'


GATEWAY = f"{UNSUPPORTED}Gateway"
GONE = (f"Reloaded: LeafNode Remote {TEXT} removed",)
SAME: dict[str, tuple[Change, Said]] = {
    "leafnodes": ((BASE[BASE.index("leafnodes") : BASE.index("gateway")], ""), "LeafNode: field"),
    "leafnodes.listen": ((f'"{HOST}:-1"', '"127.0.0.2:-1"'), leaf("Host", HOST, "127.0.0.2")),
    "leafnodes.host": (
        (f'listen: "{HOST}:-1"', 'host: "127.0.0.2", port: -1'),
        leaf("Host", HOST, "127.0.0.2"),
    ),
    "leafnodes.port": ((f'listen: "{HOST}:-1"', f'host: "{HOST}", port: 1'), "new=1"),
    "leafnodes.advertise": (door('advertise: "me:1"'), leaf("Advertise", "", "me:1")),
    "leafnodes.no_advertise": (door("no_advertise: true"), leaf("NoAdvertise", "false", "true")),
    "leafnodes.compression": (
        door("compression: s2_best"),
        ("Reloaded: LeafNode Compression value is: {s2_best []}",),
    ),
    "leafnodes.isolate_leafnode_interest": (
        door("isolate_leafnode_interest: true"),
        leaf("IsolateLeafnodeInterest", "false", "true"),
    ),
    "leafnodes.min_version": (door('min_version: "2.9.0"'), leaf("MinVersion", "", "2.9.0")),
    "leafnodes.reconnect": (door('reconnect: "7s"'), leaf("ReconnectInterval", "1s", "7s")),
    "leafnodes.dial_timeout": (door('dial_timeout: "5s"'), 'field "DialTimeout": old='),
    "leafnodes.write_deadline": (door('write_deadline: "5s"'), leaf("WriteDeadline", "0s", "5s")),
    "leafnodes.write_timeout": (door("write_timeout: retry"), leaf("WriteTimeout", "", "retry")),
    "leafnodes.tls": (door(f"tls {{ {PAIR} }}"), leaf("AuthTimeout", "2", "3")),
    "leafnodes.authorization.user": (("user: l,", "user: m,"), leaf("Username", "l", "m")),
    "leafnodes.authorization.password": (("word: l", "word: m"), 'field "Password": old='),
    "leafnodes.authorization.account": (
        ("word: l, account: A", "word: l, account: B"),
        leaf("Account", "A", "B"),
    ),
    "leafnodes.authorization.timeout": (
        ("user: l,", "user: l, timeout: 7,"),
        leaf("AuthTimeout", "2", "7"),
    ),
    "leafnodes.authorization.users": (
        ("user: l, password: l, account: A", "users: [ {user: l, password: l, account: A} ]"),
        'LeafNode: field "Users"',
    ),
    "leafnodes.authorization.nkey": (
        ("user: l, password: l,", f"nkey: {Seed(33).public},"),
        "LeafNode: field",
    ),
    "remotes, another": (('127.0.0.1:2"', '127.0.0.1:4"'), GONE),
    "remotes, none": (('{ url: "nats-leaf://127.0.0.1:2", account: A }', ""), GONE),
    "remotes, one more": (
        ("account: A } ]", 'account: A }, {url: "nats-leaf://127.0.0.1:4", account: B} ]'),
        (),
    ),
    "remotes.account": (('2", account: A', '2", account: B'), GONE),
    "remotes.credentials": (hub("credentials: '/nowhere.creds'"), GONE),
    "remotes.nkey": (hub(f'nkey: "{Seed(34).text}"'), GONE),
    "remotes.compression": (
        hub("compression: s2_best"),
        (f"Reloaded: LeafNode Remote {TEXT} Compression value is: {{s2_best []}}",),
    ),
    "remotes.disabled": (
        hub("disabled: true"),
        (f"Reloaded: LeafNode Remote {TEXT} Disabled value is: true",),
    ),
    "remotes.deny_exports": (hub("deny_exports: [x]"), far("DenyExports", "[]", "[x]")),
    "remotes.deny_imports": (hub("deny_imports: [x]"), far("DenyImports", "[]", "[x]")),
    "remotes.dial_timeout": (hub('dial_timeout: "5s"'), far("DialTimeout", "0s", "5s")),
    "remotes.first_info_timeout": (
        hub('first_info_timeout: "5s"'),
        far("FirstInfoTimeout", "1s", "5s"),
    ),
    "remotes.hub": (hub("hub: true"), far("Hub", "false", "true")),
    "remotes.ignore_discovered_servers": (
        hub("ignore_discovered_servers: true"),
        far("IgnoreDiscoveredServers", "false", "true"),
    ),
    "remotes.isolate_leafnode_interest": (
        hub("isolate_leafnode_interest: true"),
        far("LocalIsolation", "false", "true"),
    ),
    "remotes.no_randomize": (hub("no_randomize: true"), far("NoRandomize", "false", "true")),
    "remotes.request_isolation": (
        hub("request_isolation: true"),
        far("RequestIsolation", "false", "true"),
    ),
    "remotes.tls": (hub(f"tls {{ {PAIR} }}"), far("TLSTimeout", "0", "2")),
    "gateway": ((BASE[BASE.index("gateway") :], ""), GATEWAY),
    "gateway.name": (("    name: g", "    name: i"), GATEWAY),
    "gateway.advertise": (gate('advertise: "me:1"'), GATEWAY),
    "gateway.connect_backoff": (gate("connect_backoff: true"), GATEWAY),
    "gateway.connect_retries": (gate("connect_retries: 4"), GATEWAY),
    "gateway.reject_unknown_cluster": (gate("reject_unknown_cluster: true"), GATEWAY),
    "gateway.write_deadline": (gate('write_deadline: "5s"'), GATEWAY),
    "gateway.write_timeout": (gate("write_timeout: retry"), GATEWAY),
    "gateway.listen": (
        (f'name: g\n    listen: "{HOST}', 'name: g\n    listen: "127.0.0.2'),
        GATEWAY,
    ),
    "gateway.tls": (gate(f"tls {{ {PAIR} }}"), GATEWAY),
    "gateway.authorization.user": (("user: g,", "user: m,"), GATEWAY),
    "gateway.authorization.password": (("word: g", "word: m"), GATEWAY),
    "gateway.authorization.timeout": (("word: g", "word: g, timeout: 7"), GATEWAY),
    "gateways.name": (("name: h", "name: k"), GATEWAY),
    "gateways.url": (("127.0.0.1:3", "127.0.0.1:4"), GATEWAY),
    "gateways, one more": (('3" } ]', '3" }, { name: k, url: "nats://127.0.0.1:4" } ]'), GATEWAY),
    "gateways.tls": (("name: h", f"name: h, tls {{ {PAIR} }}"), ()),
    "gateways.tls, its timeout": (("name: h", f"name: h, tls {{ {PAIR}, timeout: 9 }}"), GATEWAY),
}
"""Both say the same, but for a password, which is not told here, and the values of a gateway."""
NO_EFFECT: dict[str, tuple[Change, str]] = {
    "remotes.jetstream_cluster_migrate": (hub("jetstream_cluster_migrate: true"), "Migrate"),
    "remotes.proxy": (hub('proxy { url: "http://127.0.0.1:9" }'), "Proxy"),
    "remotes.ws_compression": (hub("ws_compression: true"), "Websocket"),
    "remotes.ws_no_masking": (hub("ws_no_masking: true"), "Websocket"),
}
"""Refused by nats-server; ours takes what has no effect, see docs/differences.md."""
PLACES = ("leafnodes", "remotes", "gateway", "gateways")
"""Blocks with certificates, in the order of the file."""
TAKEN = (
    ("pinned_certs", f'pinned_certs: ["{"a" * 64}"]'),
    ("min_version", 'min_version: "1.3"'),
    ("insecure", "insecure: true"),
    ("cipher_suites", "cipher_suites: [TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256]"),
    ("handshake_first", "handshake_first: true"),
)
"""Keys of what secures connections that may change, besides the files."""
FIRST = (
    "Reloaded: LeafNode TLS HandshakeFirst value is: true",
    "Reloaded: LeafNode TLS HandshakeFirstFallback value is: 0s",
)
SAID: dict[str, Said] = {
    "leafnodes pinned_certs": 'field "TLSPinnedCerts"',
    "leafnodes handshake_first": FIRST,
    "remotes handshake_first": (
        f"Reloaded: LeafNode Remote {TEXT} TLS HandshakeFirst value is: true",
    ),
}
"""What is said of them where that is something."""
ELSEWHERE = {
    **dict.fromkeys(("leafnodes.remotes", "remotes.url"), "rows remotes, ..."),
    "leafnodes.authorization": "rows leafnodes.authorization.*",
    "leafnodes.authorization.proxy_required": "row authorization.proxy_required, true",
    **{
        f"leafnodes.user.{key}": "row leafnodes.authorization.users"
        for key in ("user", "password", "account", "proxy_required")
    },
    **{f"proxy.{key}": "row remotes.proxy" for key in ("url", "username", "password", "timeout")},
    "gateway.authorization": "rows gateway.authorization.*",
    "gateway.authorization.users": "test_gateway_configuration: no file has it",
    "gateway.authorization.token": "test_gateway_configuration: no file has it",
    "gateway.gateways": "rows gateways.*",
    "gateway.host": "row gateway.listen",
    "gateway.port": "row gateway.listen",
    "gateways.urls": "row gateways.url",
}
"""Keys whose change is looked at under another name."""


def named() -> set[str]:
    """All keys that a row is about."""
    return {name.partition(",")[0] for table in (SAME, NO_EFFECT, ELSEWHERE) for name in table}


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for everything."""
    return make_certificates(tmp_path_factory.mktemp("certificates"))


Servers = Callable[[str], Reloading]


@pytest.fixture(scope="module")
def plain() -> Iterator[Servers]:
    """One server of each kind for the base; each row begins and ends with that."""
    yield from kept(lambda kind: Reloading(kind, BASE))


@pytest.fixture(scope="module")
def secured(certificates: Path) -> Iterator[Servers]:
    """The same with certificates everywhere."""
    yield from kept(lambda kind: Reloading(kind, filled(SECURED, certificates)))


def check(server: Reloading, base: str, config: str, said: Said) -> None:
    """A change is taken with these lines, or refused for this reason; then the base comes back."""
    assert config != base
    if isinstance(said, str):
        assert said in server.must_refuse(config)
    else:
        assert server.must_reload(config) == list(said)
        server.must_reload(base)


def changed(base: str, change: Change) -> str:
    """The base with a change."""
    old, new = change
    assert old in base
    return base.replace(old, new, 1)


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("name", list(SAME))
def test_both_say_the_same(plain: Servers, kind: str, name: str, certificates: Path) -> None:
    change, said = SAME[name]
    check(plain(kind), BASE, filled(changed(BASE, change), certificates), said)


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("name", list(NO_EFFECT))
def test_what_has_no_effect_here_is_taken_here(plain: Servers, kind: str, name: str) -> None:
    change, refused = NO_EFFECT[name]
    check(plain(kind), BASE, changed(BASE, change), refused if kind == "nats-server" else ())


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(("key", "text"), TAKEN)
def test_what_secures_connections_may_change(
    secured: Servers, kind: str, place: str, key: str, text: str, certificates: Path
) -> None:
    parts = SECURED.split(PAIR)
    at = PLACES.index(place) + 1
    config = PAIR.join(parts[:at]) + f"{PAIR}, {text}" + PAIR.join(parts[at:])
    config, base = filled(config, certificates), filled(SECURED, certificates)
    check(secured(kind), base, config, SAID.get(f"{place} {key}", ()))


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("place", PLACES)
def test_how_long_a_handshake_may_take_stays(
    secured: Servers, kind: str, place: str, certificates: Path
) -> None:
    parts = SECURED.split(PAIR)
    at = PLACES.index(place) + 1
    config = PAIR.join(parts[:at]) + f"{PAIR}, timeout: 9" + PAIR.join(parts[at:])
    server = secured(kind)
    reason = server.must_refuse(filled(config, certificates))
    assert reason.startswith((f"{UNSUPPORTED}LeafNode", GATEWAY))


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_cluster_is_dialed_with_the_certificates_of_now(
    kind: str, tmp_path: Path, certificates: Path
) -> None:
    """Other authorities than those of the other cluster: no connection, until a reload."""
    strangers = make_certificates(tmp_path)

    def there(name: str, ca: Path, remotes: str = "") -> str:
        files = filled(FILES, certificates).replace("@CA", str(ca / "ca.pem"))
        return (
            f"server_name: {name}\n"
            f'gateway {{ name: {name}, listen: "{HOST}:-1", tls {{ {files} }}, {remotes} }}\n'
        )

    with ExitStack() as stack:
        other = stack.enter_context(Reloading(kind, there("h", certificates)))
        remotes = f'gateways: [ {{ name: h, url: "nats://{HOST}:{gateway_port(other.broker)}" }} ]'
        near = stack.enter_context(Reloading(kind, there("g", strangers, remotes)))
        failed = ("certificate", "TLS")
        wait_for(lambda: any(word in near.broker.logs for word in failed), "a refusal")
        near.must_reload(there("g", certificates, remotes))
        linked(near.broker, "h")
