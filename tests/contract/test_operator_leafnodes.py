"""Operator mode: leaf nodes that log in with credentials files, on hubs of both kinds."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from jsctl.auth.claims import Account, Permission, Permissions, UserPermissionLimits
from jsctl.auth.keys import KeyKind, generate
from jsctl.dataclass import replace
from jsctl.testing import Broker
from tests.contract.conftest import KINDS
from tests.support.leafs import (
    IDS,
    PAIRS,
    hub_block,
    leaf_port,
    leafz,
    linked,
    remote,
    spoke_block,
    told,
)
from tests.support.login import Caller
from tests.support.operators import FREE, OperatorWorld, account_key, limits, scope
from tests.support.reloading import Reloading
from tests.support.waiting import wait_for

KEY, ROLE = account_key(), account_key()
GONE = generate(KeyKind.USER)
REFUSED = "authentication error"


def world_in(directory: Path) -> OperatorWorld:
    """The accounts of a hub."""
    world = OperatorWorld(directory)
    role = replace(FREE, allowed_connection_types=("LEAFNODE",))
    world.account("A", Account(signing_keys=(KEY.public, scope(ROLE, role))))
    world.account("one", Account(limits=limits(leafs=1)))
    return world


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> OperatorWorld:
    """The same for all."""
    return world_in(tmp_path_factory.mktemp("world"))


@pytest.fixture(scope="module", params=list(KINDS))
def hub(request: pytest.FixtureRequest, world: OperatorWorld) -> Iterator[Broker]:
    """A hub in operator mode."""
    with KINDS[str(request.param)](config=hub_block() + world.config(), name="hub") as running:
        yield running


def spoke(hub_port: int, creds: Path, more: str = "") -> str:
    """The configuration of a leaf node."""
    return spoke_block(remote(hub_port, f'credentials: "{creds}"')) + more


@pytest.mark.parametrize("leaf", list(KINDS))
@pytest.mark.parametrize("way", ["the account's key", "a signing key", "a scoped key"])
def test_a_leaf_node_is_of_the_account_of_its_jwt(
    hub: Broker, world: OperatorWorld, leaf: str, way: str
) -> None:
    member = {
        "the account's key": lambda: world.user("A"),
        "a signing key": lambda: world.user("A", issuer=KEY),
        "a scoped key": lambda: world.user("A", rules=UserPermissionLimits(), issuer=ROLE),
    }[way]()
    config = spoke(leaf_port(hub), world.credentials(member, "leaf.creds"))
    with KINDS[leaf](config=config, name="leaf") as other:
        linked(hub)
        assert leafz(hub)[0]["account"] == world.tenants["A"].public
        with Caller(hub.port) as here, Caller(other.port) as there:
            assert here.login(world.user("A").login(here.challenge))
            assert there.login({})
            here.ask(b"SUB x 1\r\n")
            told(other, "x")
            there.ask(b"PUB x 0\r\n\r\n")
            assert here.line() == "MSG x 1 0"
    linked(hub, 0)


@pytest.mark.parametrize("leaf", list(KINDS))
@pytest.mark.parametrize(
    "why", ["of nobody", "expired", "of clients", "without a name", "of another network"]
)
def test_a_leaf_node_is_refused(
    hub: Broker, world: OperatorWorld, leaf: str, why: str, tmp_path: Path
) -> None:
    now_s = time.time_ns() // 1_000_000_000
    other = world_in(tmp_path / "other")
    member = {
        "of nobody": lambda: other.user("A"),
        "expired": lambda: world.user("A", expires_s=now_s - 5),
        "of clients": lambda: world.user(
            "A", rules=replace(FREE, allowed_connection_types=("STANDARD",))
        ),
        "without a name": lambda: world.user("A", rules=FREE, issuer=ROLE),
        "of another network": lambda: world.user(
            "A", rules=replace(FREE, limits=replace(FREE.limits, src=("10.0.0.0/8",)))
        ),
    }[why]()
    size = len(hub.logs)
    config = spoke(leaf_port(hub), world.credentials(member, "bad.creds"))
    with KINDS[leaf](config=config, name="leaf"):
        wait_for(lambda: REFUSED in hub.logs[size:], "the hub refuses it")
        assert not leafz(hub)


def test_an_account_has_so_many_leaf_nodes(hub: Broker, world: OperatorWorld) -> None:
    creds = world.credentials(world.user("one"), "one.creds")
    config = spoke(leaf_port(hub), creds)
    with KINDS["jsctl"](config=config, name="leaf"):
        linked(hub)
        size = len(hub.logs)
        with KINDS["nats-server"](config=config, name="more"):
            words = ("maximum account active connections exceeded", REFUSED)
            wait_for(lambda: any(one in hub.logs[size:] for one in words), "the hub is full")
            assert len(leafz(hub)) == 1


@pytest.mark.parametrize("kinds", PAIRS, ids=IDS)
def test_a_leaf_node_expires(kinds: tuple[str, str], world: OperatorWorld) -> None:
    with KINDS[kinds[0]](config=hub_block() + world.config(), name="hub") as hub:
        expires_s = time.time_ns() // 1_000_000_000 + 4
        member = world.user("A", expires_s=expires_s)
        config = spoke(leaf_port(hub), world.credentials(member, "short.creds"))
        with KINDS[kinds[1]](config=config, name="leaf") as leaf:
            linked(hub)
            wait_for(lambda: "User Authentication Expired" in leaf.logs, "the leaf node is told")
            wait_for(lambda: not leafz(hub), "the hub has none")


@pytest.mark.parametrize("kinds", PAIRS, ids=IDS)
def test_a_leaf_node_is_revoked(kinds: tuple[str, str], tmp_path: Path) -> None:
    world = world_in(tmp_path)
    with Reloading(kinds[0], hub_block() + world.config()) as hub:
        creds = world.credentials(world.user("A", pair=GONE), "gone.creds")
        config = spoke(leaf_port(hub.broker), creds)
        with KINDS[kinds[1]](config=config, name="leaf"):
            linked(hub.broker)
            revoked = {GONE.public: time.time_ns() // 1_000_000_000 + 100}
            world.account("A", Account(revocations=revoked))
            hub.must_reload(hub_block() + world.config())
            wait_for(lambda: not leafz(hub.broker), "the hub has none")
            wait_for(lambda: REFUSED in hub.broker.logs, "it comes again, and is refused")


@pytest.mark.parametrize("kinds", PAIRS, ids=IDS)
def test_both_are_in_operator_mode(kinds: tuple[str, str], tmp_path: Path) -> None:
    world, own = world_in(tmp_path / "hub"), OperatorWorld(tmp_path / "leaf")
    own.account("L")
    with KINDS[kinds[0]](config=hub_block() + world.config(), name="hub") as hub:
        creds = world.credentials(world.user("A"), "a.creds")
        local = own.tenants["L"].public
        block = spoke_block(remote(leaf_port(hub), f'credentials: "{creds}", account: {local}'))
        with KINDS[kinds[1]](config=block + own.config(), name="leaf") as leaf:
            linked(hub)
            with Caller(hub.port) as here, Caller(leaf.port) as there:
                assert here.login(world.user("A").login(here.challenge))
                assert there.login(own.user("L").login(there.challenge))
                there.ask(b"SUB y 1\r\n")
                told(hub, "y")
                here.ask(b"PUB y 0\r\n\r\n")
                assert there.line() == "MSG y 1 0"


@pytest.mark.parametrize("kinds", PAIRS, ids=IDS)
def test_permissions_of_a_leaf_node(kinds: tuple[str, str], world: OperatorWorld) -> None:
    permissions = Permissions(Permission(("up.>", "$LDS.>")), Permission(("down.>",)))
    member = world.user("A", rules=replace(FREE, permissions=permissions))
    with KINDS[kinds[0]](config=hub_block() + world.config(), name="hub") as hub:
        config = spoke(leaf_port(hub), world.credentials(member, "few.creds"))
        with KINDS[kinds[1]](config=config, name="leaf") as leaf:
            wait_for(lambda: len(leafz(hub)) == len(leafz(leaf)) == 1, "they are connected")
            with Caller(hub.port) as here, Caller(leaf.port) as there:
                assert here.login(world.user("A").login(here.challenge))
                assert there.login({})
                here.ask(b"SUB up.x 1\r\nSUB no.x 2\r\n")
                there.ask(b"SUB down.x 1\r\nSUB no.y 2\r\n")

                def heard() -> list[str]:
                    there.ask(b"PUB no.x 0\r\n\r\nPUB up.x 0\r\n\r\n")
                    return [line for line in here.ask(b"") if line.startswith("MSG")]

                found = wait_for(heard, "a message goes up")
                assert set(found) == {"MSG up.x 1 0"}

                def below() -> list[str]:
                    here.ask(b"PUB no.y 0\r\n\r\nPUB down.x 0\r\n\r\n")
                    return [line for line in there.ask(b"") if line.startswith("MSG")]

                found = wait_for(below, "a message goes down")
                assert set(found) == {"MSG down.x 1 0"}
