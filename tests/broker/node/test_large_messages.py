"""Messages as large as `max_payload` may allow pass from server to server."""

import pytest

from jsctl.broker.gateway_options import GatewayOptions
from jsctl.broker.protocol.client import SIZE_DIGITS_MAX
from jsctl.broker.turn import Accepted, ConnKind
from tests.support.cluster_play import ClusterPlay
from tests.support.node_play import NodePlay, PlayClient, node_options

LARGEST = 10**SIZE_DIGITS_MAX - 1
"""That a client can say."""


@pytest.mark.parametrize("size", [100 << 20, LARGEST])
def test_over_routes(size: int) -> None:
    server = ClusterPlay()["n1"]
    before = dict(server.routes)
    server.turn(chunks=[(conn, b"RMSG A s %d\r\n" % size) for conn in before])
    assert server.routes == before


@pytest.mark.parametrize("size", [100 << 20, LARGEST])
def test_between_clusters(size: int) -> None:
    play = NodePlay(node_options(gateway=GatewayOptions(name="A", port=7222)))
    gate = play.clients[99] = PlayClient(play, 99)
    play.turn(accepted=[Accepted(99, ConnKind.GATEWAY, "127.0.0.1", 1)])
    gate.send(b'CONNECT {"gateway":"B"}\r\nINFO {"gateway":"B","server_id":"NB"}\r\n')
    gate.send(b"RMSG A s %d\r\n" % size)
    assert not any(line.startswith(b"-ERR") for line in gate.lines)
