"""What a configuration says of who may connect, and who gets in then.

Each configuration is tried by a dozen clients on both servers. Configurations that the broker
refuses, and why, are in `tests/broker/conf/test_auth_keys.py`.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import bcrypt
import pytest

from jsctl.testing import Broker
from tests.contract.conftest import KINDS
from tests.support.login import Caller, Seed

ONE, TWO = Seed(11), Seed(12)
HASH = bcrypt.hashpw(b"p", bcrypt.gensalt(4)).decode()
FALSE_HASH = "$2a$04$" + "a" * 53
LOGINS: dict[str, Callable[[str], dict[str, object]]] = {
    "anon": lambda nonce: {},
    "u/p": lambda nonce: {"user": "u", "pass": "p"},
    "u/x": lambda nonce: {"user": "u", "pass": "x"},
    "u/": lambda nonce: {"user": "u"},
    "u/hash": lambda nonce: {"user": "u", "pass": HASH},
    "u/false": lambda nonce: {"user": "u", "pass": FALSE_HASH},
    "v/p": lambda nonce: {"user": "v", "pass": "p"},
    "/p": lambda nonce: {"pass": "p"},
    "t": lambda nonce: {"auth_token": "t"},
    "z": lambda nonce: {"auth_token": "z"},
    "one": lambda nonce: {"nkey": ONE.public, "sig": ONE.sign(nonce)},
    "one unsigned": lambda nonce: {"nkey": ONE.public},
    "one by two": lambda nonce: {"nkey": ONE.public, "sig": TWO.sign(nonce)},
    "two": lambda nonce: {"nkey": TWO.public, "sig": TWO.sign(nonce)},
}
NKEYS = {"one", "one unsigned", "one by two", "two"}
ALL = set(LOGINS)


class Case(NamedTuple):
    """A configuration, who gets in, and what INFO says: must they log in, is there a nonce."""

    config: str
    accepted: set[str]
    required: bool = True
    challenged: bool = False


U = "{user: u, password: p}"
V = "{user: v, password: p}"
N1 = f"{{nkey: {ONE.public}}}"
N2 = f"{{nkey: {TWO.public}}}"
KIND = "allowed_connection_types"
CASES = {
    "nothing": Case("debug: false", ALL, required=False),
    "an empty block": Case("authorization { }", ALL, required=False),
    "a timeout alone": Case("authorization { timeout: 0 }", ALL, required=False),
    "user and password": Case("authorization { user: u, password: p, timeout: 0 }", {"u/p"}),
    "other names of the keys": Case("authorization { username: u, pass: p }", {"u/p"}),
    "a user alone": Case("authorization { user: u }", {"u/"}),
    "a token": Case("authorization { token: t }", {"t"}),
    "a hash": Case(f'authorization {{ user: u, password: "{HASH}" }}', {"u/p"}),
    "a hash in users": Case(
        f'authorization {{ users: [ {{user: u, password: "{HASH}"}} ] }}', {"u/p"}
    ),
    "a hash that none has": Case(
        f'authorization {{ users: [ {{user: u, password: "{FALSE_HASH}"}} ] }}', set()
    ),
    "a hashed token": Case(
        f'authorization {{ token: "{bcrypt.hashpw(b"t", bcrypt.gensalt(4)).decode()}" }}', {"t"}
    ),
    "users": Case(f"authorization {{ users: [ {U}, {V} ] }}", {"u/p", "v/p"}),
    "a user without a password": Case("authorization { users: [ {user: u} ] }", {"u/"}),
    "nkeys": Case(f"authorization {{ users: [ {N1} ] }}", {"one"}, challenged=True),
    "nkeys of an account": Case(
        f"accounts {{ A {{ users: [ {N1}, {N2} ] }} }}", {"one", "two"}, challenged=True
    ),
    "both": Case(
        f"accounts {{ A {{ users: [ {N1} ] }}, B {{ users: [ {U} ] }} }}",
        {"one", "u/p"},
        challenged=True,
    ),
    "a block and accounts": Case(
        f"authorization {{ users: [ {U} ] }}\naccounts {{ A {{ users: [ {V} ] }} }}", {"u/p", "v/p"}
    ),
    "no_auth_user": Case(
        f"no_auth_user: u\nauthorization {{ users: [ {U} ] }}", {"anon", "u/p"} | NKEYS, False
    ),
    "no_auth_user beside nkeys": Case(
        f"no_auth_user: u\nauthorization {{ users: [ {U}, {N1} ] }}",
        {"anon", "u/p", "one"},
        required=False,
        challenged=True,
    ),
    "no_auth_user is an nkey": Case(
        f"no_auth_user: {ONE.public}\nauthorization {{ users: [ {U}, {N1} ] }}",
        {"anon", "u/p", "one", "one unsigned", "one by two"},
        required=False,
        challenged=True,
    ),
    "system users alone": Case(
        f"accounts {{ $SYS {{ users: [ {U} ] }} }}", {"anon", "u/p"} | NKEYS
    ),
    "system nkeys alone": Case(
        f"accounts {{ $SYS {{ users: [ {N1} ] }} }}", {"anon", "one"}, challenged=True
    ),
    "system users beside an account": Case(
        f"accounts {{ $SYS {{ users: [ {U} ] }}, A {{ }} }}", {"u/p"}
    ),
    "system users beside a block": Case(
        f"authorization {{ timeout: 2 }}\naccounts {{ $SYS {{ users: [ {U} ] }} }}", {"u/p"}
    ),
    "system users under another name": Case(
        f"system_account: S\naccounts {{ S {{ users: [ {U} ] }} }}", {"anon", "u/p"} | NKEYS
    ),
    "kinds of connections": Case(
        f"authorization {{ users: [ {{user: u, password: p, {KIND}: [WEBSOCKET]}},"
        f" {{user: v, password: p, {KIND}: [standard]}}, {{nkey: {ONE.public}, {KIND}: [MQTT]}},"
        f" {{nkey: {TWO.public}, {KIND}: [STANDARD, MQTT]}} ] }}",
        {"v/p", "two"},
        challenged=True,
    ),
    "no_auth_user of another kind": Case(
        f"no_auth_user: u\nauthorization {{ users: [ {{user: u, password: p, {KIND}: [MQTT]}} ] }}",
        set(),
        required=False,
    ),
}
FLAGS = {
    "--user and --pass": (("--user", "u", "--pass", "p"), {"u/p"}),
    "--user": (("--user", "u"), {"u/"}),
    "--auth": (("--auth", "t"), {"t"}),
}


@pytest.fixture(scope="module", params=list(KINDS))
def kind(request: pytest.FixtureRequest) -> Iterator[type[Broker]]:
    """Which server."""
    yield KINDS[str(request.param)]


@pytest.mark.parametrize("name", list(CASES))
def test_who_gets_in(kind: type[Broker], name: str) -> None:
    case = CASES[name]
    with kind(config=case.config) as server:
        with Caller(server.port) as caller:
            assert caller.info.get("auth_required", False) is case.required
            assert bool(caller.challenge) is case.challenged
        assert admitted(server) == case.accepted


@pytest.mark.parametrize("name", list(FLAGS))
def test_flags(kind: type[Broker], name: str) -> None:
    flags, accepted = FLAGS[name]
    with kind(*flags) as server:
        assert admitted(server) == accepted


def admitted(server: Broker) -> set[str]:
    """The logins that are accepted; all others are told why not."""
    found = set()
    for name, say in LOGINS.items():
        with Caller(server.port) as caller:
            if caller.login(say(caller.challenge)):
                found.add(name)
            else:
                assert caller.refusal == "Authorization Violation", name
    return found


PERMISSIONS = {
    "publish: 'a.>'": {"a.x": "ps", "b": "s"},
    "subscribe: {allow: 'a.>', deny: 'a.x'}": {"a.x": "p", "a.y": "ps", "b": "p"},
    "publish: {deny: b}": {"a.x": "ps", "b": "s"},
    "subscribe: ['b q']": {"b": "p", "b q": "ps", "b r": "p"},
    "pub: b, sub: b": {"a.x": "", "b": "ps"},
    "import: b, export: b": {"a.x": "", "b": "ps"},
    "allow_responses: true": {"a.x": "s"},
}


def test_permissions(kind: type[Broker]) -> None:
    """Of users by name and by nkey, each with its own."""
    seeds = [Seed(20 + number) for number in range(len(PERMISSIONS))]
    users = []
    for number, rules in enumerate(PERMISSIONS):
        own = f"permissions: {{ {rules} }}"
        users.append(f"{{user: u{number}, password: p, {own}}}")
        users.append(f"{{nkey: {seeds[number].public}, {own}}}")
    with kind(config=f"authorization {{ users: [ {', '.join(users)} ] }}") as server:
        for number, expected in enumerate(PERMISSIONS.values()):
            with Caller(server.port) as caller:
                assert caller.login({"user": f"u{number}", "pass": "p"})
                check(caller, expected)
            with Caller(server.port) as caller:
                seed = seeds[number]
                assert caller.login({"nkey": seed.public, "sig": seed.sign(caller.challenge)})
                check(caller, expected)


@pytest.mark.parametrize(
    "config",
    [
        f"authorization {{ default_permissions: {{ RULES }}, users: [ {U}, {N1} ] }}",
        f"accounts {{ A {{ default_permissions: {{ RULES }}, users: [ {U}, {N1} ] }} }}",
    ],
)
def test_default_permissions(kind: type[Broker], config: str) -> None:
    rules, expected = next(iter(PERMISSIONS.items()))
    with kind(config=config.replace("RULES", rules)) as server:
        for login in ("u/p", "one"):
            with Caller(server.port) as caller:
                assert caller.login(LOGINS[login](caller.challenge))
                check(caller, expected)


def check(caller: Caller, expected: dict[str, str]) -> None:
    """What a user may do with each subject, or subject and queue."""
    assert {place: allowed(caller, place) for place in expected} == expected


def allowed(caller: Caller, place: str) -> str:
    """`p` if a subject may be published, `s` if it may be subscribed, with a queue or not."""
    subject = place.split(" ")[0]
    published = caller.ask(f"PUB {subject} 0\r\n\r\n".encode())
    subscribed = caller.ask(f"SUB {place} 1\r\nUNSUB 1\r\n".encode())
    return ("" if published else "p") + ("" if subscribed else "s")
