"""Operator mode: what accounts give each other, and the tokens that let them, on both servers."""

import time
from collections.abc import Callable, Iterator
from typing import Literal

import pytest

from jsctl.auth.claims import Account, Export, Import
from jsctl.dataclass import dataclass
from jsctl.testing import Broker
from tests.contract.conftest import KINDS
from tests.support.login import Caller
from tests.support.operators import OperatorWorld, account_key

NOW_S = time.time_ns() // 1_000_000_000
HOUR_S = 3600
SIGNING, STRANGER = account_key(), account_key()
Kind = Literal["service", "stream"]
HEARD = ("MSG ", "HMSG ")
BOTH: tuple[Kind, ...] = ("service", "stream")


@dataclass(frozen=True, slots=True)
class Case:
    """An import into `importer`, and whether anything comes through it."""

    made: Callable[[OperatorWorld, str, Kind], Import]
    allowed: bool
    asked: str = ""
    """The subject that the importer uses."""


def plain(
    subject: str, *, token: str = "", local: str = "", to: str = "", account: str = "E"
) -> Callable[[OperatorWorld, str, Kind], Import]:
    """An import without a token, or with a text for one."""
    return lambda world, name, kind: Import(
        subject=subject,
        account=world.tenants[account].public,
        token=token,
        local_subject=local,
        to=to,
        type_=kind,
    )


def with_token(
    subject: str = "tok.a",
    of: str = "tok.a",
    *,
    giver: str = "E",
    to: str = "",
    kind: str = "",
    issued_s: int = 0,
    expires_s: int = 0,
    by: object = None,
) -> Callable[[OperatorWorld, str, Kind], Import]:
    """An import with a token: for a subject, signed by whom, for whom, of what kind."""

    def made(world: OperatorWorld, name: str, given: Kind) -> Import:
        token = world.activation(
            giver,
            to or name,
            of,
            kind or given,
            issuer=SIGNING if by == "key" else STRANGER if by == "stranger" else None,
            issued_s=issued_s,
            expires_s=expires_s,
        )
        return plain(subject, token=token)(world, name, given)

    return made


def own_position(world: OperatorWorld, name: str, kind: Kind) -> Import:
    """An import of a subject that names the importer."""
    subject = f"acct.{world.tenants[name].public}.x"
    return plain(subject, local="mine.x")(world, name, kind)


def other_position(world: OperatorWorld, name: str, kind: Kind) -> Import:
    """An import of a subject that names somebody else."""
    subject = f"acct.{world.tenants['E'].public}.x"
    return plain(subject, local="mine.x")(world, name, kind)


def older(world: OperatorWorld, name: str, kind: Kind) -> Import:
    """An import as it was written once: of a stream with a prefix, of a service the other way
    round."""
    if kind == "stream":
        return plain("open.old", to="older")(world, name, kind)
    return plain("older.open.old", to="open.old")(world, name, kind)


CASES = {
    "public": Case(plain("open.a"), True, "open.a"),
    "all that is public": Case(plain("open.>"), True, "open.x"),
    "more than is public": Case(plain(">"), False, "open.x"),
    "not exported": Case(plain("closed.a"), False, "closed.a"),
    "under another name": Case(plain("open.a", local="here"), True, "here"),
    "with a wildcard under another name": Case(plain("open.*", local="it.$1.is"), True, "it.q.is"),
    "by an older JWT": Case(older, True, "older.open.old"),
    "a good token": Case(with_token(), True, "tok.a"),
    "a token of a signing key": Case(with_token(by="key"), True, "tok.a"),
    "a token for more": Case(with_token(of="tok.>"), True, "tok.a"),
    "a token that expires later": Case(with_token(expires_s=NOW_S + HOUR_S), True, "tok.a"),
    "no token": Case(plain("tok.a"), False, "tok.a"),
    "a token revoked before": Case(with_token("rev.a", "rev.a"), True, "rev.a"),
    "the subject has its name": Case(own_position, True, "mine.x"),
    "the subject has another name": Case(other_position, False, "mine.x"),
    "an account that nobody knows": Case(plain("open.a", account="unknown"), False, "open.a"),
}


def wrong_kind(world: OperatorWorld, name: str, kind: Kind) -> Import:
    """An import of one kind with a token for the other one."""
    return with_token(kind="stream" if kind == "service" else "service")(world, name, kind)


REFUSED_TOKENS: dict[str, Callable[[OperatorWorld, str, Kind], Import]] = {
    "no token at all": plain("tok.a", token="x"),
    "a token for something else": with_token(of="other.a"),
    "a token for less": with_token("tok.>", "tok.a"),
    "a token for somebody else": with_token(to="E"),
    "a token of somebody else": with_token(giver="free"),
    "a token of an unknown key": with_token(by="stranger"),
    "a token that is expired": with_token(expires_s=NOW_S - 10),
    "a token that is revoked": with_token("rev.a", "rev.a", issued_s=NOW_S - HOUR_S),
    "a token of the other kind": wrong_kind,
}


def exports(kind: Kind) -> tuple[Export, ...]:
    """What account E offers."""
    return (
        Export(subject="open.>", type_=kind),
        Export(subject="tok.>", type_=kind, token_req=True),
        Export(subject="rev.>", type_=kind, token_req=True, revocations={"*": NOW_S - 60}),
        Export(subject="acct.*.x", type_=kind, account_token_position=2),
    )


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> OperatorWorld:
    """An account that exports, and one for each way to import."""
    made = OperatorWorld(tmp_path_factory.mktemp("world"))
    made.account("unknown")
    made.account("free")
    offers = exports("service") + exports("stream")
    made.account("E", Account(exports=offers, signing_keys=(SIGNING.public,)))
    for kind in BOTH:
        for name, case in CASES.items():
            made.account(f"{kind} {name}")
            one = case.made(made, f"{kind} {name}", kind)
            made.account(f"{kind} {name}", Account(imports=(one,)))
        made.account(f"{kind} both")
        one = with_token()(made, f"{kind} both", kind)
        second = plain("tok.b")(made, f"{kind} both", kind)
        made.account(f"{kind} both", Account(imports=(one, second)))
        for name, build in REFUSED_TOKENS.items():
            made.account(f"{kind} {name}")
            one = build(made, f"{kind} {name}", kind)
            good = plain("open.a")(made, f"{kind} {name}", kind)
            made.account(f"{kind} {name}", Account(imports=(one, good)))
    circle(made)
    return made


def circle(world: OperatorWorld) -> None:
    """Two accounts that import the same service from each other."""
    world.account("left")
    world.account("right")
    for name, other in (("left", "right"), ("right", "left")):
        said = Account(
            exports=(Export(subject="round", type_="service"),),
            imports=(
                plain("round", account=other)(world, name, "service"),
                plain("open.a")(world, name, "service"),
            ),
        )
        world.account(name, said)


@pytest.fixture(scope="module", params=list(KINDS))
def server(request: pytest.FixtureRequest, world: OperatorWorld) -> Iterator[Broker]:
    """A server that knows all of them but one."""
    config = world.config(without=["unknown"])
    with KINDS[str(request.param)](config=config, name="one") as running:
        yield running


@pytest.fixture(scope="module")
def giver(server: Broker, world: OperatorWorld) -> Iterator[Caller]:
    """A client of the account that exports."""
    with Caller(server.port) as made:
        assert made.login(world.user("E").login(made.challenge))
        yield made


def comes_through(
    server: Broker, world: OperatorWorld, giver: Caller, name: str, kind: Kind, asked: str
) -> bool:
    """Whether a message of one account is heard in the other one."""
    with Caller(server.port) as caller:
        member = world.user(name)
        if not caller.login(member.login(caller.challenge)):
            return False  # The account as a whole does not count.
        if kind == "service":
            giver.ask(b"SUB > 9\r\n")
            caller.ask(b"PUB %s 0\r\n\r\n" % asked.encode())
            heard = giver.ask(b"UNSUB 9\r\n")
            return any(line.startswith(HEARD) for line in heard)
        caller.ask(b"SUB %s 1\r\n" % asked.encode())
        for subject in ("open.a", "open.x", "open.q", "open.old", "tok.a", "tok.b", "rev.a"):
            giver.ask(b"PUB %s 0\r\n\r\n" % subject.encode())
        public = world.tenants[name].public
        giver.ask(b"PUB acct.%s.x 0\r\n\r\n" % public.encode())
        giver.ask(b"PUB closed.a 0\r\n\r\n")
        return any(line.startswith(HEARD) for line in caller.ask(b""))


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("name", list(CASES))
def test_an_import_is_what_the_other_account_allows(
    server: Broker, world: OperatorWorld, giver: Caller, name: str, kind: Kind
) -> None:
    case = CASES[name]
    found = comes_through(server, world, giver, f"{kind} {name}", kind, case.asked)
    assert found is case.allowed


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("name", list(REFUSED_TOKENS))
def test_a_bad_token_lets_nothing_in(
    server: Broker, world: OperatorWorld, giver: Caller, name: str, kind: Kind
) -> None:
    account = f"{kind} {name}"
    for asked in ("tok.a", "rev.a"):
        assert not comes_through(server, world, giver, account, kind, asked)


@pytest.mark.parametrize("kind", BOTH)
def test_a_token_is_for_one_import_alone(
    server: Broker, world: OperatorWorld, giver: Caller, kind: Kind
) -> None:
    assert comes_through(server, world, giver, f"{kind} both", kind, "tok.a")
    assert not comes_through(server, world, giver, f"{kind} both", kind, "tok.b")


def test_whoever_imports_in_a_circle_goes_on(
    server: Broker, world: OperatorWorld, giver: Caller
) -> None:
    for name in ("left", "right"):
        assert comes_through(server, world, giver, name, "service", "open.a")
        with Caller(server.port) as caller:
            assert caller.login(world.user(name).login(caller.challenge))
            heard = caller.ask(b"SUB round 1\r\nPUB round 0\r\n\r\n")
            assert len([line for line in heard if line.startswith(HEARD)]) <= 1
