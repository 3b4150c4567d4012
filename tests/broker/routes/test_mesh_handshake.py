"""One mesh spoken to by hand: handshakes that are refused, news, retries, limits."""

import json
import random
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jsctl.broker.linking.fields import split_url
from jsctl.broker.routes.mesh import Mesh
from jsctl.broker.routes.types import (
    HANDSHAKES_MAX,
    POOL_SIZE_MAX,
    GatewayTold,
    MeshOptions,
    RouteUrl,
)
from jsctl.broker.routes.wire import parse_info
from jsctl.broker.turn import ONLY_OWN, Accepted, ConnKind

SECOND = 1_000_000_000
ACCOUNTS = {"$G", "$SYS", "P"}


def options(name: str, *routes: str, **more: object) -> MeshOptions:
    """A server with routes to these hosts."""
    base = MeshOptions(
        server_id="N" + name,
        server_name=name,
        cluster="C",
        host=name,
        port=6222,
        routes=tuple(RouteUrl(host, 6222) for host in routes),
    )
    return replace(base, **more)  # type: ignore[arg-type]  # names of its own fields


INFO = {
    "server_id": "NX", "server_name": "x", "cluster": "C", "host": "x", "port": 1,
    "route_pool_size": 3, "proto": 1, "headers": True,
}  # fmt: skip


def spoken_to(lines: list[tuple[str, dict[str, object]]], **more: object) -> tuple[str, str]:
    """What an acceptor answers to these lines: (last bytes written, close reason)."""
    mesh = Mesh(options("a", **more), random.Random(1).randrange, ACCOUNTS)
    mesh.start(0)
    mesh.opened(Accepted(1, ConnKind.ROUTE, "10.0.0.9", 5), 0)
    for word, fields in lines:
        body = json.dumps(fields).encode()
        (mesh.connect if word == "CONNECT" else mesh.info)(1, body, 0)
    out = mesh.take()
    return out.writes[-1][1].decode().strip(), out.closes[0][1] if out.closes else ""


@pytest.mark.parametrize(
    ("word", "fields", "text", "reason"),
    [
        ("CONNECT", {"lang": "go"}, "-ERR 'attempted to connect to route port'", "Wrong Port"),
        (
            "CONNECT",
            {"gateway": "G", "cluster": "C"},
            "-ERR 'Rejecting connection from gateway \"G\" on the Route port'",
            "Wrong Gateway",
        ),
        (
            "CONNECT",
            {"cluster": "D"},
            '-ERR \'Rejecting connection, cluster name "D" does not match "C"\'',
            "Cluster Name Conflict",
        ),
        ("INFO", {**INFO, "server_id": "Na"}, "INFO", "Duplicate Route"),
        ("INFO", {**INFO, "server_name": "a"}, "INFO", "Duplicate Server Name"),
        ("INFO", {**INFO, "cluster": "D"}, "INFO", "Cluster Name Conflict"),
        (
            "INFO",
            {**INFO, "route_pool_idx": 7},
            "-ERR 'Invalid route pool index: 7 - pool size is 3'",
            "Protocol Violation",
        ),
        (
            "INFO",
            {**INFO, "route_pool_size": POOL_SIZE_MAX + 1},
            "-ERR 'Invalid route pool size: 1025'",
            "Protocol Violation",
        ),
        (
            "INFO",
            {**INFO, "route_account": "$G"},
            "-ERR 'No route for account \"$G\"'",
            "Protocol Violation",
        ),
        (
            "INFO",
            {**INFO, "route_account": "NOPE"},
            "-ERR 'Unable to lookup account \"NOPE\": account missing'",
            "Protocol Violation",
        ),
        ("INFO", {**INFO, "port": "x"}, "-ERR 'Parser Error", "Protocol Violation"),
        ("INFO", {"server_name": "x"}, "-ERR 'Parser Error", "Protocol Violation"),
        ("INFO", INFO, "INFO", ""),
    ],
)
def test_refusals(word: str, fields: dict[str, object], text: str, reason: str) -> None:
    written, closed = spoken_to([(word, fields)])
    assert written.startswith(text) and closed == reason


def test_info_before_login_is_refused() -> None:
    written, reason = spoken_to([("INFO", INFO)], user="u", password="p")
    assert written == "-ERR 'Authorization Violation'" and reason == "Authentication Failure"


def test_silent_connections_are_closed_in_time() -> None:
    mesh = Mesh(options("a"), random.Random(1).randrange, ACCOUNTS)
    mesh.start(0)
    mesh.opened(Accepted(1, ConnKind.ROUTE, "10.0.0.9", 5), 0)
    assert mesh.deadline_ns == 2 * SECOND
    mesh.tick(2 * SECOND)
    assert mesh.take().closes == [(1, "Authentication Timeout")]


@given(st.binary(max_size=40))
def test_noise_never_raises(noise: bytes) -> None:
    mesh = Mesh(options("a"), random.Random(1).randrange, ACCOUNTS)
    mesh.opened(Accepted(1, ConnKind.ROUTE, "10.0.0.9", 5), 0)
    mesh.opened(Accepted(2, ConnKind.ROUTE, "10.0.0.9", 5), 0)
    mesh.connect(1, noise, 0)
    mesh.info(2, noise, 0)
    mesh.closed(1, "x", 0)
    assert not mesh.registered(1) and not mesh.registered(2)


def test_gossiped_addresses() -> None:
    assert split_url("nats-route://10.0.0.1:6222/") == ("10.0.0.1", 6222)
    assert split_url("nats-route://u:p@[::1]:6222") == ("::1", 6222)
    assert split_url("nats-route://nowhere/") is None
    info = parse_info(json.dumps({**INFO, "gossip_mode": 2, "ldm": True}).encode())
    assert (info.gossip_mode, info.lame_duck, info.pool_size) == (2, True, 3)


def registered_peer(**more: object) -> Mesh:
    """A mesh with a registered link of server x on connection 1; nothing left to take."""
    mesh = Mesh(options("a", **more), random.Random(1).randrange, ACCOUNTS)
    mesh.start(0)
    mesh.opened(Accepted(1, ConnKind.ROUTE, "10.0.0.9", 5), 0)
    mesh.info(1, json.dumps(INFO).encode(), 0)
    assert mesh.registered(1)
    mesh.take()
    return mesh


@pytest.mark.parametrize(
    ("news", "dialed"),
    [
        ({"server_id": "NY", "ip": "nats-route://10.0.0.7:6222/"}, [("10.0.0.7", 6222)]),
        ({"server_id": "NY", "ip": "nonsense"}, []),
        ({"server_id": "Na", "ip": "nats-route://10.0.0.7:6222/"}, []),
        ({"gateway": "G"}, []),
        ({}, []),
    ],
)
def test_news_on_an_established_link(
    news: dict[str, object], dialed: list[tuple[str, int]]
) -> None:
    mesh = registered_peer()
    mesh.info(1, json.dumps({**INFO, **news}).encode(), 0)
    mesh.tick(0)
    out = mesh.take()
    assert [(dial.host, dial.port) for dial in out.dials] == dialed
    assert out.closes == [] and out.logs == []
    told = [event for event in out.events if isinstance(event, GatewayTold)]
    assert told == ([GatewayTold("G", (), "NX")] if "gateway" in news else [])


@pytest.mark.parametrize("told_first", [False, True])
@pytest.mark.parametrize(("account", "dials"), [("", 0), ("$SYS", 1)], ids=["pool", "account"])
def test_a_peer_that_dialed_for_an_account_alone_is_dialed_for_the_pool(
    account: str, dials: int, told_first: bool
) -> None:
    """A nats-server dials what it was told of, be that an account or the pool, and no more."""
    mesh = registered_peer()
    other = {**INFO, "server_id": "NY", "server_name": "y"}
    gossip = json.dumps({**other, "ip": "nats-route://10.0.0.7:6222/"}).encode()
    if told_first:
        mesh.info(1, gossip, 0)
    mesh.opened(Accepted(2, ConnKind.ROUTE, "10.0.0.7", 5), 0)
    mesh.info(2, json.dumps({**other, "route_account": account}).encode(), 0)
    assert mesh.registered(2)
    for _ in range(2):
        mesh.info(1, gossip, 0)
        mesh.tick(0)
    assert len(mesh.take().dials) == dials


@pytest.mark.parametrize(
    ("text", "again"),
    [
        ("'Authentication Timeout'", True),
        ("'Stale Connection'", True),
        ("'No route for account \"$SYS\"'", False),
        ("'Unable to lookup account \"$SYS\": account missing'", False),
        ("'Not possible to have a dedicated route for account \"$SYS\" between those'", False),
    ],
)
def test_an_account_whose_handshake_failed_is_dialed_again_unless_it_is_refused(
    text: str, again: bool
) -> None:
    mesh = Mesh(options("a", "b"), random.Random(1).randrange, ACCOUNTS)
    mesh.start(0)

    def comes(token: int, conn: int) -> None:
        mesh.opened(Accepted(conn, ConnKind.ROUTE, "b", 6222, dial_token=token), 0)
        mesh.info(conn, json.dumps(INFO).encode(), 0)

    (first,) = mesh.take().dials
    comes(first.token, 1)
    mesh.pong(1, 0)
    account, _pool = mesh.take().dials
    comes(account.token, 2)
    mesh.take()
    mesh.error(2, text)
    mesh.closed(2, "Read Error", 0)
    now_ns, dials = 0, 0
    while now_ns < 5 * SECOND:
        now_ns += SECOND // 10
        mesh.tick(now_ns)
        dials += len(mesh.take().dials)
    assert dials == again, "the pool's dial is still under way"


def test_an_implicit_route_is_given_up_after_some_tries() -> None:
    mesh = registered_peer()
    gossip = {**INFO, "server_id": "NY", "ip": "nats-route://10.0.0.7:6222/"}
    mesh.info(1, json.dumps(gossip).encode(), 0)
    now_ns, tries = 0, 0
    while now_ns < 60 * SECOND:
        mesh.tick(now_ns)
        for dial in mesh.take().dials:
            tries += 1
            mesh.dial_failed(dial.token, "refused", now_ns)
        now_ns += SECOND // 10
    assert tries == 6


def test_backoff_of_explicit_routes() -> None:
    mesh = Mesh(options("a", "b", connect_backoff=True), lambda limit: 0, ACCOUNTS)
    mesh.start(0)
    now_ns, times = 0, []
    while now_ns < 120 * SECOND:
        mesh.tick(now_ns)
        for dial in mesh.take().dials:
            times.append(now_ns / SECOND)
            mesh.dial_failed(dial.token, "refused", now_ns)
        now_ns += SECOND // 20
    pauses = [round(after - before, 2) for before, after in pairwise(times)]
    assert pauses == [0.05, 0.1, 0.2, 0.4, 0.8, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]


def test_an_account_that_gets_its_own_link_is_acknowledged() -> None:
    mesh = registered_peer()
    request = {**INFO, "route_account": "P", "route_acc_add_reqid": "r1"}
    mesh.info(1, json.dumps(request).encode(), 0)
    [(conn, line)] = mesh.take().writes
    answer = json.loads(line.partition(b" ")[2])
    assert conn == 1 and answer["route_acc_add_reqid"] == "r1"
    assert "route_account" not in answer


def test_connections_in_handshake_are_limited() -> None:
    mesh = Mesh(options("a"), random.Random(1).randrange, ACCOUNTS)
    for conn in range(HANDSHAKES_MAX + 1):
        mesh.opened(Accepted(conn, ConnKind.ROUTE, "10.0.0.9", 5), 0)
    assert mesh.take().closes == [(HANDSHAKES_MAX, "Maximum Connections Exceeded")]
    mesh.closed(0, "gone", 0)
    mesh.opened(Accepted(9999, ConnKind.ROUTE, "10.0.0.9", 5), 0)
    assert mesh.take().closes == []


def test_dials_that_nobody_wants_any_more_are_closed() -> None:
    mesh = Mesh(options("a"), random.Random(1).randrange, ACCOUNTS)
    mesh.opened(Accepted(1, ConnKind.ROUTE, "10.0.0.9", 5, dial_token=77), 0)
    mesh.dial_failed(78, "refused", 0)
    assert mesh.take().closes == [(1, "Route Removed")]


def test_what_is_no_route_protocol_is_refused() -> None:
    mesh = registered_peer()
    mesh.bad(1, "Unknown Protocol Operation", "Parse Error", 0)
    out = mesh.take()
    assert out.writes[-1] == (1, b"-ERR 'Unknown Protocol Operation'\r\n")
    assert out.closes == [(1, "Parse Error")] and not mesh.registered(1)


def dialed_itself(mesh: Mesh, address: str, now_ns: int) -> None:
    """The one dial that is to be made leads to an address, where this server itself is."""
    (dial,) = mesh.take().dials
    mesh.opened(Accepted(1, ConnKind.ROUTE, address, 6222, dial_token=dial.token), now_ns)
    mesh.info(1, json.dumps({**INFO, "server_id": "Na", "server_name": "a"}).encode(), now_ns)
    mesh.tick(now_ns + SECOND)


def test_a_name_of_several_servers_is_dialed_until_another_one_is_there() -> None:
    mesh = Mesh(options("a", "all"), random.Random(1).randrange, ACCOUNTS)
    mesh.start(0)
    dialed_itself(mesh, "10.0.0.1", 0)
    dialed_itself(mesh, "10.0.0.2", SECOND)
    (dial,) = mesh.take().dials
    assert (dial.host, dial.own) == ("all", ("10.0.0.1", "10.0.0.2"))
    mesh.opened(Accepted(2, ConnKind.ROUTE, "10.0.0.3", 6222, dial_token=dial.token), 0)
    mesh.info(2, json.dumps(INFO).encode(), 2 * SECOND)
    assert mesh.registered(2)


@pytest.mark.parametrize("again", [True, False])
def test_a_name_of_this_server_alone_is_forgotten(again: bool) -> None:
    """Whether the same address is found again, or no other one."""
    mesh = Mesh(options("a", "me"), random.Random(1).randrange, ACCOUNTS)
    mesh.start(0)
    dialed_itself(mesh, "10.0.0.1", 0)
    if again:
        dialed_itself(mesh, "10.0.0.1", SECOND)
    else:
        (dial,) = mesh.take().dials
        mesh.dial_failed(dial.token, ONLY_OWN, SECOND)
    mesh.tick(10 * SECOND)
    assert not mesh.take().dials
