"""The limits of an account count on all servers of a cluster, and of a super-cluster, together, and
so do listeners: two servers of either kind with a route or a gateway between them."""

import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, ExitStack
from functools import partial
from itertools import product
from typing import Any

import pytest
from nats.aio.client import Client

from jsctl.testing import HOST, Broker
from tests.contract.conftest import KINDS
from tests.support.gateways import IDS, PAIRS, block, gateway_port, page, remote, route_port
from tests.support.leafs import hub_block, leaf_port
from tests.support.listeners import WAIT_S, Heard, connected, listen, settle
from tests.support.login import Caller
from tests.support.waiting import eventually, wait_for

FULL = "maximum account active connections exceeded"
COUNTS = "$SYS.SERVER.ACCOUNT.A.CONNS"
ACCOUNTS = f"""
accounts {{
    A {{ users: [ {{user: a, password: p}} ], limits {{ max_connections: 2, max_leafnodes: 1 }} }}
    S {{ users: [ {{user: s, password: p}} ] }}
}}
system_account: S
{hub_block("no_advertise: true")}
"""
CASES = list(product(("route", "gateway"), PAIRS))
NAMES = [f"{way}-{one}" for way, one in product(("route", "gateway"), IDS)]


def member(name: str, kind: str, *others: Broker) -> Broker:
    """A server of a cluster that is not started yet."""
    routes = ", ".join(f'"nats://{HOST}:{route_port(one)}"' for one in others)
    door = f'cluster {{ name: C, listen: "{HOST}:-1", routes: [ {routes} ] }}\n'
    return KINDS[kind](config=door + ACCOUNTS, name=name)


def routed(kinds: tuple[str, str], stack: ExitStack) -> dict[str, Broker]:
    """A cluster of two servers."""
    one = stack.enter_context(member("a", kinds[0]))
    return {"a": one, "b": stack.enter_context(member("b", kinds[1], one))}


def bridged(kinds: tuple[str, str], stack: ExitStack) -> dict[str, Broker]:
    """Two clusters of one server."""
    one = stack.enter_context(KINDS[kinds[0]](config=block("A") + ACCOUNTS, name="a"))
    far = block("B", remote("A", gateway_port(one)))
    return {"a": one, "b": stack.enter_context(KINDS[kinds[1]](config=far + ACCOUNTS, name="b"))}


def whole(servers: dict[str, Broker]) -> None:
    """Wait until they are linked."""

    def fact(server: Broker) -> bool:
        gates = page(server, "/gatewayz")
        return bool(
            page(server, "/routez")["num_routes"]
            or (gates["outbound_gateways"] and gates["inbound_gateways"])
        )

    for one in servers.values():
        wait_for(partial(fact, one), f"{one.name} is linked")


@pytest.fixture(scope="module", params=CASES, ids=NAMES)
def servers(request: pytest.FixtureRequest) -> Iterator[dict[str, Broker]]:
    """The two."""
    way, kinds = request.param
    with ExitStack() as stack:
        found = (routed if way == "route" else bridged)(kinds, stack)
        whole(found)
        yield found


Told = Callable[..., Any]


@pytest.fixture
async def admin(servers: dict[str, Broker]) -> AsyncIterator[dict[str, Client]]:
    """A client of the system account at each."""
    async with AsyncExitStack() as stack:
        yield {name: await connected(stack, one, "s") for name, one in servers.items()}


@pytest.fixture
async def told(admin: dict[str, Client]) -> Told:
    """Wait until all servers but one have heard what that one has of A."""
    heard = {name: await listen(client, COUNTS) for name, client in admin.items()}

    async def crosses() -> bool:
        for name, client in admin.items():
            await client.publish(COUNTS, f'{{"from":"{name}"}}'.encode())
        await settle(*admin.values())
        return all(len({one.data for one in events}) == len(admin) for events in heard.values())

    await eventually(crosses, "each is told of what the other one listens to", WAIT_S)

    def says(events: Heard, name: str, wanted: dict[str, int]) -> bool:
        mark = f'"server":{{"name":"{name}",'.encode()
        last = [json.loads(one.data) for one in events if mark in one.data][-1:]
        return bool(last) and all(last[0][key] == count for key, count in wanted.items())

    async def wait(name: str, **wanted: int) -> None:
        others = [events for other, events in heard.items() if other != name]

        async def fact() -> bool:
            return all(says(events, name, wanted) for events in others)

        await eventually(fact, f"{name} told of {wanted}", WAIT_S)
        await settle(*admin.values())

    return wait


def client(port: int) -> Caller:
    """One that logged in, or was refused."""
    caller = Caller(port)
    caller.login({"user": "a", "pass": "p", "name": f"at {port}"})
    return caller


def last_word(caller: Caller) -> str:
    """What it is told before the server hangs up."""
    lines = [""]
    while line := caller.line():
        lines.append(line)
    return lines[-1]


both_ways = pytest.mark.parametrize(("here", "there"), [("a", "b"), ("b", "a")])


@both_ways
async def test_clients_of_all_servers_count(
    servers: dict[str, Broker], told: Told, here: str, there: str
) -> None:
    with ExitStack() as stack:
        far = stack.enter_context(client(servers[there].port))
        await told(there, conns=1)
        near = stack.enter_context(client(servers[here].port))
        await told(here, conns=1)
        assert far.refusal == near.refusal == ""
        for server in servers.values():
            assert stack.enter_context(client(server.port)).refusal == FULL
        far.__exit__()
        await told(there, conns=0)
        assert stack.enter_context(client(servers[here].port)).refusal == ""
        await told(here, conns=2)
    await told(here, conns=0)


@both_ways
async def test_leaf_nodes_of_all_servers_count(
    servers: dict[str, Broker], told: Told, here: str, there: str
) -> None:
    with ExitStack() as stack:
        far = stack.enter_context(client(leaf_port(servers[there])))
        assert far.refusal == ""
        await told(there, leafnodes=1)
        assert stack.enter_context(client(leaf_port(servers[here]))).refusal
        far.__exit__()
        await told(there, leafnodes=0)
        assert stack.enter_context(client(leaf_port(servers[here]))).refusal == ""
        await told(here, leafnodes=1)
    await told(here, leafnodes=0)


def event(server_id: str, clients: int = 0, leafs: int = 0) -> bytes:
    """What a server that is not there tells."""
    server = {"name": server_id, "id": server_id, "host": HOST, "ver": "2.15.1", "seq": 1}
    body = {"server": server, "acc": "A", "conns": clients, "leafnodes": leafs}
    return json.dumps({"type": "io.nats.server.advisory.v1.account_connections", **body}).encode()


async def gone(admin: Client, server_id: str) -> None:
    """Tell that it ended."""
    body = json.dumps({"name": server_id, "id": server_id, "seq": 2}).encode()
    await admin.publish(f"$SYS.SERVER.{server_id}.SHUTDOWN", body)
    await settle(admin)


@both_ways
async def test_the_youngest_have_to_go(
    servers: dict[str, Broker], admin: dict[str, Client], told: Told, here: str, there: str
) -> None:
    """As a server tells of others that nobody knew of."""
    with ExitStack() as stack:
        old = stack.enter_context(client(servers[here].port))
        await settle(admin[here])
        young = stack.enter_context(client(servers[here].port))
        await told(here, conns=2)
        await admin[there].publish(COUNTS, event("X", 1))
        await settle(admin[there])
        assert last_word(young) == f"-ERR '{FULL}'"
        await told(here, conns=1)
        assert stack.enter_context(client(servers[there].port)).refusal == FULL
        assert old.ask(b"") in ([], ["PING"])
        await gone(admin[there], "X")
        assert stack.enter_context(client(servers[here].port)).refusal == ""
        await told(here, conns=2)
    await told(here, conns=0)
    with ExitStack() as stack:
        leaf = stack.enter_context(client(leaf_port(servers[here])))
        await told(here, leafnodes=1)
        await admin[there].publish(COUNTS, event("Y", 0, 1))
        await settle(admin[there])
        assert last_word(leaf) == f"-ERR '{FULL}'"
        await told(here, leafnodes=0)
        await gone(admin[there], "Y")
        leaf = stack.enter_context(client(leaf_port(servers[here])))
        near = stack.enter_context(client(servers[here].port))
        assert leaf.refusal == near.refusal == ""
        await told(here, conns=1, leafnodes=1)
        assert stack.enter_context(client(servers[here].port)).refusal == FULL, (
            "the leaf node counts"
        )
        assert stack.enter_context(client(servers[there].port)).refusal == "", "it does not there"
        await told(there, conns=1)
    await told(here, conns=0, leafnodes=0)
    await told(there, conns=0)


async def test_what_is_no_number_changes_nothing(
    servers: dict[str, Broker], admin: dict[str, Client], told: Told
) -> None:
    good = json.loads(event("Y", 1))
    for wrong in (
        b"",
        b"{",
        b"[]",
        b"null",
        json.dumps({**good, "acc": "nobody"}).encode(),
        json.dumps({**good, "acc": 7}).encode(),
        json.dumps({**good, "conns": "2"}).encode(),
        json.dumps({**good, "conns": 2.5}).encode(),
        json.dumps({**good, "conns": [2]}).encode(),
        json.dumps({**good, "server": "Y"}).encode(),
    ):
        await admin["a"].publish(COUNTS, wrong)
    await settle(admin["a"])
    with ExitStack() as stack:
        for _ in range(2):
            assert stack.enter_context(client(servers["a"].port)).refusal == ""
        await told("a", conns=2)
    await told("a", conns=0)


async def test_listeners_on_all_servers_are_counted(admin: dict[str, Client], fresh: str) -> None:
    subject = "$SYS.DEBUG.SUBSCRIBERS"
    for client_ in admin.values():
        await listen(client_, f"{fresh}.*")
        await listen(client_, f"{fresh}.1", "q")
    for name, client_ in admin.items():
        for asked, wanted in ((f"{fresh}.1", b"4"), (f"{fresh}.1 q", b"2"), (f"{fresh}.2", b"2")):

            async def fact(
                client_: Client = client_, asked: str = asked, count: bytes = wanted
            ) -> bool:
                return (
                    await client_.request(subject, asked.encode(), timeout=WAIT_S)
                ).data == count

            await eventually(fact, f"{name} counts {wanted!r} for {asked}", WAIT_S)


async def test_what_a_server_had_ends_with_it(
    servers: dict[str, Broker], admin: dict[str, Client], told: Told
) -> None:
    """It comes again for others who may want it."""
    ended = await listen(admin["a"], "$SYS.SERVER.*.SHUTDOWN")
    with ExitStack() as stack:
        for _ in range(2):
            stack.enter_context(client(servers["b"].port))
        await told("b", conns=2)
        assert stack.enter_context(client(servers["a"].port)).refusal == FULL
        await admin["b"].close()
        servers["b"].stop()
        await ended.reach(1)
        await settle(admin["a"])
        assert stack.enter_context(client(servers["a"].port)).refusal == ""
    servers["b"].start()
    whole(servers)


@pytest.mark.parametrize("kind", list(KINDS))
async def test_a_server_that_begins_asks_what_others_have(kind: str) -> None:
    """A nats-server waits for what they tell every 30 s."""
    async with AsyncExitStack() as stack:
        old = stack.enter_context(member("a", kind))
        for _ in range(2):
            stack.enter_context(client(old.port))
        admin = await connected(stack, old, "s")
        questions = await listen(admin, "$SYS.REQ.ACCOUNT.A.CONNS")
        new = stack.enter_context(member("b", "jsctl", old))
        reply = f"$SYS._INBOX_.{page(new, '/varz')['server_id']}"

        async def asked() -> bool:
            return any(one.reply == reply for one in questions)

        await eventually(asked, "it asks", WAIT_S)
        answers = await listen(admin, reply)
        await admin.publish("$SYS.REQ.ACCOUNT.A.CONNS", reply=reply)
        await answers.reach(1)
        await settle(admin)
        assert stack.enter_context(client(new.port)).refusal == FULL
