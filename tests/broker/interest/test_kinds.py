"""The table of kinds, and that routing does what it says, also for a row that is not there yet."""

from dataclasses import replace

from jsctl.broker.interest.kinds import BROKER, CLIENT, HUB, KINDS, LEAF, ROUTE
from jsctl.broker.interest.targets import RouteLink
from tests.broker.routing.routing_bench import Server

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
    all_kinds = {"client", "route", "gateway", "leaf", "hub", "broker"}
    assert heard == {
        "client": all_kinds,
        "route": {"client", "gateway", "leaf", "broker"},
        "gateway": {"client", "leaf", "hub", "broker"},
        "leaf": all_kinds,
        "hub": all_kinds - {"route", "gateway"},
        "broker": all_kinds,
    }


def test_the_short_cut_agrees_with_the_table() -> None:
    for one in KINDS:
        reached = {link.name for link in (ROUTE, LEAF, HUB) if one.reaches(link)}
        assert one.meshed is (reached == {"leaf"}), one.name
    assert len({one.name for one in KINDS}) == len(KINDS)
    assert [one.number for one in KINDS] == [0, 1, 2, 4, 4, 3]
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
