"""JetStream across imports, and traces of it, in clusters whose clients are all over the place."""

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from typing import Any

import nats
import pytest
from nats.aio.client import Client
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy, StreamConfig

from jsctl.testing import Cluster
from tests.contract.conftest import KINDS
from tests.support.traces import plain, steps
from tests.support.waiting import eventually

WAIT_S = 30
COUNT = 20
ACCOUNTS = """
accounts {
  $SYS {users: [{user: sys, password: sys}]}
  A {
    jetstream: enabled, users: [{user: a, password: p}]
    exports: [{stream: "deliver.*"}, {service: "$JS.API.>", response_type: stream}
              {service: "$JS.ACK.>"}]
  }
  B {
    users: [{user: b, password: p}]
    imports: [{stream: {account: A, subject: "deliver.x"}}, {stream: {account: A,
               subject: "deliver.q"}}
              {service: {account: A, subject: "$JS.API.>"}, to: "JS.A.>"}
              {service: {account: A, subject: "$JS.ACK.>"}}]
  }
}
"""


@pytest.fixture(scope="module", params=list(KINDS))
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Three servers."""
    with Cluster(3, server=KINDS[str(request.param)], config=ACCOUNTS) as running:
        yield running


@pytest.fixture
async def clients(cluster: Cluster) -> AsyncIterator[dict[str, Client]]:
    """A client of each account on each server: `a1` to `b3`."""
    async with AsyncExitStack() as stack:
        made: dict[str, Client] = {}
        for number, url in enumerate(cluster.urls, 1):
            for user in "ab":
                one = await nats.connect(url, user=user, password="p", connect_timeout=WAIT_S)
                stack.push_async_callback(one.close)
                made[f"{user}{number}"] = one
        yield made


async def stream(client: Client, name: str) -> str:
    """A replicated stream of one subject; the number of its leader's server."""
    js = client.jetstream(timeout=WAIT_S)
    await js.add_stream(StreamConfig(name=name, subjects=[name.lower()], num_replicas=3))
    found: list[str] = []

    async def led() -> bool:
        info = await js.stream_info(name)
        found[:] = [(info.cluster and info.cluster.leader) or ""]
        return bool(found[0])

    await eventually(led, "a leader")
    return found[0].removeprefix("n")


@pytest.mark.parametrize("queue", ["", "g"])
async def test_a_push_consumer_delivers_once_on_every_server(
    clients: dict[str, Client], queue: str
) -> None:
    name = f"PUSH{queue}"
    deliver = "deliver.q" if queue else "deliver.x"
    await stream(clients["a1"], name)
    heard: list[tuple[str, str, bytes]] = []
    for server in "123":

        async def note(message: Any, server: str = server) -> None:
            heard.append((server, message.subject, message.data))

        await clients[f"b{server}"].subscribe(deliver, queue=queue, cb=note)
        await clients[f"b{server}"].flush()
    js = clients["a1"].jetstream(timeout=WAIT_S)
    config = ConsumerConfig(
        durable_name="d",
        deliver_subject=deliver,
        deliver_group=queue or None,
        deliver_policy=DeliverPolicy.ALL,
        ack_policy=AckPolicy.NONE,
    )
    await js.add_consumer(name, config)
    for number in range(COUNT):
        await js.publish(name.lower(), b"%d" % number)
    expected = COUNT if queue else 3 * COUNT

    async def all_there() -> bool:
        return len(heard) >= expected

    await eventually(all_there, "all deliveries")
    for one in clients.values():
        await one.flush()
    assert len(heard) == expected
    assert {subject for _, subject, _ in heard} == {name.lower()}
    every = [int(data) for _, _, data in heard]
    assert sorted(every) == sorted(list(range(COUNT)) * (1 if queue else 3))


async def test_pulls_across_a_service_import(clients: dict[str, Client]) -> None:
    leader = await stream(clients["a1"], "PULL")
    js = clients["a1"].jetstream(timeout=WAIT_S)
    await js.add_consumer("PULL", ConsumerConfig(durable_name="d", ack_policy=AckPolicy.EXPLICIT))
    for number in range(COUNT):
        await js.publish("pull", b"%d" % number)
    other = "2" if leader == "1" else "1"
    for server in (leader, other):
        client = clients[f"b{server}"]
        inbox = client.new_inbox()
        subscription = await client.subscribe(inbox)
        ask = json.dumps({"batch": COUNT // 2, "expires": 20_000_000_000}).encode()
        await client.publish("JS.A.CONSUMER.MSG.NEXT.PULL.d", ask, reply=inbox)
        got = [await subscription.next_msg(WAIT_S) for _ in range(COUNT // 2)]
        start = 0 if server == leader else COUNT // 2
        assert [int(one.data) for one in got] == list(range(start, start + COUNT // 2))
        for one in got:
            await client.publish(one.reply, b"+ACK")
        await client.flush()
        assert subscription.pending_msgs == 0
        await subscription.unsubscribe()

    async def acknowledged() -> bool:
        info = await js.consumer_info("PULL", "d")
        return bool(info.num_ack_pending == 0)

    await eventually(acknowledged, "all acks")


@pytest.mark.parametrize("trace_only", [False, True], ids=["delivered", "only"])
@pytest.mark.parametrize("at_leader", [True, False], ids=["leader", "elsewhere"])
async def test_the_leader_tells_what_becomes_of_a_traced_message(
    clients: dict[str, Client], *, at_leader: bool, trace_only: bool
) -> None:
    name = f"TR{at_leader:d}{trace_only:d}"
    leader = await stream(clients["a1"], name)
    server = leader if at_leader else "2" if leader == "1" else "1"
    client = clients[f"a{server}"]
    js = client.jetstream(timeout=WAIT_S)
    await js.publish(name.lower(), b"first")
    traces = await client.subscribe("tr.x")
    await client.flush()
    headers = {"Nats-Trace-Dest": "tr.x"} | ({"Nats-Trace-Only": "1"} if trace_only else {})
    await client.publish(name.lower(), b"x", headers=headers)
    events = [plain((await traces.next_msg(WAIT_S)).data)]
    while len(events) <= sum(one.get("hops", 0) for one in events):
        events.append(plain((await traces.next_msg(WAIT_S)).data))
    told = {one["server"]["name"]: steps(one) for one in events}
    assert len(told) == len(events)
    judged = [
        (where, step) for where, said in told.items() for step in said if step.startswith("js")
    ]
    assert judged == [(f"n{leader}", f"js stream={name} subject={name.lower()}")]
    await js.publish(name.lower(), b"last")
    state = (await js.stream_info(name)).state
    assert state.messages == (2 if trace_only else 3)
    stored = [await js.get_msg(name, one) for one in range(1, state.last_seq + 1)]
    bodies = [b"first", b"last"] if trace_only else [b"first", b"x", b"last"]
    assert [one.data for one in stored] == bodies
