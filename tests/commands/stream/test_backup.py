"""`jsctl stream backup`: what it writes can be restored, and what goes wrong is said."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import nats
import pytest

from jsctl.cli import main
from jsctl.testing import Broker, RealServer

pytestmark = pytest.mark.processes

MESSAGES = 300


@pytest.fixture(scope="module")
def real() -> Iterator[Broker]:
    with RealServer("-js", name="one") as running:
        asyncio.run(fill(running.url))
        yield running


async def fill(url: str) -> None:
    """ORDERS, with messages that take more than one chunk, and a consumer."""
    client = await nats.connect(url)
    js = client.jetstream()
    await js.add_stream(name="ORDERS", subjects=["orders.>"])
    await js.subscribe("orders.>", durable="billing")
    for number in range(MESSAGES):
        body = b"%d " % number + number.to_bytes(4, "big") * 250
        await js.publish(f"orders.{number % 7}", body, headers={"N": str(number)})
    await client.close()


def backup(broker: Broker, *words: str) -> int:
    return main(["-s", broker.url, "stream", "backup", *words])


async def restore(url: str, directory: Path) -> None:
    """The stream in place of what is there, chunk by chunk, as the protocol has it."""
    client = await nats.connect(url)
    await client.jetstream().delete_stream("ORDERS")
    description = (directory / "backup.json").read_bytes()
    answer = await client.request("$JS.API.STREAM.RESTORE.ORDERS", description, timeout=30)
    told = json.loads(answer.data)
    assert "error" not in told, told
    data = (directory / "stream.arc.s2").read_bytes()
    for at in range(0, len(data), 4096):
        part = data[at : at + 4096]
        ack = await client.request(told["deliver_subject"], part, timeout=30)
        assert not ack.data, ack.data
    done = await client.request(told["deliver_subject"], b"", timeout=30)
    assert "error" not in json.loads(done.data), done.data
    await client.close()


async def content(url: str) -> tuple[list[tuple[str, bytes, str]], list[str]]:
    """All messages, and the names of the consumers."""
    client = await nats.connect(url)
    js = client.jetstream()
    found = []
    for seq in range(1, MESSAGES + 1):
        one = await js.get_msg("ORDERS", seq)
        found.append((str(one.subject), one.data or b"", (one.headers or {}).get("N", "")))
    names = [one.name for one in await js.consumers_info("ORDERS")]
    await client.close()
    return found, names


def test_what_was_backed_up_can_be_restored(
    real: Broker, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    before = asyncio.run(content(real.url))
    target = tmp_path / "new" / "orders"
    assert backup(real, "ORDERS", str(target), "--chunk-size", "4096") == 0
    said = capfd.readouterr().out
    assert 'Starting backup of Stream "ORDERS" with 3' in said
    size = (target / "stream.arc.s2").stat().st_size
    assert size > 3 * 4096, "more than a few chunks"
    assert f"in {-(-size // 4096)} chunks" in said
    asyncio.run(restore(real.url, target))
    assert asyncio.run(content(real.url)) == before


def test_a_directory_that_is_used_is_left_alone(
    real: Broker, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine").write_text("x")
    assert backup(real, "ORDERS", str(tmp_path)) == 1
    assert f"{tmp_path} is not empty" in capfd.readouterr().err
    assert [one.name for one in tmp_path.iterdir()] == ["mine"]
    assert backup(real, "ORDERS", str(tmp_path / "mine")) == 1
    assert "is a file" in capfd.readouterr().err
