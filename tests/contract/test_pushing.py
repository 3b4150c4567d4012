"""Consumers that deliver by themselves, and what nats-py builds on them."""

import asyncio

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import JetStreamContext
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy, StreamConfig

from tests.support.pulling import settled
from tests.support.waiting import eventually

WAIT_S = 30.0


async def fill(js: JetStreamContext, name: str, count: int, size: int = 10) -> None:
    """A stream with numbered messages."""
    await js.add_stream(StreamConfig(name=name, subjects=[f"{name}.>"]))
    futures = [
        await js.publish_async(f"{name}.a", str(n).encode().ljust(size)) for n in range(count)
    ]
    await asyncio.gather(*futures)


def numbers(payloads: list[bytes]) -> list[int]:
    return [int(one) for one in payloads]


async def test_everything_is_pushed(js: JetStreamContext, fresh: str) -> None:
    await fill(js, fresh, 100)
    push = await js.subscribe(f"{fresh}.a", durable="d")
    messages = [await push.next_msg(timeout=WAIT_S) for _ in range(100)]
    assert numbers([one.data for one in messages]) == list(range(100))
    for message in messages:
        await message.ack_sync()
    info = await push.consumer_info()
    assert (info.num_ack_pending, info.num_pending, info.push_bound) == (0, 0, True)


async def test_flow_control_paces_a_large_stream(js: JetStreamContext, fresh: str) -> None:
    await fill(js, fresh, 600, size=4096)
    seen: list[bytes] = []

    async def take(message: Msg) -> None:
        seen.append(message.data)

    config = ConsumerConfig(
        ack_policy=AckPolicy.NONE,
        flow_control=True,
        idle_heartbeat=0.5,
        deliver_policy=DeliverPolicy.ALL,
    )
    await js.subscribe(f"{fresh}.a", cb=take, config=config, manual_ack=True)

    async def all_here() -> bool:
        return len(seen) >= 600

    await eventually(all_here, "600 messages under flow control")
    assert numbers(seen) == list(range(600))


async def test_idle_heartbeats(client: Client, js: JetStreamContext, fresh: str) -> None:
    await fill(js, fresh, 1)
    inbox = client.new_inbox()
    heard = await client.subscribe(inbox)
    config = ConsumerConfig(
        deliver_subject=inbox, ack_policy=AckPolicy.NONE, idle_heartbeat=0.2, flow_control=True
    )
    await js.add_consumer(fresh, config)
    assert (await heard.next_msg(timeout=WAIT_S)).data.strip() == b"0"
    headers = (await heard.next_msg(timeout=WAIT_S)).headers or {}
    assert (headers["Status"], headers["Description"]) == ("100", "Idle Heartbeat")
    assert (headers["Nats-Last-Consumer"], headers["Nats-Last-Stream"]) == ("1", "1")


async def test_a_group_shares(
    client: Client, other: Client, js: JetStreamContext, fresh: str
) -> None:
    await js.add_stream(StreamConfig(name=fresh, subjects=[f"{fresh}.>"]))
    seen: dict[str, list[int]] = {"one": [], "two": []}

    def taker(name: str) -> "Taker":
        return Taker(seen[name])

    await js.subscribe(f"{fresh}.a", queue="g", durable="g", cb=taker("one").take)
    await other.jetstream().subscribe(f"{fresh}.a", queue="g", durable="g", cb=taker("two").take)
    await settled(other)
    for number in range(100):
        await js.publish(f"{fresh}.a", str(number).encode())

    async def all_here() -> bool:
        return len(seen["one"]) + len(seen["two"]) == 100

    await eventually(all_here, "100 messages in the group")
    assert sorted(seen["one"] + seen["two"]) == list(range(100))
    assert all(len(part) > 10 for part in seen.values())


class Taker:
    """A callback that remembers."""

    def __init__(self, seen: list[int]) -> None:
        self.seen = seen

    async def take(self, message: Msg) -> None:
        """Note the number; nats-py acknowledges."""
        self.seen.append(int(message.data))


async def test_headers_only(js: JetStreamContext, fresh: str) -> None:
    await fill(js, fresh, 1, size=33)
    push = await js.subscribe(f"{fresh}.a", config=ConsumerConfig(headers_only=True))
    message = await push.next_msg(timeout=WAIT_S)
    assert (message.data, (message.headers or {})["Nats-Msg-Size"]) == (b"", "33")


async def test_an_ordered_consumer_sees_all_in_order(js: JetStreamContext, fresh: str) -> None:
    await fill(js, fresh, 300)
    ordered = await js.subscribe(f"{fresh}.a", ordered_consumer=True)
    found = [int((await ordered.next_msg(timeout=WAIT_S)).data) for _ in range(300)]
    assert found == list(range(300))


async def test_nobody_there_nothing_pushed(
    client: Client, js: JetStreamContext, fresh: str
) -> None:
    await fill(js, fresh, 3)
    inbox = client.new_inbox()
    config = ConsumerConfig(durable_name="d", deliver_subject=inbox, ack_policy=AckPolicy.EXPLICIT)
    await js.add_consumer(fresh, config)
    info = await js.consumer_info(fresh, "d")
    assert (info.push_bound, info.delivered and info.delivered.stream_seq) == (None, 0)
    heard = await client.subscribe(inbox)
    assert (await heard.next_msg(timeout=WAIT_S)).data.strip() == b"0"
