"""Subjects of streams, and the routes of a cluster: one that no line has room for cuts them."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from jsctl.testing import Broker, Cluster
from tests.contract.conftest import KINDS
from tests.support.waiting import wait_for
from tests.support.wire_client import WireClient

FITS = 5000
NO_PEERS = 10005
"""Servers are linked before they count as peers of the meta group."""
TOO_LONG = (17_000, 130_000, 300_000)
Routes = dict[str, dict[int, str]]


def routes(cluster: Cluster) -> Routes:
    """The routes of every server: an id stays as long as its connection."""
    pages: dict[str, Any] = {one.name: one.monitor("/routez") for one in cluster}
    return {
        name: {int(route["rid"]): str(route["remote_name"]) for route in page["routes"]}
        for name, page in pages.items()
    }


def create(client: WireClient, length: int) -> dict[str, Any]:
    """The answer to a replicated stream with one subject of `length` bytes, when all are there."""
    name = f"S{length}"
    config = {"name": name, "subjects": ["s." + "x" * (length - 2)], "num_replicas": 3}
    subject, body = f"$JS.API.STREAM.CREATE.{name}".encode(), json.dumps(config).encode()

    def placed() -> dict[str, Any]:
        found: dict[str, Any] = json.loads(client.request(subject, body))
        return {} if found.get("error", {}).get("err_code") == NO_PEERS else found

    return wait_for(placed, "three servers take a stream")


@pytest.fixture(scope="module", params=list(KINDS))
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Three servers."""
    with Cluster(3, server=KINDS[str(request.param)]) as running:
        running.wait_routes()
        yield running


def test_a_subject_of_common_length(cluster: Cluster) -> None:
    before = routes(cluster)
    client = WireClient(cluster.urls[0])
    assert "error" not in create(client, FITS)
    client.close()
    assert routes(cluster) == before


def test_subjects_that_routes_have_no_room_for() -> None:
    # On nats-server these are made, and cut its routes: there is nothing to have in common.
    with Cluster(3, server=Broker) as cluster:
        cluster.wait_routes()
        client = WireClient(cluster.urls[0])
        assert "error" not in create(client, FITS)
        before = routes(cluster)
        for length in TOO_LONG:
            error = create(client, length)["error"]
            assert (error["err_code"], error["code"]) == (10052, 500)
            assert "too long" in error["description"]
        # A stream that all servers take part in is made after them, over the same routes.
        assert "error" not in create(client, FITS - 1)
        client.close()
        assert routes(cluster) == before
        for server in cluster:
            assert "maximum control line exceeded" not in server.logs
            assert "xxxx" not in server.logs
