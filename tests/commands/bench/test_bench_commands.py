"""`jsctl bench` against both kinds of server."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from pathlib import Path

import pytest

from jsctl.client.connection import connect
from jsctl.client.raw import RawConnection
from jsctl.commands.bench.job import Job
from jsctl.commands.bench.publishers import (
    core_publisher,
    requester,
    stream_async_publisher,
    stream_sync_publisher,
)
from jsctl.commands.bench.receivers import core_subscriber
from jsctl.commands.bench.receivers import server as serve
from jsctl.errors import Unreachable
from jsctl.render.reports.bench import Sample
from jsctl.settings import Context, Settings
from tests.commands.conftest import Result, Server
from tests.support.waiting import eventually

Run = Callable[..., Result]
Publisher = Callable[[RawConnection, Job], Coroutine[None, None, Sample]]
ENABLED = ["nats-server", "jsctl"]
pytestmark = pytest.mark.parametrize("server", ENABLED, indirect=True, scope="package")


def test_core_publisher(run: Run, tmp_path: Path) -> None:
    one = run("bench", "pub", "b", "--msgs", "100")
    assert one.code == 0, one.err
    assert one.out.startswith("\nNATS Core NATS publisher stats: ")
    assert (
        "Starting Core NATS publisher benchmark [clients=1, msg-size=128 B, msgs=100, " in one.err
    )
    assert "[1] Starting Core NATS publisher, publishing 100 messages" in one.err
    csv = tmp_path / "b.csv"
    more = run("bench", "pub", "b", "--msgs", "100", "--clients", "3", "--csv", str(csv))
    assert "  [1] " in more.out
    assert "(34 msgs)" in more.out
    assert "NATS Core NATS publisher aggregated stats: " in more.out
    lines = csv.read_text().splitlines()
    assert [line.split(",")[1:4] for line in lines[1:]] == [
        ["P0", "34", "4352"],
        ["P1", "33", "4224"],
        ["P2", "33", "4224"],
    ]


def test_stream_publishers(run: Run) -> None:
    words = ("--stream", "BENCH", "--msgs", "50")
    missing = run("bench", "js", "pub", "sync", "b.1", *words)
    assert missing.code == 1
    assert missing.err.endswith(
        "could not access stream BENCH: "
        "nats: API error: code=404 err_code=10059 description=stream not found\n"
    )
    made = run(
        "bench", "js", "pub", "async", "b", *words, "--create", "--multisubject", "-o", "json"
    )
    assert made.code == 0, made.err
    assert json.loads(made.out)["total"]["messages"] == 50
    assert "Using stream: BENCH" in made.err
    assert len(json.loads(run("stream", "subjects", "BENCH", "-j").out)) == 50
    one = run("bench", "js", "pub", "sync", "b.1", *words, "--purge", "--dedup")
    assert "NATS JetStream synchronous publisher stats: " in one.out
    state = json.loads(run("stream", "info", "BENCH", "-j").out)["state"]
    assert state["messages"] == 50
    refused = run("bench", "js", "pub", "async", "nobody", *words, "--timeout", "1s")
    assert refused.code == 1
    assert "Fatal error from client 0: " in refused.err


@pytest.mark.parametrize("publisher", [stream_sync_publisher, stream_async_publisher])
async def test_a_stream_that_comes_late(server: Server, run: Run, publisher: Publisher) -> None:
    job = Job(number=0, messages=5, subject="late", payload=b"x", subjects=5, batch=2, tries_max=80)
    settings = Settings(connection=Context(url=server.url))
    async with connect(settings) as client, connect(settings) as other:
        js = other.jetstream()
        connection = await RawConnection.take_over(client)
        heard: list[object] = []
        parse = connection.parse
        connection.parse = lambda data: heard.extend(found := parse(data)) or found  # type: ignore

        async def refused() -> bool:
            return bool(heard)

        async with asyncio.TaskGroup() as tasks:
            publishing = tasks.create_task(publisher(connection, job))
            await eventually(refused, "a message was refused")
            await js.add_stream(name="LATE", subjects=["late.*"])
        assert publishing.result().messages == 5
        state = (await js.stream_info("LATE", subjects_filter=">")).state
        assert state.messages == 5
        assert state.subjects == {f"late.{at}": 1 for at in range(5)}


def test_pace_and_mistakes(run: Run) -> None:
    paced = run("bench", "pub", "b", "--throughput", "200", "--duration", "100ms", "-o", "json")
    total = json.loads(paced.out)["total"]
    assert total["messages"] == 20
    assert 0.08 < total["seconds"] < 20
    assert run("bench", "pub", "b", "--duration", "1s").err.endswith(
        "requires --throughput to be set\n"
    )
    assert run("bench", "pub", "b", "--msgs", "0").code == 1


@pytest.mark.processes
def test_everything_that_reads(run: Run) -> None:
    """Two clients are two processes; what they share adds up, what they do not each has whole."""
    stream = ("--stream", "READ", "--no-progress")
    made = run("bench", "js", "pub", "async", "read.a", *stream, "--msgs", "60", "--create")
    assert made.code == 0, made.err
    for words, shared in (
        (("ordered",), False),
        (("consume",), True),
        (("fetch", "--batch", "7", "--doubleack"), True),
        (("get", "sync"), False),
        (("get", "batch", "--batch", "7"), False),
    ):
        if words[0] == "fetch":
            run("consumer", "rm", "READ", "nats-bench", "-f")
        done = run("bench", "js", *words, *stream, "--msgs", "60", "--clients", "2", "-o", "json")
        assert done.code == 0, done.err
        found = json.loads(done.out)
        assert found["total"]["messages"] == (60 if shared else 120)
        assert found["total"]["bytes"] == found["total"]["messages"] * 128
        assert len(found["clients"]) == 2
    short = run("bench", "js", "get", "sync", *stream, "--msgs", "61")
    assert short.code == 1
    assert "Error from client 0: getting message sequence number 61 from the stream" in short.err


@pytest.mark.processes
def test_keys(run: Run) -> None:
    bucket = ("--bucket", "BENCHKEYS", "--no-progress", "--msgs", "20")
    none = run("bench", "kv", "get", *bucket)
    assert "finding kv bucket 'BENCHKEYS': nats: bucket not found" in none.err
    assert run("kv", "add", "BENCHKEYS").code == 0
    put = run("bench", "kv", "put", *bucket, "--clients", "2", "-o", "json")
    assert json.loads(put.out)["total"]["messages"] == 20
    assert sorted(run("kv", "ls", "BENCHKEYS").out.split(), key=int) == [str(n) for n in range(20)]
    got = json.loads(run("bench", "kv", "get", *bucket, "-o", "json").out)
    assert got["total"]["bytes"] == 20 * 128
    beyond = run("bench", "kv", "get", "--bucket", "BENCHKEYS", "--msgs", "21")
    assert beyond.code == 1
    assert "getting key '20': nats: key not found" in beyond.err


async def test_a_subscriber_counts_what_a_publisher_sends(server: Server) -> None:
    """Payloads may look like protocol."""
    settings = Settings(connection=Context(url=server.url.split(",")[0]))
    job = Job(number=0, messages=5000, subject="count.it", payload=b"MSG a 1 2\r\nxx")
    async with connect(settings) as one, connect(settings) as other:
        reader, writer = await RawConnection.take_over(one), await RawConnection.take_over(other)
        reader.subscribe("count.ready")
        async with asyncio.TaskGroup() as tasks:
            counting = tasks.create_task(core_subscriber(reader, job))
            varz = f"subscribed to {job.subject}"
            probe = Job(number=0, messages=1, subject="count.it", payload=b"")

            async def heard() -> bool:
                await core_publisher(writer, probe)
                return reader._pongs > 0

            await eventually(heard, varz)
            await core_publisher(writer, job)
        sample = counting.result()
    assert sample.messages >= 5000
    assert sample.bytes <= sample.messages * len(job.payload)


async def test_requests_are_served(server: Server) -> None:
    settings = Settings(connection=Context(url=server.url.split(",")[0]))
    async with connect(settings) as one, connect(settings) as other:
        serving, asking = await RawConnection.take_over(one), await RawConnection.take_over(other)
        async with asyncio.TaskGroup() as tasks:
            service = tasks.create_task(serve(serving, Job(number=0, messages=1, subject="served")))
            job = Job(number=0, messages=50, subject="served", payload=b"x")

            async def answered() -> bool:
                try:
                    await requester(asking, Job(number=0, messages=1, subject="served"))
                except Unreachable:
                    return False
                return True

            await eventually(answered, "the service listens")
            sample = await requester(asking, job)
            service.cancel()
    assert sample.messages == len(sample.latencies_ns) == 50
