"""What acknowledgements do: policies, delays, ends, backoff."""

import json
import time
from itertools import pairwise
from typing import Any

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import JetStreamContext
from nats.js.api import AckPolicy, ConsumerConfig, StreamConfig

from tests.support.pulling import SECOND_NS, Puller, settled
from tests.support.waiting import eventually

WAIT_S = 30.0
LONG_NS = 30 * SECOND_NS
DELAY_S = 0.3
TRIES = 9
ADVISORIES = "$JS.EVENT.ADVISORY.CONSUMER"


async def consumer(
    client: Client, js: JetStreamContext, name: str, count: int = 3, **fields: Any
) -> Puller:
    """A stream of m1, m2, ... and an open inbox on its consumer `c`."""
    await js.add_stream(StreamConfig(name=name, subjects=[f"{name}.>"]))
    for number in range(1, count + 1):
        await js.publish(f"{name}.a", f"m{number}".encode())
    settings = {"ack_policy": AckPolicy.EXPLICIT, **fields}
    await js.add_consumer(name, ConsumerConfig(durable_name="c", **settings))
    return await Puller.open(client, name, "c")


async def standing(js: JetStreamContext, name: str) -> tuple[int, int, int]:
    """(unacknowledged, redelivered, acknowledgement floor)"""
    info = await js.consumer_info(name, "c")
    assert info.ack_floor is not None
    return info.num_ack_pending or 0, info.num_redelivered or 0, info.ack_floor.stream_seq


async def confirm(client: Client, message: Msg, body: bytes = b"+ACK") -> None:
    """Acknowledge and wait until the server has taken it."""
    await client.request(message.reply, body, timeout=WAIT_S)


async def again(pull: Puller) -> tuple[bytes, int, float]:
    """The next message: payload, how often it was delivered, seconds it took."""
    started = time.monotonic()
    await pull.ask(batch=1, expires=LONG_NS)
    message = await pull.next()
    return message.data, message.metadata.num_delivered, time.monotonic() - started


async def test_without_acknowledgements(client: Client, js: JetStreamContext, fresh: str) -> None:
    pull = await consumer(client, js, fresh, ack_policy=AckPolicy.NONE)
    await pull.ask(batch=3, expires=LONG_NS)
    payloads = [one.data for one in await pull.take(3)]
    assert payloads == [b"m1", b"m2", b"m3"]

    async def done() -> bool:
        return await standing(js, fresh) == (0, 0, 3)

    await eventually(done, "delivered to mean done")


async def test_one_for_all_before_it(client: Client, js: JetStreamContext, fresh: str) -> None:
    pull = await consumer(client, js, fresh, ack_policy=AckPolicy.ALL)
    await pull.ask(batch=3, expires=LONG_NS)
    messages = await pull.take(3)
    await confirm(client, messages[1])
    assert await standing(js, fresh) == (1, 0, 2)


async def test_each_for_itself(client: Client, js: JetStreamContext, fresh: str) -> None:
    pull = await consumer(client, js, fresh)
    await pull.ask(batch=3, expires=LONG_NS)
    first, second, third = await pull.take(3)
    await confirm(client, second)
    assert await standing(js, fresh) == (2, 0, 0)
    await confirm(client, first)
    assert await standing(js, fresh) == (1, 0, 2)
    await confirm(client, third)
    assert await standing(js, fresh) == (0, 0, 3)


async def test_late_ones_come_again(client: Client, js: JetStreamContext, fresh: str) -> None:
    pull = await consumer(client, js, fresh, 1, ack_wait=DELAY_S)
    assert (await again(pull))[:2] == (b"m1", 1)
    body, tries, waited = await again(pull)
    assert (body, tries) == (b"m1", 2)
    assert waited >= DELAY_S * 0.8
    assert (await standing(js, fresh))[:2] == (1, 1)


async def test_in_progress_buys_time(client: Client, js: JetStreamContext, fresh: str) -> None:
    pull = await consumer(client, js, fresh, 1, ack_wait=2.0)
    await pull.ask(batch=1, expires=LONG_NS)
    message = await pull.next()
    await pull.ask(batch=1, expires=LONG_NS)
    started = time.monotonic()
    for _ in range(3):
        assert await pull.nothing(1.0)
        await message.in_progress()
    assert (await pull.next()).metadata.num_delivered == 2
    assert time.monotonic() - started >= 4.8


async def test_refused_ones_come_again_at_once(
    client: Client, js: JetStreamContext, fresh: str
) -> None:
    pull = await consumer(client, js, fresh)
    await pull.ask(batch=1, expires=LONG_NS)
    await confirm(client, await pull.next(), b"-NAK")
    await pull.ask(batch=2, expires=LONG_NS)
    found = [(one.data, one.metadata.num_delivered) for one in await pull.take(2)]
    assert found == [(b"m1", 2), (b"m2", 1)]


async def test_refused_with_a_delay(client: Client, js: JetStreamContext, fresh: str) -> None:
    pull = await consumer(client, js, fresh, 1)
    await pull.ask(batch=1, expires=LONG_NS)
    await (await pull.next()).nak(delay=DELAY_S)
    body, tries, waited = await again(pull)
    assert (body, tries) == (b"m1", 2)
    assert waited >= DELAY_S * 0.8


async def test_delays_are_kept_however_long_the_ack_wait(
    client: Client, js: JetStreamContext, fresh: str
) -> None:
    pull = await consumer(client, js, fresh, TRIES, ack_wait=60.0)
    await pull.ask(batch=TRIES, expires=LONG_NS)
    due: dict[bytes, float] = {}
    for number, message in enumerate(await pull.take(TRIES)):
        delay = DELAY_S + 0.083 * number
        await message.nak(delay=delay)
        due[message.data] = time.monotonic() + delay
    await settled(client)
    await pull.ask(batch=TRIES, expires=LONG_NS)
    late = []
    for _ in range(TRIES):
        message = await pull.next()
        late.append(time.monotonic() - due[message.data])
    # Most of them: the machine may be busy for a moment.
    assert -0.05 < sorted(late)[TRIES // 2] < 0.1, late


async def test_ended_ones_do_not_come_again(
    client: Client, js: JetStreamContext, fresh: str
) -> None:
    pull = await consumer(client, js, fresh, 2, ack_wait=DELAY_S)
    told = await client.subscribe(f"{ADVISORIES}.MSG_TERMINATED.{fresh}.c")
    await pull.ask(batch=1, expires=LONG_NS)
    await confirm(client, await pull.next(), b"+TERM not for us")
    assert (await again(pull))[:2] == (b"m2", 1)
    assert (await again(pull))[:2] == (b"m2", 2)
    advisory = (await told.next_msg(timeout=WAIT_S)).data
    assert b'"stream_seq":1' in advisory
    assert b'"reason":"not for us"' in advisory


async def test_the_last_try(client: Client, js: JetStreamContext, fresh: str) -> None:
    pull = await consumer(client, js, fresh, 1, ack_wait=DELAY_S, max_deliver=2)
    told = await client.subscribe(f"{ADVISORIES}.MAX_DELIVERIES.{fresh}.c")
    assert [(await again(pull))[:2] for _ in range(2)] == [(b"m1", 1), (b"m1", 2)]
    await pull.ask(batch=1, expires=LONG_NS)
    advisory = (await told.next_msg(timeout=WAIT_S)).data
    assert b'"deliveries":2' in advisory
    await js.publish(f"{fresh}.a", b"m2")
    assert (await pull.next()).data == b"m2"


@pytest.mark.parametrize("steps", [[0.2, 0.6]])
async def test_backoff_grows(
    client: Client, js: JetStreamContext, fresh: str, steps: list[float]
) -> None:
    pull = await consumer(client, js, fresh, 1, backoff=steps, max_deliver=4)
    waits = [(await again(pull))[1:] for _ in range(4)]
    assert [tries for tries, _ in waits] == [1, 2, 3, 4]
    assert waits[1][1] < 0.55
    assert all(waited < 2 for _, waited in waits[2:])
    # A message that was heard late was delivered behind the request for it all the same.
    since = [before + waited for (_, before), (_, waited) in pairwise(waits)]
    assert since[0] >= 0.15 and min(since[1:]) >= 0.45


async def test_next_asks_with_the_acknowledgement(
    client: Client, js: JetStreamContext, fresh: str
) -> None:
    pull = await consumer(client, js, fresh)
    await pull.ask(batch=1, expires=LONG_NS)
    message = await pull.next()
    await client.publish(message.reply, b"+NXT", reply=pull.inbox)
    assert (await pull.next()).data == b"m2"
    assert await standing(js, fresh) == (1, 0, 1)


async def test_an_ephemeral_consumer_goes_when_unused(js: JetStreamContext, fresh: str) -> None:
    await js.add_stream(StreamConfig(name=fresh, subjects=[f"{fresh}.>"]))
    info = await js.add_consumer(
        fresh, ConsumerConfig(ack_policy=AckPolicy.EXPLICIT, inactive_threshold=DELAY_S)
    )
    assert info.name

    async def gone() -> bool:
        return await js.consumers_info(fresh) == []

    await eventually(gone, "the consumer to be deleted")


@pytest.mark.parametrize("how", ["replaced", "deleted"])
async def test_what_the_stream_lost_is_not_waited_for(
    client: Client, js: JetStreamContext, fresh: str, how: str
) -> None:
    """Long before it would be delivered again, and operators are told."""
    told = await client.subscribe(f"{ADVISORIES}.MSG_TERMINATED.{fresh}.c")
    await js.add_stream(StreamConfig(name=fresh, subjects=[f"{fresh}.>"], max_msgs_per_subject=1))
    for token in "abc":
        await js.publish(f"{fresh}.{token}", b"x")
    settings = ConsumerConfig(durable_name="c", ack_policy=AckPolicy.EXPLICIT, ack_wait=3600)
    await js.add_consumer(fresh, settings)
    pull = await Puller.open(client, fresh, "c")
    await pull.ask(batch=3, expires=LONG_NS)
    assert [one.data for one in await pull.take(3)] == [b"x"] * 3
    if how == "replaced":
        await js.publish(f"{fresh}.b", b"y")
    else:
        await js.delete_msg(fresh, 2)
    event = json.loads((await told.next_msg(timeout=WAIT_S)).data)
    assert (event["stream_seq"], event["deliveries"]) == (2, 1)
    assert event["reason"] == "Unacknowledged message was deleted"
    assert await standing(js, fresh) == (2, 0, 0)


async def test_of_what_was_not_delivered_only_the_end_is_not_confirmed(
    client: Client, js: JetStreamContext, fresh: str
) -> None:
    """As for who still has a message of before a reset: waiting for an answer would not end."""
    pull = await consumer(client, js, fresh)
    await pull.ask(batch=3, expires=LONG_NS)
    *_, third = await pull.take(3)
    await client.request(f"$JS.API.CONSUMER.RESET.{fresh}.c", b'{"seq":1}', timeout=WAIT_S)
    heard: list[str] = []

    async def hear(message: Msg) -> None:
        heard.append(message.subject.rpartition(".")[2])

    inbox = client.new_inbox()
    await client.subscribe(f"{inbox}.*", cb=hear)
    for number, word in enumerate((b"+ACK", b"+TERM why", b"-NAK", b"+WPI", b"what")):
        await client.publish(third.reply, word, reply=f"{inbox}.{number}")

    async def last() -> bool:
        return heard[-1:] == ["4"]

    await eventually(last, "the last word is answered")
    assert heard == ["2", "3", "4"]
    assert await standing(js, fresh) == (0, 0, 0)
