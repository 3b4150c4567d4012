"""`gateway`, `leafnodes`, `websocket` and `mqtt`: what nats-server takes is taken with a warning,
and what it refuses is refused, with its place."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from jsctl.testing import HOST, find_real_server
from tests.contract.conftest import KINDS
from tests.support.certificates import make_certificates
from tests.support.login import Seed

ONE = Seed(41)
ACCOUNTS = "accounts { A { users: [ {user: a, password: a} ] } }\n"
PAIR = "cert_file: '@CERT', key_file: '@KEY', ca_file: '@CA'"
GOOD = {
    "gateway": f"""gateway {{
        name: G, host: "{HOST}", port: -1, advertise: "me:7222"
        connect_retries: 3, connect_backoff: true, reject_unknown_cluster: true
        write_deadline: "5s", write_timeout: close
        authorization {{ user: g, password: g, timeout: 0.5 }}
        tls {{ {PAIR}, verify_and_map: true, connection_rate_limit: 5 }}
        gateways: [
            {{ name: H, url: "nats://u:p@{HOST}:1", tls {{ {PAIR} }} }}
            {{ name: I, urls: ["nats://{HOST}:1", "nats://{HOST}:2"] }}
        ]
    }}""",
    "gateway, nothing in it": "gateway {}",
    "leafnodes": ACCOUNTS
    + f"""leafnodes {{
        listen: "{HOST}:-1", advertise: "me:1", no_advertise: true, min_version: "2.10.0"
        reconnect: "2s", dial_timeout: "2s", compression: s2_auto, isolate: true
        write_deadline: "5s", write_timeout: retry
        authorization {{ timeout: "2s", users: [
            {{user: l, password: l, account: A}}, {{user: m, password: m, proxy_required: false}}
        ] }}
        tls {{ {PAIR}, verify: true, first: "300ms", curve_preferences: [X25519, CurveP256] }}
        remotes: [
            {{ url: "nats-leaf://{HOST}:1", account: A, nkey: {ONE.text}, hub: false
               deny_imports: ["x.>"], deny_exports: y, no_randomize: true
               js_cluster_migrate {{ leader_migrate_delay: "1s" }}
               compression {{ mode: s2_auto, rtt_thresholds: ["0s", "1s", "2s"] }}
               first_info_timeout: "1s", dial_timeout: "1s", disabled: true
               ignore_discovered_servers: true, request_isolation: true, isolate: true }}
            {{ urls: ["ws://{HOST}:1", "ws://{HOST}:2"], account: "$SYS", credentials: "/none.creds"
               ws_compression: true, ws_no_masking: true, js_cluster_migrate: true, disabled: true
               proxy {{ url: "http://{HOST}:3", username: u, password: p, timeout: "1s" }} }}
        ]
    }}""",
    "leafnodes, one user": f"""leafnodes {{
        port: -1, host: "{HOST}"
        authorization {{ user: l, pass: l, nkey: {ONE.public}, account: "$G" }}
    }}""",
    "websocket": ACCOUNTS
    + f"""websocket {{
        listen: "{HOST}:-1", advertise: "me:1", same_origin: true, compression: true
        allowed_origins: ["https://a.example", "http://b.example:8080"]
        handshake_timeout: 2, ping_interval: "30s", no_auth_user: a
        user_cookie: u, pass_cookie: p, token_cookie: t, headers {{ X-Frame: deny }}
        tls {{ {PAIR}, verify_and_map: true, handshake_first: true }}
    }}""",
    "websocket, a token": "websocket { port: -1, no_tls: true, origin: 'https://a.example'"
    ", handshake_timeout: '2s', authorization { token: t, timeout: 2 } }",
    "websocket, no port": ACCOUNTS + "websocket { no_auth_user: z, jwt_cookie: j }",
    "mqtt": ACCOUNTS
    + f"""server_name: N
    jetstream: enabled
    mqtt {{
        host: "{HOST}", port: -1, no_auth_user: a, ack_wait: "5s", js_api_timeout: "2s"
        max_ack_pending: 65535, js_domain: D, stream_replicas: 1, consumer_memory_storage: true
        consumer_inactive_threshold: "5m", reject_qos2_publish: true, downgrade_qos2_subscribe: true
        tls {{ certs: [ {{ cert_file: '@CERT', key_file: '@KEY' }} ] }}
    }}""",
}
"""Everything in them is taken by both."""


class Bad(str):
    """A configuration that nobody takes; `said` is in the broker's error."""

    said: str

    def __new__(cls, config: str, said: str) -> "Bad":
        """Words of the broker's own."""
        made = super().__new__(cls, config)
        made.said = said
        return made


def leaf(text: str) -> str:
    """A block of leaf nodes."""
    return f'leafnodes {{ listen: "{HOST}:-1", {text} }}'


def hub(text: str) -> str:
    """One of its remotes."""
    return leaf(f'remotes: [ {{ url: "nats://{HOST}:1", {text} }} ]')


def web(text: str) -> str:
    """A block of websockets."""
    return f'websocket {{ listen: "{HOST}:-1", no_tls: true, {text} }}'


def things(text: str) -> str:
    """A block of MQTT, with what it needs."""
    store = 'server_name: N\njetstream { store_dir: "@DIR/store", max_mem: 1MB, max_file: 1MB }\n'
    return f'{store}mqtt {{ listen: "{HOST}:-1", {text} }}'


def door(text: str) -> str:
    """A gateway."""
    return f'gateway {{ name: G, listen: "{HOST}:-1", {text} }}'


BAD = (
    # Names that are none.
    Bad(door("nonsense: 1"), 'unknown field "nonsense" in gateway'),
    Bad(door("gateways: [ {name: H, url: 'nats://h:1', nonsense: 1} ]"), "nonsense"),
    Bad(door("authorization { user: g, pasword: g }"), 'did you mean "password"?'),
    Bad(door("tls { cert_fil: x }"), 'did you mean "cert_file"?'),
    Bad(leaf("nonsense: 1"), 'unknown field "nonsense" in leafnodes'),
    Bad(leaf("authorization { users: [ {user: u, permissions: {}} ] }"), "permissions"),
    Bad(leaf("authorization { token: t }"), 'unknown field "token"'),
    Bad(hub("nonsense: 1"), 'unknown field "nonsense" in remotes'),
    Bad(hub("proxy { nonsense: 1 }"), 'unknown field "nonsense" in proxy'),
    Bad(web("nonsense: 1"), 'unknown field "nonsense" in websocket'),
    Bad(web("authorization { users: [] }"), 'unknown field "users"'),
    Bad(things("nonsense: 1"), 'unknown field "nonsense" in mqtt'),
    Bad(things("authorization { nkey: U }"), 'unknown field "nkey"'),
    # Values of another kind.
    Bad("gateway: 1", "expected a map"),
    Bad("leafnodes: true", "expected a map"),
    Bad("websocket: [1]", "expected a map"),
    Bad("mqtt: on", "expected a map"),
    Bad(door("connect_retries: many"), "expected an integer"),
    Bad(door("reject_unknown: 1"), "expected a boolean"),
    Bad(door("gateways: { name: H }"), "expected an array"),
    Bad(door("gateways: [ 1 ]"), "expected a map"),
    Bad(leaf("remotes: { url: x }"), "expected an array"),
    Bad(leaf("no_advertise: 1"), "expected a boolean"),
    Bad(hub("hub: 1"), "expected a boolean"),
    Bad(hub("js_cluster_migrate: 1"), "expected a boolean or a map"),
    Bad(leaf("remotes: [ {url: 1} ]"), "expected a string"),
    Bad(web("same_origin: 1"), "expected a boolean"),
    Bad(web("handshake_timeout: true"), "expected seconds or a duration"),
    Bad(web("handshake_timeout: soon"), "expected seconds or a duration"),
    Bad(web("headers: x"), "expected a map"),
    Bad(web("headers { X: 1 }"), "expected a string"),
    Bad(web("origins: 1"), "expected a string or an array"),
    Bad(things("max_ack_pending: x"), "expected an integer"),
    Bad(things("js_domain: 1"), "expected a string"),
    # Values of the right kind that make no sense.
    Bad("gateway { listen: '127.0.0.1' }", "is no address to listen on"),
    Bad(f'gateway {{ listen: "{HOST}:-1" }}', "gateway has no name"),
    Bad("gateway { name: G }", "has no port specified"),
    Bad(door("name: 'a b'"), "may not contain spaces"),
    Bad(door("write_timeout: never"), "'never' is not known"),
    Bad(door("gateways: [ {url: 'nats://h:1'} ]"), "has no name"),
    Bad(door("gateways: [ {name: H} ]"), "has no URL"),
    Bad(door("gateways: [ {name: H, url: '127.0.0.1:1'} ]"), "error parsing url"),
    Bad(door("authorization { users: [ {user: a, password: a} ] }"), "multiple users"),
    Bad(door("authorization { token: t }"), "does not support tokens"),
    Bad(door("tls { cert_file: '@CERT' }"), "missing 'key_file'"),
    Bad(leaf('min_version: "2.7.0"'), "at least 2.8.0"),
    Bad(leaf("min_version: new"), "invalid leafnode's minimum version"),
    Bad(leaf("reconnect: soon"), "is no duration"),
    Bad(leaf("compression: gzip"), "'gzip' is not known"),
    Bad(leaf(f"authorization {{ nkey: {ONE.text} }}"), "not a valid public nkey"),
    Bad(leaf("authorization { user: a, users: [ {user: b} ] }"), "user/pass and a users array"),
    Bad(leaf(f"authorization {{ nkey: {ONE.public}, users: [ {{user: b}} ] }}"), "single nkey"),
    Bad(leaf("authorization { users: [ {user: b}, {user: b} ] }"), "duplicate user 'b'"),
    Bad(leaf("authorization { user: a, account: X }"), "cannot find local account 'X'"),
    Bad(hub("account: X"), "cannot find local account 'X' specified in leafnode remote"),
    Bad(hub(f"seed: {ONE.public}"), "not a valid seed"),
    Bad(hub(f"seed: {ONE.text}, creds: x"), "both creds and nkey"),
    Bad(hub("deny_imports: ['a..b']"), "is not a valid subject"),
    Bad(leaf("remotes: [ {url: 'nats://h:1'}, {url: 'nats://h:1'} ]"), "duplicate remote"),
    Bad(leaf("remotes: [ {urls: ['ws://h:1', 'nats://h:1']} ]"), "a mix of websocket"),
    Bad(hub("proxy { url: 'ftp://h:1' }"), "must be http or https"),
    Bad(hub("proxy { url: 'http://' }"), "must specify a host"),
    Bad(hub("proxy { url: 'http://h:1', username: u }"), "must both be specified"),
    Bad(hub("proxy { url: 'http://h:1', timeout: '-1s' }"), "must be a positive value"),
    Bad(leaf("remotes: [ {url: 'wss://h:1', proxy {url: 'http://h:1'}} ]"), "requires TLS"),
    Bad(f'websocket {{ listen: "{HOST}:-1" }}', "websocket requires TLS"),
    Bad(web("origins: ['ftp://a']"), "unable to parse allowed origin"),
    Bad(web("origins: ['https://a:x']"), "unable to parse allowed origin"),
    Bad(web("origins: ['https://']"), "unable to parse allowed origin"),
    Bad(web("no_auth_user: z"), "not present as user"),
    Bad(web("jwt_cookie: j"), "trusted operators"),
    Bad(web("headers { Host: x }"), "invalid header 'Host'"),
    Bad(web("headers { Sec-WebSocket-Key: x }"), "invalid header"),
    Bad(ACCOUNTS + web("authorization { user: u, password: p }"), "not compatible with"),
    Bad(ACCOUNTS + web("authorization { token: t }"), "not compatible with"),
    Bad(web("tls { verify_cert_and_check_known_urls: true }"), "not supported"),
    Bad(web("tls { pinned_certs: [x] }"), "is no pinned certificate"),
    Bad(web("tls { curve_preferences: [x] }"), "unrecognized curve preference"),
    Bad(web("tls { curve_preferences: [] }"), "cannot be empty"),
    Bad(web("tls { cert_store: x }"), "not compatible with current operating system"),
    Bad(things("max_ack_pending: 65536"), "is not within 0 and 65535"),
    Bad(things("ack_wait: '-1s'"), "must be a positive value"),
    Bad(things("no_auth_user: z"), "not present as user"),
    Bad(ACCOUNTS + things("authorization { user: u, password: p }"), "not compatible with"),
)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for everything."""
    return make_certificates(tmp_path_factory.mktemp("certificates"))


def filled(config: str, certificates: Path) -> str:
    """A configuration with the files' places in it."""
    for name, file in (("@CERT", "cert.pem"), ("@KEY", "key.pem"), ("@CA", "ca.pem")):
        config = config.replace(name, str(certificates / file))
    return config


def ended(kind: str, config: str, directory: Path, *words: str) -> tuple[int, str]:
    """How a server with a configuration ends, and what it says; it has to end."""
    path = directory / "x.conf"
    path.write_text(f'listen: "{HOST}:-1"\n{config.replace("@DIR", str(directory))}')
    ours = (sys.executable, "-m", "jsctl", "broker")
    program: Sequence[str] = ours if kind == "jsctl" else (find_real_server(),)
    done = subprocess.run(
        [*program, "-c", str(path), *words], capture_output=True, text=True, timeout=30, check=False
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("name", list(GOOD))
def test_what_is_right_is_taken(kind: str, name: str, certificates: Path, tmp_path: Path) -> None:
    config = filled(GOOD[name], certificates)
    status, said = ended(kind, config, tmp_path, "-t")
    assert status == 0, said
    with KINDS[kind](config=config.replace("@DIR", str(tmp_path))) as broker:
        block = name.partition(",")[0]
        nothing = f'"{block}" has no effect in this server (nothing listens for'
        assert kind == "nats-server" or nothing in broker.logs


@pytest.mark.parametrize("number", range(len(BAD)))
def test_what_is_wrong_is_refused(number: int, certificates: Path, tmp_path: Path) -> None:
    config = filled(BAD[number], certificates)
    line = config[: config.index(config.rpartition("\n")[2])].count("\n") + 2
    status, said = ended("jsctl", config, tmp_path)
    assert status == 1, said
    assert BAD[number].said in said
    place = f"{tmp_path}/x.conf:{line}:"
    assert place in said and said.rstrip().endswith(")"), "it names place and remedy"
    status, said = ended("nats-server", config, tmp_path)
    assert status == 1, said
