"""The table of kinds, and that routing does what it says, also for a row that is not there yet."""

from dataclasses import replace

import pytest

from jsctl.broker.interest.kinds import BROKER, CLIENT, KINDS, ROUTE
from jsctl.broker.interest.targets import RouteLink
from tests.broker.routing.routing_bench import Server

LEAF = replace(
    ROUTE,
    name="leaf",
    hears=frozenset({"client", "broker", "route", "leaf"}),
    relayed=True,
    verb=b"LMSG ",
    header_verb=b"HMSG ",
)
MESSAGES = b"RMSG $G foo 1\r\nx\r\nHMSG $G foo 2 3\r\nHHy\r\n"


def linked(server: Server, conn: int, name: str) -> RouteLink:
    """A link whose server listens to everything."""
    link = RouteLink(conn, name)
    server.router.add_route(link)
    server.route(link, b"RS+ $G >\r\n")
    server.inbox.clear()
    return link


def test_who_hears_whom() -> None:
    heard = {one.name: {other.name for other in KINDS if other.reaches(one)} for one in KINDS}
    assert heard == {
        "client": {"client", "route", "broker"},
        "route": {"client", "broker"},
        "broker": {"client", "route", "broker"},
    }


def test_the_short_cut_agrees_with_the_table() -> None:
    for one in KINDS:
        assert one.relayed is any(one.reaches(link) for link in (ROUTE,)), one.name
    assert len({one.name for one in KINDS}) == len({one.number for one in KINDS}) == len(KINDS)
    assert CLIENT.pauses and not ROUTE.pauses and not BROKER.expendable


def test_a_message_of_a_route_goes_to_no_route() -> None:
    server = Server()
    first = linked(server, 101, "two")
    linked(server, 102, "three")
    server.client(1)
    server.say(1, b"SUB foo 7\r\n")
    server.inbox.clear()
    server.route(first, MESSAGES)
    assert server.heard(101) == server.heard(102) == b""
    assert server.heard(1) == b"MSG foo 7 1\r\nx\r\nHMSG foo 7 2 3\r\nHHy\r\n"


def test_a_kind_that_hears_routes_hears_them_in_its_own_words() -> None:
    server = Server()
    route, leaf = linked(server, 101, "two"), linked(server, 102, "three")
    leaf.kind = LEAF
    route.kind = replace(ROUTE, relayed=True)
    server.route(route, MESSAGES)
    assert server.heard(102) == b"LMSG $G foo 1\r\nx\r\nHMSG $G foo 2 3\r\nHHy\r\n"
    assert server.heard(101) == b""


@pytest.mark.parametrize("published", [b"PUB foo 1\r\nx\r\n", b"PUB foo 1\r\nx\r\n" * 40])
def test_what_a_client_publishes_reaches_links_that_hear_clients(published: bytes) -> None:
    server = Server()
    deaf, leaf = linked(server, 101, "two"), linked(server, 102, "three")
    deaf.kind = replace(ROUTE, hears=frozenset({"broker"}))
    leaf.kind = LEAF
    server.client(1)
    server.say(1, published)
    assert server.heard(102) == published.replace(b"PUB foo", b"LMSG $G foo")
    assert server.heard(101) == b""


def test_rows_reach_links_that_hear_clients() -> None:
    server = Server()
    deaf, leaf = linked(server, 101, "two"), linked(server, 102, "three")
    deaf.kind = replace(ROUTE, hears=frozenset({"broker"}))
    leaf.kind = LEAF
    server.client(1)
    rows = b"".join([b"PUB foo r.%03d 1\r\nx\r\n" % number for number in range(60)])
    server.say(1, rows)
    assert server.heard(102) == rows.replace(b"PUB foo", b"LMSG $G foo")
    assert server.heard(101) == b""


def test_requests_of_a_kind_that_draws_are_shared_out_here() -> None:
    server = Server()
    link = linked(server, 101, "two")
    server.client(1)
    server.say(1, b"SUB foo q 7\r\n")
    server.inbox.clear()
    server.route(link, b"RMSG $G foo 1\r\nx\r\n")
    assert server.heard(1) == b""
    server.route(link, b"RMSG $G foo | q 1\r\nx\r\n")
    assert server.heard(1) == b"MSG foo 7 1\r\nx\r\n"
    link.kind = replace(ROUTE, draws=True)
    server.route(link, b"RMSG $G foo 1\r\nz\r\n")
    assert server.heard(1) == b"MSG foo 7 1\r\nz\r\n"
