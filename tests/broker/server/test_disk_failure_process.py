"""A broker whose disk fails ends, and its exit status says that this was not wanted. A disk that
has no room for it does not end it."""

import json
import resource
from contextlib import suppress
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
        # The log's next file cannot be made, as on a broken disk.
        (log,) = tmp_path.rglob("jetstream/log")
        away = log.rename(log.with_name("log.away"))
        with suppress(ConnectionError):  # It ends somewhere in the middle of it.
            for _ in range(40):
                client.publish(b"s", bytes(500_000))
        wait_for(lambda: not broker.running, "it ends")
        assert broker.stop() == 1
        assert "The store cannot be written" in broker.logs
        assert "Server Exiting.. (disk failure)" in broker.logs
        client.close()
        away.rename(log)
        broker.start()
        again = WireClient(broker.url)
        info = json.loads(again.request(b"$JS.API.STREAM.INFO.S", b""))
        assert info["state"]["messages"] >= 1
        again.close()
        assert broker.stop() == 0


def test_a_limit_of_the_size_of_files_is_a_full_disk(tmp_path: Path) -> None:
    with Broker("-js", directory=tmp_path) as broker:
        client = WireClient(broker.url)
        config = {"name": "S", "subjects": ["s"], "storage": "file", "num_replicas": 1}
        client.request(b"$JS.API.STREAM.CREATE.S", json.dumps(config).encode())
        assert json.loads(client.request(b"s", bytes(1000)))["seq"] == 1
        resource.prlimit(broker.pid, resource.RLIMIT_FSIZE, (LIMIT, LIMIT))
        for _ in range(4):
            client.publish(b"s", bytes(100_000))
        wait_for(lambda: "Disk is full" in broker.logs, "it says so")
        assert "File too large; let the server write larger files (ulimit -f)" in broker.logs
        answer = json.loads(client.request(b"s", b"x"))
        assert answer["error"]["err_code"] == 10023
        assert client.request(b"$JS.API.INFO", b""), "it goes on"
        client.close()
        assert broker.stop() == 0
        broker.start()
        again = WireClient(broker.url)
        assert json.loads(again.request(b"s", b"x"))["seq"] >= 2
        again.close()
