"""Operator mode in clusters: accounts by JWT across routes and gateways, and JetStream in them."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from jsctl.auth.claims import Account, Export, Import
from jsctl.testing import HOST, Broker, Cluster
from tests.contract.conftest import KINDS
from tests.support import gateways
from tests.support.leafs import route_port
from tests.support.login import Caller
from tests.support.operators import OperatorWorld
from tests.support.waiting import wait_for

NO_ACCOUNTS = "accounts {}\n"
"""Those of the operator are all; `Cluster` adds none then."""


def world_in(directory: Path) -> OperatorWorld:
    """An account that exports a service, and one that imports it."""
    world = OperatorWorld(directory)
    giver = world.account("A", Account(exports=(Export(subject="svc", type_="service"),)))
    wanted = Import(subject="svc", account=giver.public, type_="service")
    world.account("B", Account(imports=(wanted,)))
    return world


def enter(server: Broker, world: OperatorWorld, account: str) -> Caller:
    """A new user of an account."""
    caller = Caller(server.port)
    assert caller.login(world.user(account).login(caller.challenge)), caller.refusal
    return caller


def crosses(one: Broker, other: Broker, world: OperatorWorld) -> None:
    """What is said at one server is heard at the other one by those of the account alone, and
    what another account imports comes back."""
    with (
        enter(one, world, "A") as here,
        enter(other, world, "A") as there,
        enter(other, world, "B") as stranger,
    ):
        stranger.ask(b"SUB x.> 1\r\n")
        there.ask(b"SUB x.> 2\r\n")

        def heard() -> bool:
            here.ask(b"PUB x.y 0\r\n\r\n")
            return any(line.startswith("MSG x.y 2") for line in there.ask(b""))

        wait_for(heard, "a message crosses")
        assert stranger.ask(b"") == []
        here.ask(b"SUB svc 3\r\n")

        def asked() -> str:
            stranger.ask(b"PUB svc back 0\r\n\r\n")
            lines = [line for line in here.ask(b"") if line.startswith(("MSG svc", "HMSG svc"))]
            return lines[0].split(" ")[3] if lines else ""

        reply = wait_for(asked, "a request crosses")
        stranger.ask(b"SUB back 4\r\n")
        here.ask(f"PUB {reply} 2\r\nok\r\n".encode())
        wait_for(lambda: "ok" in stranger.ask(b""), "the answer comes back")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> OperatorWorld:
    """The same for all."""
    return world_in(tmp_path_factory.mktemp("world"))


@pytest.fixture(scope="module", params=list(KINDS))
def cluster(request: pytest.FixtureRequest, world: OperatorWorld) -> Iterator[Cluster]:
    """Three servers with JetStream."""
    config = NO_ACCOUNTS + world.config()
    with Cluster(3, server=KINDS[str(request.param)], config=config) as running:
        yield running


def test_messages_and_requests_cross_routes(cluster: Cluster, world: OperatorWorld) -> None:
    crosses(cluster["n1"], cluster["n2"], world)


def ask(caller: Caller, subject: str, body: dict[str, object] | None = None) -> dict[str, Any]:
    """An answer of the JetStream API."""
    _, payload = caller.request(f"$JS.API.{subject}", json.dumps(body).encode() if body else b"")
    found = json.loads(payload)
    assert isinstance(found, dict)
    return found


def test_streams_have_three_replicas(cluster: Cluster, world: OperatorWorld) -> None:
    said: dict[str, object] = {"name": "S", "subjects": ["s.>"], "num_replicas": 3}
    with enter(cluster["n1"], world, "A") as one, enter(cluster["n3"], world, "A") as other:
        assert "error" not in ask(one, "STREAM.CREATE.S", said)
        _, payload = other.request("s.a", b"x")
        assert json.loads(payload)["seq"] == 1
        assert ask(one, "STREAM.INFO.S")["state"]["messages"] == 1
        assert len(ask(one, "STREAM.INFO.S")["cluster"]["replicas"]) == 2
    with enter(cluster["n2"], world, "B") as stranger:
        assert ask(stranger, "STREAM.INFO.S")["error"]["err_code"] == 10059


@pytest.mark.parametrize("kinds", [("jsctl", "nats-server"), ("nats-server", "jsctl")])
def test_clusters_of_both_kinds(kinds: tuple[str, str], world: OperatorWorld) -> None:
    with ExitStack() as stack:
        block = f'cluster {{ name: M, listen: "{HOST}:-1" }}\n'
        one = stack.enter_context(KINDS[kinds[0]](config=block + world.config(), name="one"))
        routes = f'routes: [ "nats://{HOST}:{route_port(one)}" ]'
        block = f'cluster {{ name: M, listen: "{HOST}:-1", {routes} }}\n'
        other = stack.enter_context(KINDS[kinds[1]](config=block + world.config(), name="other"))
        crosses(one, other, world)
        crosses(other, one, world)


@pytest.mark.parametrize("kinds", [("jsctl", "nats-server"), ("jsctl", "jsctl")])
def test_super_clusters(kinds: tuple[str, str], world: OperatorWorld) -> None:
    with gateways.pair(kinds, a=world.config(), b=world.config()) as (one, other):
        crosses(one, other, world)
        crosses(other, one, world)
