"""Answers that are none of a JetStream server: an error in one line, whatever they are."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import nats
import pytest
from nats.aio.msg import Msg

from jsctl.commands.toolkit.archives.files import Reader
from jsctl.testing import BrokerFactory
from tests.support.forked import jsctl

pytestmark = pytest.mark.processes
PREFIX = ("--js-api-prefix", "FAKE")
SYSTEM = "accounts { $SYS { users: [ { user: s, password: s } ] } }"
STREAM = {"config": {"name": "S"}, "state": {}, "created": "2026-01-02T03:04:05Z"}
UNREADABLE = "the server's answer cannot be read: json: cannot unmarshal "


@pytest.mark.parametrize(
    ("reply", "words", "told"),
    [
        ({**STREAM, "state": {"messages": "x"}}, ("stream", "info", "S"), f"{UNREADABLE}string"),
        ({**STREAM, "state": {"bytes": [1]}}, ("stream", "state", "S"), f"{UNREADABLE}array"),
        ({"error": {"code": ["x"]}}, ("stream", "info", "S"), f"{UNREADABLE}array"),
        (
            {**STREAM, "state": {"subjects": {"a": 1, "b": []}}, "total": 2},
            ("stream", "subjects", "S", "-j"),
            f"{UNREADABLE}array",
        ),
        ({"error": {"code": "x"}}, ("pub", "-J", "-q", "FAKE.A", "x"), "the answer is not one of"),
        ([1], ("pub", "-J", "-q", "FAKE.A", "x"), "the answer is not one of JetStream"),
        ({"streams": ["x"]}, ("account", "info"), f"{UNREADABLE}array"),
        (
            {"error": "no"},
            ("bench", "js", "pub", "sync", "FAKE.B", "--msgs", "1", "--stream", "S"),
            "publishing: publishing synchronously: nats: the answer is not one of JetStream",
        ),
    ],
)
async def test_an_answer_of_another_shape_is_an_error(
    jsctl_broker: BrokerFactory, reply: object, words: tuple[str, ...], told: str
) -> None:
    broker = jsctl_broker()

    async def answer(message: Msg) -> None:
        about = b"offset" not in message.data and "STREAM" in message.subject
        right = about and bool({"bench", "subjects"} & set(words))
        await message.respond(json.dumps(STREAM if right else reply).encode())

    client = await nats.connect(broker.url)
    await client.subscribe("FAKE.>", cb=answer)
    await client.flush()
    done = await asyncio.to_thread(jsctl, ["-s", broker.url, *PREFIX, *words])
    await client.close()
    last = done.stderr.splitlines()[-1]
    assert (done.returncode, last.startswith(f"jsctl: error: {told}")) == (1, True), done.stderr


async def test_a_backup_of_an_answer_of_another_shape_fails(
    jsctl_broker: BrokerFactory, tmp_path: Path
) -> None:
    """Of an account that of this stream alone, and nothing is left of it."""
    broker = jsctl_broker()
    replies: dict[str, object] = {
        "FAKE.STREAM.LIST": {"streams": [STREAM], "total": 1, "limit": 256},
        "FAKE.STREAM.INFO.S": STREAM,
        "FAKE.STREAM.SNAPSHOT.S": {**STREAM, "state": {"bytes": {"x": 1}}},
    }

    async def answer(message: Msg) -> None:
        await message.respond(json.dumps(replies[message.subject]).encode())

    client = await nats.connect(broker.url)
    await client.subscribe("FAKE.>", cb=answer)
    await client.flush()
    target = tmp_path / "made"
    words = ["-s", broker.url, *PREFIX, "backup", "account", str(target), "-f"]
    done = await asyncio.to_thread(jsctl, words)
    await client.close()
    assert (done.returncode, done.stderr) == (1, "jsctl: error: backup failed\n")
    assert "\n  S: json: cannot unmarshal object" in done.stdout
    assert not target.exists()


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
    words = ["-s", broker.url, *PREFIX, "server", "check", "stream", "--stream", "S"]
    done = await asyncio.to_thread(jsctl, words)
    await client.close()
    told = f"CRITICAL S Crit:Check failed: {UNREADABLE}string"
    assert (done.returncode, done.stdout[: len(told)]) == (2, told)


async def gathered(url: str, target: Path, *words: str) -> str:
    """What `audit gather` says."""
    login = ("-s", url, "--user", "s", "--password", "s")
    line = [*login, "audit", "gather", "--no-server-profiles", "-o", str(target), *words]
    done = await asyncio.to_thread(jsctl, line)
    assert done.returncode == 0, done.stderr
    return done.stderr


async def test_a_server_that_is_slow_is_gathered_too(
    jsctl_broker: BrokerFactory, tmp_path: Path
) -> None:
    """It answers a question when it hears the next one."""
    broker = jsctl_broker(config=SYSTEM)
    heard: list[Msg] = []

    async def quick(message: Msg) -> None:
        told = {"server": {"name": "quick", "id": "Q"}, "statsz": {"active_servers": 3}}
        await message.respond(json.dumps(told).encode())

    async def slow(message: Msg) -> None:
        heard.append(message)
        for one in heard if len(heard) > 1 else ():
            await one.respond(b'{"server": {"name": "slow", "id": "S"}, "statsz": {}}')

    client = await nats.connect(broker.url, user="s", password="s")
    for answer in (quick, slow):
        await client.subscribe("$SYS.REQ.SERVER.PING", cb=answer)
    await client.flush()
    parts = ("--no-server-endpoints", "--no-account-endpoints", "--no-streams", "--timeout", "2s")
    err = await gathered(broker.url, tmp_path / "a.zip", *parts)
    await client.close()
    assert "Discovered 3 servers" in err and "Discovered server 'slow'" in err


async def test_one_server_that_cannot_be_read_keeps_nothing_of_the_others(
    jsctl_broker: BrokerFactory, tmp_path: Path
) -> None:
    """An audit is for clusters in which something is wrong."""
    broker = jsctl_broker(config=SYSTEM)
    long = {"name": "n" * 70_000, "id": "EVIL"}
    evil = json.dumps({"server": long, "data": {}}).encode()
    answers = (b"{", b'{"server": [1]}', b'{"server": {"name": "w", "id": "a b"}}', evil)

    def answering(body: bytes) -> Callable[[Msg], Awaitable[None]]:
        async def answer(message: Msg) -> None:
            await message.respond(body)

        return answer

    client = await nats.connect(broker.url, user="s", password="s")
    for body in answers:
        await client.subscribe("$SYS.REQ.SERVER.PING", cb=answering(body))
    await client.subscribe("$SYS.REQ.SERVER.EVIL.>", cb=answering(evil))
    await client.flush()
    target = tmp_path / "a.zip"
    err = await gathered(broker.url, target, "--no-account-endpoints")
    await client.close()
    assert err.count("the answer of a server cannot be read") >= 2
    assert "VARZ from server w: no subject can have that name" in err
    assert 'tag "server" has more than 1024 letters' in err
    reader = Reader(target)
    assert len(reader.names("server")) == 1
    assert len(list(reader.each(artifact_type="variables"))) == 1
