"""Queue groups with members here and behind leaf nodes."""

import json

from jsctl.broker.leafnode_options import LeafNodeOptions
from jsctl.broker.turn import Accepted, ConnKind
from tests.support.node_play import NodePlay, PlayClient, node_options


def leaf(play: NodePlay, conn: int = 99) -> PlayClient:
    """A leaf node in account A."""
    found = play.clients[conn] = PlayClient(play, conn)
    play.turn(accepted=[Accepted(conn, ConnKind.LEAF, "127.0.0.1", conn)])
    said = {"user": "a", "pass": "a", "name": f"l{conn}", "cluster": f"l{conn}", "headers": True}
    found.send(b"CONNECT %s\r\n" % json.dumps(said).encode())
    return found


def test_a_group_of_many_subjects_is_served_here() -> None:
    """Nobody but its members listens: there is no link that each message goes to."""
    play = NodePlay(node_options(leafnodes=LeafNodeOptions(port=7422)))
    leaf(play).send(b"LS+ ask.* many 1\r\n")
    member, publisher = play.connect("a"), play.connect("a")
    member.send(b"SUB ask.* many 1\r\n")
    for number in range(8):
        publisher.send(b"PUB ask.%d 1\r\nx\r\n" % number)
    assert [subject for subject, _, _ in member.messages] == [f"ask.{n}" for n in range(8)]
    assert play.faults == []
