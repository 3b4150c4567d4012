"""Pull requests on the wire: batches, no wait, time, heartbeats, bytes, refusals."""

import json
import time
from typing import Any

import pytest
from nats.aio.client import Client
from nats.errors import TimeoutError as Late
from nats.js import JetStreamContext
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy, StreamConfig

from tests.support.pulling import SECOND_NS, Puller, status_of
from tests.support.waiting import eventually

WAIT_S = 30.0
SHORT_NS = SECOND_NS // 4


async def filled(js: JetStreamContext, name: str, count: int, **consumer: Any) -> None:
    """A stream with messages m1, m2, ... and a durable consumer `c` on it."""
    await js.add_stream(StreamConfig(name=name, subjects=[f"{name}.>"]))
    for number in range(1, count + 1):
        await js.publish(f"{name}.a", f"m{number}".encode())
    settings = {"ack_policy": AckPolicy.EXPLICIT, **consumer}
    await js.add_consumer(name, ConsumerConfig(durable_name="c", **settings))


async def test_a_batch_comes_in_order(client: Client, js: JetStreamContext, fresh: str) -> None:
    await filled(js, fresh, 10)
    pull = await Puller.open(client, fresh, "c")
    await pull.ask(batch=6, expires=SECOND_NS)
    messages = await pull.take(6)
    assert [one.data for one in messages] == [f"m{n}".encode() for n in range(1, 7)]
    metas = [one.metadata for one in messages]
    assert [one.sequence.stream for one in metas] == list(range(1, 7))
    assert [one.sequence.consumer for one in metas] == list(range(1, 7))
    assert [one.num_pending for one in metas] == [9, 8, 7, 6, 5, 4]
    assert {(one.stream, one.consumer, one.num_delivered) for one in metas} == {(fresh, "c", 1)}


async def test_an_empty_request_is_for_one(
    client: Client, js: JetStreamContext, fresh: str
) -> None:
    await filled(js, fresh, 2)
    pull = await Puller.open(client, fresh, "c")
    await client.publish(f"$JS.API.CONSUMER.MSG.NEXT.{fresh}.c", b"", reply=pull.inbox)
    assert (await pull.next()).data == b"m1"
    await client.publish(f"$JS.API.CONSUMER.MSG.NEXT.{fresh}.c", b"1", reply=pull.inbox)
    assert (await pull.next()).data == b"m2"


async def test_a_request_waits_for_messages(
    client: Client, other: Client, js: JetStreamContext, fresh: str
) -> None:
    await filled(js, fresh, 0)
    pull = await Puller.open(client, fresh, "c")
    await pull.ask(batch=2, expires=5 * SECOND_NS)

    async def waits() -> bool:
        return bool((await js.consumer_info(fresh, "c")).num_waiting)

    await eventually(waits, "the request to wait")
    await other.jetstream().publish(f"{fresh}.a", b"late")
    assert (await pull.next()).data == b"late"


ENDS: dict[str, tuple[int, dict[str, Any], tuple[list[bytes], str]]] = {
    "no wait, nothing": (0, {"batch": 1, "no_wait": True}, ([], "404 No Messages")),
    "no wait, less": (2, {"batch": 5, "no_wait": True}, ([b"m1", b"m2"], "404 No Messages")),
    "time, nothing": (0, {"batch": 1, "expires": SHORT_NS}, ([], "408 Request Timeout")),
    "time, less": (
        2,
        {"batch": 5, "expires": SHORT_NS},
        ([b"m1", b"m2"], "408 Request Timeout"),
    ),
    "no wait and time": (
        1,
        {"batch": 3, "no_wait": True, "expires": SHORT_NS},
        ([b"m1"], "404 No Messages"),
    ),
    "bytes": (
        3,
        {"batch": 3, "max_bytes": 100, "expires": SHORT_NS},
        ([b"m1"], "409 Message Size Exceeds MaxBytes"),
    ),
    "too few bytes": (
        1,
        {"batch": 1, "max_bytes": 5, "expires": SHORT_NS},
        ([], "409 Message Size Exceeds MaxBytes"),
    ),
    "heartbeat too long": (
        0,
        {"batch": 1, "expires": SHORT_NS, "idle_heartbeat": SHORT_NS},
        ([], "400 Bad Request - heartbeat value too large"),
    ),
}


@pytest.mark.parametrize("case", ENDS)
async def test_how_a_request_ends(
    client: Client, js: JetStreamContext, fresh: str, case: str
) -> None:
    count, request, expected = ENDS[case]
    await filled(js, f"{fresh:_<6}", count)
    pull = await Puller.open(client, f"{fresh:_<6}", "c")
    assert await pull.run(**request) == expected


async def test_what_was_not_delivered_is_told(
    client: Client, js: JetStreamContext, fresh: str
) -> None:
    await filled(js, fresh, 1)
    pull = await Puller.open(client, fresh, "c")
    started = time.monotonic()
    await pull.ask(batch=4, max_bytes=4096, expires=SHORT_NS)
    message, status = await pull.take(2)
    assert time.monotonic() - started >= SHORT_NS / SECOND_NS
    assert message.data == b"m1"
    headers = status.headers or {}
    assert headers["Nats-Pending-Messages"] == "3"
    assert 0 < int(headers["Nats-Pending-Bytes"]) < 4096


@pytest.mark.parametrize("asked", [{}, {"batch": 0}, {"max_bytes": 1}])
async def test_who_asks_for_none_is_told_of_none(
    client: Client, js: JetStreamContext, fresh: str, asked: dict[str, int]
) -> None:
    await filled(js, fresh, 1 if "max_bytes" in asked else 0)
    pull = await Puller.open(client, fresh, "c")
    await pull.ask(expires=SHORT_NS, **asked)
    (status,) = await pull.take(1)
    assert (status.headers or {})["Nats-Pending-Messages"] == "0"


async def test_heartbeats_come_while_nothing_else_does(
    client: Client, js: JetStreamContext, fresh: str
) -> None:
    await filled(js, fresh, 0)
    pull = await Puller.open(client, fresh, "c")
    await pull.ask(batch=1, expires=SECOND_NS, idle_heartbeat=SHORT_NS)
    statuses = [status_of(one) for one in await pull.take(3)]
    assert statuses == ["100", "100", "100"]
    assert (await pull.next()).headers is not None


LIMITS: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "batch": ({"max_batch": 2}, {"batch": 3}, "409 Exceeded MaxRequestBatch of 2"),
    "expires": (
        {"max_expires": 1.0},
        {"batch": 1, "expires": 2 * SECOND_NS},
        "409 Exceeded MaxRequestExpires of 1s",
    ),
    "bytes": (
        {"max_bytes": 100},
        {"batch": 1, "max_bytes": 200, "expires": SECOND_NS},
        "409 Exceeded MaxRequestMaxBytes of 100",
    ),
}


@pytest.mark.parametrize("case", LIMITS)
async def test_limits_of_requests(
    client: Client, js: JetStreamContext, fresh: str, case: str
) -> None:
    fields, request, status = LIMITS[case]
    await js.add_stream(StreamConfig(name=fresh, subjects=[f"{fresh}.>"]))
    config: dict[str, Any] = {"durable_name": "c", "ack_policy": "explicit"}
    for key, value in fields.items():
        config[key] = int(value * SECOND_NS) if key == "max_expires" else value
    body = json.dumps({"stream_name": fresh, "config": config}).encode()
    reply = await client.request(f"$JS.API.CONSUMER.DURABLE.CREATE.{fresh}.c", body, WAIT_S)
    assert "error" not in json.loads(reply.data)
    pull = await Puller.open(client, fresh, "c")
    assert await pull.run(**request) == ([], status)


@pytest.mark.parametrize(
    ("policy", "asked", "others_turn"),
    [
        ("pinned_client", {}, True),
        ("overflow", {"min_pending": 1000}, True),
        ("overflow", {"min_ack_pending": 1}, False),
        ("overflow", {}, False),
        ("prioritized", {"priority": 5}, False),
    ],
)
async def test_only_whose_turn_it_is_learns_that_a_message_is_too_large(
    client: Client,
    js: JetStreamContext,
    fresh: str,
    policy: str,
    asked: dict[str, int],
    others_turn: bool,
) -> None:
    await js.add_stream(StreamConfig(name=fresh, subjects=[f"{fresh}.>"]))
    groups = {"priority_groups": ["g"], "priority_policy": policy}
    config = {"durable_name": "c", "ack_policy": "explicit", **groups}
    body = json.dumps({"stream_name": fresh, "config": config}).encode()
    await client.request(f"$JS.API.CONSUMER.DURABLE.CREATE.{fresh}.c", body, WAIT_S)
    for _ in range(2):
        await js.publish(f"{fresh}.a", b"x" * 300)
    pull = await Puller.open(client, fresh, "c")
    await pull.ask(batch=1, expires=5 * SECOND_NS, group="g")
    assert len((await pull.next()).data) == 300
    await pull.ask(batch=1, expires=SHORT_NS, max_bytes=60, group="g", **asked)
    headers = (await pull.next()).headers or {}
    told = (headers["Status"], headers["Description"])
    assert told == (
        ("408", "Request Timeout") if others_turn else ("409", "Message Size Exceeds MaxBytes")
    )


async def test_too_many_requests_wait(client: Client, js: JetStreamContext, fresh: str) -> None:
    await filled(js, fresh, 0, max_waiting=2)
    pull = await Puller.open(client, fresh, "c")
    for _ in range(3):
        await pull.ask(batch=1, expires=5 * SECOND_NS)
    headers = (await pull.next()).headers or {}
    assert (headers["Status"], headers["Description"]) == ("409", "Exceeded MaxWaiting")


async def test_a_deleted_consumer_ends_its_requests(
    client: Client, other: Client, js: JetStreamContext, fresh: str
) -> None:
    await filled(js, fresh, 0)
    pull = await Puller.open(client, fresh, "c")
    await pull.ask(batch=1, expires=5 * SECOND_NS)

    async def waits() -> bool:
        return bool((await js.consumer_info(fresh, "c")).num_waiting)

    await eventually(waits, "the request to wait")
    await other.jetstream().delete_consumer(fresh, "c")
    headers = (await pull.next()).headers or {}
    assert (headers["Status"], headers["Description"]) == ("409", "Consumer Deleted")


async def test_unacknowledged_messages_are_bounded(
    client: Client, js: JetStreamContext, fresh: str
) -> None:
    await filled(js, fresh, 5, max_ack_pending=2)
    pull = await Puller.open(client, fresh, "c")
    await pull.ask(batch=5, expires=5 * SECOND_NS)
    first = await pull.take(2)
    info = await js.consumer_info(fresh, "c")
    assert (info.num_ack_pending, info.num_pending, info.num_waiting) == (2, 3, 1)
    await first[0].ack()
    assert (await pull.next()).data == b"m3"


STARTS: dict[str, tuple[dict[str, Any], list[bytes]]] = {
    "all": ({"deliver_policy": DeliverPolicy.ALL}, [b"a1", b"b1", b"a2", b"b2"]),
    "last": ({"deliver_policy": DeliverPolicy.LAST}, [b"b2"]),
    "new": ({"deliver_policy": DeliverPolicy.NEW}, []),
    "sequence": (
        {"deliver_policy": DeliverPolicy.BY_START_SEQUENCE, "opt_start_seq": 3},
        [b"a2", b"b2"],
    ),
    "last per subject": (
        {"deliver_policy": DeliverPolicy.LAST_PER_SUBJECT, "filter_subject": "{name}.*"},
        [b"a2", b"b2"],
    ),
    "filter": ({"filter_subject": "{name}.a"}, [b"a1", b"a2"]),
    "filters": ({"filter_subjects": ["{name}.a", "{name}.b"]}, [b"a1", b"b1", b"a2", b"b2"]),
}


def named(value: Any, name: str) -> Any:
    if isinstance(value, list):
        return [named(one, name) for one in value]
    plain = isinstance(value, str) and not isinstance(value, DeliverPolicy)
    return value.format(name=name) if plain else value


@pytest.mark.parametrize("case", STARTS)
async def test_where_a_consumer_starts(
    client: Client, js: JetStreamContext, fresh: str, case: str
) -> None:
    await js.add_stream(StreamConfig(name=fresh, subjects=[f"{fresh}.>"]))
    for text in ("a1", "b1", "a2", "b2"):
        await js.publish(f"{fresh}.{text[0]}", text.encode())
    fields, expected = STARTS[case]
    settings = {key: named(value, fresh) for key, value in fields.items()}
    config = ConsumerConfig(durable_name="c", ack_policy=AckPolicy.EXPLICIT, **settings)
    info = await js.add_consumer(fresh, config)
    assert info.num_pending == len(expected)
    pull = await Puller.open(client, fresh, "c")
    payloads, _ = await pull.run(batch=10, no_wait=True)
    assert payloads == expected


async def test_fetch_of_the_client_library(js: JetStreamContext, fresh: str) -> None:
    await filled(js, fresh, 25)
    pull = await js.pull_subscribe_bind("c", fresh)
    first = await pull.fetch(10, timeout=WAIT_S)
    rest = await pull.fetch(100, timeout=0.5)
    assert [len(first), len(rest)] == [10, 15]
    for message in (*first, *rest):
        await message.ack_sync()
    with pytest.raises(Late):
        await pull.fetch(1, timeout=0.2)
    info = await js.consumer_info(fresh, "c")
    assert info.ack_floor is not None
    assert (info.num_ack_pending, info.ack_floor.stream_seq) == (0, 25)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"idle_heartbeat": SHORT_NS}, [b"m1", b"m2", "404"]),
        ({}, [b"m1", b"m2", "408"]),
        ({"no_wait": False, "idle_heartbeat": 2 * SHORT_NS}, [b"m1", b"m2", "100", "408"]),
    ],
)
async def test_acks_that_are_waited_for_hold_a_request_until_its_heartbeat(
    client: Client,
    js: JetStreamContext,
    fresh: str,
    asked: dict[str, Any],
    expected: list[bytes | str],
) -> None:
    await filled(js, fresh, 4, max_ack_pending=2)
    pull = await Puller.open(client, fresh, "c")
    started = time.monotonic()
    await pull.ask(**{"batch": 4, "no_wait": True, "expires": 5 * SHORT_NS, **asked})
    found = [status_of(one) or one.data for one in await pull.take(len(expected))]
    if expected[2] == "100":
        found = [*dict.fromkeys(found)]
        while found[-1] != "408":
            found = [*dict.fromkeys([*found, status_of(await pull.next())])]
    assert found == expected
    early = expected[-1] == "404"
    took = time.monotonic() - started
    assert took >= (1 if early else 5) * SHORT_NS / SECOND_NS * 0.9
    if early:  # what would have been its second heartbeat does not come
        assert await pull.nothing(2 * SHORT_NS / SECOND_NS)
