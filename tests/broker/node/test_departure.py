"""How servers leave: what they led is led by others, what they applied is written down."""

import pytest

from jsctl.broker.cluster.state_file import load
from jsctl.broker.options import Options
from jsctl.broker.turn import Command
from tests.support.cluster_play import ClusterPlay
from tests.support.node_play import NodePlay, node_options
from tests.support.stream_requests import stream


@pytest.fixture
def cluster() -> ClusterPlay:
    """Three servers with a stream S."""
    play = ClusterPlay()
    play["n1"].request_all("$JS.API.STREAM.CREATE.S", 1, **stream())
    client = play["n1"].connect("a")
    for _ in range(5):
        client.publish("s.x", b"hello", "ack")
    play.run(0.5)
    return play


def test_shutdown_hands_over_and_writes_down(cluster: ClusterPlay) -> None:
    leader = cluster.leader(cluster.group_of("S"))
    leader.turn(commands=[Command.SHUTDOWN])
    began_ns = cluster.now_ns
    cluster.wait(lambda: leader.exit is not None, "it ends", 3)
    assert leader.exit == "shutdown"
    assert cluster.now_ns - began_ns < 1_000_000_000
    new = cluster.maybe_leader(cluster.group_of("S"))
    assert new is not None and new is not leader, "led by another one before it ended"
    for directory in (f"streams/{cluster.group_of('S')}", "meta"):
        assert load(leader.disk, directory).state is not None
    leader.disk.crash()
    leader.begin()
    cluster.run(2)
    assert leader.engine.assets.streams[("A", "S")].store.state().messages == 5


def test_a_single_server_ends_at_once_with_all_written() -> None:
    play = NodePlay()
    client = play.connect("a")
    client.ask("$JS.API.STREAM.CREATE.S", **stream(replicas=1))
    client.publish("s.x", b"hello")
    play.command(Command.SHUTDOWN)
    play.run(0.1)
    assert play.exit == "shutdown"
    again = NodePlay(disk=play.disk)
    info = again.connect("a").ask("$JS.API.STREAM.INFO.S")
    assert info["state"]["messages"] == 1


def lame(**more: int) -> Options:
    """Lame duck mode takes four seconds, the first of them quiet."""
    fields = {"lame_duck_grace_ns": 10**9, "lame_duck_duration_ns": 4 * 10**9, **more}
    return node_options(**fields)


def test_lame_duck_sends_clients_away_one_by_one() -> None:
    play = NodePlay(lame())
    clients = [play.connect("a") for _ in range(3)]
    play.command(Command.LAME_DUCK)
    assert all(b'"ldm":true' in b"".join(client.lines) for client in clients)
    play.run(0.8)
    assert len(play.node.sessions) == 3, "the grace period"
    play.run(1)
    assert 0 < len(play.node.sessions) < 3, "some are gone, not all"
    play.command(Command.LAME_DUCK)
    play.run(4)
    assert play.exit == "lame duck mode"


def test_lame_duck_without_clients_does_not_wait() -> None:
    play = NodePlay(lame())
    play.command(Command.LAME_DUCK)
    play.run(0.2)
    assert play.exit == "lame duck mode"
