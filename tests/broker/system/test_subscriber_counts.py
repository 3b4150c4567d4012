"""Counts of subscriptions that servers of a cluster tell each other: what else may come."""

import pytest

from tests.support.cluster_play import ClusterPlay


@pytest.mark.parametrize("body", [b"9" * 5000, b"9" * 10, b"-1", b"+1", b" 1", b"\xb2", b""])
def test_a_count_that_is_none_counts_nothing(body: bytes) -> None:
    """Whoever is in the system account may answer; the interpreter converts no number of some
    thousand digits, and a server that fails there is gone."""
    cluster = ClusterPlay(2)
    server = cluster["n1"]
    system, client = server.connect("sys"), server.connect("a")
    system.subscribe("$SYS.REQ.ACCOUNT.NSUBS")
    cluster.cut.add(frozenset(("n1", "n2")))
    client.subscribe("x")
    assert client.request("$SYS.DEBUG.SUBSCRIBERS", b"x") == []
    system.publish(system.messages[-1][1], body)
    assert server.exit is None
    assert client.messages[-1][2] == b"1"
