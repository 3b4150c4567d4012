"""What monitoring says of leaf nodes and hubs: the pages of both kinds of servers have the same
keys, and say the same of the same things."""

import json
from collections.abc import Iterator
from contextlib import AsyncExitStack, ExitStack
from typing import Any

import nats
import pytest

from jsctl.testing import Broker
from tests.contract.conftest import KINDS
from tests.support.gateways import page
from tests.support.leafs import leafz, pair, told
from tests.support.listeners import WAIT_S, connected, listen
from tests.support.nats_tool import nats as real_nats
from tests.support.nats_tool import needed

ACCOUNTS = """
accounts {
    $SYS: { users: [ {user: admin, password: p} ] }
    APP: { users: [ {user: u, password: p} ] }
}
no_auth_user: u
"""
CHANGING = {
    "start", "last_activity", "uptime", "idle", "rtt", "now", "port", "server_id", "id", "cid",
    "in_bytes", "out_bytes", "in_msgs", "out_msgs", "subscriptions", "time", "ver", "flags", "seq",
    "version", "go", "kind",
}  # fmt: skip
"""Values that differ from run to run; the type counts."""
Pairs = dict[str, tuple[Broker, Broker]]


@pytest.fixture(scope="module")
def both() -> Iterator[Pairs]:
    """A hub and a leaf node of each kind."""
    with ExitStack() as stack:
        yield {
            kind: stack.enter_context(
                pair(
                    (kind, kind),
                    hub=ACCOUNTS,
                    leaf=ACCOUNTS,
                    listen="compression: s2_fast",
                    remote_more="account: APP, compression: s2_fast",
                    login="u:p",
                )
            )
            for kind in KINDS
        }


def shape(value: Any, key: str = "") -> Any:
    """The keys and the values that do not change."""
    if isinstance(value, dict):
        return {name: shape(one, name) for name, one in value.items()}
    if isinstance(value, list):
        return [shape(one, key) for one in value]
    return type(value).__name__ if key in CHANGING else value


async def heard_at_the_leaf(hub: Broker, leaf: Broker) -> None:
    """Ten messages from the hub."""
    async with AsyncExitStack() as stack:
        heard = await listen(await connected(stack, leaf), "x.*")
        told(hub, "x.*")
        client = await connected(stack, hub)
        for number in range(10):
            await client.publish(f"x.{number}", b"12345")
        await heard.reach(10)


@pytest.mark.parametrize("end", [0, 1], ids=["hub", "leaf"])
@pytest.mark.parametrize("query", ["", "?subs=1", "?acc=APP", "?acc=NONE"])
def test_leafz_has_the_same_keys(both: Pairs, query: str, end: int) -> None:
    shapes = {}
    for kind, servers in both.items():
        found = shape(page(servers[end], f"/leafz{query}"))
        for row in found["leafs"]:
            listed = row.get("subscriptions_list")
            if listed is not None:
                row["subscriptions_list"] = sorted(
                    one for one in listed if not one.startswith(("$LDS.", "_R_.", "$SYS"))
                )
        shapes[kind] = found
    assert shapes["jsctl"] == shapes["nats-server"]


async def test_messages_are_counted_at_both_ends(both: Pairs) -> None:
    for hub, leaf in both.values():
        before = [leafz(one)[0] for one in (hub, leaf)]
        await heard_at_the_leaf(hub, leaf)
        after = [leafz(one)[0] for one in (hub, leaf)]
        assert after[0]["out_msgs"] - before[0]["out_msgs"] >= 10
        assert after[1]["in_msgs"] - before[1]["in_msgs"] >= 10
        assert after[1]["in_bytes"] - before[1]["in_bytes"] >= 50


@pytest.mark.parametrize("end", [0, 1], ids=["hub", "leaf"])
def test_varz_tells_the_block(both: Pairs, end: int) -> None:
    found = {}
    for kind, servers in both.items():
        told_ = page(servers[end], "/varz")
        block = shape(told_["leaf"])
        for one in block.get("remotes", ()):
            assert one.pop("urls"), one
        found[kind] = block | {"leafnodes": told_["leafnodes"]}
    assert found["jsctl"] == found["nats-server"]


@pytest.mark.parametrize("end", [0, 1], ids=["hub", "leaf"])
def test_accountz_counts_them(both: Pairs, end: int) -> None:
    found = {
        kind: page(servers[end], "/accountz?acc=APP")["account_detail"]["leafnode_connections"]
        for kind, servers in both.items()
    }
    assert found["jsctl"] == found["nats-server"] == 1


async def test_system_requests(both: Pairs) -> None:
    shapes = {}
    for kind, (hub, _) in both.items():
        client = await nats.connect(
            hub.url, user="admin", password="p", connect_timeout=WAIT_S, allow_reconnect=False
        )
        try:
            answer = await client.request("$SYS.REQ.SERVER.PING.LEAFZ", b"{}", WAIT_S)
            several = await client.request("$SYS.REQ.ACCOUNT.APP.LEAFZ", b"", WAIT_S)
        finally:
            await client.close()
        shapes[kind] = [
            sorted(json.loads(one.data)["data"]) + sorted(json.loads(one.data)["data"]["leafs"][0])
            for one in (answer, several)
        ]
    assert shapes["jsctl"] == shapes["nats-server"]


@needed
@pytest.mark.parametrize("words", [("report", "leafnodes"), ("request", "leafnodes"), ("list",)])
def test_the_real_tool_shows_the_same(both: Pairs, words: tuple[str, ...]) -> None:
    shapes = {}
    for kind, (hub, _) in both.items():
        url = hub.url.replace("nats://", "nats://admin:p@")
        found = real_nats("--server", url, "server", *words)
        assert found.returncode == 0, found.stdout + found.stderr
        titles = [line for line in found.stdout.splitlines() if "Name" in line or '":' in line]
        shapes[kind] = [line.split(":")[0] for line in titles]
    assert [one.split() for one in shapes["jsctl"]] == [
        one.split() for one in shapes["nats-server"]
    ]
