"""A server with a domain: all of the API is there below both prefixes."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import nats
import pytest
from nats.aio.client import Client
from nats.errors import NoRespondersError

from jsctl.testing import Broker
from tests.contract.conftest import KINDS


@pytest.fixture(scope="module", params=list(KINDS))
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Broker]:
    """A server of the domain `hub`."""
    file: Path = tmp_path_factory.mktemp("domain") / "server.conf"
    file.write_text("jetstream { domain: hub }\n")
    with KINDS[str(request.param)]("-js", "-c", str(file), name="one") as running:
        yield running


@pytest.fixture
async def client(server: Broker) -> AsyncIterator[Client]:
    """A connection of this test."""
    connection = await nats.connect(server.url, allow_reconnect=False, connect_timeout=30)
    yield connection
    await connection.close()


@pytest.mark.parametrize("domain", [None, "hub"])
async def test_streams_are_read_below_the_prefix_of_the_domain(
    client: Client, domain: str | None
) -> None:
    js = client.jetstream(domain=domain)
    name = f"S{domain or ''}"
    await js.add_stream(name=name, subjects=[f"{name}.>"], allow_direct=True)
    await js.publish(f"{name}.x", b"1")
    pulled = await js.pull_subscribe(f"{name}.>", "D")
    (message,) = await pulled.fetch(1, timeout=30)
    await message.ack_sync()
    assert (message.data, message.metadata.sequence.stream) == (b"1", 1)
    prefix = f"$JS.{domain}.API" if domain else "$JS.API"
    by_number = await client.request(f"{prefix}.DIRECT.GET.{name}", b'{"seq":1}', timeout=30)
    by_subject = await client.request(f"{prefix}.DIRECT.GET.{name}.{name}.x", timeout=30)
    assert (by_number.data, by_subject.data) == (b"1", b"1")


async def test_other_domains_are_not_there(client: Client) -> None:
    with pytest.raises(NoRespondersError):
        await client.request("$JS.moon.API.CONSUMER.MSG.NEXT.S.D", b"1", timeout=30)


@pytest.mark.parametrize("kind", ["$KV", "$OBJ"])
async def test_buckets_are_written_below_the_prefix_of_the_domain(
    client: Client, kind: str
) -> None:
    js = client.jetstream()
    name = kind[1:]
    await js.add_stream(name=name, subjects=[f"{kind}.B.>"])
    subject = f"$JS.hub.API.{kind}.B.key"
    answer = await client.request(subject, b"1", headers={"Mine": "x"}, timeout=30)
    assert b'"seq":1' in answer.data
    stored = await js.get_msg(name, 1)
    assert (stored.subject, stored.data, stored.headers) == (f"{kind}.B.key", b"1", {"Mine": "x"})
