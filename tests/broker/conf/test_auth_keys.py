"""Every key that says who may connect, and what they may do: it works, or nothing starts.

`WORKS` names the test that shows that a key works; `test_no_key_is_forgotten` compares both tables
with the grammar, so that a new key has to be in one of them.
"""

from pathlib import Path

import pytest

from jsctl.broker.app import main, real_node
from jsctl.broker.conf import accounts, blocks, mapper, users
from jsctl.broker.conf.fields import Section
from jsctl.broker.options import Options
from jsctl.broker.server.turns import NodeLike
from tests.support.login import Seed

KEY = Seed(1).public
USER = "authorization { users: [ {user: u, password: p, %s} ] }"
ACCOUNT = "accounts { A { users: [ {user: u, password: p} ], %s } }"
TLS = "tls { cert_file: c, key_file: k, %s }"
CLUSTER = "cluster { name: C, port: -1, %s }"
REFUSED = {
    # A key that is not carried out.
    "authorization auth_callout": "authorization { auth_callout { issuer: A } }",
    "authorization proxy_required": "authorization { user: u, password: p, proxy_required: true }",
    "user proxy_required": USER % "proxy_required: true",
    "limits max_payload": ACCOUNT % "limits { max_payload: 1 }",
    "cluster tls verify_and_map": CLUSTER % (TLS % "verify_and_map: true"),
    "tls verify_cert_and_check_known_urls": TLS % "verify_cert_and_check_known_urls: true",
    "tls connection_rate_limit": TLS % "connection_rate_limit: 5",
    "tls cert_store": TLS % "cert_store: x",
    "tls cert_match_by": TLS % "cert_match_by: subject",
    "tls cert_match": TLS % "cert_match: x",
    "tls ca_certs_match": TLS % "ca_certs_match: [x]",
    "tls cert_match_skip_invalid": TLS % "cert_match_skip_invalid: true",
    "tls ocsp_peer": TLS % "ocsp_peer: true",
    "cluster permissions": CLUSTER % "permissions { import: a }",
    "cluster authorization permissions": CLUSTER
    % "authorization { user: u, password: p, permissions: { import: a } }",
    "top operator": "operator: x.jwt",
    "top trusted_keys": "trusted_keys: [O]",
    "top resolver": "resolver: MEMORY",
    "top resolver_tls": "resolver_tls { ca_file: x }",
    "top resolver_preload": "resolver_preload { A: x }",
    "top resolver_pinned_accounts": "resolver_pinned_accounts: [A]",
    "top default_sentinel": "default_sentinel: x",
    "top proxies": "proxies { trusted = [ {key: N} ] }",
    "top proxy_protocol": "proxy_protocol: true",
    "top ocsp": "ocsp: true",
    "top ocsp as a map": "ocsp { mode: must }",
    "top ocsp without a mode": "ocsp { }",
    # Somebody wanted a login, and nobody would have to.
    "an empty array of users": "authorization { users: [] }",
    "a password without a user": "authorization { password: p }",
    "a user that is none": "authorization { users: [ {} ] }",
    "a password for nobody": "authorization { users: [ {password: p} ] }",
    "routes with a password alone": CLUSTER % "authorization { password: p }",
    "a user of an account that is none": "accounts { A { users: [ {} ] } }",
    "a name that is empty": "authorization { users: [ {user: '', password: p} ] }",
    "a user that is empty": "authorization { user: '' }",
    "a token that is empty": "authorization { token: $EMPTY }",
    "a password that is empty": "authorization { user: u, password: $EMPTY }",
    "a user's password that is empty": "accounts { A { users: [ {user: u, password: ''} ] } }",
    "a user of routes that is empty": CLUSTER % "authorization { user: '' }",
    "a password of routes that is empty": CLUSTER % "authorization { user: u, password: '' }",
    "a user of gateways that is empty": "gateway { name: G, port: 1, authorization { user: '' } }",
    "a user of leaf nodes that is empty": "leafnodes { port: -1, authorization { user: '' } }",
    "an nkey that is empty": "authorization { users: [ {nkey: ''} ] }",
    "an unknown no_auth_user": f"no_auth_user: x\nauthorization {{ users: [ {{nkey: {KEY}}} ] }}",
    "a no_auth_user without users": "no_auth_user: u\nauthorization { user: u, password: p }",
    "an unknown system account": "system_account: S\naccounts { A { users: [ {user: u} ] } }",
    # Things that exclude each other.
    "a user and a token": "authorization { user: u, password: p, token: t }",
    "a password and a token": "authorization { password: p, token: t }",
    "a user and users": "authorization { user: u, password: p, users: [ {user: v} ] }",
    "a token and users": "authorization { token: t, users: [ {user: v} ] }",
    "a user and accounts": "authorization { user: u }\naccounts { A { users: [ {user: v} ] } }",
    "a token and accounts": "authorization { token: t }\naccounts { A { users: [ {user: v} ] } }",
    "an nkey and a user": f"authorization {{ users: [ {{nkey: {KEY}, user: u}} ] }}",
    "an nkey and a password": f"authorization {{ users: [ {{nkey: {KEY}, password: p}} ] }}",
    # Nkeys.
    "an nkey that is too short": "authorization { users: [ {nkey: UABC} ] }",
    "an nkey with a wrong letter": f"authorization {{ users: [ {{nkey: {KEY[:-1]}A}} ] }}",
    "an nkey in lower case": f"authorization {{ users: [ {{nkey: {KEY.lower()}}} ] }}",
    "an nkey of a server": f"authorization {{ users: [ {{nkey: N{KEY[1:]}}} ] }}",
    "a seed": f"authorization {{ users: [ {{nkey: {Seed(1).text}}} ] }}",
    "a number as an nkey": "authorization { users: [ {nkey: 5} ] }",
    "an account's nkey of a user": f"accounts {{ A {{ nkey: {KEY} }} }}",
    # Passwords.
    "a hash that is cut off": "authorization { user: u, password: '$2a$11$abc' }",
    "a hash of no cost": f"authorization {{ user: u, password: '$2a$99${'a' * 53}' }}",
    "a token that is half a hash": "authorization { token: '$2b$11$abc' }",
    "a user's half hash": "authorization { users: [ {user: u, password: '$2y$04$'} ] }",
    "a hash for routes": CLUSTER % f"authorization {{ user: u, password: '$2a$04${'a' * 53}' }}",
    # The same thing twice: the second would take the place of the first.
    "two users of a name": "authorization { users: [ {user: u}, {user: u} ] }",
    "two of an nkey": f"authorization {{ users: [ {{nkey: {KEY}}}, {{nkey: {KEY}}} ] }}",
    "a name in two accounts": "accounts { A { users: [{user: u}] }, B { users: [{user: u}] } }",
    "an nkey in two accounts": f"accounts {{ A {{ users: [{{nkey: {KEY}}}] }},"
    f" B {{ users: [{{nkey: {KEY}}}] }} }}",
    "an nkey in a block and an account": f"authorization {{ users: [ {{nkey: {KEY}}} ] }}\n"
    f"accounts {{ A {{ users: [ {{nkey: {KEY}}} ] }} }}",
    "two blocks": "authorization { user: u, password: p }\nauthorization { timeout: 5 }",
    "two accounts blocks": "accounts { A { users: [ {user: u} ] } }\naccounts { A { } }",
    "an account twice": "accounts { A { users: [ {user: u} ] }, A { } }",
    "an account twice in a list": "accounts: [A, A]",
    "two arrays of users": "authorization { users: [ {user: u} ], users: [ {user: v} ] }",
    "two names of a key": "authorization { users: [ {user: u, username: v} ] }",
    "two tls blocks": "tls { verify: true, cert_file: c, key_file: k }\ntls { cert_file: c }",
    "two logins of routes": CLUSTER % "authorization { user: u }, authorization { timeout: 5 }",
    "two tls blocks of routes": CLUSTER % f"{TLS % 'verify: true'}, {TLS % ''}",
    "two denials": USER % "permissions { publish: {deny: a, deny: b} }",
    "two no_auth_users": "no_auth_user: u\nno_auth_user: v\nauthorization { users: [{user: u}] }",
    # Wrong types and unknown names.
    "a user as text": "authorization { users: [ u ] }",
    "users as a map": "authorization { users: {user: u} }",
    "authorization as text": "authorization: u",
    "accounts as text": "accounts: A",
    "an account as text": "accounts { A: x }",
    "a number as a password": "authorization { user: u, password: 5 }",
    "a token that is true": "authorization { token: true }",
    "an unknown key": "authorization { user: u, passwort: p }",
    "an unknown key of a user": USER % "nkye: x",
    "an unknown key of an account": ACCOUNT % "user: x",
    "an unknown permission": USER % "permissions { publsh: a }",
    "an unknown list": USER % "permissions { publish: { denied: a } }",
    "a permission as a number": USER % "permissions { publish: 5 }",
    "permissions as text": USER % "permissions: a",
    "a bad subject": USER % "permissions { publish: 'a..b' }",
    "a queue where none may be": USER % "permissions { publish: 'a q' }",
    "a space before a subject": USER % "permissions { subscribe: {deny: ' a'} }",
    "a space behind a subject": USER % "permissions { subscribe: {deny: 'a '} }",
    "three words": USER % "permissions { subscribe: 'a q r' }",
    "answers without a unit": USER % "permissions { allow_responses: { expires: 5 } }",
    "answers as text": USER % "permissions { allow_responses: yep }",
    "an unknown kind of connection": USER % "allowed_connection_types: [CARRIER_PIGEON]",
    "a negative timeout": "authorization { timeout: -1 }",
    "a timeout without a unit": "authorization { timeout: soon }",
    "users of routes": CLUSTER % "authorization { users: [ {user: u} ] }",
    "a token of routes": CLUSTER % "authorization { token: t }",
    "an nkey of routes": CLUSTER % f"authorization {{ nkey: {KEY} }}",
    "a callout of routes": CLUSTER % "authorization { auth_callout { issuer: A } }",
    "an account that is reserved": "accounts { $G { } }",
    "an export to no account": ACCOUNT % "exports: [ {stream: a, accounts: []} ]",
    "an export to nobody": ACCOUNT % "exports: [ {stream: a, accounts: [NOBODY]} ]",
    "an import that was not exported": "accounts { A { }, B { imports: ["
    " {stream: {account: A, subject: a}} ] } }",
    "a position that is no wildcard": ACCOUNT
    % "exports: [ {stream: a.b, account_token_position: 2} ]",
    "a position behind the end": ACCOUNT
    % "exports: [ {stream: 'a.*', account_token_position: 3} ]",
    "an import at another's position": "accounts { A { exports: [ {stream: 'a.*',"
    " account_token_position: 2} ] }, B { imports: [ {stream: {account: A, subject: a.C}} ] } }",
    "an authority that is empty": TLS % "verify: true, ca_file: $EMPTY",
    "two curves": TLS % "curve_preferences: [X25519, CurveP256]",
    "an unknown curve": TLS % "curve_preferences: [Curve5]",
    "an old TLS": TLS % "min_version: '1.1'",
    "no pins": TLS % "pinned_certs: []",
    "no type of connections": USER % "allowed_connection_types: []",
    "a pin that is none": TLS % "pinned_certs: [abc]",
    "a route that begins as if it were secured": CLUSTER % "routes: ['tls://u:p@h:1']",
    "a gateway that does": "gateway { name: G, port: 1, gateways [ {name: H, url: 'TLS://h:1'} ] }",
    "no key": "tls { cert_file: c }",
    "no certificate": "tls { verify: true }",
}


def never(options: Options, server_id: str, store: Path | None) -> NodeLike:
    """A node that is made and must not run."""
    real_node(options, server_id, store)
    raise AssertionError("it would have started")


@pytest.mark.parametrize("what", list(REFUSED))
def test_nothing_starts(
    what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EMPTY", "")
    Path("x.conf").write_text(REFUSED[what])
    assert main(["-p", "-1", "-c", "x.conf"], never) == 1
    told = capsys.readouterr()
    lines = [line for line in (told.err + told.out).splitlines() if "[INF]" not in line]
    assert lines and all(line.rstrip().endswith(")") for line in lines), "a remedy in each line"


@pytest.mark.parametrize("after", [True, False])
def test_an_included_file_takes_nothing_away(
    after: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Wherever it is included."""
    (tmp_path / "more.conf").write_text("authorization { timeout: 5 }")
    lines = ["authorization { user: u, password: p }", "include more.conf"]
    path = tmp_path / "x.conf"
    path.write_text("\n".join(lines if after else lines[::-1]))
    assert main(["-p", "-1", "-c", str(path)], never) == 1
    assert "authorization: it is given twice" in capsys.readouterr().err


@pytest.mark.parametrize(
    "flags",
    [
        ["--pass", "p"],
        ["--user", "u", "--auth", "t"],
        ["--pass", "p", "--auth", "t"],
        ["--user", ""],
        ["--auth", ""],
        ["--user", "u", "--pass", ""],
    ],
)
def test_flags_that_open_or_contradict(
    flags: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Even where the file says who may come."""
    path = tmp_path / "x.conf"
    path.write_text("authorization { user: user, password: p }")
    assert main(["-p", "-1", "-c", str(path), *flags], never) == 1
    assert main(["-p", "-1", *flags], never) == 1
    told = capsys.readouterr().err
    assert "user" in told or "log in" in told


def test_an_authority_that_is_empty_is_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.conf"
    path.write_text("tls { cert_file: c, key_file: k, ca_file: a }")
    assert main(["-p", "-1", "-c", str(path), "--tlsverify", "--tlscacert", ""], never) == 1
    assert "--tlscacert" in capsys.readouterr().err


def test_a_flag_does_not_go_with_users_of_accounts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.conf"
    path.write_text("accounts { A { users: [ {user: v, password: p} ] } }")
    assert main(["-p", "-1", "-c", str(path), "--auth", "t"], never) == 1
    assert "a token" in capsys.readouterr().err


LOGIN = "contract/test_logging_in.py"
WORKS: dict[str, dict[str, str]] = {
    "authorization": dict.fromkeys(
        ("user", "password", "token", "users", "timeout", "default_permissions"), LOGIN
    ),
    "user": dict.fromkeys(
        ("user", "password", "nkey", "permissions", "allowed_connection_types"), LOGIN
    ),
    "permissions": dict.fromkeys(("publish", "subscribe", "allow_responses"), LOGIN),
    "responses": dict.fromkeys(("max", "expires"), "broker/sessions/test_sessions.py"),
    "account": dict.fromkeys(("users", "default_permissions"), LOGIN)
    | dict.fromkeys(("exports", "imports"), "broker/accounts/test_imports.py")
    | {"nkey": "broker/conf/test_conf_mapper.py", "limits": "broker/sessions/test_sessions.py"},
    "cluster authorization": dict.fromkeys(
        ("user", "password", "timeout"), "broker/routes/test_mesh.py"
    ),
    "tls": dict.fromkeys(
        ("cert_file", "key_file", "ca_file", "verify", "pinned_certs", "min_version",
         "cipher_suites", "curve_preferences", "insecure", "timeout", "handshake_first", "certs"),
        "broker/server/test_tls.py",
    ) | {"verify_and_map": "contract/test_certificate_users.py"},
}  # fmt: skip
HARMLESS = {
    "account": {"jetstream", "mappings", "msg_trace"},
    "tls": {"allow_insecure_cipher_suites"},
}
"""Keys that open and close nothing; insecure suites stay off whatever is written."""
SECTIONS: dict[str, Section] = {
    "authorization": users.AUTHORIZATION,
    "user": users.USER,
    "permissions": users.PERMISSIONS,
    "responses": users.RESPONSES,
    "account": accounts.ACCOUNT,
    "cluster authorization": blocks.CLUSTER_AUTHORIZATION,
    "tls": blocks.TLS,
}


@pytest.mark.parametrize("name", list(SECTIONS))
def test_no_key_is_forgotten(name: str) -> None:
    known = {field.names[0] for field in SECTIONS[name].by_name.values()}
    refused = {key for key in known if f"{name} {key}" in REFUSED}
    assert known == set(WORKS[name]) | refused | HARMLESS.get(name, set())
    tests = Path(__file__).parents[2]
    assert all((tests / place).exists() for place in WORKS[name].values())


def test_only_what_opens_nothing_is_ignored_at_the_top() -> None:
    """A listener that is not there lets nobody in."""
    warned = {
        names[0]
        for names in {field.names for field in mapper.TOP.by_name.values()}
        if any(
            f'"{names[0]}"' in warning
            for value in ("true", "{ }", "x")
            for warning in warnings_of(f"{names[0]}: {value}")
        )
    }
    assert warned == {
        "syslog", "remote_syslog", "prof_port", "prof_block_rate",
        "websocket", "mqtt", "ocsp_cache", "default_js_domain", "no_fast_producer_stall",
    }  # fmt: skip


def warnings_of(text: str) -> tuple[str, ...]:
    """What a configuration is warned of; nothing if it is refused."""
    from jsctl.broker.errors import ConfigError

    try:
        return mapper.from_text(text, "x.conf", {}).options.warnings
    except ConfigError:
        return ()
