"""The walk of an operator through a super-cluster of ours and of real servers, with leaf nodes of
each at the other: the real `nats`, `jsctl` and a Python client at all ends."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import NoRespondersError
from nats.js.api import PubAck
from nats.js.errors import NoStreamResponseError, ServiceUnavailableError

from jsctl.testing import Broker
from tests.support.forked import jsctl
from tests.support.gateways import page
from tests.support.listeners import WAIT_S, connected, known, listen, settle
from tests.support.mixtures import SIZES, mixture
from tests.support.nats_tool import NATS, nats, needed
from tests.support.waiting import eventually, wait_for

pytestmark = needed
KINDS = ["jsctl", "nats-server"]
"""Of the servers of c1, which have JetStream; those of c2 are of the other kind."""
ALL = sorted([f"{one}-{n + 1}" for one, size in SIZES.items() for n in range(size)])
TOOLS = {"nats": [str(NATS)], "jsctl": [sys.executable, "-m", "jsctl"]}
ENDS = [("c1-1", "c2-2"), ("edge2", "edge1")]
Servers = dict[str, Broker]
tools = pytest.mark.parametrize("tool", list(TOOLS))
ends = pytest.mark.parametrize(("here", "there"), ENDS)
looks = pytest.mark.parametrize(
    ("tool", "name"), [("nats", "c1-2"), ("jsctl", "c2-1"), ("nats", "edge2")]
)


@pytest.fixture(scope="module", params=KINDS)
def servers(request: pytest.FixtureRequest) -> Iterator[Servers]:
    """The servers by name."""
    with mixture(str(request.param)) as found:
        yield found


def said(tool: str, server: Broker, *words: str, admin: bool = False) -> str:
    """What a tool printed."""
    url = server.url.replace("nats://", "nats://admin:p@") if admin else server.url
    line = ["--no-context", "--server", url, *words]
    done = nats(*line) if tool == "nats" else jsctl(line, timeout=WAIT_S)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def started(tool: str, server: Broker, *words: str) -> "subprocess.Popen[str]":
    """A tool that goes on."""
    line = [*TOOLS[tool], "--no-context", "--server", server.url, *words]
    return subprocess.Popen(line, stdout=subprocess.PIPE, text=True)


def documents(text: str) -> list[dict[str, Any]]:
    """One for each line."""
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def cells(text: str) -> list[list[str]]:
    """The rows of a table, its titles and sums among them."""
    lines = [line for line in text.splitlines() if line.startswith("│")]
    return [[cell.strip() for cell in line.strip("│").split("│")] for line in lines]


@looks
def test_everybody_is_listed(servers: Servers, tool: str, name: str) -> None:
    words = ("server", "list", str(len(servers)), "--json")
    found = {
        one["server"]["name"]: one
        for one in json.loads(said(tool, servers[name], *words, admin=True))
    }
    assert sorted(found) == sorted(servers)
    for cluster, size in SIZES.items():
        for n in range(size):
            one = found[f"{cluster}-{n + 1}"]
            assert one["server"]["cluster"] == cluster
            assert one["server"].get("jetstream", False) is (cluster == "c1")
            (gateway,) = one["statsz"]["gateways"]
            assert gateway["name"] == ({*SIZES} - {cluster}).pop()
    ours = {name for name, server in servers.items() if type(server) is Broker}
    # The real ones wait for statistics, which everybody tells every ten seconds.
    assert {found[one]["statsz"]["active_servers"] for one in ours} == {len(servers)}


@looks
def test_gateways_are_reported(servers: Servers, tool: str, name: str) -> None:
    """Each server has one connection out; those that come in are as many as the others have. All
    have a round trip, soon after they were linked."""
    words = ("server", "report", "gateways", "7")

    def measured() -> list[list[str]]:
        rows = cells(said(tool, servers[name], *words, admin=True))
        rows = [row for row in rows if len(row) == 10]
        links = [row for row in rows if row[5].startswith("gid:")]
        return rows if links and all(row[7] not in ("", "0s") for row in links) else []

    kinds: list[tuple[str, str, str]] = []
    server = kind = ""
    for row in wait_for(measured, "round trips are known"):
        server, kind = row[0] or server, row[3] or kind
        if row[5].startswith("gid:"):
            kinds.append((server, kind, row[4].split()[0]))
    far = {"c1": "c2", "c2": "c1"}
    out = [(server, cluster) for server, kind, cluster in kinds if kind == "Outbound"]
    assert sorted(out) == [(server, far[server[:2]]) for server in ALL]
    inbound = sorted(cluster for _, kind, cluster in kinds if kind == "Inbound")
    assert inbound == sorted(far[far[server[:2]]] for server in ALL)


@looks
@pytest.mark.parametrize("more", [(), ("--accounts", "--subscriptions")])
def test_gateways_are_requested(
    servers: Servers, tool: str, name: str, more: tuple[str, ...]
) -> None:
    """The documents of both kinds have the same keys."""
    words = ("server", "request", "gateways", *more, str(len(servers)))
    found = {
        one["server"]["name"]: one["data"]
        for one in documents(said(tool, servers[name], *words, admin=True))
    }
    assert sorted(found) == sorted(servers)
    for one in ALL:
        assert found[one]["name"] == one[:2]
        (row,) = found[one]["outbound_gateways"].values()
        assert row["connection"]["rtt"]
        assert ("accounts" in row) is bool(more)
    assert _keys(found["c1-1"], "outbound_gateways") == _keys(found["c2-1"], "outbound_gateways")
    assert sorted(found["edge1"]) == sorted(found["edge2"])


def _keys(value: dict[str, Any], links: str) -> list[Any]:
    (row,) = value[links].values()
    by_name = {one["name"]: sorted(one) for one in row.get("accounts", ())}
    accounts = [by_name.get(name) for name in ("APP", "$SYS")]
    return [sorted(value), sorted(row), sorted(row["connection"]), accounts]


@looks
def test_leaf_nodes_are_reported(servers: Servers, tool: str, name: str) -> None:
    rows = cells(said(tool, servers[name], "server", "report", "leafnodes", "7", admin=True))
    links = [(row[0], row[1], row[2], row[11]) for row in rows if row[2:3] in (["APP"], ["$SYS"])]
    for edge in ("edge1", "edge2"):
        mine = [row for row in links if row[0] == edge]
        assert sorted((row[2], row[3]) for row in mine) == [("$SYS", "true"), ("APP", "true")]
        for _, hub, account, _ in mine:
            assert hub.startswith(f"c{edge[-1]}-")
            assert (hub, edge, account, "false") in links


@looks
def test_round_trips(servers: Servers, tool: str, name: str) -> None:
    (found,) = json.loads(said(tool, servers[name], "rtt", "3", "--json"))
    assert found["url"].endswith(servers[name].url.partition("//")[2])


@tools
@ends
def test_messages_cross(servers: Servers, tool: str, here: str, there: str) -> None:
    """The tool at one end, the other tool at the other."""
    subject = f"walk.{tool}.{here}"
    (other,) = set(TOOLS) - {tool}
    with started(other, servers[there], "sub", subject, "--count", "3", "--raw") as listening:
        words = ("pub", subject, "word {{Count}}", "--count", "1")
        wait_for(
            lambda: (said(tool, servers[here], *words), listening.poll())[1] is not None,
            f"{there} hears {here}",
        )
        heard, _ = listening.communicate(timeout=WAIT_S)
    assert heard.split("\n")[:3] == ["word 1"] * 3


@tools
@ends
def test_requests_are_answered(servers: Servers, tool: str, here: str, there: str) -> None:
    subject = f"ask.{tool}.{here}"
    (other,) = set(TOOLS) - {tool}
    with started(other, servers[there], "reply", subject, "here I am", "--count", "1") as service:
        words = ("request", subject, "x", "--raw")
        answer = wait_for(lambda: said(tool, servers[here], *words).strip(), "an answer")
        service.communicate(timeout=WAIT_S)
    assert answer == "here I am"


@pytest.fixture
async def clients(servers: Servers) -> Any:
    """A client of each server."""
    async with AsyncExitStack() as stack:
        yield {name: await connected(stack, server) for name, server in servers.items()}


@pytest.mark.parametrize("publisher", ["c1-1", "c2-2", "edge1", "edge2"])
async def test_everybody_hears_a_message_once(clients: dict[str, Client], publisher: str) -> None:
    subject = f"all.{publisher}"
    heard = {name: await listen(client, subject) for name, client in clients.items()}
    await known(clients[publisher], subject, *heard.values())
    for number in range(20):
        await clients[publisher].publish(subject, b"%d" % number)
    for one in heard.values():
        await one.reach(20)
    await settle(*clients.values())
    for name, one in heard.items():
        assert [int(message.data) for message in one] == list(range(20)), name


@pytest.mark.parametrize("publisher", ["c1-1", "c2-2"])
async def test_a_group_is_served_in_the_own_cluster(
    clients: dict[str, Client], publisher: str
) -> None:
    """Members in both clusters: who publishes is served by that of his own."""
    subject, own = f"near.{publisher}", publisher[:2]
    heard = {name: await listen(clients[name], subject, "q") for name in ("c1-3", "c2-1")}
    near, far = (
        next(heard[name] for name in heard if name.startswith(own) is wanted)
        for wanted in (True, False)
    )
    await known(clients[publisher], subject, near)
    far.clear()
    for number in range(20):
        await clients[publisher].publish(subject, b"%d" % number)
    await near.reach(20)
    await settle(*clients.values())
    assert (len(near), len(far)) == (20, 0)


@pytest.mark.parametrize(("here", "there"), ENDS)
async def test_a_group_elsewhere_answers(clients: dict[str, Client], here: str, there: str) -> None:
    """Two members at the other end share the requests; each is answered once."""
    subject, counts = f"work.{here}", [0, 0]

    async def member(at: int) -> None:
        async def answer(message: Msg) -> None:
            counts[at] += 1
            await message.respond(message.data)

        await clients[there].subscribe(subject, "q", cb=answer)

    for at in range(2):
        await member(at)
    await clients[there].flush()

    async def reached() -> bool:
        try:
            return bool((await clients[here].request(subject, b"?", timeout=WAIT_S)).data)
        except NoRespondersError:
            return False

    await eventually(reached, "the group is known")
    counts[:] = [0, 0]
    for number in range(40):
        got = await clients[here].request(subject, b"%d" % number, timeout=WAIT_S)
        assert got.data == b"%d" % number
    assert sum(counts) == 40 and all(counts)


async def _used(client: Client, name: str, subject: str, domain: str, **config: Any) -> None:
    """A stream is made, published to, and pulled from."""
    js = client.jetstream(domain=domain, timeout=WAIT_S)
    await js.add_stream(name=name, subjects=[f"{subject}.>"], **config)

    async def stored(number: int) -> PubAck | None:
        """With an id: what was stored, although who published it was told of no responders, as long
        as the servers find out who listens."""
        once = {"Nats-Msg-Id": str(number)}
        try:
            return await js.publish(f"{subject}.x", b"%d" % number, stream=name, headers=once)
        except (NoRespondersError, NoStreamResponseError, ServiceUnavailableError):
            return None

    for number in range(10):
        ack = await eventually(partial(stored, number), f"{name} is published to")
        assert ack.domain == domain and ack.seq == number + 1
    reader = await js.pull_subscribe(f"{subject}.>", durable="D", stream=name)
    found: list[Msg] = []

    async def pulled() -> bool:
        try:
            found.extend(await reader.fetch(10 - len(found), timeout=WAIT_S))
        except (NoRespondersError, ServiceUnavailableError):
            return False
        return len(found) == 10

    await eventually(pulled, f"{name} is read")
    for message in found:
        await message.ack_sync(timeout=WAIT_S)
    assert [int(message.data) for message in found] == list(range(10))
    info = await js.consumer_info(name, "D")
    assert (info.num_pending, info.num_ack_pending) == (0, 0)


@pytest.mark.parametrize("domain", ["edge1", "edge2"])
@pytest.mark.parametrize("here", ["c1-1", "c2-1"])
async def test_the_streams_of_leaf_nodes(
    clients: dict[str, Client], here: str, domain: str
) -> None:
    name = f"{here}-of-{domain}"
    await _used(clients[here], name, name, domain)


@pytest.mark.parametrize("here", ["c1-3", "edge1"])
async def test_the_streams_of_the_cluster(clients: dict[str, Client], here: str) -> None:
    name = f"{here}-of-c1"
    await _used(clients[here], name, name, "c1", num_replicas=3)
    js = clients["c1-2"].jetstream(timeout=WAIT_S)
    cluster = (await js.stream_info(name)).cluster
    assert cluster is not None and cluster.name == "c1" and len(cluster.replicas or ()) == 2


async def test_leaf_nodes_do_not_belong_to_the_meta_group(servers: Servers) -> None:
    """Whatever their kind, and whatever stands between them and servers of their kind."""

    def members() -> set[str]:
        leader = page(servers["c1-1"], "/jsz")["meta_cluster"]["leader"]
        meta = page(servers[leader], "/jsz")["meta_cluster"]
        return {meta["leader"], *(one["name"] for one in meta["replicas"])}

    assert await asyncio.to_thread(members) == {"c1-1", "c1-2", "c1-3"}
    for server in servers.values():
        assert "belongs to another JetStream cluster" not in server.logs


@looks
def test_jetstream_is_reported(servers: Servers, tool: str, name: str) -> None:
    rows = cells(said(tool, servers[name], "server", "report", "jetstream", "7", admin=True))
    domains = {row[0].rstrip("*"): row[2] for row in rows if len(row) == 13 and row[0]}
    domains.pop("Server")
    edges = {one: one for one in ("edge1", "edge2")}
    assert domains == edges | {one: "c1" if one.startswith("c1") else "" for one in ALL}
