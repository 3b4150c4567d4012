"""Replies between two clusters, of servers of either kind; what else crosses is in `test_links`."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg

from jsctl.testing import Broker
from tests.support.gateways import IDS, PAIRS, pair, told
from tests.support.listeners import WAIT_S, connected
from tests.support.waiting import eventually


@pytest.fixture(scope="module", params=PAIRS, ids=IDS)
def servers(request: pytest.FixtureRequest) -> Iterator[dict[str, Broker]]:
    """The one server of each cluster."""
    with pair(request.param) as (a, b):
        yield {"a": a, "b": b}


@pytest.fixture
async def clients(servers: dict[str, Broker]) -> AsyncIterator[dict[str, Client]]:
    """A client of each."""
    async with AsyncExitStack() as stack:
        yield {name: await connected(stack, server) for name, server in servers.items()}


both_ways = pytest.mark.parametrize(("here", "there"), [("a", "b"), ("b", "a")])


@both_ways
async def test_a_reply_that_was_subscribed_a_moment_ago_is_found(
    servers: dict[str, Broker], clients: dict[str, Client], here: str, there: str
) -> None:
    """Each request has an inbox of its own, which the other cluster has not heard of yet."""
    replies: list[str] = []

    async def answer(message: Msg) -> None:
        replies.append(message.reply)
        await message.respond(b"re: " + message.data)

    await clients[there].subscribe(f"fresh.{here}", cb=answer)
    await clients[there].flush()
    told(servers[here], f"fresh.{here}")
    for number in range(50):
        inbox = clients[here].new_inbox()
        heard = await clients[here].subscribe(inbox, max_msgs=1)
        await clients[here].publish(f"fresh.{here}", b"%d" % number, reply=inbox)
        assert (await heard.next_msg(WAIT_S)).data == b"re: %d" % number
        assert replies[-1] == inbox


@both_ways
async def test_a_late_answer_is_led_by_interest(
    servers: dict[str, Broker], clients: dict[str, Client], here: str, there: str
) -> None:
    asked = await clients[there].subscribe(f"late.{here}")
    await clients[there].flush()
    told(servers[here], f"late.{here}")
    inbox = clients[here].new_inbox()
    heard = await clients[here].subscribe(inbox)
    await clients[here].publish(f"late.{here}", b"1", reply=inbox)
    question = await asked.next_msg(WAIT_S)
    told(servers[there], inbox)
    # What leads answers back is forgotten after two seconds.
    started = asyncio.get_running_loop().time()

    async def old() -> bool:
        return asyncio.get_running_loop().time() - started > 2.5

    await eventually(old, "two seconds are over")
    await question.respond(b"at last")
    assert (await heard.next_msg(WAIT_S)).data == b"at last"
