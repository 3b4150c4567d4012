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

from jsctl.api.times import parse_time
from jsctl.broker.node.agenda import LOOK_NS
from jsctl.broker.node.node import Node
from jsctl.broker.turn import TurnInputs
from tests.support.cluster_play import ClusterPlay
from tests.support.node_play import NodePlay, PlayClient

PACKAGE = "jsctl"
EMPTY_CALLS_MAX = 25
IN_CLUSTER_MORE = 30
PING_CALLS_MAX = 40
REQUEST_CALLS_MAX = 100
GET_CALLS_MAX = 170
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


def take_turn(node: Node, inputs: TurnInputs, now_ns: int) -> None:
    """All of a turn; what it wants to be done is forgotten."""
    node.turn(inputs, now_ns)
    node.settle(now_ns)


def calls_of(play: NodePlay, client: PlayClient | None = None, data: bytes = b"") -> list[str]:
    """What a turn calls, a microsecond after one that looked at everything."""
    play.now_ns += LOOK_NS
    play.turn()
    play.now_ns += MICROSECOND_NS
    calls: list[str] = []
    inputs = TurnInputs(chunks=[(client.conn, data)] if client is not None else [])
    with counted(calls):
        take_turn(play.node, inputs, play.now_ns)
    return calls


def test_a_turn_with_nothing_in_it_calls_little(play: NodePlay) -> None:
    calls = calls_of(play)
    assert len(calls) <= EMPTY_CALLS_MAX, "\n".join(calls)


def test_a_ping_is_nothing_to_most_parts(play: NodePlay) -> None:
    client = play.connect("a")
    calls = calls_of(play, client, b"PING\r\n")
    assert len(calls) <= PING_CALLS_MAX, "\n".join(calls)
    assert "SystemAccount.tick" not in calls and "JetStream.tick" not in calls


def quiet(play: NodePlay, client: PlayClient) -> None:
    """Turns until they call nothing of JetStream, each a microsecond after the last one."""
    for _ in range(5):
        play.now_ns += MICROSECOND_NS
        calls: list[str] = []
        with counted(calls):
            client.send(b"PING\r\n")
        if "Engine.run" not in calls:
            return
    pytest.fail("JetStream works in each turn")


def test_messages_that_are_passed_on_are_nothing_to_jetstream(play: NodePlay) -> None:
    asks, answers = play.connect("a"), play.connect("a")
    answers.subscribe("service")
    asks.subscribe("inbox.*")
    asks.publish("service", b"?", "inbox.0")  # What is passed on is looked up once.
    answers.publish("inbox.0", b"!")
    quiet(play, asks)
    calls: list[str] = []
    with counted(calls):
        asks.publish("service", b"?", "inbox.1")
        answers.publish("inbox.1", b"!")
    assert [subject for subject, _, _ in asks.messages] == ["inbox.0", "inbox.1"]
    assert not [one for one in calls if one.startswith(("Engine.", "JetStream.e", "Groups."))]
    assert len(calls) <= REQUEST_CALLS_MAX, "\n".join(calls)


def test_reads_are_nothing_to_the_rest_of_jetstream(play: NodePlay) -> None:
    client = play.connect("a")
    made = client.ask("$JS.API.STREAM.UPDATE.S", name="S", subjects=["s.>"], allow_direct=True)
    assert "error" not in made
    assert client.request("s.x", b"found")
    client.subscribe("inbox")
    client.publish("$JS.API.DIRECT.GET.S.s.x", b"", "inbox")
    play.now_ns += MICROSECOND_NS
    calls: list[str] = []
    with counted(calls):
        client.publish("$JS.API.DIRECT.GET.S.s.x", b"", "inbox")
    assert [body for subject, _, body in client.messages if subject == "inbox"] == [b"found"] * 2
    assert "Engine.run" not in calls and "JetStream.emit" not in calls
    assert len(calls) <= GET_CALLS_MAX, "\n".join(calls)


def test_a_publish_behind_quiet_turns_has_the_time_of_its_own(play: NodePlay) -> None:
    client = play.connect("a")
    quiet(play, client)
    play.now_ns += LOOK_NS // 2
    client.send(b"PING\r\n")
    play.now_ns += MICROSECOND_NS
    assert client.request("s.x", b"late")
    stored = client.ask("$JS.API.STREAM.MSG.GET.S", last_by_subj="s.x")["message"]
    assert parse_time(stored["time"]) == play.now_ns


def test_who_begins_to_listen_in_a_quiet_turn_is_delivered_to_at_once(play: NodePlay) -> None:
    client = play.connect("a")
    assert client.request("s.x", b"waits")
    config = {"durable_name": "C", "deliver_subject": "deliver", "ack_policy": "none"}
    made = client.ask("$JS.API.CONSUMER.DURABLE.CREATE.S.C", stream_name="S", config=config)
    assert "error" not in made
    quiet(play, client)
    client.subscribe("deliver")
    assert client.messages[-1][0] == "s.x" and client.messages[-1][2] == b"waits"


def test_what_is_due_comes_in_time_while_others_only_pass_messages_on(play: NodePlay) -> None:
    client, other = play.connect("a"), play.connect("a")
    client.subscribe("deliver")
    wait_ns = 1_000_000_000
    config: dict[str, object] = {"durable_name": "C", "deliver_subject": "deliver"}
    config |= {"ack_policy": "explicit", "ack_wait": wait_ns}
    made = client.ask("$JS.API.CONSUMER.DURABLE.CREATE.S.C", stream_name="S", config=config)
    assert "error" not in made
    assert client.request("s.x", b"again")
    first_ns = play.now_ns
    count = sum(subject == "s.x" for subject, _, _ in client.messages)
    while sum(subject == "s.x" for subject, _, _ in client.messages) == count:
        play.now_ns += 1_000 * MICROSECOND_NS
        other.send(b"PING\r\n")
        assert play.now_ns <= first_ns + 2 * wait_ns
    assert wait_ns <= play.now_ns - first_ns <= wait_ns + 60_000 * MICROSECOND_NS


def test_a_server_of_a_cluster_looks_no_more_often() -> None:
    cluster = ClusterPlay()
    cluster.run(5)
    server = cluster["n1"]
    calls: list[str] = []
    for after_ns in (0, MICROSECOND_NS):
        calls.clear()
        with counted(calls):
            take_turn(server.node, TurnInputs(), cluster.now_ns + after_ns)
    # Among them: whether a route that is compressed has more than was opened in this turn.
    assert len(calls) <= EMPTY_CALLS_MAX + IN_CLUSTER_MORE, "\n".join(calls)


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
        take_turn(play.node, TurnInputs(), play.now_ns)
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
