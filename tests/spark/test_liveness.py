"""Connections that mostly send still answer the server's pings: a slow task is no dead one."""

import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from jsctl.spark.options import source_options
from jsctl.spark.pipeline.archives.restore import RestorePlan, restore
from jsctl.spark.pipeline.layout import BatchDirectory
from jsctl.spark.reading.telling import Teller
from jsctl.spark.scan.range import Chunk, Range
from jsctl.testing import HOST, BrokerFactory
from tests.spark.conftest import KINDS
from tests.support.filling import Filler
from tests.support.waiting import wait_for

TOLD = Chunk([b"s.x"], [1], [b"1"], [b""], [b"x"])


def test_progress_goes_on_when_the_server_pings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jsctl.spark.reading.telling.TELL_S", 0.0)
    with socket.create_server((HOST, 0)) as server, ThreadPoolExecutor(1) as threads:

        def ping() -> bool:
            with server.accept()[0] as peer:
                peer.sendall(b"INFO {}\r\n")
                lines = peer.makefile("rb")
                assert lines.readline().startswith(b"CONNECT ")
                assert lines.readline() == b"PING\r\n"
                peer.sendall(b"PONG\r\nPING\r\n")
                return any(line == b"PONG\r\n" for line in iter(lines.readline, b""))

        answered = threads.submit(ping)
        given = source_options({"servers": f"{HOST}:{server.getsockname()[1]}", "stream": "S"})
        teller = Teller(given.connection.settings, "progress", Range("S", "", 1, 10))

        def tell() -> bool:
            teller.heard(TOLD)
            return answered.done()

        try:
            wait_for(tell, "an answer to the ping", 10.0)
        finally:
            teller.finished()
        assert answered.result()


def archived(path: Path, rows: int) -> RestorePlan:
    """An archive of one file, and how it gets into stream R."""
    directory = BatchDirectory(path)
    directory.open("tests", "export")
    staged = directory.staging(0)
    staged.mkdir(parents=True)
    columns = {
        "subject": [f"r.{seq}" for seq in range(1, rows + 1)],
        "data": [b"x"] * rows,
        "headers": [None] * rows,
        "stream": ["S"] * rows,
        "seq": list(range(1, rows + 1)),
        "ts_ns": list(range(1, rows + 1)),
    }
    texts = pa.map_(pa.string(), pa.list_(pa.string()))
    table = pa.table({**columns, "headers": pa.array(columns["headers"], texts)})
    parquet.write_table(table, staged / "part-0.parquet")
    directory.publish(0)
    return RestorePlan(str(path), "R", True, True, rows, 1, rows, 0, 0, {})


def test_a_slow_rate_keeps_its_connection(
    jsctl_broker: BrokerFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Acknowledgements are taken while it waits; without any it would be an outage at once."""
    monkeypatch.setattr("jsctl.spark.pipeline.archives.restore.OUTAGE_S", 0.0)
    config = 'ping_interval: "100ms"\nping_max: 1'
    broker = jsctl_broker("-js", server=KINDS["nats-server"], config=config)
    with Filler(broker) as filler:
        filler.stream("R")
    settings = source_options({"servers": broker.url, "stream": "R"}).connection.settings
    told: list[int] = []
    plan = archived(tmp_path / "archive", 16)
    done = restore(settings, plan, (), rate=10, told=lambda rows, _: told.append(rows))
    assert done.rows == 16
    assert told[0] < 16, "it is told while it goes on"
