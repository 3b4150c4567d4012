"""What an origin gives to who asks as a mirror or source does: the same words, either way."""

import json
from typing import Any

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import JetStreamContext

from jsctl.api.stream import StreamConfig, StreamSource
from jsctl.broker.jetstream.sourcing import asking
from jsctl.broker.jetstream.sourcing.asking import Granted, Metadata, Start
from jsctl.broker.jetstream.sourcing.origin import UpstreamOrigin, sources_of
from jsctl.broker.protocol import headers as blocks
from tests.support.waiting import eventually

WAIT_S = 30.0


def origin_of(stream: str, **more: Any) -> UpstreamOrigin:
    declared = StreamSource(name=stream, **more)
    (found,) = sources_of("A", StreamConfig(name="TAKER", sources=(declared,)), "")
    return found


async def ask(
    client: Client, origin: UpstreamOrigin, start: Start | None = None, identity: str = ""
) -> tuple[Msg, str]:
    """The answer to the request that our own streams make, and what it delivers to."""
    deliver = client.new_inbox()
    request = asking.request(
        origin, start or Start(), deliver.encode(), 5, identity, Metadata("TAKER", "A"), "nonce"
    )
    headers: dict[str, str] = {}
    for line in request.headers.split(b"\r\n")[1:]:
        key, _, value = line.decode().partition(": ")
        headers |= {key: value} if key else {}
    answer = await client.request(
        request.subject.decode(), request.payload, headers=headers, timeout=WAIT_S
    )
    return answer, deliver


def read(origin: UpstreamOrigin, answer: Msg) -> Any:
    pairs = [(key.encode(), value.encode()) for key, value in (answer.headers or {}).items()]
    return asking.read_answer(origin, blocks.build(pairs), answer.data)


async def create(client: Client, name: str, **more: Any) -> None:
    body = json.dumps({"name": name, "subjects": [f"{name}.>"], **more}).encode()
    answer = await client.request(f"$JS.API.STREAM.CREATE.{name}", body, timeout=WAIT_S)
    assert "error" not in json.loads(answer.data)


async def names(client: Client, stream: str) -> list[str]:
    answer = await client.request(f"$JS.API.CONSUMER.NAMES.{stream}", b"", timeout=WAIT_S)
    return json.loads(answer.data)["consumers"] or []


@pytest.mark.parametrize(
    ("more", "start", "begun", "expected"),
    [
        ({}, None, 0, [1, 2, 3]),
        ({}, Start(2), 1, [2, 3]),
        ({}, Start(9), 8, []),
        ({"filter_subject": "NAME.2"}, None, 0, [2]),
    ],
    ids=["all", "sequence", "behind the end", "filter"],
)
async def test_a_consumer_of_the_leader_alone(
    client: Client,
    js: JetStreamContext,
    fresh: str,
    more: dict[str, str],
    start: Start | None,
    begun: int,
    expected: list[int],
) -> None:
    await create(client, fresh)
    for number in (1, 2, 3):
        await js.publish(f"{fresh}.{number}", b"x")
    origin = origin_of(fresh, **{key: value.replace("NAME", fresh) for key, value in more.items()})
    heard: list[Msg] = []
    answer, to = await ask(client, origin, start)

    async def take(message: Msg) -> None:
        heard.append(message)

    await client.subscribe(to, cb=take)
    granted = read(origin, answer)
    assert isinstance(granted, Granted)
    name = granted.consumer.decode()
    assert name.startswith(origin.consumer + "-") and len(name) == len(origin.consumer) + 9
    assert len(granted.identity) == 8 and granted.delivered == begun

    def seqs() -> list[int]:
        rows = [one.reply.split(".") for one in heard if one.reply.startswith("$JS.ACK.")]
        assert {row[3] for row in rows} <= {name}
        return [int(row[5]) for row in rows]

    async def delivered() -> bool:
        return len(seqs()) == len(expected)

    await eventually(delivered, "all is delivered", WAIT_S)

    assert seqs() == expected
    if start is not None or more:
        return

    async def beats() -> list[Msg]:
        return [one for one in heard if not one.reply and one.headers]

    beat = (await eventually(beats, "a heartbeat comes", WAIT_S))[0]
    assert beat.headers is not None
    assert beat.headers["Nats-Last-Consumer"] == str(len(expected))
    assert await names(client, fresh) == []


async def test_who_means_an_earlier_stream_is_told(client: Client, fresh: str) -> None:
    await create(client, fresh)
    origin = origin_of(fresh)
    granted = read(origin, (await ask(client, origin))[0])
    again = read(origin, (await ask(client, origin, identity=granted.identity))[0])
    assert isinstance(again, Granted) and again.consumer != granted.consumer
    refused = read(origin, (await ask(client, origin, identity="AAAABBBB"))[0])
    assert refused.err_code == 10225
    assert refused.description.endswith(granted.identity)


@pytest.mark.parametrize("retention", ["workqueue", "interest"])
async def test_a_stream_that_lets_go_remembers_who_asked(
    client: Client, js: JetStreamContext, fresh: str, retention: str
) -> None:
    await create(client, fresh, retention=retention)
    origin = origin_of(fresh)
    heard: list[Msg] = []

    async def take(message: Msg) -> None:
        heard.append(message)

    async def listen() -> None:
        """Ask, and take what comes."""
        heard.clear()
        answer, to = await ask(client, origin)
        assert isinstance(read(origin, answer), Granted)
        await (await client.subscribe(to, cb=take)).unsubscribe(limit=100)

    await listen()
    assert await names(client, fresh) == [origin.consumer]
    info = await js.consumer_info(fresh, origin.consumer)
    assert (info.config.durable_name, info.config.ack_policy) == (origin.consumer, "flow_control")
    for number in (1, 2, 3):
        await js.publish(f"{fresh}.{number}", b"x")

    async def flow() -> list[Msg]:
        return [one for one in heard if one.reply.startswith("$JS.FC.")]

    (request, *_) = await eventually(flow, "it asks for flow control", WAIT_S)
    told = {"Nats-Last-Consumer": "2", "Nats-Last-Stream": "2"}
    await client.publish(request.reply, b"", headers=told)

    async def left() -> bool:
        return (await js.stream_info(fresh)).state.messages == 1

    await eventually(left, "what was acknowledged is gone", WAIT_S)
