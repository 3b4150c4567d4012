"""What is erased leaves the files of its stream soon, also where nothing else happens."""

import json

import pytest

from jsctl.broker.store.stream_store import StreamStore
from tests.support.cluster_play import ClusterPlay
from tests.support.node_play import NodePlay, PlayClient
from tests.support.stream_requests import stream

SECRET = b"SECRET" * 4
SOON_S = 3


@pytest.fixture
def play() -> NodePlay:
    """A server with a stream."""
    return NodePlay()


@pytest.fixture
def client(play: NodePlay) -> PlayClient:
    """A client; some messages are stored, one of them is the third."""
    made = play.connect("a")
    made.publish("$JS.API.STREAM.CREATE.S", json.dumps(stream(replicas=1)).encode(), "answer")
    play.run(0.5)
    for body in (b"1", b"2", SECRET, b"4"):
        made.publish("s.x", body)
    play.run(0.5)
    return made


def erase(client: PlayClient, seq: int) -> None:
    client.publish("$JS.API.STREAM.MSG.DELETE.S", b'{"seq":%d}' % seq)


def held(play: NodePlay) -> bool:
    """Whether a file of the stream has it."""
    paths = [one for one in play.disk.paths() if one.startswith("streams/")]
    assert paths
    return any(SECRET in play.disk.content(one) for one in paths)


def store_of(play: NodePlay) -> StreamStore:
    assert play.node.engine is not None
    return play.node.engine.assets.streams[("A", "S")].store


def test_nothing_else_has_to_happen(play: NodePlay, client: PlayClient) -> None:
    assert held(play)
    erase(client, 3)
    play.run(SOON_S)
    assert not held(play)
    assert [one[0] for one in store_of(play).load_range(1, 9)] == [1, 2, 4]


def test_a_snapshot_is_waited_for(play: NodePlay, client: PlayClient) -> None:
    view = store_of(play).view()
    erase(client, 3)
    play.run(20)
    assert held(play), "the snapshot shows what there was"
    view.close()
    play.run(SOON_S)
    assert not held(play)


def test_many_in_many_files_wait_for_the_end_of_it(play: NodePlay, client: PlayClient) -> None:
    """Each has its file written anew."""
    for _ in range(8):
        for _ in range(4):
            client.publish("s.x", b"x" * 100)
        play.run(0.1)
        erase(client, store_of(play).last_seq)
    erase(client, 3)
    for _ in range(6):
        client.publish("s.x", b"x")
        play.run(0.5)
        erase(client, store_of(play).last_seq)
        assert held(play)
    play.run(SOON_S)
    assert not held(play)


def test_all_replicas_do() -> None:
    cluster = ClusterPlay()
    cluster["n1"].request_all("$JS.API.STREAM.CREATE.S", 1, **stream())
    client = cluster["n1"].connect("a")
    for body in (b"1", SECRET, b"3"):
        client.publish("s.x", body)
    cluster.run(1)
    client.publish("$JS.API.STREAM.MSG.DELETE.S", b'{"seq":2}')
    cluster.run(SOON_S)
    for one in cluster:
        paths = [path for path in one.disk.paths() if path.startswith("streams/")]
        assert paths
        assert not any(SECRET in one.disk.content(path) for path in paths)
