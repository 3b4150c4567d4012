"""Traces of messages that cross to another server: of the same kind, and of the other kind."""

import re
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass
from typing import Any

import nats
import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from jsctl.testing import Broker
from tests.contract.conftest import KINDS
from tests.support.traces import plain, steps
from tests.support.waiting import eventually, wait_for

ACCOUNTS = """
accounts {
  A: {users: [{user: a, password: a}], exports: [{service: "svc", allow_trace: true}]}
  B: {users: [{user: b, password: b}], imports: [{service: {account: A, subject: "svc"}}]}
}
"""
ROUTES = ("--cluster_name", "C", "--cluster", "nats://127.0.0.1:-1")
PAIRS = [("nats-server", "nats-server"), ("jsctl", "jsctl")]
PAIRS += [("nats-server", "jsctl"), ("jsctl", "nats-server")]
only = pytest.mark.parametrize("trace_only", [False, True], ids=["delivered", "only"])


@dataclass(slots=True)
class Pair:
    """Publishers on the first server, `a2` and what it got on the second."""

    a1: Client
    b1: Client
    a2: Client
    got: list[str]
    traces: dict[Client, Subscription]

    async def trace(self, by: Client, subject: str, *, trace_only: bool) -> list[dict[str, Any]]:
        """Publish, and both servers' events, that of the first one first."""
        traces = self.traces[by]
        self.got.clear()
        headers = {"Nats-Trace-Dest": "tr.x"} | ({"Nats-Trace-Only": "1"} if trace_only else {})
        await by.publish(subject, b"x", headers=headers)
        events = [plain((await traces.next_msg(30)).data) for _ in range(2)]
        await self.a2.flush()
        return sorted(events, key=lambda one: str(one["server"]["name"]))


@pytest.fixture(scope="module", params=PAIRS, ids=["-".join(one) for one in PAIRS])
def servers(request: pytest.FixtureRequest) -> Iterator[tuple[Broker, Broker]]:
    """Two routed servers."""
    first, second = request.param
    with ExitStack() as stack:
        s1 = stack.enter_context(KINDS[first](*ROUTES, config=ACCOUNTS, name="s1"))
        text = r"route connections on \S+:(\d+)"
        (port,) = wait_for(lambda: re.findall(text, s1.logs), "the port of routes")
        route = ("--routes", f"nats://127.0.0.1:{port}")
        s2 = stack.enter_context(KINDS[second](*ROUTES, *route, config=ACCOUNTS, name="s2"))
        yield s1, s2


@pytest.fixture
async def pair(servers: tuple[Broker, Broker]) -> AsyncIterator[Pair]:
    """Clients of two servers that know each other's interest."""
    s1, s2 = servers
    async with AsyncExitStack() as stack:
        made = []
        for server, user in ((s1, "a"), (s1, "b"), (s2, "a")):
            made.append(await _client(stack, server, user))
        a1, b1, a2 = made
        got: list[str] = []
        known: list[str] = []
        traces = {one: await one.subscribe("tr.x") for one in (a1, b1)}

        async def note(message: Msg) -> None:
            (got if message.data else known).append(message.subject)

        for subject, queue in (("p", ""), ("q", "g"), ("svc", "")):
            await a2.subscribe(subject, queue=queue, cb=note)
        await a2.flush()
        for client, subject in ((a1, "p"), (a1, "q"), (b1, "svc")):

            async def crosses(client: Client = client, subject: str = subject) -> bool:
                await client.publish(subject, b"")
                await client.flush()
                await a2.flush()
                return subject in known

            await eventually(crosses, f"interest in {subject} is known")
        yield Pair(a1, b1, a2, got, traces)


async def _client(stack: AsyncExitStack, server: Broker, user: str) -> Client:
    made = await nats.connect(server.url, user=user, password=user, name=user)
    stack.push_async_callback(made.close)
    return made


def _header(event: dict[str, Any]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = event["request"]["header"]
    return found


@only
@pytest.mark.parametrize(("subject", "queue"), [("p", ""), ("q", "queue=g ")])
async def test_both_servers_tell_their_part(
    pair: Pair, subject: str, queue: str, *, trace_only: bool
) -> None:
    here, there = await pair.trace(pair.a1, subject, trace_only=trace_only)
    assert here["hops"] == 1 and "hops" not in there
    assert steps(here) == [
        f"in acc=A kind=0 name=a subj={subject}",
        "eg hop=1 kind=1 name=s2",
    ]
    assert _header(there)["Nats-Trace-Hop"] == ["1"]
    assert steps(there) == [
        f"in acc=A kind=1 name=s1 subj={subject}",
        f"eg kind=0 name=a {queue}sub={subject}",
    ]

    async def delivered() -> bool:
        return pair.got.count(subject) >= 1

    if trace_only:
        await pair.a1.publish("p", b"later")
        await eventually(lambda: _in(pair.got, "p"), "what was published later")
        assert pair.got == ["p"]
    else:
        await eventually(delivered, "the message itself")


async def _in(got: list[str], subject: str) -> bool:
    return subject in got


@only
async def test_events_of_the_other_server_come_back_through_a_service_import(
    pair: Pair, *, trace_only: bool
) -> None:
    here, there = await pair.trace(pair.b1, "svc", trace_only=trace_only)
    assert steps(here) == [
        "in acc=B kind=0 name=b subj=svc",
        "eg hop=1 kind=1 name=s2",
        "si acc=A from=svc to=svc",
    ]
    assert _header(there)["Nats-Trace-Dest"] == ["_R_"]
    assert steps(there) == ["in acc=A kind=1 name=s1 subj=svc", "eg kind=0 name=a sub=svc"]
