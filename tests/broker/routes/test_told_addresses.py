"""Another server of the cluster tells where servers are: what becomes of that, and when."""

import json

import pytest

from jsctl.broker.gateway_options import GatewayOptions
from jsctl.broker.options import ClusterOptions, JetStreamOptions
from jsctl.broker.turn import Accepted, ConnKind
from tests.support.node_play import NodePlay, PlayClient, node_options

OPTIONS = node_options(
    jetstream=JetStreamOptions(),
    cluster=ClusterOptions(name="C", port=6222),
    gateway=GatewayOptions(name="A", port=7222),
)
INFO = {
    "server_id": "NX", "server_name": "x", "cluster": "C", "host": "10.0.0.9", "port": 6222,
    "route_pool_size": 3, "proto": 1, "headers": True,
}  # fmt: skip
CONN = 301


@pytest.fixture
def play() -> NodePlay:
    """A server of a cluster."""
    return NodePlay(OPTIONS)


@pytest.fixture
def route(play: NodePlay) -> PlayClient:
    """Another server, which has a link to that one."""
    made = play.clients[CONN] = PlayClient(play, CONN)
    play.turn(accepted=[Accepted(CONN, ConnKind.ROUTE, "10.0.0.9", 5)])
    tells(made)
    return made


def tells(route: PlayClient, **more: object) -> None:
    """It says INFO."""
    route.send(b"INFO %s\r\n" % json.dumps({**INFO, **more}).encode())


GATEWAY = {"gateway": "B", "gateway_cmd": 1}


@pytest.mark.parametrize("port", ["9" * 5000, "0" * 5000 + "1", "-1", "65536", "0"])
def test_a_port_that_is_none(play: NodePlay, route: PlayClient, port: str) -> None:
    """Python converts no number of thousands of digits."""
    tells(route, **GATEWAY, gateway_urls=[f"10.0.0.7:{port}"])
    tells(route, server_id="NY", server_name="y", ip=f"nats-route://10.0.0.7:{port}/")
    assert not play.faults and not play.dials
    tells(route, **GATEWAY, gateway_urls=[f"10.0.0.7:{port}", "10.0.0.8:7222"])
    play.run(1)
    assert [one.host for one in play.dials] == ["10.0.0.8"]


NEWS = {
    "a server": {"server_id": "NY", "server_name": "y", "ip": "nats-route://10.0.0.8:6222/"},
    "a cluster": {**GATEWAY, "gateway_urls": ["10.0.0.8:7222"]},
}


@pytest.mark.parametrize("news", NEWS.values(), ids=NEWS)
def test_who_is_told_of_is_dialed_at_once(
    play: NodePlay, route: PlayClient, news: dict[str, object]
) -> None:
    """The next ping is a while away, and nobody else has anything to say."""
    tells(route, **news)
    assert [one.host for one in play.dials] == ["10.0.0.8"]
