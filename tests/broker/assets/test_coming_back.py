"""What left a server and came back to it, behind a restart: the meta log is read once more."""

import json
from typing import Any

import pytest

from jsctl.broker.raft.core import Raft
from jsctl.broker.replication.bootstrap import GroupBootstrap
from jsctl.dataclass import replace
from tests.support.cluster_play import ClusterPlay, ServerPlay
from tests.support.stream_requests import consumer, stream

COUNT = 5


def home(play: ClusterPlay) -> ServerPlay:
    """Where the stream with one replica is, once it is where it is to be."""

    def there() -> bool:
        made = play.leader().engine.meta.state.stream("A", "S")
        return made is not None and made.group.settled

    play.wait(there, "the stream is where it is to be")
    play.run(0.5)
    (found,) = [one for one in play if ("A", "S") in one.engine.assets.streams]
    return found


def send_away(play: ClusterPlay) -> None:
    """The stream goes to another server."""
    body = {"peer": home(play).name}
    (answer,) = play["n1"].request_all("$JS.API.STREAM.PEER.EVACUATE.S", 1, **body)
    assert "error" not in answer, json.dumps(answer)


def one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on raft groups that start give what is committed an entry at a time."""
    start = GroupBootstrap.start

    def limited(self: GroupBootstrap, *given: Any, **named: Any) -> Raft:
        made = start(self, *given, **named)
        made.limits = replace(made.limits, committed_entries_max=1)
        return made

    monkeypatch.setattr(GroupBootstrap, "start", limited)


@pytest.mark.parametrize("in_portions", [False, True])
def test_a_stream_that_came_back_is_not_given_up_by_a_restart(
    in_portions: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is nowhere else: to leave once more, as the log says first, would be to lose it."""
    play = ClusterPlay()
    client = play["n1"].connect("a")
    assert "error" not in client.ask("$JS.API.STREAM.CREATE.S", **stream(replicas=1))
    assert "error" not in client.ask("$JS.API.CONSUMER.CREATE.S.C", **consumer())
    for _ in range(COUNT):
        (ack,) = client.request("s.x", b"kept")
        assert b"error" not in ack
    first = home(play)
    send_away(play)
    while home(play) is not first:
        send_away(play)
    first.halt()
    play.run(1)
    if in_portions:
        one_by_one(monkeypatch)
    first.begin()
    assert play.leader(play.group_of("S")) is first
    assert play.leader(play.group_of("S", "C")) is first
    assert first.engine.assets.streams["A", "S"].store.state().messages == COUNT


@pytest.mark.parametrize("storage", ["file", "memory"])
def test_a_stream_that_left_is_gone_behind_a_restart(storage: str) -> None:
    """Also one that could not be built at once: that waits for what was there before to be removed,
    or until it is known where a stream in memory is now."""
    play = ClusterPlay()
    client = play["n1"].connect("a")
    assert "error" not in client.ask(
        "$JS.API.STREAM.CREATE.S", **stream(replicas=1, storage=storage)
    )
    first = home(play)
    send_away(play)
    while home(play) is not first:
        send_away(play)
    send_away(play)
    assert home(play) is not first
    first.halt()
    play.run(1)
    first.begin()
    play.run(2)
    assert ("A", "S") not in first.engine.assets.streams
    assert not first.disk.list("streams")
