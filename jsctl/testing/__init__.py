"""pytest plugin and plain helpers: a broker, or a cluster of brokers, inside a test.

    def test_publish(jsctl_broker):
        broker = jsctl_broker("-js")
        ...connect to broker.url...

Every broker is a real process with its own directory. Ports are reserved by sockets that stay
bound, without listening, for as long as the helper lives: nobody else gets them, so a broker
comes back on the same ports after a restart. `RealServer` is the same handle for nats-server, so
that a contract test can run against both.

On Linux brokers are forked from a process that has their modules (`forked.py`), which saves most of
a start; `jsctl_forked = false` in the configuration of pytest starts a program for each.
They end with a test process that is killed.

Nothing heavy is imported before a broker is started.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from jsctl.testing.broker import (
    HOST,
    Broker,
    BrokerFailed,
    RealServer,
    ReservedPort,
    find_real_server,
)
from jsctl.testing.cluster import SYSTEM_PASSWORD, SYSTEM_USER, Cluster
from jsctl.testing.forked import POSSIBLE

__all__ = [
    "HOST",
    "SYSTEM_PASSWORD",
    "SYSTEM_USER",
    "Broker",
    "BrokerFactory",
    "BrokerFailed",
    "Cluster",
    "ClusterFactory",
    "RealServer",
    "ReservedPort",
    "find_real_server",
]

FORKED = "jsctl_forked"
"""What pytest's configuration calls it."""
BrokerFactory = Callable[..., Broker]
ClusterFactory = Callable[..., Cluster]


def pytest_addoption(parser: pytest.Parser) -> None:
    """pytest's hook: how brokers are started."""
    parser.addini(FORKED, "fork brokers from a process that has loaded them", "bool", True)


def pytest_configure(config: pytest.Config) -> None:
    """pytest's hook."""
    Broker.forked = POSSIBLE and bool(config.getini(FORKED))


def _brokers() -> Iterator[BrokerFactory]:
    """All of them are closed, also if somebody interrupts that."""
    with ExitStack() as made:

        def make(
            *flags: str, server: type[Broker] = Broker, config: str = "", name: str = ""
        ) -> Broker:
            broker = server(*flags, config=config, name=name)
            made.callback(broker.close)
            return broker.start()

        yield make


def _clusters() -> Iterator[ClusterFactory]:
    with ExitStack() as made:

        def make(size: int = 3, *, config: str = "", server: type[Broker] = Broker) -> Cluster:
            cluster = Cluster(size, config=config, server=server)
            made.callback(cluster.close)
            return cluster.start()

        yield make


@pytest.fixture
def jsctl_broker() -> Iterator[BrokerFactory]:
    """Call it with flags (and `config=`, `name=`, `server=`) for a started broker of this test."""
    yield from _brokers()


@pytest.fixture(scope="session")
def jsctl_session_broker() -> Iterator[BrokerFactory]:
    """The same for brokers that live until the end of the session."""
    yield from _brokers()


@pytest.fixture
def jsctl_cluster() -> Iterator[ClusterFactory]:
    """Call it with a size (and `config=`, `server=`) for a started cluster of this test."""
    yield from _clusters()


@pytest.fixture(scope="session")
def jsctl_session_cluster() -> Iterator[ClusterFactory]:
    """The same for clusters that live until the end of the session."""
    yield from _clusters()
