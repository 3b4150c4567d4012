"""What is told about streams, consumers and requests, and in which account."""

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import nats
import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js.api import AckPolicy, ConsumerConfig, StreamConfig

from jsctl.testing import Broker
from tests.contract.conftest import KINDS
from tests.support.waiting import eventually

ACCOUNTS = """
accounts {
  A { jetstream: enabled, users: [{user: a, password: a}] }
  SYS { users: [{user: sys, password: sys}] }
}
system_account: SYS
"""
TYPE = "io.nats.jetstream.advisory.v1."


@pytest.fixture(scope="module", params=list(KINDS))
def server(request: pytest.FixtureRequest, tmp_path_factory: Any) -> Iterator[Broker]:
    """A server with an account for streams and a system account."""
    file: Path = tmp_path_factory.mktemp("accounts") / "server.conf"
    file.write_text(ACCOUNTS)
    with KINDS[str(request.param)]("-js", "-c", str(file), name="one") as running:
        yield running


@pytest.fixture
async def both(server: Broker) -> AsyncIterator[tuple[Client, Client]]:
    """Connections of the account and of the system account."""
    one = await nats.connect(
        server.url, user="a", password="a", allow_reconnect=False, connect_timeout=30
    )
    system = await nats.connect(
        server.url, user="sys", password="sys", allow_reconnect=False, connect_timeout=30
    )
    yield one, system
    await one.close()
    await system.close()


class Heard(dict[str, dict[str, Any]]):
    """Advisories by subject; of requests by the subject of the request."""

    async def take(self, message: Msg) -> None:
        """One more."""
        document = json.loads(message.data)
        kind = document["type"].removeprefix(TYPE)
        self[document["subject"] if kind == "api_audit" else message.subject] = document

    def kinds(self) -> dict[str, str]:
        """The type of each, without what all have in front."""
        return {name: document["type"].removeprefix(TYPE) for name, document in self.items()}


async def test_the_account_hears_what_happens_in_it(both: tuple[Client, Client]) -> None:
    client, system = both
    heard, heard_by_system = Heard(), Heard()
    await client.subscribe("$JS.EVENT.ADVISORY.>", cb=heard.take)
    await system.subscribe("$JS.EVENT.ADVISORY.>", cb=heard_by_system.take)
    await client.flush()
    await system.flush()
    js = client.jetstream()
    await js.add_stream(StreamConfig(name="S", subjects=["s.>"]))
    await js.add_consumer("S", ConsumerConfig(durable_name="C", ack_policy=AckPolicy.EXPLICIT))
    await js.delete_consumer("S", "C")
    await js.delete_stream("S")
    wanted = {
        "$JS.API.STREAM.CREATE.S": "api_audit",
        "$JS.API.CONSUMER.DURABLE.CREATE.S.C": "api_audit",
        "$JS.API.CONSUMER.DELETE.S.C": "api_audit",
        "$JS.API.STREAM.DELETE.S": "api_audit",
        "$JS.EVENT.ADVISORY.STREAM.CREATED.S": "stream_action",
        "$JS.EVENT.ADVISORY.CONSUMER.CREATED.S.C": "consumer_action",
        "$JS.EVENT.ADVISORY.CONSUMER.DELETED.S.C": "consumer_action",
        "$JS.EVENT.ADVISORY.STREAM.DELETED.S": "stream_action",
    }

    async def told() -> bool:
        return len(heard) >= len(wanted)

    await eventually(told, "all is told")
    assert heard.kinds() == wanted
    await system.flush()
    assert heard_by_system == {}, "it is none of the system account's business"
    created = heard["$JS.EVENT.ADVISORY.STREAM.CREATED.S"]
    assert set(created) == {"type", "id", "timestamp", "stream", "action"}
    asked = heard["$JS.API.STREAM.CREATE.S"]
    assert {"type", "id", "timestamp", "server", "client", "subject", "response"} <= set(asked)
    assert json.loads(asked["request"])["name"] == "S"
    assert json.loads(asked["response"])["config"]["name"] == "S"
    told_of_it = {
        "acc",
        "client_type",
        "host",
        "id",
        "kind",
        "lang",
        "server",
        "start",
        "user",
        "ver",
    }
    assert told_of_it <= set(asked["client"])
