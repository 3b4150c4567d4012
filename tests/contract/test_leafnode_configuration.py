"""The `leafnodes` block: what nats-server takes is taken, and what it refuses is refused."""

from pathlib import Path

import pytest

from jsctl.testing import HOST
from tests.contract.conftest import KINDS
from tests.support.certificates import make_certificates
from tests.support.configurations import Bad, ended, filled, refused_by_both
from tests.support.login import Seed

ONE = Seed(41)
ACCOUNTS = "accounts { A { users: [ {user: a, password: a} ] } }\n"
PAIR = "cert_file: '@CERT', key_file: '@KEY', ca_file: '@CA'"
GOOD = {
    "leafnodes": ACCOUNTS
    + f"""leafnodes {{
        listen: "{HOST}:-1", advertise: "me:1", no_advertise: true, min_version: "2.10.0"
        reconnect: "2s", dial_timeout: "2s", compression: s2_auto, isolate: true
        write_deadline: "5s", write_timeout: retry
        authorization {{ timeout: "2s", users: [
            {{user: l, password: l, account: A}}, {{user: m, password: m, proxy_required: false}}
        ] }}
        tls {{ {PAIR}, verify: true, first: "300ms" }}
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
    "leaf, nothing in it": "leaf {}",
    "leafnodes, a hub for TLS": """leafnodes {
        remotes: [ { url: "tls://hub.example", tls { ca_file: '@CA' }, disabled: true }
                   { url: "hub.example", tls {}, disabled: true } ]
    }""",
}
"""Everything in them is taken by both."""


def leaf(text: str) -> str:
    """A block of leaf nodes."""
    return f'leafnodes {{ listen: "{HOST}:-1", {text} }}'


def hub(text: str) -> str:
    """One of its remotes."""
    return leaf(f'remotes: [ {{ url: "nats://{HOST}:1", {text} }} ]')


BAD = (
    Bad(leaf("nonsense: 1"), 'unknown field "nonsense" in leafnodes'),
    Bad(leaf("authorization { users: [ {user: u, permissions: {}} ] }"), "permissions"),
    Bad(leaf("authorization { token: t }"), 'unknown field "token"'),
    Bad(hub("nonsense: 1"), 'unknown field "nonsense" in remotes'),
    Bad(hub("proxy { nonsense: 1 }"), 'unknown field "nonsense" in proxy'),
    Bad("leafnodes: true", "expected a map"),
    Bad(leaf("remotes: { url: x }"), "expected an array"),
    Bad(leaf("no_advertise: 1"), "expected a boolean"),
    Bad(hub("hub: 1"), "expected a boolean"),
    Bad(hub("js_cluster_migrate: 1"), "expected a boolean or a map"),
    Bad(leaf("remotes: [ {url: 1} ]"), "expected a string"),
    Bad(leaf('min_version: "2.7.0"'), "at least 2.8.0"),
    Bad(leaf("min_version: new"), "invalid leafnode's minimum version"),
    Bad(leaf(f"min_version: v{'9' * 5000}.1.1"), "invalid leafnode's minimum version"),
    Bad(leaf("reconnect: soon"), "is no duration"),
    Bad(leaf("compression: gzip"), "'gzip' is not known"),
    Bad(leaf("compression: s2_uncompressed"), "'s2_uncompressed' is not known"),
    Bad(leaf("compression { mode: s2_auto, rtts: [20ms, 10ms] }"), "ascending order"),
    Bad(leaf("compression { mode: s2_auto, rtts: [0s, 0s] }"), "at least one RTT"),
    Bad(leaf("compression { mode: s2_auto, rtts: [1s, 2s, 3s, 4s, 5s] }"), "no more than 4"),
    Bad(leaf("compression { mode: s2_auto, rtts: [soon] }"), "is no duration"),
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
)
STRICTER = (
    Bad(leaf("remotes: [ {url: 'nats://'} ]"), "names no host"),
    Bad(leaf("authorization { users: [ {password: p} ] }"), "requires a user"),
    Bad(leaf("authorization { users: [] }"), "nobody would have to log in"),
    Bad(leaf("authorization { password: p }"), "nobody would have to log in"),
    Bad(leaf("authorization { user: a, pass: '$2a$11$x' }"), "begins like a bcrypt hash"),
    Bad(leaf("authorization { user: a, proxy_required: true }"), "proxy_required"),
    Bad(leaf("authorization { user: a, username: b }"), "given twice"),
    Bad(leaf("authorization { user: a }, authorization { user: b }"), "given twice"),
    Bad(hub("deny_imports: a, deny_import: b"), "given twice"),
    Bad(leaf("tls { verify_and_map: true }"), "verify_and_map is not supported"),
)
"""nats-server starts with these, and lets in, or out, more than they seem to say."""


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for everything."""
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("name", list(GOOD))
def test_what_is_right_is_taken(kind: str, name: str, certificates: Path, tmp_path: Path) -> None:
    status, said = ended(kind, filled(GOOD[name], certificates), tmp_path, "-t")
    assert status == 0, said


@pytest.mark.parametrize("number", range(len(BAD)))
def test_what_is_wrong_is_refused(number: int, certificates: Path, tmp_path: Path) -> None:
    refused_by_both(BAD[number], certificates, tmp_path)
