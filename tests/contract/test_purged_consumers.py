"""Where consumers stand behind a purge of their stream, and what they deliver then."""

from pathlib import Path
from typing import Any

import pytest
from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js.api import AckPolicy, ConsumerConfig, StreamConfig

from tests.contract.test_consumer_requests import WAIT_S, api, state
from tests.support.pulling import SECOND_NS, Puller
from tests.support.waiting import eventually

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
ROLLUPS = {"one subject": ("a", "sub"), "another subject": ("b", "sub"), "all": ("a", "all")}
"""The last token of the message's subject, and its header."""
FILTERS: dict[str, tuple[str, ...]] = {
    "none": (),
    "a": ("X.a",),
    "a and b": ("X.a", "X.b"),
    "pattern": ("X.*",),
}
ACKED = {"nothing": (), "the first": (0,), "the second": (1,), "all": (0, 1, 2, 3)}


async def filled(client: Client, js: JetStreamContext, name: str) -> None:
    config = StreamConfig(name=name, subjects=[f"{name}.*"], allow_rollup_hdrs=True)
    await js.add_stream(config)
    subjects = [f"{name}.{'abc'[number % 3]}" for number in range(COUNT)]
    for number, subject in enumerate(subjects[:-1]):
        await client.publish(subject, b"%d" % number)
    last = await js.publish(subjects[-1], b"%d" % (COUNT - 1))  # Behind all that came before.
    assert last.seq == COUNT


def expected(name: str) -> dict[tuple[str, int, str], dict[str, tuple[int, ...]]]:
    """What is told for each purge, by filters, what was delivered, and acknowledged."""
    found: dict[tuple[str, int, str], dict[str, tuple[int, ...]]] = {}
    for line in Path(__file__).with_name(name).read_text().splitlines():
        if not line.startswith("#"):
            filters, delivered, acked, purge, told = line.split("; ")
            rows = found.setdefault((filters, int(delivered), acked), {})
            rows[purge] = tuple(map(int, told.split()))
    return found


PURGED = expected("purged_consumers.txt")
ROLLED_UP = expected("rolled_up_consumers.txt")


async def consumed(
    client: Client, js: JetStreamContext, name: str, filters: str, delivered: int, acked: str
) -> Puller:
    """A stream with messages, and its consumer `c`, which has delivered some."""
    await filled(client, js, name)
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
    return pull


async def standing(
    client: Client, js: JetStreamContext, name: str, pull: Puller
) -> tuple[int, ...]:
    """Where the consumer stands, and what it delivers next."""
    told = state(await api(client, f"CONSUMER.INFO.{name}.c"))
    await js.publish(f"{name}.a", b"later")
    await pull.ask(batch=1, expires=SECOND_NS)
    place = (await pull.next()).metadata.sequence
    await api(client, f"STREAM.DELETE.{name}")
    return (*told, place.consumer, place.stream)


@pytest.mark.parametrize(("filters", "delivered", "acked"), PURGED)
async def test_where_a_consumer_stands(
    client: Client, js: JetStreamContext, fresh: str, filters: str, delivered: int, acked: str
) -> None:
    found = {}
    for number, (purge, asked) in enumerate(PURGES.items()):
        name = f"{fresh}{number}"
        pull = await consumed(client, js, name, filters, delivered, acked)
        body = dict(asked)
        if "filter" in asked:
            body["filter"] = asked["filter"].replace("X", name)
        await api(client, f"STREAM.PURGE.{name}", body or None)
        found[purge] = await standing(client, js, name, pull)
    assert found == PURGED[filters, delivered, acked]


@pytest.mark.parametrize(("filters", "delivered", "acked"), ROLLED_UP)
async def test_a_rollup_is_a_purge(
    client: Client, js: JetStreamContext, fresh: str, filters: str, delivered: int, acked: str
) -> None:
    found = {}
    for number, (kind, (token, what)) in enumerate(ROLLUPS.items()):
        name = f"{fresh}{number}"
        pull = await consumed(client, js, name, filters, delivered, acked)
        await js.publish(f"{name}.{token}", b"r", headers={"Nats-Rollup": what})
        found[kind] = await standing(client, js, name, pull)
    assert found == ROLLED_UP[filters, delivered, acked]


@pytest.mark.parametrize("count", [0, 2])
@pytest.mark.parametrize("pattern", [None, ">"])
async def test_a_purge_beyond_the_last_message_is_where_the_stream_goes_on(
    client: Client, js: JetStreamContext, fresh: str, count: int, pattern: str | None
) -> None:
    await js.add_stream(StreamConfig(name=fresh, subjects=[f"{fresh}.*"]))
    await js.add_consumer(fresh, ConsumerConfig(durable_name="c", ack_policy=AckPolicy.EXPLICIT))
    for _ in range(count):
        await js.publish(f"{fresh}.a")
    asked = {"seq": 9} | ({"filter": pattern} if pattern else {})
    answer = await api(client, f"STREAM.PURGE.{fresh}", asked)
    assert answer["purged"] == count
    found = (await js.stream_info(fresh)).state
    assert (found.messages, found.first_seq, found.last_seq) == (0, 9, 8)
    info = await api(client, f"CONSUMER.INFO.{fresh}.c")
    assert (info["delivered"]["stream_seq"], info["num_pending"]) == (8, 0)
    assert (await js.publish(f"{fresh}.a")).seq == 9
    pull = await Puller.open(client, fresh, "c")
    await pull.ask(batch=1, expires=SECOND_NS)
    assert (await pull.next()).metadata.sequence.stream == 9


async def test_limits_that_become_interest_let_go_of_what_was_consumed(
    client: Client, js: JetStreamContext, fresh: str
) -> None:
    await filled(client, js, fresh)
    await js.add_consumer(fresh, ConsumerConfig(durable_name="c", ack_policy=AckPolicy.EXPLICIT))
    pull = await Puller.open(client, fresh, "c")
    await pull.ask(batch=5, expires=SECOND_NS)
    messages = await pull.take(5)
    for at in (0, 1, 3):
        await client.request(messages[at].reply, b"+ACK", timeout=WAIT_S)
    info = await api(client, f"STREAM.INFO.{fresh}")
    assert info["state"]["messages"] == COUNT
    answer = await api(client, f"STREAM.UPDATE.{fresh}", info["config"] | {"retention": "interest"})
    assert answer["config"]["retention"] == "interest"

    async def gone() -> bool:
        found = await api(client, f"STREAM.INFO.{fresh}", {"deleted_details": True})
        state = found["state"]
        return (state["messages"], state["first_seq"]) == (COUNT - 3, 3)

    await eventually(gone, "what was consumed to go", WAIT_S)
