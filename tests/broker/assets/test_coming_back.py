"""What left a server and came back to it, behind a restart: the meta log is read once more."""

import json
from typing import Any

import pytest

from jsctl.broker.assets import left_behind
from jsctl.broker.raft.core import Raft
from jsctl.broker.replication.bootstrap import GroupBootstrap
from jsctl.broker.replication.checkpoints import GroupLimits
from jsctl.dataclass import replace
from tests.support.cluster_play import ClusterPlay, ServerPlay
from tests.support.stream_requests import consumer, stream

COUNT = 5
SHORT = GroupLimits(
    checkpoint_entries=20, entries_kept=5, lagging_bytes_max=100, lagging_entries_max=2
)


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


@pytest.mark.parametrize("kept", ["log", "state", "state of a rescue"])
def test_what_was_deleted_while_a_server_was_down_goes_from_its_disk(
    kept: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where nothing but the state is left of what tells that: it names the stream no more. A
    state of fewer than a majority may not know what there was."""
    play = ClusterPlay()
    play["n1"].request_all("$JS.API.STREAM.CREATE.S", 1, **stream())
    play["n1"].request_all("$JS.API.CONSUMER.CREATE.S.C", 1, **consumer())
    gone = f"streams/{play.group_of('S')}"
    late = next(one for one in play if one is not play.leader())
    for _ in range(COUNT):
        play["n1"].request_all("s.x", 0.1)
    late.halt()
    play.run(1)
    assert late.disk.list(gone)
    there = next(one for one in play if one is not late)
    there.request_all("$JS.API.STREAM.DELETE.S", 1)
    for one in play:
        one.engine.groups.checkpoints.limits = GroupLimits() if kept == "log" else SHORT
    for number in range(30):
        there.request_all("$JS.API.STREAM.CREATE.T", 0.1, **stream("T"))
        there.request_all("$JS.API.STREAM.UPDATE.T", 0.1, **stream("T", max_msgs=number + 1))
    meta = play.leader().engine.meta.group
    play.leader().engine.groups.checkpoints.compact(meta)
    assert (meta.raft.base_index > 20) == (kept != "log")
    if kept == "state of a rescue":
        monkeypatch.setattr(left_behind, "RESCUED_TERMS", 0)
    late.begin()
    play.wait(lambda: ("A", "T") in late.engine.assets.streams, "it knows what there is")
    play.run(2)
    assert bool(late.disk.list(gone)) == (kept == "state of a rescue")
