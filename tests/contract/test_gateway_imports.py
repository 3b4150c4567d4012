"""Services and streams that accounts take from each other, across clusters of either kind."""

from collections.abc import Iterator
from contextlib import AsyncExitStack

import pytest
from nats.aio.msg import Msg

from jsctl.testing import Broker
from tests.support.gateways import IDS, PAIRS, gatewayz, pair
from tests.support.listeners import WAIT_S, connected, listen
from tests.support.waiting import wait_for

ACCOUNTS = """
accounts {
    OWNER: {
        users: [ {user: owner, password: p} ]
        exports: [ {service: "do.*"}, {service: "many.*", response: stream}, {stream: "news.>"} ]
    }
    TAKER: {
        users: [ {user: taker, password: p} ]
        imports: [
            {service: {account: OWNER, subject: "do.*"}, to: "please.*"}
            {service: {account: OWNER, subject: "many.*"}}
            {stream: {account: OWNER, subject: "news.>"}, prefix: from}
        ]
    }
}
"""


@pytest.fixture(scope="module", params=PAIRS, ids=IDS)
def servers(request: pytest.FixtureRequest) -> Iterator[dict[str, Broker]]:
    """The one server of each cluster."""
    with pair(request.param, a=ACCOUNTS, b=ACCOUNTS) as (a, b):
        yield {"a": a, "b": b}


both_ways = pytest.mark.parametrize(("here", "there"), [("a", "b"), ("b", "a")])


def told_of(broker: Broker, account: str, start: str) -> None:
    """Wait until another cluster told of interest in an account that begins so."""

    def fact() -> bool:
        rows = gatewayz(broker, f"acc_name={account}&subs=1")["outbound_gateways"]
        return any(
            subject.startswith(start)
            for row in rows.values()
            for found in row.get("accounts", ())
            for subject in found.get("subscriptions_list", ())
        )

    wait_for(fact, f"{broker.name} is told of {start} in {account}")


@both_ways
async def test_a_service_of_the_other_cluster_answers(
    servers: dict[str, Broker], here: str, there: str
) -> None:
    async with AsyncExitStack() as stack:
        owner = await connected(stack, servers[there], "owner")
        taker = await connected(stack, servers[here], "taker")

        async def answer(message: Msg) -> None:
            await message.respond(message.subject.encode() + b":" + message.data)

        await owner.subscribe(f"do.{here}", cb=answer)
        await owner.flush()
        told_of(servers[here], "OWNER", f"do.{here}")
        for number in range(20):
            got = await taker.request(f"please.{here}", b"%d" % number, timeout=WAIT_S)
            assert got.data == b"do.%s:%d" % (here.encode(), number)


@both_ways
async def test_a_service_answers_more_than_once(
    servers: dict[str, Broker], here: str, there: str
) -> None:
    async with AsyncExitStack() as stack:
        owner = await connected(stack, servers[there], "owner")
        taker = await connected(stack, servers[here], "taker")

        async def answer(message: Msg) -> None:
            for number in range(5):
                await message.respond(b"%d" % number)

        await owner.subscribe(f"many.{here}", cb=answer)
        await owner.flush()
        told_of(servers[here], "OWNER", f"many.{here}")
        heard = await listen(taker, "answers")
        await taker.publish(f"many.{here}", b"x", reply="answers")
        found = await heard.reach(5)
        assert [message.data for message in found] == [b"%d" % number for number in range(5)]


@both_ways
async def test_a_stream_of_the_other_cluster_is_heard(
    servers: dict[str, Broker], here: str, there: str
) -> None:
    async with AsyncExitStack() as stack:
        owner = await connected(stack, servers[there], "owner")
        taker = await connected(stack, servers[here], "taker")
        heard = await listen(taker, f"from.news.{here}.>")
        told_of(servers[there], "OWNER", f"news.{here}")
        for number in range(20):
            await owner.publish(f"news.{here}.{number}", b"%d" % number)
        found = await heard.reach(20)
        assert [message.subject for message in found] == [
            f"from.news.{here}.{number}" for number in range(20)
        ]
