"""What clients notice of a reload, on both servers: who is closed and how, who stays as what."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import bcrypt
import pytest

from tests.contract.conftest import KINDS
from tests.support.kept import kept
from tests.support.login import Caller, Seed
from tests.support.reloading import Reloading

ONE, TWO = Seed(21), Seed(22)
HASH, SAME, OTHER = (bcrypt.hashpw(one, bcrypt.gensalt(4)).decode() for one in (b"p", b"p", b"q"))
VIOLATION = "-ERR 'Authorization Violation'"
REFUSED = ([VIOLATION], "Authentication Failure")
MOVED: tuple[list[str], str] = ([], "Client Closed")
STAYS: tuple[list[str], str] = ([], "")
Login = dict[str, object] | str | None
U: Login = {"user": "u", "pass": "p"}
A: Login = {"user": "a", "pass": "a"}
NOBODY: Login = {}
SILENT: Login = None


def users(more: str = "", *, password: str = "p", name: str = "u") -> str:
    """Two users, of whom one is looked at."""
    one = f'{{user: {name}, password: "{password}"{", " if more else ""}{more}}}'
    return f"authorization {{ users: [ {one}, {{user: w, password: w}} ] }}"


def accounts(first: str = "A", second: str = "B", more: str = "", user: str = "a") -> str:
    """Two accounts with one user each, named as the account was at first."""
    return (
        f"accounts {{\n {first} {{ users: [ {{user: {user}, password: {user}}} ]\n {more}\n }}\n"
        f" {second} {{ users: [ {{user: b, password: b}} ] }}\n}}"
    )


class Case(NamedTuple):
    """Configurations before and after, a client, what it hears at once, and what then."""

    before: str
    after: str
    login: Login
    outcome: tuple[list[str], str]
    said: str = ""
    then: str = ""
    heard: tuple[str, ...] = ()


OPEN = "debug: false"
MESSAGE = "PUB x 1\r\na\r\n"
BOTH = "PUB no.a 1\r\na\r\nPUB no.b 1\r\nb\r\n"
NARROW = 'permissions {subscribe: {deny: "no.b"}}'
WIDE = 'permissions {subscribe: ["ok.>"]}'
KEPT_OUT = (
    '-ERR \'Permissions Violation for Subscription to "no.x" (sid "1")\'',
    '-ERR \'Permissions Violation for Subscription to "no.y" using queue "q" (sid "3")\'',
)
NO_PUBLISH = "-ERR 'Permissions Violation for Publish to \"no.x\"'"
CASES = {
    "something else changes": Case(users(), users() + "\nmax_payload: 100000", U, STAYS),
    "its password changes": Case(users(), users(password="q"), U, REFUSED),
    "its user is gone": Case(users(), users(name="z"), U, MOVED),
    "its token stays": Case(
        "authorization {token: t}",
        "authorization {token: t}\nmax_payload: 1000",
        {"auth_token": "t"},
        STAYS,
    ),
    "its token changes": Case(
        "authorization {token: t}", "authorization {token: s}", {"auth_token": "t"}, REFUSED
    ),
    "nobody had to log in": Case(OPEN, users(), NOBODY, REFUSED),
    "nobody had to log in, nothing said": Case(OPEN, users(), SILENT, REFUSED),
    "it gave a good password unasked": Case(OPEN, users(), U, STAYS),
    "it gave a bad password unasked": Case(OPEN, users(password="z"), U, REFUSED),
    "nobody has to log in any more": Case(users(), OPEN, U, MOVED),
    "its nkey stays": Case(
        f"authorization {{users: [{{nkey: {ONE.public}}}]}}",
        f"authorization {{users: [{{nkey: {ONE.public}}}, {{nkey: {TWO.public}}}]}}",
        "nkey",
        STAYS,
    ),
    "its nkey is gone": Case(
        f"authorization {{users: [{{nkey: {ONE.public}}}]}}",
        f"authorization {{users: [{{nkey: {TWO.public}}}]}}",
        "nkey",
        MOVED,
    ),
    "others get nkeys": Case(users(), users(f"}}, {{nkey: {TWO.public}"), U, STAYS),
    "its password is hashed anew": Case(users(password=HASH), users(password=SAME), U, STAYS),
    "its password is hashed": Case(users(), users(password=HASH), U, STAYS),
    "its hash is of another password": Case(
        users(password=HASH), users(password=OTHER), U, REFUSED
    ),
    "it may listen to less": Case(
        users(),
        users(WIDE),
        U,
        (list(KEPT_OUT), ""),
        "SUB no.x 1\r\nSUB ok.x 2\r\nSUB no.y q 3\r\n",
        "PUB ok.x 2\r\nhi\r\nPUB no.x 2\r\nhi\r\nSUB no.z 4\r\n",
        (
            "MSG ok.x 2 2",
            "hi",
            "-ERR 'Permissions Violation for Subscription to \"no.z\"'",
        ),
    ),
    "a part is hidden from it": Case(
        users(), users(NARROW), U, STAYS, "SUB no.* 1\r\n", BOTH, ("MSG no.a 1 1", "a")
    ),
    "no part is hidden from it any more": Case(
        users(NARROW),
        users(),
        U,
        STAYS,
        "SUB no.* 1\r\n",
        BOTH,
        ("MSG no.a 1 1", "a", "MSG no.b 1 1", "b"),
    ),
    "it may publish less": Case(
        users(),
        users('permissions {publish: ["ok.>"]}'),
        U,
        STAYS,
        "PUB no.x 1\r\na\r\n",
        "PUB no.x 1\r\na\r\n",
        (NO_PUBLISH,),
    ),
    "it may publish more": Case(
        users('permissions {publish: ["ok.>"]}'),
        users(),
        U,
        STAYS,
        "SUB > 1\r\nPUB no.x 1\r\na\r\n",
        "PUB no.x 1\r\na\r\n",
        ("MSG no.x 1 1", "a"),
    ),
    "all may publish less": Case(
        users(),
        users().replace("users:", "default_permissions {publish: ok}\nusers:"),
        U,
        STAYS,
        "",
        "PUB no.x 1\r\na\r\n",
        (NO_PUBLISH,),
    ),
    "its kind may not log in": Case(
        users(), users("allowed_connection_types: [WEBSOCKET]"), U, REFUSED
    ),
    "its user moves": Case(accounts(), accounts("B", "A"), A, MOVED),
    "its account is gone": Case(accounts(), accounts("C"), A, MOVED),
    "another account is gone": Case(
        accounts(), accounts(second="C"), A, STAYS, "SUB x 1\r\n", MESSAGE, ("MSG x 1 1", "a")
    ),
    "messages get smaller": Case(
        OPEN,
        "max_payload: 3",
        NOBODY,
        STAYS,
        "PUB x 5\r\nhello\r\n",
        "PUB x 5\r\nhello\r\n",
        ("-ERR 'Maximum Payload Violation'",),
    ),
    "messages get larger": Case(
        "max_payload: 3",
        OPEN,
        NOBODY,
        STAYS,
        "SUB x 1\r\n",
        "PUB x 5\r\nhello\r\n",
        ("MSG x 1 5", "hello"),
    ),
    "lines get shorter": Case(
        OPEN,
        "max_control_line: 20",
        NOBODY,
        STAYS,
        "",
        f"PUB {'x' * 40} 1\r\na\r\n",
        ("-ERR 'maximum control line exceeded'",),
    ),
    "the server is known by another name": Case(
        OPEN, 'client_advertise: "me:1234"', {"protocol": 1}, STAYS, "SUB x 1\r\n"
    ),
    "there are too many": Case(
        OPEN,
        "max_connections: 0",
        NOBODY,
        (["-ERR 'maximum connections exceeded'"], "Maximum Connections Exceeded"),
    ),
    "its account has too many": Case(
        accounts(),
        accounts(more="limits { max_conn: 0 }"),
        A,
        (
            ["-ERR 'maximum account active connections exceeded'"],
            "Maximum Account Connections Exceeded",
        ),
    ),
    "it listens too much": Case(
        accounts(),
        accounts(more="limits { max_subs: 1 }"),
        A,
        (["-ERR 'maximum subscriptions exceeded'"], "Maximum Subscriptions Exceeded"),
        "SUB x 1\r\nSUB x 2\r\nSUB x 3\r\n",
    ),
}


@pytest.fixture(scope="module")
def servers() -> Iterator[Callable[[str], Reloading]]:
    """One server of each kind: a case begins with its own configuration."""
    yield from kept(lambda kind: Reloading(kind, OPEN))


def heard(caller: Caller, lines: str, *, closed: bool = False) -> list[str]:
    """What comes up to the answer of a PING, or until the server has hung up."""
    found: list[str] = []
    caller.send(f"{lines}PING\r\n".encode())
    while line := caller.line():
        if line != "PONG":
            found.append(line)
        elif not closed:
            return found
    return found


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("name", list(CASES))
def test_what_a_client_notices(kind: str, name: str, servers: Callable[[str], Reloading]) -> None:
    server, case = servers(kind), CASES[name]
    server.must_reload(case.before)
    with Caller(server.port) as caller:
        login = case.login
        if login == "nkey":
            login = {"nkey": ONE.public, "sig": ONE.sign(caller.challenge)}
        assert login is None or caller.login(login)
        if case.said:
            caller.ask(case.said.encode())
        server.must_reload(case.after)
        at_once, reason = case.outcome
        assert sorted(heard(caller, "", closed=bool(reason))) == sorted(at_once)
        if reason:
            page = server.broker.monitor("/connz?state=closed")
            assert isinstance(page, dict) and isinstance(page["connections"], list)
            assert reason in str(page["connections"][-1])
        elif case.then:
            assert tuple(heard(caller, case.then)) == case.heard
