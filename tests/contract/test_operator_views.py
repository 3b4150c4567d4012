"""What both servers tell of accounts and users that come with JWTs: who a user is, monitoring
pages, requests and events of the system account, who asks a service, and what traces say.

Each server is started once, with the same operator, and all there is to ask of it is asked then.
"""

import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from difflib import unified_diff
from typing import Any

import pytest

from jsctl.testing import Broker
from tests.contract.conftest import KINDS
from tests.support.claimed_world import ClaimedWorld
from tests.support.gateways import page
from tests.support.leafs import hub_block, leaf_port, linked, remote, spoke_block, told
from tests.support.login import Caller
from tests.support.wire_client import Received, WireClient

WAIT_S = 30
TRACEPARENT = (
    b"NATS/1.0\r\ntraceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\r\n\r\n"
)
CONNECTED = ("admin", "owner", "ruled", "signed", "scoped", "bearer", "buyer", "partly")
REFUSED: dict[str, tuple[str, dict[str, object]]] = {
    "revoked": ("gone", {}),
    "wrong signature": ("owner", {"sig": "AAAA"}),
    "no JWT": ("owner", {"jwt": ""}),
    "password": ("owner", {"jwt": "", "user": "u", "pass": "p"}),
    "no JWT at all": ("owner", {"jwt": "bad", "nkey": "UABC"}),
    "token": ("owner", {"auth_token": "t", "sig": "AAAA"}),
    "bearer that names a key": ("bearer", {"nkey": "UABC", "jwt": "x"}),
}
"""How clients call themselves -> whose login it is, and what is other in it."""
GONE = {"APP": ("ruled", "bearer", "brief"), "BIZ": ("leaf",)}
"""Whose end is waited for."""
SERVICES = ("plus", "hidden", "many", "mine")
OFFERED = (b"add.*", b"many", b"own.*.get")
OWN = ("offered", "taken", "mine")
"""What subscriptions of these clients are called; servers have some of their own."""
CHANGING = {
    "start", "stop", "now", "uptime", "idle", "last_activity", "rtt", "port", "cid", "id", "seq",
    "time", "ts", "timestamp", "server_id", "flags", "in_bytes", "out_bytes", "in_msgs",
    "out_msgs", "update_time", "created", "bytes", "msgs", "num_subscriptions", "subscriptions",
    "cache_hit_rate", "num_matches", "num_cache", "num_inserts", "num_removes", "avg_fanout",
    "max_fanout", "expires", "response", "pending_bytes", "total", "storage", "memory",
    "max_memory", "max_storage", "store_dir", "weight",
}  # fmt: skip
"""Values that differ from run to run, or as `docs/differences.md` says."""
LEFT_OUT = {"feature_flags", "responses", "rtt", "sync_always", "jsctl_scrub", "sublist_stats",
            "compression"}  # fmt: skip
"""What is there or not: as that document says, answers under way, times that were not measured."""
OF_VARZ = ("trusted_operators_jwt", "trusted_operators_claim", "system_account", "auth_required",
           "connections", "total_connections")  # fmt: skip
Report = dict[str, Any]
Reports = dict[str, Report]


def pages(world: ClaimedWorld) -> Iterator[tuple[str, str]]:
    """What it is called here, and where it is."""
    yield "connz", "/connz"
    yield "connz with names", "/connz?auth=1&subs=detail"
    yield "accountz of nobody", "/accountz?acc=NOBODY"
    yield "accstatz", "/accstatz"
    yield "jsz", "/jsz?accounts=1&streams=1"
    for name, pair in world.accounts.items():
        if name in ("IDLE", "AWAY"):
            continue  # Nothing has asked for it, or it is not there.
        yield f"accountz of {name}", f"/accountz?acc={pair.public}"
        yield f"connz of {name}", f"/connz?auth=1&acc={pair.public}"
        yield f"subsz of {name}", f"/subsz?subs=1&acc={pair.public}"
        yield f"jsz of {name}", f"/jsz?streams=1&acc={pair.public}"
    for name in ("owner", "signed"):
        key = world.people[name].key.public
        yield f"connz of user {name}", f"/connz?auth=1&user={key}"


def requests(world: ClaimedWorld) -> Iterator[tuple[str, str, bytes]]:
    """What the system account asks."""
    for name in ("SYS", "APP", "BIZ"):
        account = world.accounts[name].public
        for kind in ("INFO", "JSZ", "STATZ", "CONNS", "LEAFZ"):
            yield f"{kind} of {name}", f"$SYS.REQ.ACCOUNT.{account}.{kind}", b"{}"
        yield f"CONNZ of {name}", f"$SYS.REQ.ACCOUNT.{account}.CONNZ", b'{"auth":true}'
    yield "INFO of nobody", "$SYS.REQ.ACCOUNT.NOBODY.INFO", b""
    yield "STATZ of all", "$SYS.REQ.ACCOUNT.PING.STATZ", b"{}"
    yield "CONNZ of all", "$SYS.REQ.SERVER.PING.CONNZ", b'{"auth":true}'


PARTS = (
    "user", "asker", "own", "audit", "trace", "connz", "accountz", "accstatz", "jsz", "subsz",
    "varz", "INFO", "JSZ", "STATZ", "CONNS", "LEAFZ", "CONNZ", "connections", "closed",
    "$SYS.ACCOUNT.<APP>.CONNECT", "$SYS.ACCOUNT.<BIZ>.CONNECT", "$SYS.ACCOUNT.<HALF>.CONNECT",
    "$SYS.ACCOUNT.<APP>.DISCONNECT", "$SYS.ACCOUNT.<BIZ>.DISCONNECT", "leafz",
    "$SYS.ACCOUNT.$G.DISCONNECT", "$SYS.SERVER.ID.CLIENT.AUTH.ERR",
)  # fmt: skip
"""Beginnings of the reports' names."""
OWN_REQUESTS = {
    "own connections": ("$SYS.REQ.ACCOUNT.PING.CONNZ", b'{"auth":true}'),
    "own connections by the server": ("$SYS.REQ.SERVER.PING.CONNZ", b'{"auth":true}'),
    "own statistics": ("$SYS.REQ.ACCOUNT.PING.STATZ", b""),
}
"""What an account may ask about itself."""


def heard(
    client: WireClient, sid: bytes, enough: Callable[[list[Received]], bool]
) -> list[Received]:
    """Messages of subscriptions with that name, once there are enough."""
    end = time.monotonic() + WAIT_S
    while not enough(found := [one for one in client.messages if one[0].startswith(sid)]):
        assert time.monotonic() < end, [one[1] for one in found]
        client.await_messages(len(client.messages) + 1, 1.0)
    return found


def at_least(count: int) -> Callable[[list[Received]], bool]:
    """Whether so many messages have come."""
    return lambda found: len(found) >= count


def refuse(world: ClaimedWorld, server: Broker) -> None:
    """Clients that nobody lets in."""
    for name, (who, other) in REFUSED.items():
        with Caller(server.port) as caller:
            said = world.people[who].login(caller.challenge) | {"name": name} | other
            assert not caller.login(said), name


def asked(world: ClaimedWorld, people: dict[str, WireClient]) -> Iterator[tuple[str, Any]]:
    """Who asks, as users are told themselves, and as services are told."""
    for name, client in people.items():
        yield f"user {name}", json.loads(client.request(b"$SYS.REQ.USER.INFO", b""))
    owner, buyer = people["owner"], people["buyer"]
    for count, name in enumerate(SERVICES, 1):
        buyer.publish(name.encode(), b"1", b"_INBOX.nobody")
        last = heard(owner, b"offered", at_least(count))[-1]
        yield f"asker of {name}", json.loads(last[3].partition(b"Nats-Request-Info:")[2])
    for name, (subject, body) in OWN_REQUESTS.items():
        yield name, json.loads(owner.request(subject.encode(), body))


def stored(people: dict[str, WireClient]) -> Iterator[tuple[str, Any]]:
    """Who uses JetStream."""
    owner = people["owner"]
    config = json.dumps({"name": "S", "subjects": ["s.>"], "storage": "file"})
    for name, client, subject, body in (
        ("create", owner, "$JS.API.STREAM.CREATE.S", config),
        ("info", people["signed"], "$JS.API.STREAM.INFO.S", ""),
        ("account", people["ruled"], "$JS.API.INFO", ""),
    ):
        assert b'"error"' not in client.request(subject.encode(), body.encode()), name

    def audited(found: list[Received]) -> bool:
        return len([one for one in found if one[1].endswith(b"API")]) >= 3

    for one in heard(owner, b"advised", audited):
        event = json.loads(one[4])
        if one[1].endswith(b"API"):
            yield f"audit of {event['subject']}", event


def traced(people: dict[str, WireClient]) -> Iterator[tuple[str, Any]]:
    """Messages that an account has traced."""
    people["buyer"].flush()
    people["owner"].publish(b"open.door", b"x", b"", TRACEPARENT)
    found = heard(people["owner"], b"traces", bool)
    yield "trace", json.loads(found[0][4])


def hung_on(
    world: ClaimedWorld, server: Broker, kind: type[Broker], owner: WireClient
) -> Iterator[tuple[str, Any]]:
    """A leaf node that logs in as a user, and asks for a service as its clients do."""
    login = world.credentials("buyer", server.directory)
    up = remote(leaf_port(server), f'credentials: "{login}"')
    with kind(config=spoke_block(up), name="leaf").start() as leaf:
        linked(server)
        told(leaf, "plus")
        with closing(WireClient(leaf.url)) as client:
            client.publish(b"plus", b"leaf", b"_INBOX.nobody")
            client.flush()
            found = heard(owner, b"offered", lambda got: got[-1][4] == b"leaf")[-1]
        yield "asker at a leaf node", json.loads(found[3].partition(b"Nats-Request-Info:")[2])
        yield "leafz", page(server, "/leafz")
        account = world.accounts["BIZ"].public
        yield "connz with a leaf node", page(server, f"/connz?auth=1&acc={account}")


def events(world: ClaimedWorld, observer: WireClient) -> Iterator[tuple[str, Any]]:
    """What the system account has heard of clients and accounts."""

    def all_of_them(found: list[Received]) -> bool:
        names = [name for name, _ in map(called, found)]
        gone = [f"$SYS.ACCOUNT.{world.accounts[account].public}.DISCONNECT {name}"
                for account, names in GONE.items() for name in names]  # fmt: skip
        return all(any(name.startswith(one) for name in names) for one in gone)

    for one in heard(observer, b"events", all_of_them):
        name, event = called(one)
        if event["client"]["name"] != "admin":
            yield name, event
    for one in heard(observer, b"counts", bool)[:1]:
        yield "connections of an account", json.loads(one[4])


def called(message: Received) -> tuple[str, Any]:
    """The name of an event, and what it says."""
    event = json.loads(message[4])
    subject = re.sub(r"SERVER\.N\w+", "SERVER.ID", message[1].decode())
    return f"{subject} {event['client']['name']}", event


def reported(world: ClaimedWorld, kind: type[Broker]) -> Report:
    """Everything, of one server."""
    found: Report = {}
    with ExitStack() as stack:
        server = stack.enter_context(
            kind("-js", config=world.config + hub_block(), name="one").start()
        )
        people: dict[str, WireClient] = {}
        for name in CONNECTED:
            client = people[name] = world.people[name].connect(server.url)
            stack.enter_context(closing(client))
            if name == "admin":
                client.send(
                    b"SUB $SYS.ACCOUNT.*.CONNECT events1\r\n"
                    b"SUB $SYS.ACCOUNT.*.DISCONNECT events2\r\n"
                    b"SUB $SYS.SERVER.*.CLIENT.AUTH.ERR events3\r\n"
                    b"SUB $SYS.ACCOUNT.%s.SERVER.CONNS counts\r\n"
                    % world.accounts["BIZ"].public.encode()
                )
            if name == "owner":
                offers = b"".join(
                    b"SUB %s offered%d\r\n" % (one, count) for count, one in enumerate(OFFERED)
                )
                client.send(
                    offers + b"SUB $JS.EVENT.ADVISORY.> advised\r\nSUB traces.here traces\r\n"
                )
            client.flush()
        people["buyer"].send(b"SUB x.> taken1\r\nSUB from.app.> taken2\r\n")
        people["scoped"].send(b"SUB _INBOX.mine q mine\r\n")
        people["scoped"].flush()
        refuse(world, server)
        brief = world.brief().connect(server.url)
        brief.rest()
        brief.close()
        found.update(asked(world, people))
        found.update(stored(people))
        found.update(traced(people))
        for name, path in pages(world):
            found[name] = page_of(server, path)
        found["varz"] = {key: page(server, "/varz").get(key) for key in OF_VARZ}
        for name, subject, body in requests(world):
            found[name] = json.loads(people["admin"].request(subject.encode(), body))
        for name in ("ruled", "bearer"):
            people[name].flush()  # Who leaves something unread resets the connection.
            people[name].close()
        found.update(hung_on(world, server, kind, people["owner"]))
        found.update(events(world, people["admin"]))
        found["closed"] = page(server, "/connz?state=closed&auth=1")
        found["differs"] = different(world, server)
    return {world.named(name): plain(world, report) for name, report in found.items()}


def different(world: ClaimedWorld, server: Broker) -> Report:
    """What each kind of server tells in a way of its own."""
    app = world.accounts["APP"].public
    mappings = page(server, f"/accountz?acc={app}")["account_detail"]["mappings"]
    carrier, owner = world.people["carrier"], world.people["owner"]
    with closing(carrier.connect(server.url)):
        carried = row_of(server, f"/connz?auth=1&acc={app}", "carrier")
    with closing(WireClient(server.url, lambda nonce: owner.login(nonce) | {"user": "me"})):
        named = page(server, f"/connz?auth=1&acc={app}&sort=start")["connections"][-1]
    return {
        "accounts": page(server, "/accountz")["accounts"],
        "weights": [one["weight"] for one in mappings["orders.*"]],
        "token of a carrier": carried.get("jwt"),
        "who has named a user": named["authorized_user"],
        "closed": sorted(row_of(server, "/connz?state=closed", "ruled")),
    }


def row_of(server: Broker, path: str, name: str) -> Report:
    """The connection of that name on a page."""
    rows = page(server, path)["connections"]
    found: Report = next(row for row in rows if row["name"] == name)
    return found


def page_of(server: Broker, path: str) -> Any:
    """A monitoring page; None where it is refused."""
    try:
        return server.monitor(path, timeout_s=60)
    except OSError:
        return None


def plain(world: ClaimedWorld, value: Any, key: str = "") -> Any:
    """What does not change: keys and JWTs by their names, in one order."""
    if key in CHANGING:
        return "changes"
    if isinstance(value, dict):
        kept = {name: one for name, one in value.items() if name not in LEFT_OUT}
        return {world.named(name): plain(world, one, name) for name, one in kept.items()}
    if isinstance(value, list):
        if key == "subscriptions_list":
            value = [one for one in value if one["sid"].startswith(OWN)]
        shown = [plain(world, one, key) for one in value]
        return sorted(shown, key=lambda one: json.dumps(one, sort_keys=True))
    return world.named(value) if isinstance(value, str) else value


@pytest.fixture(scope="module")
def reports() -> Reports:
    """All that each kind of server tells."""
    world = ClaimedWorld()
    return {kind: reported(world, server) for kind, server in KINDS.items()}


@pytest.mark.parametrize("part", PARTS)
def test_both_tell_the_same(reports: Reports, part: str) -> None:
    theirs, ours = (
        [
            f"{name}: {line}"
            for name, one in sorted(reports[kind].items())
            if part_of(name) == part
            for line in json.dumps(one, indent=1, sort_keys=True).splitlines()
        ]
        for kind in ("nats-server", "jsctl")
    )
    assert theirs
    found = "\n".join(unified_diff(theirs, ours, "nats-server", "jsctl", n=2, lineterm=""))
    assert not found, found


def part_of(name: str) -> str:
    """What a report belongs to, if it does."""
    found = (part for part in PARTS if name.startswith(part))
    return max(found, key=len, default="")


def test_an_account_that_lacks_imports_is_not_complete(reports: Reports) -> None:
    for found in reports.values():
        detail = found["accountz of HALF"]["account_detail"]
        assert not detail["complete"]
        assert [one["subject"] for one in detail["imports"] if one["account"] == "<APP>"] == [
            "open.>"
        ]


def test_every_report_is_compared(reports: Reports) -> None:
    for found in reports.values():
        assert [name for name in found if not part_of(name)] == ["differs"]


def test_differences_are_as_they_are_said_to_be(reports: Reports) -> None:
    theirs, ours = (reports[kind]["differs"] for kind in ("nats-server", "jsctl"))
    assert set(ours["accounts"]) - set(theirs["accounts"]) == {"<IDLE>"}
    # Sums up to each target of 40 and 60 in a hundred.
    assert (set(theirs["weights"]), set(ours["weights"])) == ({40, 100}, {40, 60})
    found = theirs["token of a carrier"], ours["token of a carrier"]
    assert found == ("<JWT of carrier-user>", None)
    assert (theirs["who has named a user"], ours["who has named a user"]) == ("me", "<owner>")
    assert set(theirs["closed"]) - set(ours["closed"]) == {"jwt", "issuer_key", "name_tag"}
