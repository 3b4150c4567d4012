"""What a server without JetStream does not load: most of a start is reading modules."""

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
print(*sys.modules)
"""


@pytest.mark.processes
@pytest.mark.parametrize("clustered", [False, True])
def test_a_server_without_jetstream_loads_none_of_it(clustered: bool) -> None:
    done = subprocess.run(
        [sys.executable, "-c", START.format(clustered=clustered)],
        capture_output=True,
        text=True,
        check=True,
    )
    parts = ("jsctl.broker.store.", "jsctl.broker.raft.", "jsctl.broker.assets.engine")
    assert not [name for name in done.stdout.split() if name.startswith(parts)]
