"""A member of a queue group leaves while messages for it are on their way."""

import pytest

from tests.support.cluster_play import ClusterPlay

TRACED = b"NATS/1.0\r\nNats-Trace-Dest: traces\r\n\r\n"


@pytest.fixture
def cluster() -> ClusterPlay:
    """Three servers."""
    return ClusterPlay()


def said(headers: bytes) -> bytes:
    """A message, as the publisher sends it."""
    size = len(headers)
    if not headers:
        return b"PUB ask 2\r\nhi\r\n"
    return b"HPUB ask %d %d\r\n%shi\r\n" % (size, size + 2, headers)


@pytest.mark.parametrize("headers", [b"", TRACED], ids=["plain", "traced"])
def test_what_comes_for_who_has_left_goes_to_another_member(
    cluster: ClusterPlay, headers: bytes
) -> None:
    leaves, stays = cluster["n2"].connect("a"), cluster["n3"].connect("a")
    for member in (leaves, stays):
        member.send(b"SUB ask many 1\r\n")
    publisher = cluster["n1"].connect("a")
    # It is carried out in the turn in which the messages come.
    cluster["n2"].inbox.chunks.append((leaves.conn, b"UNSUB 1\r\nPING\r\n"))
    for _ in range(10):
        cluster["n1"].inbox.chunks.append((publisher.conn, said(headers)))
    cluster.settle()
    assert leaves.messages == []
    assert len(stays.messages) == 10


def test_who_has_the_message_anyway_does_not_get_it_twice(cluster: ClusterPlay) -> None:
    leaves, stays = cluster["n2"].connect("a"), cluster["n3"].connect("a")
    for member in (leaves, stays):
        member.send(b"SUB ask many 1\r\n")
    listener, publisher = cluster["n3"].connect("a"), cluster["n1"].connect("a")
    listener.subscribe("ask")
    cluster["n2"].inbox.chunks.append((leaves.conn, b"UNSUB 1\r\n"))
    publisher.send(said(b"") * 10)
    assert len(listener.messages) == 10
    assert leaves.messages == []
