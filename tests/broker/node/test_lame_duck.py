"""How servers leave: what they led is led by others, what they applied is written down."""

import pytest

from jsctl.broker.options import Options
from jsctl.broker.replication.state_file import load
from jsctl.broker.turn import Command, DiskBatch, TurnOutputs
from tests.support.cluster_play import ClusterPlay
from tests.support.node_play import SECOND_NS, STEP_NS, NodePlay, node_options
from tests.support.stream_requests import stream

STREAMS = 60


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


class SlowDisk(NodePlay):
    """Each job of the disk besides the log takes one step of time."""

    def __init__(self) -> None:
        self.jobs: list[DiskBatch] = []
        super().__init__()

    def _perform(self, outputs: TurnOutputs) -> None:
        self.jobs += [batch for batch in outputs.disk if batch.ticket < 0]
        outputs.disk = [batch for batch in outputs.disk if batch.ticket >= 0]
        super()._perform(outputs)

    def run(self, seconds: float) -> None:
        for _ in range(int(seconds * SECOND_NS) // STEP_NS):
            if self.jobs:
                job = self.jobs.pop(0)
                job.run()
                self._synced.append(job.ticket)
            super().run(STEP_NS / SECOND_NS)


def test_the_end_does_not_take_longer_with_more_streams() -> None:
    play = SlowDisk()
    client = play.connect("a")
    for number in range(STREAMS):
        name = f"S{number}"
        client.ask(f"$JS.API.STREAM.CREATE.{name}", **stream(name, replicas=1))
        client.publish(f"s{number}.x", b"hello", "ack")
    for _ in range(10):
        client.publish("s7.x", b"more", "ack")
    assert play.node.engine is not None
    unit = play.node.engine.assets.streams[("A", "S7")]
    play.command(Command.SHUTDOWN)
    began_ns = play.now_ns
    while play.exit is None:
        play.run(STEP_NS / SECOND_NS)
        assert play.now_ns - began_ns < SECOND_NS, "it ends in time"
    assert load(play.disk, unit.stored.files.directory).state is not None, (
        "the longest log comes first"
    )
    play.disk.crash()
    again = NodePlay(disk=play.disk).connect("a")
    for number in range(STREAMS):
        info = again.ask(f"$JS.API.STREAM.INFO.S{number}")
        assert info["state"]["messages"] == (11 if number == 7 else 1)


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


def test_who_is_told_to_end_again_and_again_ends() -> None:
    """As by `while kill $pid; do sleep 0.5; done`, where the disk is slow."""
    play = NodePlay()
    client = play.connect("a")
    client.ask("$JS.API.STREAM.CREATE.S", **stream(replicas=1))
    client.publish("s.x", b"hello")
    play.hold_disk = True
    for _ in range(12):
        play.command(Command.SHUTDOWN)
        play.run(0.5)
    assert play.exit == "shutdown"


def test_a_lame_duck_can_be_ended_at_once() -> None:
    """By an interrupt; a termination is nothing to it."""
    play = NodePlay(lame())
    play.connect("a")
    play.command(Command.LAME_DUCK)
    play.run(0.5)
    play.command(Command.SHUTDOWN)
    play.run(0.1)
    assert play.exit == "shutdown"
