"""Mirrors in a cluster of either kind: where else a stream can be read."""

import json
from collections.abc import Iterator
from typing import Any

import nats
import pytest
from nats.aio.client import Client

from jsctl.testing import Cluster
from tests.contract.conftest import KINDS
from tests.support.waiting import eventually

WAIT_S = 30.0


@pytest.fixture(scope="module", params=list(KINDS))
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Three servers."""
    with Cluster(3, server=KINDS[str(request.param)]) as running:
        yield running


async def api(client: Client, subject: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    """The decoded answer of the JetStream API."""
    payload = b"" if body is None else json.dumps(body).encode()
    reply = await client.request(f"$JS.API.{subject}", payload, timeout=WAIT_S)
    found: dict[str, Any] = json.loads(reply.data)
    assert "error" not in found
    return found


async def test_a_stream_names_its_mirrors_as_alternates(cluster: Cluster) -> None:
    client = await nats.connect(cluster.urls[0], connect_timeout=int(WAIT_S))

    async def alternates(name: str) -> list[str] | None:
        found = (await api(client, f"STREAM.INFO.{name}")).get("alternates")
        if found is None:
            return None
        assert all(one.keys() == {"name", "cluster"} for one in found)
        assert len({one["cluster"] for one in found} - {""}) == 1
        return sorted(one["name"] for one in found)

    async def wait_for(names: list[str] | None) -> None:
        async def told() -> bool:
            return await alternates("O") == names

        await eventually(told, f"the alternates {names}", WAIT_S)

    made = await api(client, "STREAM.CREATE.O", {"name": "O", "subjects": ["o"]})
    assert "alternates" not in made
    assert await alternates("O") is None
    for name in ("M1", "M2"):
        mirror = {"name": name, "mirror": {"name": "O"}, "num_replicas": 3}
        assert "alternates" not in await api(client, f"STREAM.CREATE.{name}", mirror)
    await wait_for(["M1", "M2", "O"])
    assert await alternates("M1") is None
    listed = await api(client, "STREAM.LIST")
    assert all("alternates" not in one for one in listed["streams"])
    await api(client, "STREAM.UPDATE.M1", {"name": "M1", "subjects": ["m"], "num_replicas": 3})
    await wait_for(["M2", "O"])
    await api(client, "STREAM.DELETE.M2")
    await wait_for(None)
    await client.close()
