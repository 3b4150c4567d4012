"""`jsctl bench` against both kinds of server."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from pathlib import Path

import pytest
from nats.aio.client import Client

from jsctl.client.connection import connect
from jsctl.commands.bench.clients import (
    Job,
    Pace,
    stream_async_publisher,
    stream_sync_publisher,
)
from jsctl.render.reports.bench import Sample
from jsctl.settings import Context, Settings
from tests.commands.conftest import Result, Server
from tests.support.waiting import eventually

Run = Callable[..., Result]
Publisher = Callable[[Client, Job], Coroutine[None, None, Sample]]
ENABLED = ["nats-server", "jsctl"]
pytestmark = pytest.mark.parametrize("server", ENABLED, indirect=True, scope="session")


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
        "jsctl: error: could not access stream BENCH: stream not found (10059)\n"
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
    assert "Error from client 0: " in refused.err


@pytest.mark.parametrize("publisher", [stream_sync_publisher, stream_async_publisher])
async def test_a_stream_that_comes_late(server: Server, run: Run, publisher: Publisher) -> None:
    job = Job(
        number=0,
        messages=5,
        subject="late",
        payload=b"x",
        headers=None,
        subjects=5,
        random_subjects=False,
        batch=2,
        pace=Pace(),
        timeout=5.0,
        run_id="",
        progress=False,
        tries_max=80,
    )
    settings = Settings(connection=Context(url=server.url))
    async with connect(settings) as client, connect(settings) as other:
        js = other.jetstream()

        async def refused() -> bool:
            return client.stats["in_msgs"] > 0

        async with asyncio.TaskGroup() as tasks:
            publishing = tasks.create_task(publisher(client, job))
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
    assert run("bench", "pub", "b", "--duration", "1s").err.endswith("needs --throughput\n")
    assert run("bench", "pub", "b", "--msgs", "1", "--clients", "2").code == 1
