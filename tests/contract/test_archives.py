"""Snapshots and restores: the same requests, chunks and answers, and archives for each other."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any

import nats
import pytest
from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js.api import ConsumerConfig, StreamConfig

from jsctl.backups.archive import ArchiveReader, ConsumerEntry, MessageEntry
from jsctl.testing import Broker, RealServer
from tests.contract.conftest import KINDS
from tests.support import archives

WAIT_S = 10


async def ask(client: Client, subject: str, body: object | bytes = b"") -> dict[str, Any]:
    """The decoded answer; empty for an empty one."""
    payload = body if isinstance(body, bytes) else json.dumps(body).encode()
    answer = await client.request(subject, payload, timeout=WAIT_S)
    return json.loads(answer.data) if answer.data else {}


@dataclass
class Taken:
    """What came of a snapshot."""

    answer: dict[str, Any]
    chunks: list[bytes] = field(default_factory=list)
    replies: list[str] = field(default_factory=list)
    end: dict[str, str] | None = None

    @property
    def data(self) -> bytes:
        return b"".join(self.chunks)


async def take(client: Client, stream: str, **asked: object) -> Taken:
    inbox = client.new_inbox()
    chunks = await client.subscribe(inbox)
    body = {"deliver_subject": inbox, **asked}
    made = Taken(await ask(client, f"$JS.API.STREAM.SNAPSHOT.{stream}", body))
    while "error" not in made.answer:
        message = await chunks.next_msg(timeout=WAIT_S)
        if not message.data:
            made.end = message.headers
            break
        made.chunks.append(message.data)
        made.replies.append(message.reply)
        if message.reply:
            await client.publish(message.reply)
    await chunks.unsubscribe()
    return made


async def restore(client: Client, config: dict[str, Any], data: bytes) -> dict[str, Any]:
    """The last answer."""
    body = {"config": config, "state": {}}
    begun = await ask(client, f"$JS.API.STREAM.RESTORE.{config['name']}", body)
    if "error" in begun:
        return begun
    for at in range(0, len(data), 60_000):
        answer = await ask(client, begun["deliver_subject"], data[at : at + 60_000])
        if answer:
            return answer
    return await ask(client, begun["deliver_subject"])


async def filled(client: Client, js: JetStreamContext, name: str, **more: Any) -> None:
    """A stream with some of everything."""
    await js.add_stream(StreamConfig(name=name, subjects=[f"{name}.>"], **more))
    for number in range(60):
        headers = {"A": str(number)} if number % 3 else None
        await js.publish(f"{name}.{number % 5}", bytes(range(256)) * 10, headers=headers)
    for seq in (1, 2, 30, 60):
        await js.delete_msg(name, seq)
    for durable, filtered in (("ALL", None), ("ONE", f"{name}.3")):
        await js.add_consumer(name, ConsumerConfig(durable_name=durable, filter_subject=filtered))
    pull = await js.pull_subscribe_bind("ALL", name)
    some = await pull.fetch(6, timeout=WAIT_S)
    for at in (0, 1, 3):
        await some[at].ack_sync()
    await some[2].nak(delay=3600)


async def looked(client: Client, name: str) -> dict[str, Any]:
    """All that is to be the same behind a restore."""
    info = await ask(client, f"$JS.API.STREAM.INFO.{name}", {"deleted_details": True})
    messages = []
    for seq in range(info["state"]["first_seq"], info["state"]["last_seq"] + 1):
        got = await ask(client, f"$JS.API.STREAM.MSG.GET.{name}", {"seq": seq})
        messages.append(got.get("message"))
    consumers = {}
    for consumer in ("ALL", "ONE"):
        told = await ask(client, f"$JS.API.CONSUMER.INFO.{name}.{consumer}")
        consumers[consumer] = {
            key: {**told[key], "last_active": ""} if isinstance(told[key], dict) else told[key]
            for key in ("ack_floor", "num_ack_pending", "num_pending")
        }
    return {"state": info["state"], "messages": messages, "consumers": consumers}


@pytest.mark.parametrize("storage", ["file", "memory"])
@pytest.mark.parametrize("target", KINDS)
async def test_what_one_server_sends_the_other_restores(
    broker: Broker,
    brokers: Callable[[str], Broker],
    client: Client,
    js: JetStreamContext,
    fresh: str,
    target: str,
    storage: str,
) -> None:
    await filled(client, js, fresh, storage=storage)
    before = await looked(client, fresh)
    made = await take(client, fresh)
    assert made.answer["state"]["messages"] == 56
    await js.delete_stream(fresh)
    other = await nats.connect(brokers(target).url, allow_reconnect=False)
    try:
        answer = await restore(other, made.answer["config"], made.data)
        assert answer["type"] == "io.nats.jetstream.api.v1.stream_create_response"
        assert answer["state"]["messages"] == 56
        assert not answer.get("did_create")
        after = await looked(other, fresh)
        if target == "nats-server":
            # The last message was deleted: its time is not kept there.
            after["state"]["last_ts"] = before["state"]["last_ts"]
        assert after == before
        again = await take(other, fresh)
        assert _entries(again.data) == _entries(made.data)
    finally:
        await ask(other, f"$JS.API.STREAM.DELETE.{fresh}")
        await other.close()


def _entries(data: bytes) -> list[object]:
    """The messages of an archive, and the names of consumers."""
    entries = ArchiveReader(BytesIO(data))
    return [
        one if isinstance(one, MessageEntry) else one.name
        for one in entries
        if isinstance(one, MessageEntry | ConsumerEntry)
    ]


async def test_chunks_and_their_end(client: Client, js: JetStreamContext, fresh: str) -> None:
    await js.add_stream(StreamConfig(name=fresh, subjects=[f"{fresh}.>"]))
    for number in range(40):
        await js.publish(f"{fresh}.a", bytes((number * at) % 251 for at in range(1500)))
    made = await take(client, fresh, chunk_size=2000, window_size=4000)
    assert len(made.chunks) > 3
    assert {len(chunk) for chunk in made.chunks[:-1]} == {2000} and len(made.chunks[-1]) <= 2000
    whole = [reply for reply in made.replies if reply]
    start, *rest = whole[0].split(".")
    assert start == "$JS" and rest[:3] == ["SNAPSHOT", "ACK", fresh]
    assert [reply.split(".")[-2:] for reply in whole] == [
        ["2000", str(number)] for number in range(1, len(whole) + 1)
    ]
    assert made.end is not None and made.end["Status"] == "204"
    small = await take(client, fresh, chunk_size=1, no_consumers=True)
    assert len(small.chunks[0]) == 1024, "the least that there is"


async def test_a_restore_that_is_cut_leaves_no_stream(
    client: Client, other: Client, js: JetStreamContext, fresh: str
) -> None:
    """And nothing that keeps others from the name."""
    await js.add_stream(StreamConfig(name=fresh, subjects=[f"{fresh}.>"]))
    for number in range(40):
        await js.publish(f"{fresh}.a", bytes((number * at) % 251 for at in range(1500)))
    made = await take(client, fresh)
    config = made.answer["config"]
    await js.delete_stream(fresh)
    begun = await ask(other, f"$JS.API.STREAM.RESTORE.{fresh}", {"config": config, "state": {}})
    assert await ask(other, begun["deliver_subject"], made.data[:1000]) == {}
    await other.close()
    named = await ask(client, "$JS.API.STREAM.NAMES", {"subject": f"{fresh}.>"})
    assert not named["streams"]
    assert not (await restore(client, config, made.data)).get("error")
    assert (await js.stream_info(fresh)).state.messages == 40


async def test_what_is_refused(client: Client, js: JetStreamContext, fresh: str) -> None:
    await js.add_stream(StreamConfig(name=fresh, subjects=[f"{fresh}.>"]))
    config = {"name": fresh, "subjects": [f"{fresh}.>"]}
    told = []
    for request, body in (
        ("SNAPSHOT.NO", {"deliver_subject": "x"}),
        (f"SNAPSHOT.{fresh}", {"deliver_subject": "x.>"}),
        (f"SNAPSHOT.{fresh}", {"deliver_subject": 7}),
        (f"RESTORE.{fresh}", {}),
        (f"RESTORE.{fresh}", {"config": config}),
        ("RESTORE.NO", {"config": config}),
        ("RESTORE.NO", {"config": {"name": "NO", "max_age": -1}}),
    ):
        answer = await ask(client, f"$JS.API.STREAM.{request}", body)
        told.append((answer["type"].rpartition(".")[2], answer["error"]["err_code"]))
    assert told == [
        ("stream_snapshot_response", 10059),
        ("stream_snapshot_response", 10015),
        ("stream_snapshot_response", 10025),
        ("stream_restore_response", 10003),
        ("stream_restore_response", 10130),
        ("stream_restore_response", 10056),
        ("stream_restore_response", 10052),
    ]


BROKEN = {
    "no S2": b"x" * 300,
    "cut off": archives.packed(archives.message(1))[:-12],
    "no end": archives.packed(archives.message(1), end=False),
    "twice": archives.packed(archives.message(2), archives.message(2)),
    "too large": archives.packed(archives.message(1, bytes(3 << 20))),
    "a consumer missing": archives.packed(archives.message(1), consumer_count=1),
}


@pytest.mark.parametrize("data", BROKEN.values(), ids=BROKEN)
async def test_what_is_broken_is_an_error(client: Client, fresh: str, data: bytes) -> None:
    config = {"name": fresh, "subjects": ["s.>"]}
    answer = await restore(client, config, data)
    assert answer["type"].endswith("stream_create_response")
    assert answer["error"]["err_code"] == 10062, answer
    await ask(client, f"$JS.API.STREAM.DELETE.{fresh}")


async def test_advisories(client: Client, js: JetStreamContext, fresh: str) -> None:
    heard = await client.subscribe("$JS.EVENT.ADVISORY.STREAM.>")
    await js.add_stream(StreamConfig(name=fresh, subjects=[f"{fresh}.>"]))
    made = await take(client, fresh)
    await js.delete_stream(fresh)
    await restore(client, made.answer["config"], made.data)
    seen: dict[str, set[str]] = {}
    while not {"SNAPSHOT_COMPLETE", "RESTORE_COMPLETE"} <= seen.keys():
        message = await heard.next_msg(timeout=WAIT_S)
        if message.subject.endswith(f".{fresh}"):
            seen[message.subject.split(".")[-2]] = set(json.loads(message.data))
    common = {"type", "id", "timestamp", "stream", "client"}
    assert seen["SNAPSHOT_CREATE"] == common | {"state"}
    assert seen["SNAPSHOT_COMPLETE"] == common | {"start", "end"}
    assert seen["RESTORE_CREATE"] == common
    assert seen["RESTORE_COMPLETE"] == common | {"start", "end", "bytes"}
    await js.delete_stream(fresh)


async def test_publishing_goes_on(client: Client, js: JetStreamContext, fresh: str) -> None:
    await js.add_stream(StreamConfig(name=fresh, subjects=[f"{fresh}.>"]))
    for _ in range(50):
        await js.publish(f"{fresh}.a", bytes(2000))
    ends = asyncio.Event()

    async def publish() -> int:
        count = 0
        while not ends.is_set():
            await js.publish(f"{fresh}.b", b"x")
            count += 1
        return count

    publishing = asyncio.gather(publish())
    made = await take(client, fresh, chunk_size=1024, window_size=1024)
    ends.set()
    assert (await publishing)[0] > 0
    found = [one for one in _entries(made.data) if isinstance(one, MessageEntry)]
    assert len(found) == made.answer["state"]["messages"]
    assert found[-1].sequence == made.answer["state"]["last_seq"]


async def test_what_a_time_to_live_that_cannot_be_read_does(
    broker: Broker, client: Client, fresh: str
) -> None:
    """An empty one is none, for both; another one is no hindrance here: docs/differences.md."""
    for text, hinders in ((b"", False), (b"x", True)):
        head = b"NATS/1.0\r\nNats-TTL: %b\r\n\r\n" % text
        data = archives.packed(archives.message(1, headers=head), last_seq=1)
        config = {"name": fresh, "subjects": [f"{fresh}.>"], "allow_msg_ttl": True}
        config |= {"retention": "limits", "storage": "file"}
        told = await restore(client, config, data)
        assert ("error" in told) == (hinders and isinstance(broker, RealServer)), told
        await ask(client, f"$JS.API.STREAM.DELETE.{fresh}")
