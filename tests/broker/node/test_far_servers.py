"""What servers of other clusters say of their JetStream counts while they go on to say it."""

import json

import pytest

from jsctl.broker.accounts.accounts import Accounts
from jsctl.broker.node.far_servers import ASK_NS, FarServers
from jsctl.broker.options import Options
from jsctl.broker.routing.limits import RoutingLimits
from jsctl.broker.routing.router import Router

INBOX = b"answers"


class Asking:
    """Whoever asks, and whom it hears."""

    def __init__(self) -> None:
        self.router = Router(Accounts(Options()), RoutingLimits(), lambda below: 0)
        system = self.router.accounts.system
        assert system is not None
        self.system = system
        self.far = FarServers(self.router, system, INBOX)
        self.now_ns = 0

    def hears(self, *servers: tuple[str, str, bool]) -> frozenset[str]:
        """A second later: (id, cluster, whether it has a JetStream) of all who answer. The clusters
        that have none."""
        self.now_ns += ASK_NS
        self.router.now_ns = self.now_ns
        self.far.ask(self.now_ns)
        for name, cluster, jetstream in servers:
            server = {"id": name, "cluster": cluster, "jetstream": jetstream}
            self.router.publish(self.system, INBOX, json.dumps({"server": server}).encode())
        for sink in self.router.take_dirty():
            self.far.take(sink)
        return self.far.bare()


@pytest.fixture
def asking() -> Asking:
    """Nobody has answered yet."""
    return Asking()


def test_a_cluster_has_a_jetstream_if_one_of_its_servers_has(asking: Asking) -> None:
    assert asking.hears(("N1", "B", True), ("N2", "B", False), ("N3", "C", False)) == {"C"}


def test_a_server_that_comes_back_under_another_id(asking: Asking) -> None:
    """An operator has switched its JetStream off, so that others can go on."""
    assert asking.hears(("N1", "B", True)) == frozenset()
    found = [asking.hears(("N2", "B", False)) for _ in range(10)]
    assert found[-1] == {"B"}


def test_an_answer_that_gets_lost_changes_nothing(asking: Asking) -> None:
    assert asking.hears(("N1", "B", True), ("N2", "B", False)) == frozenset()
    assert asking.hears(("N2", "B", False)) == frozenset()
