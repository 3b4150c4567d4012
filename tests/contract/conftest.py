"""One fixture, two servers: what passes on one and fails on the other is a bug of ours."""

from collections.abc import AsyncIterator, Callable, Iterator
from itertools import count

import nats
import pytest
from nats.aio.client import Client
from nats.js import JetStreamContext

from jsctl.broker.accel.choice import PURE_VARIABLE
from jsctl.testing import Broker, RealServer
from tests.support.kept import kept

PURE = "jsctl, pure"
"""Our server without the compiled loop of the lane."""
KINDS: dict[str, type[Broker]] = {"nats-server": RealServer, "jsctl": Broker}
_NUMBERS = count(1)


@pytest.fixture(scope="session")
def brokers() -> Iterator[Callable[[str], Broker]]:
    """One server of each kind."""
    pure = {PURE_VARIABLE: "1"}
    yield from kept(
        lambda kind: (
            Broker("-js", name="pure", environment=pure)
            if kind == PURE
            else KINDS[kind]("-js", name="one")
        )
    )


@pytest.fixture(scope="session", params=[*KINDS, PURE])
def broker(request: pytest.FixtureRequest, brokers: Callable[[str], Broker]) -> Broker:
    """A server with JetStream, shared by all tests: names must be fresh."""
    return brokers(str(request.param))


@pytest.fixture
async def client(broker: Broker) -> AsyncIterator[Client]:
    """A connection of this test."""
    connection = await nats.connect(broker.url, allow_reconnect=False, connect_timeout=30)
    yield connection
    await connection.close()


@pytest.fixture
async def other(broker: Broker) -> AsyncIterator[Client]:
    """A second connection."""
    connection = await nats.connect(broker.url, allow_reconnect=False, connect_timeout=30)
    yield connection
    await connection.close()


@pytest.fixture
def js(client: Client) -> JetStreamContext:
    """JetStream over the first connection."""
    return client.jetstream(timeout=30)


@pytest.fixture
def fresh() -> str:
    """A name that no other test uses."""
    return f"T{next(_NUMBERS)}"
