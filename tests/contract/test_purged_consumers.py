"""Where consumers stand behind a purge of their stream, and what they deliver then."""

from typing import Any

import pytest
from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js.api import AckPolicy, ConsumerConfig, StreamConfig

from tests.contract.test_consumer_requests import WAIT_S, api, state
from tests.support.pulling import SECOND_NS, Puller

COUNT = 12
"""Messages to the subjects a, b and c in turn."""
PURGES: dict[str, dict[str, Any]] = {
    "all": {},
    "one subject": {"filter": "X.a"},
    "another subject": {"filter": "X.b"},
    "up to a sequence": {"seq": 8},
    "up to what is delivered": {"seq": 5},
    "but some": {"keep": 3},
    "a subject but one": {"filter": "X.a", "keep": 1},
    "by a pattern": {"filter": "X.*"},
}
FILTERS: dict[str, tuple[str, ...]] = {
    "none": (),
    "a": ("X.a",),
    "a and b": ("X.a", "X.b"),
    "pattern": ("X.*",),
}
ACKED = {"nothing": (), "the first": (0,), "the second": (1,), "all": (0, 1, 2, 3)}


async def filled(js: JetStreamContext, name: str) -> None:
    await js.add_stream(StreamConfig(name=name, subjects=[f"{name}.*"]))
    for number in range(COUNT):
        await js.publish(f"{name}.{'abc'[number % 3]}", b"%d" % number)


@pytest.mark.parametrize("delivered", [0, 4])
@pytest.mark.parametrize("filters", FILTERS)
@pytest.mark.parametrize("acked", ACKED)
async def test_where_a_consumer_stands(
    client: Client, js: JetStreamContext, fresh: str, delivered: int, filters: str, acked: str
) -> None:
    if not delivered and acked != "nothing":
        pytest.skip("nothing to acknowledge")
    found = {}
    for number, purge in enumerate(PURGES.values()):
        name = f"{fresh}{number}"
        await filled(js, name)
        subjects = [one.replace("X", name) for one in FILTERS[filters]]
        config = ConsumerConfig(
            durable_name="c", ack_policy=AckPolicy.EXPLICIT, filter_subjects=subjects or None
        )
        await js.add_consumer(name, config)
        pull = await Puller.open(client, name, "c")
        messages = []
        if delivered:
            await pull.ask(batch=delivered, expires=SECOND_NS)
            messages = await pull.take(delivered)
        for at in ACKED[acked]:
            await client.request(messages[at].reply, b"+ACK", timeout=WAIT_S)
        body = {key: one.replace("X", name) if key == "filter" else one for key, one in purge.items()}
        await api(client, f"STREAM.PURGE.{name}", body or None)
        told = state(await api(client, f"CONSUMER.INFO.{name}.c"))
        await js.publish(f"{name}.a", b"later")
        await pull.ask(batch=1, expires=SECOND_NS)
        message = await pull.next()
        place = message.metadata.sequence
        found[list(PURGES)[number]] = *told, place.consumer, place.stream
        await api(client, f"STREAM.DELETE.{name}")
    import os; open(os.environ["OUT"], "a").write(repr(((filters, delivered, acked), found)) + "\n")


EXPECTED: dict[Any, Any] = {}
