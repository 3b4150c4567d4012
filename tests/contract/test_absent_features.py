"""Publishes that need a feature which their stream does not have: refused alike, never stored."""

import json
from typing import Any

import pytest
from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js.api import StorageType, StreamConfig

WAIT_S = 30.0
INGEST = "id.10.ok.1.0.$FI"
SOURCE = "Nats-Stream-Source"
NEXT = "Nats-Schedule-Next"
DAILY = {"Nats-Schedule": "@daily"}
OTHER_STREAM = {"Nats-Expected-Stream": "X"}
Headers = dict[str, str]

REFUSED: list[tuple[Headers, str, int]] = [
    ({}, INGEST, 10205),
    ({}, "id.10.fail.2.1.$FI", 10205),
    ({}, "id.10.ok.9.4.$FI", 10205),
    ({}, "not.understood.$FI", 10205),
    ({"Nats-Batch-Id": "b"}, INGEST, 10205),
    (OTHER_STREAM, INGEST, 10205),
    ({"Nats-Batch-Id": "b"}, "", 10174),
    ({"Nats-Batch-Id": "b", "Nats-Incr": "1"}, "", 10174),
    ({"Nats-Batch-Id": "b", SOURCE: "S"}, "", 10174),
    ({"Nats-Batch-Id": "b", **OTHER_STREAM}, "", 10174),
    ({"Nats-Incr": "+1", **OTHER_STREAM}, "", 10168),
    ({"Nats-Incr": "one"}, "", 10171),
    (DAILY, "", 10188),
    ({"Nats-Schedule": "never understood"}, "", 10188),
    ({**DAILY, **OTHER_STREAM}, "", 10060),
    ({**DAILY, "Nats-Expected-Last-Sequence": "77"}, "", 10071),
    ({**DAILY, "Nats-TTL": "5s"}, "", 10166),
    ({NEXT: "purge", "Nats-Scheduler": "x"}, "", 10188),
    ({NEXT: "purge"}, "", 10212),
    ({NEXT: "later", "Nats-Scheduler": "x"}, "", 10212),
    ({"Nats-Scheduler": "x"}, "", 10212),
    ({SOURCE: "S 1 > > S"}, "", 10227),
    ({SOURCE: "S", "Nats-Incr": "1"}, "", 10168),
    ({SOURCE: "S", **OTHER_STREAM}, "", 10060),
    ({"Nats-TTL": "0"}, "", 10165),
]
STORED: list[Headers] = [
    {"Nats-Batch-Id": ""},
    {"Nats-Batch-Sequence": "1"},
    {"Nats-Incr": ""},
    {"Nats-Schedule": ""},
    {"Nats-Schedule-TTL": "1s"},
]


async def publish(
    client: Client, subject: str, headers: Headers, reply: str = "", payload: bytes = b"x"
) -> dict[str, Any]:
    """The acknowledgement, errors too; `reply` is the end of the subject that it comes to."""
    inbox = client.new_inbox()
    subscription = await client.subscribe(f"{inbox}.>")
    to = f"{inbox}.{reply or 'plain'}"
    await client.publish(subject, payload, reply=to, headers=headers or None)
    message = await subscription.next_msg(timeout=WAIT_S)
    assert message.subject == to
    await subscription.unsubscribe()
    found: dict[str, Any] = json.loads(message.data)
    return found


@pytest.mark.parametrize("storage", list(StorageType))
async def test_refused_and_not_stored(
    client: Client, js: JetStreamContext, fresh: str, storage: StorageType
) -> None:
    await js.add_stream(StreamConfig(name=fresh, subjects=[f"{fresh}.>"], storage=storage))
    found = [
        (await publish(client, f"{fresh}.a", headers, reply))["error"]["err_code"]
        for headers, reply, _ in REFUSED
    ]
    assert found == [code for _, _, code in REFUSED]
    assert (await js.stream_info(fresh)).state.messages == 0
    for headers in STORED:
        assert "error" not in await publish(client, f"{fresh}.a", headers)
    assert (await js.stream_info(fresh)).state.messages == len(STORED)


async def test_ingest_among_plain_messages(
    client: Client, js: JetStreamContext, fresh: str
) -> None:
    await js.add_stream(StreamConfig(name=fresh, subjects=[f"{fresh}.>"]))
    inbox = client.new_inbox()
    subscription = await client.subscribe(f"{inbox}.>")
    for number in range(20):
        end = INGEST if number % 4 == 3 else str(number)
        await client.publish(f"{fresh}.a", b"x", reply=f"{inbox}.{end}")
    codes = [
        json.loads((await subscription.next_msg(timeout=WAIT_S)).data)
        .get("error", {})
        .get("err_code", 0)
        for _ in range(20)
    ]
    assert sorted(codes) == [0] * 15 + [10205] * 5
    assert (await js.stream_info(fresh)).state.messages == 15


async def test_size_and_seal_come_first(client: Client, js: JetStreamContext, fresh: str) -> None:
    config = StreamConfig(name=fresh, subjects=[f"{fresh}.>"], max_msg_size=100)
    await js.add_stream(config)
    for headers, reply in (({}, INGEST), ({"Nats-Batch-Id": "b"}, "")):
        answer = await publish(client, f"{fresh}.a", headers, reply, bytes(200))
        assert answer["error"]["err_code"] == 10054
    config.sealed = True
    await js.update_stream(config)
    for headers, reply in (({}, INGEST), ({"Nats-Batch-Id": "b"}, ""), (DAILY, "")):
        answer = await publish(client, f"{fresh}.a", headers, reply)
        assert answer["error"]["err_code"] == 10109


async def test_a_snapshot_needs_a_request(client: Client, js: JetStreamContext, fresh: str) -> None:
    await js.add_stream(StreamConfig(name=fresh, subjects=[f"{fresh}.>"]))
    codes: list[int] = []
    for body in ({}, {"deliver_subject": ""}, {"deliver_subject": "all.*"}):
        subject = f"$JS.API.STREAM.SNAPSHOT.{fresh}"
        answer = await client.request(subject, json.dumps(body).encode(), timeout=WAIT_S)
        codes.append(json.loads(answer.data)["error"]["err_code"])
    assert codes == [10003, 10015, 10015]
