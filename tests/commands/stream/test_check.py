"""`jsctl stream check` against brokers: damage is found, told, repaired; scripts hear of it."""

import asyncio
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import nats
import pytest
from nats.aio.msg import Msg

from jsctl.testing import BrokerFactory, Cluster
from tests.commands.conftest import Result

Run = Callable[..., Result]
pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def brokers() -> Iterator[Cluster]:
    with Cluster(3) as running:
        yield running


@pytest.fixture
def ask(brokers: Cluster, cli: Run) -> Run:
    return lambda *words: cli("--server", ",".join(brokers.urls), "--timeout", "30s", *words)


def segments(brokers: Cluster, name: str) -> list[Path]:
    return sorted(brokers[name].store_dir.rglob("*.seg"))


def test_without_streams_there_is_nothing_to_check(ask: Run) -> None:
    result = ask("stream", "check")
    assert (result.code, result.out) == (0, "No Streams defined\n")


def test_a_stream_that_is_not_there_is_named(ask: Run) -> None:
    result = ask("stream", "check", "NONE")
    assert result.code == 1
    assert "stream not found" in result.err


def test_sound_replicas_are_whole(ask: Run, brokers: Cluster) -> None:
    ask("stream", "add", "ORDERS", "--subjects", "orders.>", "--replicas", "3", "--defaults")
    ask("stream", "add", "M", "--subjects", "m", "--storage", "memory", "--defaults")
    ask("pub", "orders.1", "x" * 2000, "--count", "50", "-J")
    result = ask("stream", "check")
    assert result.code == 0, result
    assert "2 of 2 streams are whole on all replicas" in result.out
    assert result.out.count("whole ") >= 4
    result = ask("stream", "check", "ORDERS", "-j")
    document = json.loads(result.out)
    assert document["whole"]
    (check,) = document["streams"].values()
    assert [one["name"] for one in check["replicas"]] == sorted(brokers.names)
    assert all(one["bytes"] > 100_000 for one in check["replicas"])


def test_damage_under_a_running_server_is_found_and_repaired(ask: Run, brokers: Cluster) -> None:
    victim = brokers.names[1]
    (path,) = [one for one in segments(brokers, victim) if one.stat().st_size > 100_000]
    with path.open("r+b") as file:
        file.seek(50_000)
        file.write(bytes(9000))
    result = ask("stream", "check", "ORDERS", "-j")
    assert result.code == 0, result
    (check,) = json.loads(result.out)["streams"].values()
    (found,) = [one for one in check["replicas"] if one["name"] == victim]
    assert found["findings"] == 1
    assert 4 <= found["repaired"] <= 7
    assert not any(one["findings"] for one in check["replicas"] if one["name"] != victim)
    text = ask("stream", "check", "ORDERS").out
    assert "1 of 1 stream is whole on all replicas" in text
    assert "repaired" not in text.split("Verdict")[1]


def test_what_is_lost_on_all_is_told_and_ends_with_status_1(ask: Run, brokers: Cluster) -> None:
    ask("stream", "add", "ALONE", "--subjects", "alone", "--replicas", "1", "--defaults")
    ask("pub", "alone", "y" * 300_000, "--count", "60", "-J")
    paths = [one for name in brokers.names for one in segments(brokers, name)]
    sizes = {one: one.stat().st_size for one in paths}
    first = max(sizes, key=lambda one: (sizes[one] > 7_000_000, -int(one.stem)))
    with first.open("r+b") as file:
        file.seek(4_000_000)
        file.write(bytes(10))
    result = ask("stream", "check", "ALONE")
    lost = "lost messages" in result.out
    assert result.code == int(lost), result
    if not lost:
        assert "repaired" in result.out, "the log still had it"


async def test_a_leader_that_is_busy_is_asked_again(jsctl_broker: BrokerFactory) -> None:
    """Who answers stands in for a stream's leader that changes, or has no time."""
    broker = jsctl_broker()
    asked: list[bool] = []

    async def answer(message: Msg) -> None:
        if "CHECK" not in message.subject:
            return
        asked.append(b'"start":true' in message.data)
        number = len(asked)
        if number in (2, 5):
            text = b'{"error":{"code":503,"err_code":10008,"description":"unavailable"}}'
        else:
            replica = {"name": "n1", "done": number > 6}
            check = {"id": 7, "done": number > 6, "replicas": [replica]}
            text = json.dumps({"type": "", "check": check}).encode()
        if number not in (1, 4):
            await message.respond(text)

    client = await nats.connect(broker.url)
    await client.subscribe("$JS.API.STREAM.>", cb=answer)
    await client.flush()
    words = ("-s", broker.url, "--timeout", "1s", "stream", "check", "S", "-j")
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "jsctl", *words, stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    await client.close()
    assert process.returncode == 0
    assert json.loads(out)["whole"]
    assert asked == [True, True, True, False, False, False, False]
