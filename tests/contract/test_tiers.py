"""JetStream by tiers of accounts in operator mode, on one server and in a cluster of three."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from jsctl.testing import Broker, Cluster
from tests.contract.conftest import KINDS
from tests.support.tier_cases import (
    ALONE,
    ALONE_CASES,
    CLUSTERED,
    CLUSTERED_CASES,
    Case,
    Scene,
    name_of,
    play,
)
from tests.support.tiers import Operated, operated
from tests.support.waiting import wait_for
from tests.support.wire_client import Login, WireClient

NOBODY = b"503"
NO_ACCOUNTS = "accounts {}\n"
"""Those of the operator are all."""


def bearer(token: str) -> Login:
    """Who has the JWT is the user."""
    return lambda _: {"jwt": token}


class Served(Scene):
    """Real processes, with a connection for each account."""

    def __init__(self, server: Broker, made: Operated) -> None:
        self._server = server
        self._made = made
        self._clients: dict[str, WireClient] = {}

    def request(self, account: str, subject: str, payload: bytes) -> bytes:
        if account not in self._clients:
            self._clients[account] = WireClient(self._server.url, bearer(self._made.users[account]))
        answer = self._clients[account].answer(subject.encode(), payload)
        assert answer is not None, subject
        return b"" if NOBODY in answer[3] else answer[4]

    def eventually(self, fact: Callable[[], bool], what: str) -> None:
        wait_for(fact, what)

    def accounts_page(self) -> Any:
        return self._server.monitor("/jsz?accounts=1")

    def close(self) -> None:
        for client in self._clients.values():
            client.close()


@pytest.fixture(scope="module", params=list(KINDS))
def alone(request: pytest.FixtureRequest) -> Iterator[Served]:
    """One server."""
    made = operated(ALONE)
    with KINDS[str(request.param)]("-js", config=made.config) as server:
        served = Served(server, made)
        yield served
        served.close()


@pytest.fixture(scope="module", params=list(KINDS))
def clustered(request: pytest.FixtureRequest) -> Iterator[Served]:
    """Three."""
    made = operated(CLUSTERED)
    with Cluster(3, config=NO_ACCOUNTS + made.config, server=KINDS[str(request.param)]) as servers:
        served = Served(servers["n1"], made)
        yield served
        served.close()


@pytest.mark.parametrize("case", ALONE_CASES, ids=name_of)
def test_of_a_server_alone(alone: Served, case: Case) -> None:
    play(alone, case)


@pytest.mark.parametrize("case", CLUSTERED_CASES, ids=name_of)
def test_of_a_cluster(clustered: Served, case: Case) -> None:
    play(clustered, case)
