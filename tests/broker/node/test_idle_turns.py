"""What a turn costs that is nothing to most parts, counted in calls of functions.

Parts that time or rare events concern are looked at when one of them is due. The bounds are what
was counted, and some room: whoever needs a call in every turn has to say there why.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import pytest

from jsctl.broker.node.running import LOOK_NS
from jsctl.broker.turn import TurnInputs
from tests.support.cluster_play import ClusterPlay
from tests.support.node_play import NodePlay, PlayClient

PACKAGE = "jsctl"
EMPTY_CALLS_MAX = 65
PING_CALLS_MAX = 80
MICROSECOND_NS = 1_000


@contextmanager
def counted(calls: list[str]) -> Iterator[None]:
    """Notes the functions of the project that are called."""

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and PACKAGE in frame.f_code.co_filename:
            calls.append(frame.f_code.co_qualname)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(before)


@pytest.fixture
def play() -> NodePlay:
    made = NodePlay()
    client = made.connect("a")
    reply = client.ask("$JS.API.STREAM.CREATE.S", name="S", subjects=["s.>"], storage="file")
    assert "error" not in reply
    made.run(5)
    return made


def calls_of(play: NodePlay, client: PlayClient | None = None, data: bytes = b"") -> list[str]:
    """What a turn calls, a microsecond after one that looked at everything."""
    play.now_ns += LOOK_NS
    play.turn()
    play.now_ns += MICROSECOND_NS
    calls: list[str] = []
    inputs = TurnInputs(chunks=[(client.conn, data)] if client is not None else [])
    with counted(calls):
        play.node.turn(inputs, play.now_ns)
    return calls


def test_a_turn_with_nothing_in_it_calls_little(play: NodePlay) -> None:
    calls = calls_of(play)
    assert len(calls) <= EMPTY_CALLS_MAX, "\n".join(calls)


def test_a_ping_is_nothing_to_most_parts(play: NodePlay) -> None:
    client = play.connect("a")
    calls = calls_of(play, client, b"PING\r\n")
    assert len(calls) <= PING_CALLS_MAX, "\n".join(calls)
    assert "SystemAccount.tick" not in calls and "JetStream.tick" not in calls


def test_a_server_of_a_cluster_looks_no_more_often() -> None:
    cluster = ClusterPlay()
    cluster.run(5)
    server = cluster["n1"]
    calls: list[str] = []
    for after_ns in (0, MICROSECOND_NS):
        calls.clear()
        with counted(calls):
            server.node.turn(TurnInputs(), cluster.now_ns + after_ns)
    # Among the twelve: whether a route that is compressed has more than was opened in this turn.
    assert len(calls) <= EMPTY_CALLS_MAX + 12, "\n".join(calls)


def test_who_comes_and_goes_is_told_without_time_going_by(play: NodePlay) -> None:
    system, now_ns = play.connect("sys"), play.now_ns
    system.subscribe("$SYS.ACCOUNT.A.>")
    client = play.connect("a")
    assert [one["client"]["id"] for one in system.heard("$SYS.ACCOUNT.A.CONNECT")]
    client.send(b"NONSENSE\r\n")
    play.turn()
    (told,) = system.heard("$SYS.ACCOUNT.A.DISCONNECT")
    assert told["reason"]
    assert play.now_ns == now_ns


def test_each_part_is_looked_at_again_after_a_while(play: NodePlay) -> None:
    calls = calls_of(play)
    assert "Engine.look" not in calls
    play.now_ns += LOOK_NS
    with counted(calls):
        play.node.turn(TurnInputs(), play.now_ns)
    assert {"Engine.look", "SystemAccount.tick", "JetStream.tick"} <= set(calls)


def test_that_others_live_is_nothing_to_most_parts() -> None:
    """Servers look when their own heartbeats are due, and once a second for what is kept in order:
    not whenever they hear of another one."""
    cluster = ClusterPlay()
    cluster.run(5)
    seconds = 3
    calls: list[str] = []
    with counted(calls):
        cluster.run(seconds)
    heard = calls.count("PeerExchange.receive") / seconds / len(cluster.servers)
    looks = calls.count("Engine.look") / seconds / len(cluster.servers)
    assert heard >= 12
    assert looks <= 9
