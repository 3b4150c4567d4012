"""What monitoring says of gateways: the pages of both kinds of servers have the same keys, and say
the same of the same things."""

import json
import re
from collections.abc import Iterator
from contextlib import AsyncExitStack, ExitStack
from typing import Any

import nats
import pytest

from jsctl.testing import HOST, Broker
from tests.contract.conftest import KINDS
from tests.support import nats_tool
from tests.support.forked import jsctl
from tests.support.gateways import gateway_port, gatewayz, page, pair, told
from tests.support.listeners import WAIT_S, connected, listen
from tests.support.nats_tool import needed
from tests.support.waiting import wait_for

SYSTEM = """
accounts {
    $SYS: { users: [ {user: admin, password: p} ] }
    APP: { users: [ {user: u, password: p} ] }
}
no_auth_user: u
"""
LOGIN = "authorization { user: g, password: g, timeout: 3 }"
MORE = f'connect_retries: 3, write_deadline: "5s", {LOGIN}'
TIMES = ("start", "last_activity", "uptime", "idle", "rtt", "now")
CHANGING = {*TIMES, "port", "cid", "name", "server_id"}


@pytest.fixture(scope="module")
def both() -> Iterator[dict[str, tuple[Broker, Broker]]]:
    """Two clusters of each kind."""
    with ExitStack() as stack:
        yield {
            kind: stack.enter_context(pair((kind, kind), a=SYSTEM, b=SYSTEM, more=(MORE, MORE)))
            for kind in KINDS
        }


def shape(value: Any, key: str = "") -> Any:
    """The keys and the values that do not change."""
    if isinstance(value, dict):
        return {name: shape(one, name) for name, one in value.items() if name != "accounts"}
    if isinstance(value, list):
        return [shape(one) for one in value]
    return type(value).__name__ if key in CHANGING else value


async def heard_across(servers: tuple[Broker, Broker]) -> None:
    """Ten messages from the second cluster to the first one."""
    one, other = servers
    async with AsyncExitStack() as stack:
        heard = await listen(await connected(stack, one), "x.*")
        told(other, "x.*")
        client = await connected(stack, other)
        for number in range(10):
            await client.publish(f"x.{number}", b"12345")
        await heard.reach(10)


async def test_gatewayz_has_the_same_keys(both: dict[str, tuple[Broker, Broker]]) -> None:
    shapes = {}
    for kind, servers in both.items():
        found = [shape(gatewayz(one, "")) for one in servers]
        for each in found:
            rows = [*each["outbound_gateways"].values()]
            rows += [row for several in each["inbound_gateways"].values() for row in several]
            for row in rows:
                for name in ("in_msgs", "out_msgs", "in_bytes", "out_bytes", "subscriptions"):
                    row["connection"].pop(name)
        shapes[kind] = found
    assert shapes["jsctl"] == shapes["nats-server"]


async def test_messages_are_counted_where_they_go(both: dict[str, tuple[Broker, Broker]]) -> None:
    counts = {}
    for kind, servers in both.items():
        before = [_counts(one) for one in servers]
        await heard_across(servers)
        after = [_counts(one) for one in servers]
        pairs = zip(before, after, strict=True)
        counts[kind] = [{key: now[key] - old[key] for key in now} for old, now in pairs]
    assert counts["jsctl"][0]["in_msgs"] >= 10 <= counts["jsctl"][1]["out_msgs"]
    assert counts["nats-server"][0]["in_msgs"] >= 10 <= counts["nats-server"][1]["out_msgs"]


def _counts(broker: Broker) -> dict[str, int]:
    found = gatewayz(broker, "")
    (outbound,) = found["outbound_gateways"].values()
    (inbound,) = next(iter(found["inbound_gateways"].values()))
    return {
        "out_msgs": outbound["connection"]["out_msgs"],
        "in_msgs": inbound["connection"]["in_msgs"],
    }


@pytest.mark.parametrize(
    "query", ["accs=1", "accs=1&subs=1", "acc_name=APP", "acc_name=NONE", "gw_name=A", "gw_name=X"]
)
async def test_what_is_asked_for(both: dict[str, tuple[Broker, Broker]], query: str) -> None:
    found = {}
    for kind, (one, other) in both.items():
        async with AsyncExitStack() as stack:
            client = await connected(stack, one)
            await client.subscribe("x")
            await client.subscribe("y", "q")
            await client.flush()
            told(other, "x")
            told(other, "y")
            answer = gatewayz(other, query)
        rows = answer["outbound_gateways"] or {}
        found[kind] = {
            "names": (sorted(rows), sorted(answer["inbound_gateways"])),
            "app": [
                {**account, "subscriptions_list": sorted(account.get("subscriptions_list", ()))}
                for row in rows.values()
                for account in row.get("accounts", ())
                if account["name"] == "APP"
            ],
        }
        told(other, "x", gone=True)
    assert found["jsctl"] == found["nats-server"]


ASKED: list[dict[str, object]] = [
    {},
    {"accounts": True},
    {"accounts": True, "subscriptions": True},
    {"accounts": True, "subscriptions_detail": True},
    {"accounts": True, "subscriptions": True, "subscriptions_detail": True},
    {"subscriptions": True},
    {"account_name": "APP"},
    {"account_name": "APP", "subscriptions_detail": True},
    {"account_name": "NONE", "subscriptions": True},
    {"name": "A", "accounts": True},
    {"name": "X", "accounts": True},
]
COUNTED = ("in_msgs", "out_msgs", "in_bytes", "out_bytes", "subscriptions", "pending_bytes")
"""Of connections: what servers say to each other in the system account is not the same."""


def answer_shape(data: dict[str, Any]) -> dict[str, Any]:
    """A whole document; of the system account's interest, and the global one's, only the keys."""
    inbound = data["inbound_gateways"]
    rows = [
        *(data["outbound_gateways"] or {}).values(),
        *(row for many in inbound.values() for row in many),
    ]
    accounts = []
    for row in rows:
        for name in COUNTED:
            row["connection"].pop(name)
        for one in row.get("accounts", ()):
            listed = sorted(one.get("subscriptions_list", ()))
            detail = [shape(sub) | {"sid": ""} for sub in one.get("subscriptions_list_detail", ())]
            found = listed, sorted(json.dumps(sub) for sub in detail)
            one["subscriptions_list"], one["subscriptions_list_detail"] = found
            if one["name"] != "APP":
                one["subscriptions_list"], one["subscriptions_list_detail"] = map(bool, found)
                one["num_subs"] = bool(one.get("num_subs"))
        accounts.append(sorted(row.get("accounts", ()), key=lambda one: str(one["name"])))
    return {"document": shape(data), "accounts": accounts}


@pytest.mark.parametrize("asked", ASKED, ids=json.dumps)
async def test_gatewayz_by_request(
    both: dict[str, tuple[Broker, Broker]], asked: dict[str, object]
) -> None:
    """Both ends, with every option."""
    shapes = {}
    for kind, servers in both.items():
        one, other = servers
        async with AsyncExitStack() as stack:
            client = await connected(stack, one)
            await client.subscribe("x")
            await client.subscribe("y", "q")
            await client.flush()
            for subject in ("x", "y"):
                told(other, subject)
            found = []
            for server in servers:
                admin = await connected(stack, server, "admin")
                subject = f"$SYS.REQ.SERVER.{page(server, '/varz')['server_id']}.GATEWAYZ"
                got = await admin.request(subject, json.dumps(asked).encode(), timeout=WAIT_S)
                found.append(answer_shape(json.loads(got.data)["data"]))
        for subject in ("x", "y"):
            told(other, subject, gone=True)
        shapes[kind] = found
    assert shapes["jsctl"] == shapes["nats-server"]


LINES = [
    "report gateways 2",
    "report gateways 2 --sort server --reverse",
    "report gateways 2 --filter-name A",
    "request gateways 2",
    "request gateways 2 A --accounts",
    "request gateways 2 --accounts --no-subscriptions",
    "request gateways 2 B --filter-account APP --no-subscriptions",
    "request gateways 2 --filter-account APP",
    "report leafnodes 2",
    "request leafnodes 2 --subscriptions",
]
PASSING = re.compile(r"\b(\d+(\.\d+)?(µs|ms|s|m|h))+\b|\b\d[\d.,]*( [KMG]?i?B)?\b")
RULE = re.compile(r"─+|[ ]{2,}")


def keys_of(value: Any) -> Any:
    """The keys of a document, and the names of accounts and clusters in it."""
    if isinstance(value, dict):
        return {key: keys_of(one) for key, one in value.items()}
    if isinstance(value, list):
        if value and isinstance(value[0], dict) and "interest_mode" in value[0]:
            value = sorted(value, key=lambda one: str(one["name"]))
        return [keys_of(one) for one in value if not isinstance(one, str)]
    return type(value).__name__


def printed(text: str) -> Any:
    """Without what passes: documents by their keys, in the order of the clusters."""
    if "{" not in text:
        return [RULE.sub(" ", line) for line in PASSING.sub("N", text).splitlines()]
    found = (
        json.loads(text)
        if text.startswith("[")
        else [json.loads(one) for one in text.splitlines() if one]
    )
    return sorted((keys_of(one) for one in found), key=str)


@needed
@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("kind", list(KINDS))
def test_both_tools_print_the_same(
    both: dict[str, tuple[Broker, Broker]], kind: str, line: str
) -> None:
    url = both[kind][0].url.replace("nats://", "nats://admin:p@")
    words = ["--no-context", "--server", url, "server", *line.split()]
    theirs = nats_tool.nats(*words)
    ours = jsctl(words)
    assert (ours.returncode, theirs.returncode) == (0, 0), ours.stderr + theirs.stderr
    assert printed(ours.stdout) == printed(theirs.stdout)


def test_varz_tells_the_block(both: dict[str, tuple[Broker, Broker]]) -> None:
    found = {kind: shape(page(other, "/varz")["gateway"]) for kind, (_, other) in both.items()}
    for kind, (one, _) in both.items():
        (row,) = found[kind]["gateways"]
        assert row.pop("urls") == [f"{HOST}:{gateway_port(one)}"]
    # The real server shows the deadline of its `cluster` block, which has none here.
    assert found["jsctl"].pop("write_deadline") == 5_000_000_000
    assert found["jsctl"] == found["nats-server"]


async def test_system_requests_reach_both_clusters(
    both: dict[str, tuple[Broker, Broker]],
) -> None:
    for one, other in both.values():
        ids = {page(server, "/varz")["server_id"] for server in (one, other)}
        client = await nats.connect(
            one.url, user="admin", password="p", connect_timeout=WAIT_S, allow_reconnect=False
        )
        try:
            inbox = client.new_inbox()
            heard = await client.subscribe(inbox)
            await client.publish("$SYS.REQ.SERVER.PING.GATEWAYZ", b"{}", reply=inbox)
            answers = [json.loads((await heard.next_msg(WAIT_S)).data) for _ in range(2)]
            assert {answer["server"]["id"] for answer in answers} == ids
            assert {answer["data"]["name"] for answer in answers} == {"A", "B"}
            for name in ids:
                got = await client.request(f"$SYS.REQ.SERVER.{name}.VARZ", b"", timeout=WAIT_S)
                assert json.loads(got.data)["data"]["server_id"] == name
            await client.publish("$SYS.REQ.SERVER.PING", b"", reply=inbox)
            stats = [json.loads((await heard.next_msg(WAIT_S)).data) for _ in range(2)]
            for answer in stats:
                assert answer["statsz"]["active_servers"] == 2
                (row,) = answer["statsz"]["gateways"]
                assert row["name"] in ("A", "B") and row["inbound_connections"] == 1
        finally:
            await client.close()


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_cluster_that_is_silent_is_given_up_and_found_again(kind: str) -> None:
    """It is stopped, as if its machine were cut off: nothing is closed, and nothing answers."""
    with pair((kind, kind), a='ping_interval: "1s", ping_max: 1\n') as (one, other):
        other.pause()
        try:
            wait_for(lambda: "Stale Connection" in one.logs, "the silence is noticed")
        finally:
            other.resume()
        wait_for(lambda: len(gatewayz(one, "")["outbound_gateways"]) == 1, "it is there again")
