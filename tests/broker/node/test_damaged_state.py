"""A server that is alone and finds its state damaged begins nothing anew over what is left."""

import pytest

from jsctl.broker.turn import Command
from tests.support.node_play import NodePlay
from tests.support.sim_disk import SimDisk
from tests.support.stream_requests import stream

MESSAGES = 4


def stopped() -> SimDisk:
    """The disk of a server with one stream and some messages, which ended as it should."""
    play = NodePlay()
    client = play.connect("a")
    assert "error" not in client.ask("$JS.API.STREAM.CREATE.S", **stream(replicas=1))
    for number in range(MESSAGES):
        assert b'"seq"' in client.request("s.x", b"%d" % number)[0]
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


@pytest.mark.parametrize("what", ["streams/", "meta/"])
def test_nothing_is_acknowledged_over_a_damaged_state(what: str) -> None:
    disk = stopped()
    segments = {one for one in disk.paths() if "/store" in one}
    assert damage(disk, what)
    for _ in range(2):
        play = NodePlay(disk=disk)
        client = play.connect("a")
        play.run(20)
        answers = client.request("s.x", b"new")
        play.run(10)
        assert not [one for one in answers if b'"seq"' in one]
        assert segments <= set(disk.paths()), "what is left stays"
        disk = play.disk
