"""A broker whose disk refuses a write ends, and its exit status says that this was not wanted."""

import json
import resource
from pathlib import Path

import pytest

from jsctl.testing import Broker
from tests.support.waiting import wait_for
from tests.support.wire_client import WireClient

pytestmark = pytest.mark.processes
LIMIT = 256 * 1024


def test_a_failing_disk_is_an_unwanted_end(tmp_path: Path) -> None:
    with Broker("-js", directory=tmp_path) as broker:
        client = WireClient(broker.url)
        config = {"name": "S", "subjects": ["s"], "storage": "file", "num_replicas": 1}
        assert b"error" not in client.request(
            b"$JS.API.STREAM.CREATE.S", json.dumps(config).encode()
        )
        answer = client.request(b"s", bytes(1000))
        assert json.loads(answer)["seq"] == 1
        # No file of the process may grow beyond that: a write fails, as on a broken disk.
        resource.prlimit(broker.pid, resource.RLIMIT_FSIZE, (LIMIT, LIMIT))
        for _ in range(4):
            client.publish(b"s", bytes(100_000))
        wait_for(lambda: not broker.running, "it ends")
        assert broker.stop() == 1
        assert "The store cannot be written" in broker.logs
        assert "Server Exiting.. (disk failure)" in broker.logs
        client.close()
        broker.start()
        again = WireClient(broker.url)
        info = json.loads(again.request(b"$JS.API.STREAM.INFO.S", b""))
        assert info["state"]["messages"] >= 1
        again.close()
        assert broker.stop() == 0
