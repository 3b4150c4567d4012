"""Operator mode: files that no server starts with, and what the broker says of them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from jsctl.auth.claims import Account, Head, UserPermissionLimits
from jsctl.auth.keys import KeyKind, generate
from jsctl.auth.token import Claims, sign
from jsctl.dataclass import replace
from tests.contract.conftest import KINDS
from tests.support.configurations import ended
from tests.support.leafs import hub_block, leaf_port
from tests.support.login import Caller
from tests.support.operators import (
    FREE,
    SYSTEM,
    OperatorWorld,
    account_key,
    limits,
    scope,
    written,
)


def _operator(said: dict[str, object]) -> str:
    """The JWT of an operator of any content."""
    pair = generate(KeyKind.OPERATOR)
    return written({"nats": {"type": "operator", **said}}, pair, pair)


Make = Callable[[OperatorWorld], str]
REFUSED: dict[str, tuple[Make, str]] = {
    "an operator that is not there": (
        lambda w: w.config().replace(f'"{w.token}"', '"/nowhere/o.jwt"'),
        "'/nowhere/o.jwt' cannot be read",
    ),
    "an operator that is a directory": (
        lambda w: w.config().replace(f'"{w.token}"', '"/tmp"'), "cannot be read",
    ),
    "an operator that is rubbish": (
        lambda w: w.config().replace(w.token, "eyJhbG"), "error parsing operator JWT",
    ),
    "an operator that is an account": (
        lambda w: w.config().replace(w.token, w.tenants["A"].token), "error parsing operator JWT",
    ),
    "an operator that is a number": (
        lambda w: w.config().replace(f'"{w.token}"', "5"), "cannot be read",
    ),
    "no resolver": (
        lambda w: f'operator: "{w.token}"\n{w.preload()}', "require an account resolver",
    ),
    "an unknown resolver": (
        lambda w: w.config().replace("MEMORY", "NOWHERE"), "'NOWHERE' is not supported",
    ),
    "a resolver of an unknown type": (
        lambda w: w.config().replace("MEMORY", '{ type: new, dir: "@DIR/x" }'), "type",
    ),
    "a resolver without a directory": (
        lambda w: w.config().replace("MEMORY", "{ type: full }"), "dir has no value",
    ),
    "a directory that is a file": (
        lambda w: w.full_config("@DIR/x.conf"), "directory",
    ),
    "a directory with a time to live": (
        lambda w: w.full_config(more='ttl: "1h"'), "ttl",
    ),
    "hard deletes without any": (
        lambda w: w.full_config(more="hard_delete: true"), "hard_delete",
    ),
    "accounts beside": (
        lambda w: w.config() + "accounts { B { users: [ {user: u, password: p} ] } }\n",
        "do not allow Accounts to be configured directly",
    ),
    "users beside": (
        lambda w: w.config() + "authorization { users: [ {user: u, password: p} ] }\n",
        "do not allow users to be configured directly",
    ),
    "a default user": (
        lambda w: w.config() + "no_auth_user: u\n", "no_auth_user",
    ),
    "another system account": (
        lambda w: w.config() + f"system_account: {w.tenants['A'].public}\n",
        "system_account in config and operator JWT must be identical",
    ),
    "a system account without a JWT": (
        lambda w: w.config(without=[SYSTEM]), "has no valid JWT here",
    ),
    "a system account that stores": (
        lambda w: "jetstream: enabled\n" + _with_storing_system(w),
        "Not allowed to enable JetStream on the system account",
    ),
    "a directory without a system account": (
        lambda w: w.full_config(preload=False).replace(w.token, _operator({})),
        "the system account needs to be specified",
    ),
    "preloaded rubbish": (
        lambda w: w.config().replace(w.tenants["A"].token, "x"), "invalid account JWT",
    ),
    "a preloaded user": (
        lambda w: w.config().replace(w.tenants["A"].token, w.user("A").token),
        "invalid account JWT",
    ),
    "a preload that is a list": (
        lambda w: f'operator: "{w.token}"\nresolver: MEMORY\nresolver_preload: [ 5 ]\n', "",
    ),
    "pinned accounts that are none": (
        lambda w: w.config() + "resolver_pinned_accounts: [ x ]\n", "no public account key",
    ),
    "a sentinel that is rubbish": (
        lambda w: w.config() + "default_sentinel: x\n", "default sentinel JWT not valid",
    ),
    "a sentinel that has to sign": (
        lambda w: w.config() + f'default_sentinel: "{w.user("A").token}"\n',
        "default sentinel must be a bearer token",
    ),
    "a sentinel without an operator": (
        lambda w: f'default_sentinel: "{w.user("A").token}"\n', "means nothing without an operator",
    ),
    "an operator that wants newer servers": (
        lambda w: w.config().replace(w.token, _operator({"assert_server_version": "9.0.0"})),
        "expects version 9.0.0",
    ),
    "an operator that wants no version": (
        lambda w: w.config().replace(w.token, _operator({"assert_server_version": "x"})),
        "expects version x",
    ),
    "an operator with keys of others": (
        lambda w: w.config().replace(w.token, _operator({"signing_keys": [account_key().public]})),
        "no public operator key",
    ),
}  # fmt: skip


def _with_storing_system(world: OperatorWorld) -> str:
    """The configuration of a world whose system account has JetStream."""
    public, old = world.tenants[SYSTEM].public, world.tenants[SYSTEM].token
    said = Account(limits=limits())
    token = sign(Claims(Head(name=SYSTEM, sub=public), said), world.pair, 1_700_000_000)[0]
    return world.config().replace(old, token)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> OperatorWorld:
    """An operator with one account."""
    made = OperatorWorld(tmp_path_factory.mktemp("world"))
    made.account("A")
    return made


@pytest.mark.parametrize("what", list(REFUSED))
def test_no_server_starts_with_it(what: str, world: OperatorWorld, tmp_path: Path) -> None:
    make, words = REFUSED[what]
    config = make(world)
    status, said = ended("jsctl", config, tmp_path)
    assert status == 1, said
    assert words in said and "Traceback" not in said, said
    assert said.rstrip().endswith(")"), "it names a remedy"
    status, said = ended("nats-server", config, tmp_path)
    assert status == 1, said


TAKEN: dict[str, Make] = {
    "JWTs in files": lambda w: w.config().replace(f'"{w.token}"', f'"{w.directory}/o.jwt"'),
    "a resolver in any case": lambda w: w.config().replace("MEMORY", "Mem"),
    "a resolver in memory as a map": lambda w: w.config().replace("MEMORY", "{ type: memory }"),
    "a directory": lambda w: w.full_config(more="allow_delete: true, hard_delete: true, limit: 9"),
    "a directory of another case": lambda w: w.full_config().replace("full", "FULL"),
    "an older version": lambda w: w.config().replace(
        w.token, _operator_of(w, {"assert_server_version": "2.15.1"})
    ),
    "one pinned account": lambda w: (
        w.config() + f"resolver_pinned_accounts: {w.tenants['A'].public}\n"
    ),
    "roots": lambda w: w.config().replace("operator:", "roots:"),
}


def _operator_of(world: OperatorWorld, said: dict[str, object]) -> str:
    """The JWT of the world's operator with other content."""
    system = world.tenants[SYSTEM].public
    more = {"type": "operator", "system_account": system, **said}
    return written({"nats": more}, world.pair, world.pair)


@pytest.mark.parametrize("what", list(TAKEN))
@pytest.mark.parametrize("kind", list(KINDS))
def test_a_server_starts_with_it(
    kind: str, what: str, world: OperatorWorld, tmp_path: Path
) -> None:
    (world.directory / "o.jwt").write_text(
        f"-----BEGIN OPERATOR JWT-----\n{world.token}\n------END OPERATOR JWT------\n"
    )
    config = TAKEN[what](world).replace("@DIR", str(tmp_path))
    with KINDS[kind](config=config) as server, Caller(server.port) as caller:
        assert caller.login(world.user("A").login(caller.challenge))


@pytest.mark.parametrize("kind", list(KINDS))
def test_only_pinned_accounts_and_the_system_account_log_in(
    kind: str, world: OperatorWorld
) -> None:
    world.account("other")
    pins = f"resolver_pinned_accounts: [ {world.tenants['A'].public} ]\n"
    with KINDS[kind](config=hub_block() + world.config() + pins) as server:
        for port in (server.port, leaf_port(server)):
            for name in ("A", SYSTEM, "other", "other"):
                with Caller(port) as caller:
                    member = world.user(name)
                    taken = caller.login(member.login(caller.challenge))
                    assert taken is (name != "other")
            page = server.monitor("/varz")
            assert isinstance(page, dict)
            assert page["pinned_account_fails"] == (2 if port == server.port else 4)


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_sentinel_is_who_says_nothing(kind: str, tmp_path: Path) -> None:
    world, key = OperatorWorld(tmp_path), account_key()
    world.account("A", Account(signing_keys=(scope(key, replace(FREE, bearer_token=True)),)))
    bearing = world.user("A", rules=replace(FREE, bearer_token=True))
    scoped = world.user("A", rules=UserPermissionLimits(), issuer=key)
    ways: tuple[dict[str, object], ...] = (
        {}, {"user": "u", "pass": "p"}, {"auth_token": "t"}, {"jwt": "x"},
    )  # fmt: skip
    for sentinel in (bearing, scoped):
        config = world.config() + f'default_sentinel: "{sentinel.token}"\n'
        with KINDS[kind](config=config) as server:
            for said in ways:
                with Caller(server.port) as caller:
                    assert caller.login(said)
            with Caller(server.port) as caller:
                assert not caller.login({"jwt": world.user("A").token})
