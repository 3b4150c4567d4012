"""A server of cluster A hears of other clusters: whom it dials, how often, and whom it tells."""

import json
from dataclasses import replace

import pytest

from jsctl.broker.gateway_options import GatewayOptions
from jsctl.broker.turn import Accepted, ConnKind, Dial
from tests.support.node_play import NodePlay, PlayClient, node_options

OPTIONS = node_options(gateway=GatewayOptions(name="A", port=7222))
FIRST, SECOND = 201, 202


@pytest.fixture
def play() -> NodePlay:
    """That server; nobody has told it of anything."""
    return NodePlay(OPTIONS)


def comes(play: NodePlay, conn: int, cluster: str) -> PlayClient:
    """A server of another cluster connects."""
    gate = play.clients[conn] = PlayClient(play, conn)
    play.turn(accepted=[Accepted(conn, ConnKind.GATEWAY, "127.0.0.1", 40000 + conn)])
    said = {"name": f"N{cluster}", "gateway": cluster}
    told = {
        "server_id": f"N{cluster}",
        "server_name": f"n{cluster}",
        "gateway": cluster,
        "gateway_urls": [f"10.0.0.{conn}:7222"],
    }
    gate.send(f"CONNECT {json.dumps(said)}\r\nINFO {json.dumps(told)}\r\n".encode())
    return gate


def told_of(gate: PlayClient) -> list[str]:
    """The clusters that a server was told of."""
    infos = [json.loads(line[5:]) for line in gate.lines if line.startswith(b"INFO ")]
    return [one["gateway"] for one in infos if one.get("gateway_cmd") == 1]


def dialed(play: NodePlay) -> list[Dial]:
    """What was dialed since the last look."""
    found, play.dials = play.dials, []
    return found


def test_who_came_first_is_told_of_who_comes_later(play: NodePlay) -> None:
    """They may have come to different servers of a cluster at the same moment."""
    first, second = comes(play, FIRST, "B"), comes(play, SECOND, "C")
    assert (told_of(first), told_of(second)) == (["C"], ["B"])
    assert [one.host for one in dialed(play)] == ["10.0.0.201", "10.0.0.202"]


def test_nobody_is_told_twice_or_of_himself(play: NodePlay) -> None:
    first = comes(play, FIRST, "B")
    comes(play, SECOND, "C")
    comes(play, 203, "C")
    comes(play, 204, "B")
    assert told_of(first) == ["C"]


@pytest.mark.parametrize(("configured", "tries"), [(0, 5), (8, 8)])
def test_one_failure_is_not_the_end_of_a_cluster(configured: int, tries: int) -> None:
    """Under load a dial takes longer than it may; nobody would tell of that cluster again."""
    block = replace(OPTIONS.gateway, connect_retries=configured)
    play = NodePlay(node_options(gateway=block))
    comes(play, FIRST, "B")
    play.turn(closed=[(FIRST, "Client Closed")])
    count = 0
    while found := dialed(play):
        count += len(found)
        play.turn(dial_failed=[(one, "i/o timeout") for one in found])
        play.run(1.5)
    assert count == 1 + tries


def test_a_cluster_that_has_a_connection_to_here_is_dialed_for_ever(play: NodePlay) -> None:
    comes(play, FIRST, "B")
    for _ in range(15):
        found = dialed(play)
        assert len(found) == 1
        play.turn(dial_failed=[(one, "i/o timeout") for one in found])
        play.run(1.5)
