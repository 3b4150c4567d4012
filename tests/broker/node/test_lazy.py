"""What a server without JetStream does not load: most of a start is reading modules.

And what is loaded between turns once a server has settled, so that no first request has to.
"""

import subprocess
import sys

import pytest

START = """
import sys
from jsctl.broker.node import Node
from jsctl.broker.options import ClusterOptions, JetStreamOptions, Listen, Options
from jsctl.broker.server.no_disk import NoDisk

cluster = ClusterOptions(name="C", host="127.0.0.1", port=-1) if {clustered} else ClusterOptions()
options = Options(server_name="A", jetstream=JetStreamOptions(enabled=False), cluster=cluster)
node = Node(options, disk=NoDisk(), jitter=lambda n: 0, server_id="N", incarnation="0" * 32)
node.listening("client", "127.0.0.1", 4222)
node.listening("cluster", "127.0.0.1", 6222)
node.start(1)
assert (node.links is not None) is {clustered}
if {settled}:
    from jsctl.broker import lazy
    known = len(sys.modules)
    while lazy.ahead():
        assert len(sys.modules) - known <= 12, [*sys.modules][known:]
        known = len(sys.modules)
    assert "jsctl.broker.system.service" in sys.modules
print(*sys.modules)
"""
"""`settled` has it load what it loads between turns, in pieces for which nobody waits long."""
WITH_JETSTREAM = tuple(
    f"jsctl.broker.{part}" for part in ("store.", "raft.", "replication.", "jetstream.", "assets.")
)
WITH_OPERATORS = ("jsctl.auth", "jsctl.broker.claims", "jsctl.broker.accounts.claimed")

FIRST_REQUESTS = """
import json, sys
from jsctl.broker import lazy
from jsctl.broker.turn import Query
from tests.fuzz import requests
from tests.fuzz.nodes import Pages
from tests.support.node_play import NodePlay

play = NodePlay()
before = sum(name.startswith("jsctl.") for name in sys.modules)
pieces = []
while lazy.ahead():
    pieces.append(sum(name.startswith("jsctl.") for name in sys.modules) - sum(pieces, before))
assert len(pieces) > 20 and max(pieces) <= 12, pieces
clients = [play.connect("a"), play.connect("sys")]
known = set(sys.modules)
for subject, body in [*requests.FIRST, *requests.KNOWN, *requests.KNOWN]:
    data = body if isinstance(body, bytes) else json.dumps(body or {}).encode()
    for client in clients:
        client.request(subject, data)
play.turn(queries=[Query(number, f"/{path}", {}) for number, path in enumerate(Pages.paths)])
assert all(answer.status < 500 for answer in play.answers) and play.answers
print(*[name for name in sys.modules if name not in known])
assert not [name for name in sys.modules if name.startswith({operators})]
""".replace("{operators}", repr(WITH_OPERATORS))


@pytest.mark.processes
def test_no_first_request_loads_anything_once_the_rest_is_there() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FIRST_REQUESTS], capture_output=True, text=True, check=True
    )
    assert not done.stdout.split()


@pytest.mark.processes
@pytest.mark.parametrize("settled", [False, True])
@pytest.mark.parametrize("clustered", [False, True])
def test_a_server_without_jetstream_loads_none_of_it(clustered: bool, settled: bool) -> None:
    done = subprocess.run(
        [sys.executable, "-c", START.format(clustered=clustered, settled=settled)],
        capture_output=True,
        text=True,
        check=True,
    )
    names = done.stdout.split()
    assert not [name for name in names if name.startswith((*WITH_JETSTREAM, *WITH_OPERATORS))]


@pytest.mark.processes
def test_a_module_takes_its_place_when_it_is_used() -> None:
    script = """
from jsctl.broker import lazy
import sys
one = other = lazy.module("jsctl.broker.conf.units")
assert "jsctl.broker.conf.units" not in sys.modules
held = [one]
assert one.host_text and one is other is sys.modules["jsctl.broker.conf.units"]
assert held[0].host_text is one.host_text
"""
    subprocess.run([sys.executable, "-c", script], check=True)
