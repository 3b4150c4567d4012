"""Operator mode: what clients notice when accounts' JWTs change with a reload, on both servers."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest

from jsctl.auth.claims import (
    Account,
    Import,
    NatsLimits,
    Permission,
    Permissions,
    UserPermissionLimits,
    WeightedMapping,
)
from jsctl.auth.claims import Export as Offer
from jsctl.auth.keys import KeyKind, generate
from jsctl.dataclass import replace
from tests.contract.conftest import KINDS
from tests.support.login import Caller
from tests.support.operators import FREE, Member, OperatorWorld, account_key, limits, scope
from tests.support.reloading import Reloading
from tests.support.waiting import wait_for

PLAIN, SCOPED = account_key(), account_key()
ONE, TWO = generate(KeyKind.USER), generate(KeyKind.USER)
BEARER = replace(FREE, bearer_token=True)
NOTHING = UserPermissionLimits()
KEYS = (PLAIN.public, scope(SCOPED))


def only(*subjects: str) -> Permissions:
    """Publishing to some subjects, and listening to everything."""
    return Permissions(Permission(subjects))


def narrow(template: UserPermissionLimits) -> Account:
    """The account whose scoped key says something else."""
    return Account(signing_keys=(PLAIN.public, scope(SCOPED, template)))


class Case(NamedTuple):
    """What becomes of four users, by the account's key, a signing key, a scoped key and with a
    bearer token, when the account is signed again as `after`: (what each hears, close reason)."""

    after: Callable[[], Account | None]
    own: tuple[list[str], str]
    signed: tuple[list[str], str]
    scoped: tuple[list[str], str]
    bearing: tuple[list[str], str]
    before: Callable[[], Account] = lambda: Account(signing_keys=KEYS)


STAYS: tuple[list[str], str] = ([], "")
KEPT_OUT: tuple[list[str], str] = ([], "Authentication Failure")
REFUSED = (["-ERR 'Authorization Violation'"], "Authentication Failure")
REVOKED = (["-ERR 'User Authentication Revoked'"], "Credentials Revoked")
ALL_REVOKED = {"*": time.time_ns() // 1_000_000_000 + 3600}
CASES = {
    "nothing": Case(lambda: Account(signing_keys=KEYS), STAYS, STAYS, STAYS, STAYS),
    "its tags": Case(
        lambda: Account(signing_keys=KEYS, mappings={"a": (WeightedMapping("b"),)}),
        STAYS, STAYS, STAYS, STAYS,
    ),
    "one user is revoked": Case(
        lambda: Account(signing_keys=KEYS, revocations={ONE.public: ALL_REVOKED["*"]}),
        REVOKED, STAYS, STAYS, STAYS,
    ),
    "users issued long ago are revoked": Case(
        lambda: Account(signing_keys=KEYS, revocations={"*": 1000}), STAYS, STAYS, STAYS, STAYS
    ),
    "all are revoked": Case(
        lambda: Account(signing_keys=KEYS, revocations=ALL_REVOKED),
        REVOKED, REVOKED, REVOKED, REVOKED,
    ),
    "a signing key is gone": Case(
        lambda: Account(signing_keys=KEYS[1:]), STAYS, KEPT_OUT, STAYS, STAYS
    ),
    "all signing keys are gone": Case(lambda: Account(), STAYS, KEPT_OUT, KEPT_OUT, STAYS),
    "a scope is another one": Case(
        lambda: narrow(replace(FREE, permissions=only("x"))), STAYS, STAYS, KEPT_OUT, STAYS
    ),
    "no bearers any more": Case(
        lambda: Account(signing_keys=KEYS, limits=limits(no_bearer=True)),
        STAYS, STAYS, STAYS, REFUSED,
    ),
}  # fmt: skip


def four(world: OperatorWorld) -> list[Member]:
    """Users of the account in all ways."""
    return [
        world.user("A", pair=ONE),
        world.user("A", issuer=PLAIN),
        world.user("A", rules=NOTHING, issuer=SCOPED),
        world.user("A", rules=BEARER),
    ]


Enter = Callable[[int, list[Member]], list[Caller]]


@pytest.fixture
def entered() -> Iterator[Enter]:
    """Connections of users that are logged in, as long as the test runs."""
    with ExitStack() as stack:

        def made(port: int, members: list[Member]) -> list[Caller]:
            callers = [stack.enter_context(Caller(port)) for _ in members]
            for caller, member in zip(callers, members, strict=True):
                assert caller.login(member.login(caller.challenge)), caller.refusal
            return callers

        yield made


def outcome(running: Reloading, caller: Caller) -> tuple[list[str], str]:
    """What a client hears, and why it is closed; nothing for one that stays."""
    caller.send(b"PING\r\n")
    heard: list[str] = []
    while line := caller.line():
        if line == "PONG":
            return heard, ""
        if line != "PING" and not line.startswith("INFO "):
            heard.append(line)
    return heard, reason(running, caller)


def closed(caller: Caller) -> list[str]:
    """What somebody hears who is being closed; nats-server may answer a last time before."""
    heard: list[str] = []
    while line := caller.line():
        if line.startswith("-ERR"):
            heard.append(line)
    return heard


def reason(running: Reloading, caller: Caller) -> str:
    """Why a client was closed."""

    def found() -> str:
        page = running.broker.monitor("/connz?state=closed&limit=1024")
        assert isinstance(page, dict) and isinstance(page["connections"], list)
        for row in page["connections"]:
            assert isinstance(row, dict)
            if row["cid"] == caller.info["client_id"]:
                return str(row["reason"])
        return ""

    return wait_for(found, "the connection among those that are closed")


@pytest.fixture(scope="module", params=list(KINDS))
def running(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator["Running"]:
    """A server and its world."""
    world = OperatorWorld(tmp_path_factory.mktemp("world"))
    world.account("A", Account(signing_keys=KEYS))
    with Reloading(str(request.param), world.config()) as made:
        yield made, world


Running = tuple[Reloading, OperatorWorld]


@pytest.mark.parametrize("name", list(CASES))
def test_who_stays_and_who_goes(running: Running, entered: Enter, name: str) -> None:
    server, world = running
    case = CASES[name]
    world.account("A", case.before())
    server.must_reload(world.config())
    callers = entered(server.port, four(world))
    after = case.after()
    assert after is not None
    world.account("A", after)
    server.must_reload(world.config())
    found = [outcome(server, one) for one in callers]
    if server.kind == "nats-server" and case.scoped == KEPT_OUT:
        # Without its scope a user has a limit of none, which may be told before it is closed.
        heard, why = found[2]
        found[2] = [line for line in heard if "maximum subscriptions" not in line], why
    assert found == [case.own, case.signed, case.scoped, case.bearing]


def test_limits_that_are_lowered(running: Running, entered: Enter) -> None:
    server, world = running
    world.account("A", Account())
    server.must_reload(world.config())
    few, many, late = entered(server.port, [world.user("A") for _ in range(3)])
    few.ask(b"SUB a 1\r\n")
    many.ask(b"SUB a 1\r\nSUB b 2\r\nSUB c 3\r\n")
    world.account("A", Account(limits=limits(nats=NatsLimits(2, -1, 5), connections=2)))
    server.must_reload(world.config())
    assert outcome(server, few) == STAYS
    heard = closed(many)
    assert set(heard) == {"-ERR 'maximum subscriptions exceeded'"}
    assert reason(server, many) == "Maximum Subscriptions Exceeded"
    assert outcome(server, late) == (
        ["-ERR 'maximum account active connections exceeded'"],
        "Maximum Account Connections Exceeded",
    )
    assert few.ask(b"SUB d 2\r\nSUB e 3\r\n") == ["-ERR 'maximum subscriptions exceeded'"]
    few.send(b"PUB a 6\r\n123456\r\n")
    assert outcome(server, few)[0] == ["-ERR 'Maximum Payload Violation'"]


def test_default_permissions_that_change(running: Running, entered: Enter) -> None:
    server, world = running
    world.account("A", Account())
    server.must_reload(world.config())
    (caller,) = entered(server.port, [world.user("A")])
    caller.ask(b"SUB gone.x 1\r\nSUB may.x 2\r\n")
    told = Permissions(Permission(("may.>",)), Permission(("may.>",)))
    world.account("A", Account(default_permissions=told))
    server.must_reload(world.config())
    heard, why = outcome(server, caller)
    assert (heard, why) == (
        ["-ERR 'Permissions Violation for Subscription to \"gone.x\" (sid \"1\")'"], ""
    )  # fmt: skip
    assert caller.ask(b"PUB gone.x 0\r\n\r\nPUB may.x 0\r\n\r\n") == [
        "-ERR 'Permissions Violation for Publish to \"gone.x\"'", "MSG may.x 2 0", "",
    ]  # fmt: skip


def test_imports_and_mappings_follow(running: Running, entered: Enter) -> None:
    server, world = running
    giver = world.account("B", Account(exports=(Offer(subject="news.>", type_="stream"),)))
    world.account("A", Account())
    server.must_reload(world.config())
    taking, giving = entered(server.port, [world.user("A"), world.user("B")])
    taking.ask(b"SUB news.a 1\r\nSUB to 2\r\n")
    giving.ask(b"PUB news.a 0\r\n\r\n")
    assert taking.ask(b"") == []
    wanted = Import(subject="news.>", account=giver.public, type_="stream")
    said = Account(imports=(wanted,), mappings={"from": (WeightedMapping("to"),)})
    world.account("A", said)
    server.must_reload(world.config())
    giving.ask(b"PUB news.a 0\r\n\r\n")
    assert taking.ask(b"PUB from 0\r\n\r\n") == ["MSG news.a 1 0", "", "MSG to 2 0", ""]
    world.account("B", Account())
    server.must_reload(world.config())
    giving.ask(b"PUB news.a 0\r\n\r\n")
    assert taking.ask(b"PUB from 0\r\n\r\n") == ["MSG to 2 0", ""]


def test_another_account_comes_and_goes(running: Running, entered: Enter) -> None:
    server, world = running
    world.account("A", Account())
    server.must_reload(world.config())
    name = "new"
    world.account(name)
    member = world.user(name)
    with Caller(server.port) as early:
        assert not early.login(member.login(early.challenge))
    server.must_reload(world.config())
    (caller, other) = entered(server.port, [member, world.user("A")])
    server.must_reload(world.config(without=[name]))
    assert outcome(server, other) == STAYS
    assert outcome(server, caller) == REFUSED
    with Caller(server.port) as again:
        assert not again.login(member.login(again.challenge))
    del world.tenants[name]


def test_an_operator_does_not_change(running: Running, entered: Enter, tmp_path: Path) -> None:
    server, world = running
    other = OperatorWorld(tmp_path)
    (caller,) = entered(server.port, [world.user("A")])
    assert server.must_refuse(other.config())
    assert outcome(server, caller) == STAYS
    server.must_reload(world.config())
