"""JetStream in one cluster alone, whose servers name the others in their configuration."""

import json
from collections.abc import Iterator

import pytest

from jsctl.testing import Broker
from tests.contract.conftest import KINDS
from tests.support.gateways import told
from tests.support.nats_tool import nats, needed
from tests.support.super_clusters import meta_leader, super_cluster
from tests.support.waiting import wait_for

SIZES = {"a": 2, "b": 3}


@pytest.fixture(
    scope="module",
    params=[(one, other) for one in KINDS for other in KINDS],
    ids=lambda kinds: " and ".join(kinds),
)
def servers(request: pytest.FixtureRequest) -> Iterator[dict[str, Broker]]:
    """The servers by name, of each kind in each cluster; those of cluster `b` have JetStream."""
    kinds: dict[str, str] = dict(zip(SIZES, request.param, strict=True))
    with super_cluster(kinds, SIZES, jetstream=True, only="b", named=True) as found:
        yield found


@needed
def test_it_is_founded_and_used_from_the_other_cluster(servers: dict[str, Broker]) -> None:
    assert meta_leader(servers["b1"], SIZES["b"]).startswith("b")
    far = servers["a2"]
    more = ("--subjects", "far.>", "--replicas", "3", "--defaults")
    assert "far.>" in wait_for(
        lambda: nats("--server", far.url, "stream", "add", "FAR", *more).stdout, "it is made"
    )
    told(far, "far.>")
    sent = nats("--server", far.url, "pub", "far.x", "word {{Count}}", "--count", "10", "-J")
    assert sent.returncode == 0, sent.stdout + sent.stderr
    info = json.loads(nats("--server", far.url, "stream", "info", "FAR", "--json").stdout)
    assert info["state"]["messages"] == 10
    assert info["cluster"]["leader"].startswith("b")
