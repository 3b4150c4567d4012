"""Super-clusters of a cluster of ours and one of real servers, with the real `nats` tool and a
Python client at both ends. One side alone has a JetStream, and it is used from the other one."""

import asyncio
import json
import subprocess
from collections.abc import Iterator
from contextlib import AsyncExitStack

import pytest
from nats.aio.msg import Msg

from jsctl.testing import Broker
from tests.support.gateways import told
from tests.support.listeners import WAIT_S, connected
from tests.support.nats_tool import NATS, nats, needed
from tests.support.super_clusters import meta_leader, on_the_way, super_cluster
from tests.support.waiting import eventually, wait_for

SIZES = {"a": 1, "b": 3}
KINDS = [("nats-server", "jsctl"), ("jsctl", "nats-server")]
"""Of the servers of cluster a, and of cluster b."""
ours_store = pytest.mark.parametrize("servers", KINDS[:1], indirect=True)
"""Clients of a broker without JetStream do not reach that of nats-servers in another cluster."""
ENDS = [("a1", "b2"), ("b2", "a1")]


@pytest.fixture(scope="module", params=KINDS, ids=["-".join(pair) for pair in KINDS])
def servers(request: pytest.FixtureRequest) -> Iterator[dict[str, Broker]]:
    """The servers by name; those of cluster `b` have JetStream."""
    kinds = dict(zip(SIZES, request.param, strict=True))
    with super_cluster(kinds, SIZES, jetstream=True, only="b") as found:
        meta_leader(found["b1"], SIZES["b"])
        yield found


def started(server: Broker, *words: str) -> "subprocess.Popen[str]":
    """The real tool, which goes on."""
    assert NATS is not None
    return subprocess.Popen(
        [NATS, "--server", server.url, *words], stdout=subprocess.PIPE, text=True
    )


def done(server: Broker, *words: str) -> str:
    """What the real tool printed when it was done."""
    found = nats("--server", server.url, *words)
    assert found.returncode == 0, found.stdout + found.stderr
    return found.stdout


@needed
@pytest.mark.parametrize(("here", "there"), ENDS)
def test_the_real_tool_at_both_ends(servers: dict[str, Broker], here: str, there: str) -> None:
    subject = f"tool.{here}"
    with started(servers[there], "sub", subject, "--count", "20", "--raw") as listening:
        told(servers[here], subject)
        done(servers[here], "pub", subject, "word {{Count}}", "--count", "20")
        heard, _ = listening.communicate(timeout=WAIT_S)
    assert heard.split("\n")[:20] == [f"word {number}" for number in range(1, 21)]


@needed
@pytest.mark.parametrize(("here", "there"), ENDS)
def test_a_service_of_the_real_tool(servers: dict[str, Broker], here: str, there: str) -> None:
    subject = f"ask.{here}"
    with started(servers[there], "reply", subject, "answer", "--count", "1") as service:
        told(servers[here], subject)
        assert done(servers[here], "request", subject, "x", "--raw").strip() == "answer"
        service.communicate(timeout=WAIT_S)


@pytest.mark.parametrize(("here", "there"), ENDS)
async def test_a_group_shares_requests(servers: dict[str, Broker], here: str, there: str) -> None:
    """Two members over there, one of them at another server where there is one."""
    subject, counts = f"work.{here}", [0, 0]
    names = ("b2", "b3") if there == "b2" else ("a1", "a1")

    async with AsyncExitStack() as stack:
        for at, name in enumerate(names):

            async def answer(message: Msg, at: int = at) -> None:
                counts[at] += 1
                await message.respond(message.data)

            member = await connected(stack, servers[name])
            await member.subscribe(subject, "q", cb=answer)
            await member.flush()
        await asyncio.to_thread(told, servers[here], subject)
        client = await connected(stack, servers[here])
        for number in range(50):
            got = await client.request(subject, b"%d" % number, timeout=WAIT_S)
            assert got.data == b"%d" % number
    assert sum(counts) == 50 and all(counts)


@ours_store
@needed
def test_the_other_side_uses_the_streams(servers: dict[str, Broker]) -> None:
    far, near = servers["a1"], servers["b1"]
    more = ("--subjects", "far.>", "--replicas", "3", "--defaults")
    assert "far.>" in wait_for(
        lambda: nats("--server", far.url, "stream", "add", "FAR", *more).stdout, "it is made"
    )
    told(far, "far.>")
    done(far, "pub", "far.x", "word {{Count}}", "--count", "10", "--jetstream")
    for server in (far, near):
        info = json.loads(done(server, "stream", "info", "FAR", "--json"))
        assert info["state"]["messages"] == 10 and len(info["cluster"]["replicas"]) == 2
    done(far, "consumer", "add", "FAR", "C", "--pull", "--defaults")
    told(far, "$JS.API.CONSUMER.MSG.NEXT.FAR.C")
    got = done(far, "consumer", "next", "FAR", "C", "--count", "3", "--raw", "--ack")
    assert got.split() == ["word", "1", "word", "2", "word", "3"]
    state = json.loads(done(near, "consumer", "info", "FAR", "C", "--json"))
    assert state["ack_floor"]["stream_seq"] == 3
    assert "FAR" in done(far, "stream", "ls", "--names")


@ours_store
async def test_a_python_client_publishes_to_the_other_side(servers: dict[str, Broker]) -> None:
    async with AsyncExitStack() as stack:
        js = (await connected(stack, servers["a1"])).jetstream(timeout=WAIT_S)
        await js.add_stream(name="PY", subjects=["py.>"], num_replicas=3)
        await asyncio.to_thread(told, servers["a1"], "py.>")
        for number in range(1, 51):
            assert (await js.publish("py.x", b"%d" % number)).seq == number
        reader = await js.pull_subscribe("py.>", durable="D", stream="PY")
        await asyncio.to_thread(told, servers["a1"], "$JS.API.CONSUMER.MSG.NEXT.PY.D")
        found = await reader.fetch(50, timeout=WAIT_S)
        assert [int(message.data) for message in found] == list(range(1, 51))


@ours_store
async def test_any_server_that_the_gateway_leads_to_sees_to_requests(
    servers: dict[str, Broker],
) -> None:
    way = on_the_way(servers)
    async with AsyncExitStack() as stack:
        admin = await connected(stack, servers["b1"], "admin")
        far = await connected(stack, servers["a1"])

        async def leads_elsewhere() -> bool:
            leader = await asyncio.to_thread(meta_leader, servers[way], SIZES["b"])
            if leader == way:
                await admin.request("$JS.API.META.LEADER.STEPDOWN", b"", timeout=WAIT_S)
            return leader != way

        await eventually(leads_elsewhere, "another server leads")
        for _ in range(5):
            answer = json.loads((await far.request("$JS.API.INFO", b"", timeout=WAIT_S)).data)
            assert "error" not in answer
