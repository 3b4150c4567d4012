"""A server that is alone and finds its state damaged begins nothing anew over what is left."""

from collections.abc import Callable

import pytest

from jsctl.broker.options import RaftOptions
from jsctl.broker.replication import state_file
from jsctl.broker.turn import Command
from tests.support.node_play import LOG_BYTES, NodePlay, node_options
from tests.support.sim_disk import SimDisk
from tests.support.stream_requests import consumer, stream

MESSAGES = 4


def written(**raft: int) -> NodePlay:
    """A server with one stream and some messages, and states on its disk that say so."""
    play = NodePlay(node_options(raft=RaftOptions(log_segment_bytes=LOG_BYTES, **raft)))
    client = play.connect("a")
    assert "error" not in client.ask("$JS.API.STREAM.CREATE.S", **stream(replicas=1))
    for number in range(MESSAGES):
        assert b'"seq"' in client.request("s.x", b"%d" % number)[0]
    play.write_states()
    return play


def released() -> SimDisk:
    """Its disk: the log has let go of what the states say."""
    play = written(entries_kept=0)
    assert play.node.engine is not None
    assert all(one.raft.base_index for one in play.node.engine.groups.by_name.values())
    play.command(Command.SHUTDOWN)
    play.run(2)
    assert play.exit is not None
    return play.disk


def damage(disk: SimDisk, start: str) -> int:
    """Flip a bit in the middle of each state file below a directory; how many there are."""
    paths = [one for one in disk.paths() if one.startswith(start) and "/state." in one]
    for path in paths:
        file = disk.open(path)
        at = file.size() // 2
        file.write(at, (bytes([file.read(at, 1)[0] ^ 4]),))
        file.close()
    return len(paths)


def remove(disk: SimDisk, start: str) -> int:
    """Remove each state file below a directory; how many there were."""
    paths = [one for one in disk.paths() if one.startswith(start) and "/state." in one]
    for path in paths:
        disk.remove(path)
    return len(paths)


@pytest.mark.parametrize("happens", [damage, remove])
@pytest.mark.parametrize("what", ["streams/", "meta/"])
def test_nothing_is_acknowledged_over_a_state_that_is_lost(
    what: str, happens: Callable[[SimDisk, str], int]
) -> None:
    disk = released()
    segments = {one for one in disk.paths() if "/store" in one}
    assert happens(disk, what)
    for _ in range(3):
        play = NodePlay(disk=disk)
        client = play.connect("a")
        play.run(20)
        answers = client.request("s.x", b"new")
        play.run(10)
        assert not [one for one in answers if b'"seq"' in one]
        assert segments <= set(disk.paths()), "what is left stays"
        disk = play.disk


@pytest.mark.parametrize("what", ["streams/", "meta/", "consumers/"])
def test_the_older_copy_of_a_state_is_not_missed(what: str) -> None:
    play = written()
    client = play.connect("a")
    assert "error" not in client.ask("$JS.API.CONSUMER.DURABLE.CREATE.S.C", **consumer())
    play.write_states()
    assert b'"seq"' in client.request("s.x", b"more")[0]
    client.request("$JS.API.CONSUMER.MSG.NEXT.S.C", b"2")
    assert "error" not in client.ask("$JS.API.STREAM.CREATE.T", **stream("T", 1, subjects=["t.>"]))
    play.write_states()
    disk = play.disk
    disk.kill()
    (place,) = {path.rpartition("/")[0] for path in disk.paths() if path.startswith(what)} & {
        path.rpartition("/")[0] for path in disk.paths() if path.endswith("/state.0")
    }
    copies = [f"{place}/state.{number}" for number in (0, 1)]
    states = {path: state_file.decode(disk.content(path), path) for path in copies}
    assert damage(disk, min(states, key=lambda path: states[path].generation)) == 1
    play = NodePlay(disk=disk)
    client = play.connect("a")
    play.run(5)
    assert b'"seq":%d' % (MESSAGES + 2) in client.request("s.x", b"new")[0]
    assert client.ask("$JS.API.CONSUMER.INFO.S.C")["delivered"]["stream_seq"] == 2
    assert "error" not in client.ask("$JS.API.STREAM.CREATE.U", **stream("U", 1))
