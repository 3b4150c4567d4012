"""What operators see and do of leaf nodes: connections are kicked, come again, and are told of at
both ends; two accounts of a leaf node at one of the hub; requests say nothing that is forged."""

import json
from contextlib import AsyncExitStack, ExitStack

import pytest
from nats.aio.msg import Msg

from tests.contract.conftest import KINDS
from tests.support.gateways import page
from tests.support.leafs import (
    IDS,
    PAIRS,
    hub_block,
    leaf_port,
    leafz,
    linked,
    pair,
    remote,
    spoke_block,
    told,
)
from tests.support.listeners import WAIT_S, connected, listen, settle
from tests.support.waiting import eventually, wait_for

four_pairs = pytest.mark.parametrize("kinds", PAIRS, ids=IDS)
ACCOUNTS = """accounts {
    $SYS: { users: [ {user: admin, password: p} ] }
    APP: { users: [ {user: u, password: p} ] }
}
no_auth_user: u
"""


@four_pairs
@pytest.mark.parametrize("end", [0, 1], ids=["at the hub", "at the leaf node"])
async def test_a_kicked_leaf_node_comes_again(kinds: tuple[str, str], end: int) -> None:
    """Whoever watches the account at that server is told."""
    with pair(kinds, hub=ACCOUNTS, leaf=ACCOUNTS, remote_more="account: APP", login="u:p") as two:
        server = two[end]
        async with AsyncExitStack() as stack:
            admin = await connected(stack, server, "admin")
            events = await listen(admin, "$SYS.ACCOUNT.APP.*")
            (row,) = leafz(server)
            subject = f"$SYS.REQ.SERVER.{page(server, '/varz')['server_id']}.KICK"
            who = json.dumps({"cid": row["id"]}).encode()
            got = json.loads((await admin.request(subject, who, timeout=WAIT_S)).data)
            assert "error" not in got, got

            async def fact() -> bool:
                found = linked(server)
                return bool(found[0]["id"] != row["id"])

            await eventually(fact, "it is linked anew")

            async def heard() -> bool:
                kinds_ = [json.loads(one.data).get("client", {}).get("kind") for one in events]
                names = [one.subject.rpartition(".")[2] for one in events]
                both = dict(zip(names, kinds_, strict=True))
                return both.get("CONNECT") == both.get("DISCONNECT") == "Leafnode"

            await eventually(heard, "both are told")
            reasons = [json.loads(one.data).get("reason") for one in events]
            assert "Kicked" in reasons
            got = json.loads((await admin.request(subject, b'{"cid":99999}', timeout=WAIT_S)).data)
            assert "no such client or leafnode id" in json.dumps(got["error"])


@four_pairs
async def test_two_accounts_hang_on_one_of_the_hub(kinds: tuple[str, str]) -> None:
    """Each hears the hub; a third one, which has no remote, does not."""
    users = "".join(f"{one} {{ users: [ {{user: {one}, password: p}} ] }}\n" for one in "ABC")
    with ExitStack() as servers:
        hub = servers.enter_context(KINDS[kinds[0]](config=hub_block(), name="hub"))
        remotes = [remote(leaf_port(hub), f"account: {one}") for one in "AC"]
        config = f"{spoke_block(*remotes)}accounts {{\n{users}}}\n"
        leaf = servers.enter_context(KINDS[kinds[1]](config=config, name="leaf"))
        linked(hub, 2)
        linked(leaf, 2)
        async with AsyncExitStack() as stack:
            heard = {one: await listen(await connected(stack, leaf, one), one) for one in "ABC"}
            told(hub, "A")
            told(hub, "C")
            client = await connected(stack, hub)
            for one in "ABC":
                await client.publish(one, b"hello")
            await heard["A"].reach(1)
            await heard["C"].reach(1)
            await settle(client)
            assert {one: len(found) for one, found in heard.items()} == {"A": 1, "B": 0, "C": 1}
        assert "Duplicate Remote" not in hub.logs + leaf.logs


@four_pairs
async def test_who_asks_a_service_of_the_hub_is_not_forged(kinds: tuple[str, str]) -> None:
    """The header that tells a service who asks is made where its account is left."""
    accounts = """accounts {
        A { users: [ {user: a, password: p} ], imports: [ {service: {account: B, subject: svc}} ] }
        B { users: [ {user: b, password: p} ], exports: [ {service: svc, accounts: [A]} ] }
    }
    """
    leaf = "accounts { A { users: [ {user: a, password: p} ] } }\nno_auth_user: a\n"
    with pair(kinds, hub=accounts, leaf=leaf, remote_more="account: A", login="a:p") as servers:
        async with AsyncExitStack() as stack:
            service = await connected(stack, servers[0], "b")
            asked: list[Msg] = []

            async def answer(message: Msg) -> None:
                asked.append(message)
                await message.respond(b"ok")

            await service.subscribe("svc", cb=answer)
            await service.flush()
            told(servers[1], "svc")
            client = await connected(stack, servers[1])
            forged = {"Nats-Request-Info": '{"acc":"EVIL","user":"mallory","host":"badhost"}'}
            got = await client.request("svc", b"", timeout=WAIT_S, headers=forged)
            assert got.data == b"ok"
    (message,) = asked
    said = json.loads((message.headers or {})["Nats-Request-Info"])
    assert said["acc"] == "A" and not {"user", "host"} & set(said)


@four_pairs
async def test_a_group_and_a_listener_hear_a_message_once_each(kinds: tuple[str, str]) -> None:
    """Over a leaf node that imports what the other account exports."""
    leaf = """accounts {
        T { users: [ {user: t, password: p} ], exports: [ {stream: "events.>"} ] }
        S {
            users: [ {user: s, password: p} ]
            imports: [ {stream: {account: T, subject: "events.>"}, prefix: tenant} ]
        }
    }
    no_auth_user: t
    """
    with pair(kinds, leaf=leaf, remote_more="account: S") as (hub, edge):
        async with AsyncExitStack() as stack:
            far = await connected(stack, hub)
            plain = await listen(far, "tenant.events.>")
            group = await listen(far, "tenant.events.>", "q")

            def known() -> bool:
                """Both of them: one that is known alone has all messages."""
                return json.dumps(page(edge, "/leafz?subs=1")).count('"tenant.events.>"') == 2

            wait_for(known, "both are known")
            client = await connected(stack, edge)
            for number in range(10):
                await client.publish(f"events.{number}", b"%d" % number)
            for found in (plain, group):
                await found.reach(10)
            await settle(client, far)
            for found in (plain, group):
                assert sorted(int(one.data) for one in found) == list(range(10))
