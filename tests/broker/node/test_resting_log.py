"""What a stream took is held by the log as long as it takes more, and not for ever."""

from jsctl.broker.assets.replicas.stream_replica import StreamReplica
from jsctl.broker.options import RaftOptions
from tests.support.node_play import NodePlay, node_options
from tests.support.stream_requests import stream

TURNS, MESSAGES, SIZE = 30, 100, 1_000
HELD_BYTES_MAX = 1 << 20


def held(replica: StreamReplica) -> int:
    """Bytes of entries in memory."""
    return sum(len(entry.data) for entry in replica.group.raft.log.entries)


def test_a_log_that_grew_is_let_go_of_when_it_rests() -> None:
    play = NodePlay(node_options(raft=RaftOptions()))
    client = play.connect("a")
    client.ask("$JS.API.STREAM.CREATE.S", **stream(replicas=1))
    assert play.node.engine is not None
    (replica,) = play.node.engine.assets.streams.values()
    message = b"PUB s.x %d\r\n%s\r\n" % (SIZE, b"x" * SIZE)
    for _ in range(TURNS):
        client.send(message * MESSAGES)
        play.now_ns += 50_000_000
    assert held(replica) > 2 * HELD_BYTES_MAX
    play.run(4)
    assert held(replica) < HELD_BYTES_MAX
    assert replica.group.checkpointed == replica.group.raft.applied
    assert client.ask("$JS.API.STREAM.INFO.S")["state"]["messages"] == TURNS * MESSAGES
    play.disk.crash()
    client = NodePlay(disk=play.disk).connect("a")
    assert client.ask("$JS.API.STREAM.INFO.S")["state"]["messages"] == TURNS * MESSAGES
