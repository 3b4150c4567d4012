"""Answers that are none of a JetStream server: an error in one line, whatever they are."""

import asyncio
import json
import sys

import nats
import pytest
from nats.aio.msg import Msg

from jsctl.testing import BrokerFactory

pytestmark = pytest.mark.processes
PREFIX = ("--js-api-prefix", "FAKE")
STREAM = {"config": {"name": "S"}, "state": {}, "created": "2026-01-02T03:04:05Z"}
UNREADABLE = "the server's answer cannot be read: json: cannot unmarshal "


@pytest.mark.parametrize(
    ("reply", "words", "told"),
    [
        ({**STREAM, "state": {"messages": "x"}}, ("stream", "info", "S"), f"{UNREADABLE}string"),
        ({**STREAM, "state": {"bytes": [1]}}, ("stream", "state", "S"), f"{UNREADABLE}array"),
        ({"error": {"code": ["x"]}}, ("stream", "info", "S"), f"{UNREADABLE}array"),
        ({"error": {"code": "x"}}, ("pub", "-J", "-q", "FAKE.A", "x"), "the answer is not one of"),
        ([1], ("pub", "-J", "-q", "FAKE.A", "x"), "the answer is not one of JetStream"),
        ({"streams": ["x"]}, ("account", "info"), f"{UNREADABLE}array"),
        (
            {"error": "no"},
            ("bench", "js", "pub", "sync", "FAKE.B", "--msgs", "1", "--stream", "S"),
            "publishing: the answer is not one of JetStream (0)",
        ),
    ],
)
async def test_an_answer_of_another_shape_is_an_error(
    jsctl_broker: BrokerFactory, reply: object, words: tuple[str, ...], told: str
) -> None:
    broker = jsctl_broker()

    async def answer(message: Msg) -> None:
        wrong = "STREAM" not in message.subject or "bench" not in words
        await message.respond(json.dumps(reply if wrong else STREAM).encode())

    client = await nats.connect(broker.url)
    await client.subscribe("FAKE.>", cb=answer)
    await client.flush()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "jsctl", "-s", broker.url, *PREFIX, *words),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    _, err = await process.communicate()
    await client.close()
    last = err.decode().splitlines()[-1]
    assert (process.returncode, last.startswith(f"jsctl: error: {told}")) == (1, True), err.decode()


async def test_a_check_of_an_answer_of_another_shape_is_critical(
    jsctl_broker: BrokerFactory,
) -> None:
    """1 would be a warning for Nagios; an exporter has more checks to tell of."""
    broker = jsctl_broker()

    async def answer(message: Msg) -> None:
        await message.respond(json.dumps({**STREAM, "state": {"messages": "x"}}).encode())

    client = await nats.connect(broker.url)
    await client.subscribe("FAKE.>", cb=answer)
    await client.flush()
    words = ("server", "check", "stream", "--stream", "S")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "jsctl", "-s", broker.url, *PREFIX, *words),
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await process.communicate()
    await client.close()
    told = f"CRITICAL S Crit:Check failed: {UNREADABLE}string"
    assert (process.returncode, out.decode()[: len(told)]) == (2, told)
