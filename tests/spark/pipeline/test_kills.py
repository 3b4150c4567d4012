"""Pipelines are killed while a batch is in flight, started again, and nothing is lost or twice.

Every kill waits for an event: a file of a batch that is being written, or a message of a batch in
the target stream. The short tests fire one kill each, the long ones twenty
and four, spread over the batches.
"""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jsctl.client.manager import Manager
from jsctl.testing import Broker
from tests.spark.pipeline.conftest import (
    KINDS,
    make_stream,
    on,
    orders,
    publish,
    quick_java,
    stored,
    write_spec,
)
from tests.support.moving_files import files, size
from tests.support.waiting import wait_for

BATCH = 3_000
SHORT, LONG = 2, 10
"""Batches of the short and of the long tests."""
START_S = 240.0
SECOND_NS = 1_000_000_000
PARQUET = """\
name: NAME
source: {stream: NAME}
decode: {format: json, schema: "id BIGINT"}
transform: SELECT /*+ REPARTITION(2) */ id FROM input
sink: {type: parquet, path: out}
trigger: once
limits: {max_offsets: BATCH}
checkpoint: ckpt
"""
STREAM = """\
name: NAME
source: {stream: NAME}
decode: {format: json, schema: "id BIGINT"}
transform: |
  SELECT /*+ REPARTITION(2) */ 'to.NAME' AS subject,
         to_json(struct(floor(id / 2) AS pair, count(*) AS n)) AS data
  FROM input GROUP BY floor(id / 2)
sink: {type: jetstream}
trigger: once
limits: {max_offsets: BATCH}
checkpoint: ckpt
"""


class Process:
    """The real program in a process group of its own: a kill takes its Java, too."""

    def __init__(self, spec: Path, url: str) -> None:
        words = ["pipeline", "run", str(spec), "--server", url, "--master", "local[2]"]
        self.log = spec.with_suffix(".log").open("ab")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "jsctl", *words],
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=self.log,
            start_new_session=True,
            env=quick_java(),
        )

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def kill(self) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self.log.close()

    def wait(self) -> int:
        try:
            return self._process.wait(START_S)
        finally:
            self.log.close()


@pytest.fixture(params=list(KINDS))
def source(request: pytest.FixtureRequest, fresh: str) -> Iterator[Broker]:
    """A server with two streams; the target's window for duplicates is a second."""
    with KINDS[str(request.param)]("-js", name="one") as server:
        make_stream(server, fresh)
        make_stream(server, f"{fresh}T", subjects=(f"to.{fresh}",), duplicate_window=SECOND_NS)
        yield server


def kill_when(process: Process, happened: Callable[[], bool], what: str) -> bool:
    """Kill on an event; False when the run ended before it came."""
    try:
        wait_for(lambda: happened() or not process.running, what, START_S)
    except BaseException:
        process.kill()
        raise
    if not process.running:
        process.wait()
        return False
    process.kill()
    return True


def staged(out: Path) -> list[Path]:
    """Files of batches that are being written, or were when a run ended."""
    return files(out / "_staging", "batch=*/**/*.parquet")


def staged_after(out: Path, before: set[str]) -> Callable[[], bool]:
    """Whether rows of a batch are on disk that is neither committed nor was seen before."""

    def look() -> bool:
        return any(str(path) not in before and size(path) for path in staged(out))

    return look


def run_with_kills(
    spec: Path, url: str, kills: int, batches: int, event: Callable[[int], Callable[[], bool]]
) -> int:
    """Start again and again; how many kills hit a batch in flight.

    `event` gives what to wait for, when so many batches must be done before it.
    """
    fired = 0
    while fired < kills:
        done = (fired + 1) * batches // (kills + 1)
        if not kill_when(Process(spec, url), event(done), "a batch is in flight"):
            return fired
        fired += 1
    process = Process(spec, url)
    assert process.wait() == 0, spec.with_suffix(".log").read_text()
    return fired


def parquet_survives(server: Broker, name: str, path: Path, kills: int, batches: int) -> int:
    import duckdb
    import pyarrow.dataset as dataset

    rows = batches * BATCH
    publish(server, orders(name, rows))
    spec = write_spec(path, PARQUET.replace("NAME", name).replace("BATCH", str(BATCH)))
    out = path / "out"

    def event(done: int) -> Callable[[], bool]:
        began = staged_after(out, {str(one) for one in staged(out)})
        return lambda: len(files(out, "batch=*")) >= done and began()

    fired = run_with_kills(spec, server.url, kills, batches, event)
    expected = list(range(rows))
    found = dataset.dataset(out, partitioning="hive").to_table(columns=["id"])["id"].to_pylist()
    assert sorted(found) == expected
    query = f"SELECT id FROM read_parquet('{out}/batch=*/*.parquet') ORDER BY id"
    assert [row[0] for row in duckdb.connect().execute(query).fetchall()] == expected
    manifest = json.loads((out / "_manifest.json").read_text())
    assert manifest["rows"] == rows
    assert sorted(manifest["files"]) == sorted(
        str(one.relative_to(out)) for one in out.glob("batch=*/*.parquet")
    )
    return fired


def stream_survives(server: Broker, name: str, path: Path, kills: int, batches: int) -> int:
    publish(server, orders(name, batches * BATCH))
    spec = write_spec(path, STREAM.replace("NAME", name).replace("BATCH", str(BATCH)))

    def event(done: int) -> Callable[[], bool]:
        before = max(stored(server, f"{name}T"), done * BATCH // 2)
        return lambda: stored(server, f"{name}T") > before

    fired = run_with_kills(spec, server.url, kills, batches, event)

    async def read(manager: Manager) -> Counter[str]:
        js = manager.client.jetstream()
        subscription = await js.subscribe(f"to.{name}", ordered_consumer=True)
        info = await manager.stream_info(f"{name}T")
        found: Counter[str] = Counter()
        for _ in range(info.state.messages):
            message = await subscription.next_msg(10)
            found[message.data.decode()] += 1
        return found

    expected = Counter(f'{{"pair":{n},"n":2}}' for n in range(batches * BATCH // 2))
    assert on(server, read) == expected
    return fired


@pytest.mark.one_server
@pytest.mark.timeout(240)
@pytest.mark.processes
def test_parquet_after_a_kill(source: Broker, fresh: str, tmp_path: Path) -> None:
    assert parquet_survives(source, fresh, tmp_path, 1, SHORT) == 1


@pytest.mark.spark_long
@pytest.mark.timeout(240)
def test_a_stream_with_a_shuffle_after_a_kill(source: Broker, fresh: str, tmp_path: Path) -> None:
    assert stream_survives(source, fresh, tmp_path, 1, SHORT) == 1


@pytest.mark.spark_long
@pytest.mark.timeout(3600)
def test_parquet_after_many_kills(source: Broker, fresh: str, tmp_path: Path) -> None:
    assert parquet_survives(source, fresh, tmp_path, 20, LONG) == 20


@pytest.mark.spark_long
@pytest.mark.timeout(3600)
def test_a_stream_with_a_shuffle_after_many_kills(
    source: Broker, fresh: str, tmp_path: Path
) -> None:
    assert stream_survives(source, fresh, tmp_path, 4, LONG) == 4
