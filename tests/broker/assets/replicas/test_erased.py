"""Messages that were deleted with their bytes."""

from tests.support.node_play import NodePlay
from tests.support.stream_requests import stream

SECRETS = 7


def test_all_bytes_that_are_to_go_have_gone_with_a_checkpoint() -> None:
    """Also those of more files than are rewritten at a time: behind it the log tells of them no
    more, and a restart would not know that they are to go."""
    play = NodePlay()
    client = play.connect("a")
    client.ask("$JS.API.STREAM.CREATE.S", **stream(replicas=1))
    for number in range(SECRETS):
        client.request("s.x", b"kept %d" % number)
        client.request("s.x", b"secret %d" % number)
        assert client.ask("$JS.API.STREAM.MSG.DELETE.S", seq=2 * number + 2)["success"]
    assert play.node.engine is not None
    checkpoints = play.node.engine.groups.checkpoints
    for group in play.node.engine.groups.by_name.values():
        checkpoints.soon(group)
    play.run(2)
    left = [path for path in play.disk.paths() if path.startswith("streams/")]
    assert left
    assert not any(b"secret" in play.disk.content(path) for path in left)
    assert client.ask("$JS.API.STREAM.INFO.S")["state"]["messages"] == SECRETS
