"""Operator mode: JetStream of one account, used by another one through an import of its API."""

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from jsctl.auth.claims import Account, Export, Import
from jsctl.testing import Broker, Cluster, RealServer
from tests.contract.conftest import KINDS
from tests.support.login import Caller
from tests.support.operators import NO_STORAGE, OperatorWorld, limits
from tests.support.waiting import wait_for

API = "$JS.API.>"
IMPORTERS = {"plain": (True, ""), "renamed": (True, "A.API.>"), "without": (False, "")}
"""Name -> whether it has JetStream of its own, and how it calls the other's API."""


REQUESTS = (
    ("INFO", b""),
    ("STREAM.CREATE.S", b'{"name":"S","subjects":["s"]}'),
    ("STREAM.INFO.S", b""),
    ("STREAM.INFO.NONE", b""),
)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> OperatorWorld:
    """One that exports its API, and those that import it."""
    made = OperatorWorld(tmp_path_factory.mktemp("world"))
    export = Export(subject=API, type_="service", response_type="Stream")
    giver = made.account("A", Account(exports=(export,)))
    for name, (stores, local) in IMPORTERS.items():
        wanted = Import(subject=API, account=giver.public, type_="service", local_subject=local)
        own = limits() if stores else limits(NO_STORAGE)
        made.account(name, Account(limits=own, imports=(wanted,)))
    return made


@pytest.fixture(params=list(KINDS))
def server(request: pytest.FixtureRequest, world: OperatorWorld) -> Iterator[Broker]:
    """A server with JetStream."""
    with KINDS[str(request.param)]("-js", config=world.config(), name="one") as running:
        yield running


def counts(server: Broker) -> dict[str, tuple[int, int]]:
    """Account -> (requests, errors), of those that made any; "" has all."""
    page: Any = server.monitor("/jsz?accounts=1")
    told = {"": page["api"]}
    told |= {one["name"]: one["api"] for one in page["account_details"]}
    return {name: (api["total"], api["errors"]) for name, api in told.items() if api["total"]}


def is_counted(server: Broker, wanted: dict[str, tuple[int, int]]) -> bool:
    """Whether exactly these are counted."""
    return counts(server) == wanted


@pytest.mark.parametrize("name", list(IMPORTERS))
def test_requests_of_who_imports_are_counted(
    server: Broker, world: OperatorWorld, name: str
) -> None:
    """For whose the API is; where both are called the same, for the importer, too, if it has
    JetStream itself."""
    stores, local = IMPORTERS[name]
    prefix, both = (local or API)[:-1], stores and not local
    with Caller(server.port) as caller:
        assert caller.login(world.user(name).login(caller.challenge))
        for count, (subject, body) in enumerate(REQUESTS, 1):
            answer = json.loads(caller.request(prefix + subject, body)[1])
            errors = int(subject.endswith("NONE"))
            assert ("error" in answer) == bool(errors), answer
            wanted = {"A": (count, errors)} | ({name: (count, errors)} if both else {})
            wanted[""] = (2 * count, 2 * errors) if both else (count, errors)
            # Where two accounts answer, the second one may come later.
            wait_for(partial(is_counted, server, wanted), f"{wanted} are counted")


@pytest.mark.parametrize("name", ["A", *IMPORTERS])
def test_a_word_that_the_api_does_not_have(server: Broker, world: OperatorWorld, name: str) -> None:
    """A nats-server stays silent, as somebody listens to all words of the API."""
    prefix = (IMPORTERS[name][1] if name in IMPORTERS else API)[:-1] or "$JS.API."
    with Caller(server.port) as caller:
        assert caller.login({**world.user(name).login(caller.challenge), "no_responders": True})
        caller.ask(b"SUB back 1\r\n")
        heard = caller.ask(f"PUB {prefix}NONSENSE back 0\r\n\r\n".encode())
        refused = [] if isinstance(server, RealServer) else ["NATS/1.0 503"]
        assert [line for line in heard if "503" in line] == refused
        assert not counts(server)


@pytest.mark.parametrize("kind", list(KINDS))
def test_requests_are_counted_where_they_are_answered(kind: str, world: OperatorWorld) -> None:
    """In a cluster each server counts its own, also for who imports. What INFO tells has those of
    all servers, of a nats-server only while the account stores something there."""
    config = "accounts {}\n" + world.config()
    with Cluster(3, config=config, server=KINDS[kind]) as cluster:

        def total() -> int:
            pages: list[Any] = [server.monitor("/jsz") for server in cluster]
            return sum(page["api"]["total"] for page in pages)

        with Caller(cluster["n1"].port) as caller:
            assert caller.login(world.user("renamed").login(caller.challenge))
            prefix, body = "A.API.", b'{"name":"S","subjects":["s"],"num_replicas":3}'
            made = json.loads(caller.request(f"{prefix}STREAM.CREATE.S", body)[1])
            assert "error" not in made, made
            before = wait_for(total, "the first one is counted")
            assert before == 1
            for subject in ("STREAM.INFO.S", "STREAM.INFO.NONE", "CONSUMER.LIST.S", "INFO"):
                assert caller.request(prefix + subject)[1]
            wait_for(lambda: total() == before + 4, "all are counted")
