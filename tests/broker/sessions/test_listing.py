"""Subscriptions as monitoring sees them."""

from jsctl.broker.interest.targets import RouteLink, Sink
from jsctl.broker.sessions import listing
from tests.broker.routing.routing_bench import Server


def test_who_has_subscribed_what() -> None:
    server = Server()
    account = server.accounts.default
    server.client(1)
    server.say(1, b"SUB a 1\r\nSUB q grp 2\r\nUNSUB 1 5\r\nPUB a 1\r\nx\r\n")
    server.router.subscribe(account, b"s.>", Sink())
    link = RouteLink(9, "p")
    server.router.add_route(link)
    server.route(link, b"RS+ $G far grp 3\r\n")
    session = server.sessions.get(1)
    assert session is not None
    first, second = listing.of_session(session)
    assert (first.subject, first.sid, first.delivered, first.maximum) == ("a", "1", 1, 5)
    assert (second.queue, second.client_id) == ("grp", session.client_id)
    assert [one.weight for one in listing.of_link(link)] == [3]
    count, page = listing.of_account(account, None, 0, 9)
    assert (count, {one.subject for one in page}) == (3, {"a", "q", "s.>"})
    count, page = listing.of_account(account, b"a".__eq__, 0, 9)
    assert (count, [one.subject for one in page]) == (1, ["a"])
    assert listing.of_account(account, None, 3, 9) == (3, [])
    facts = listing.sublists(server.accounts)
    assert (facts.subscriptions, facts.inserts, facts.removes) == (4, 4, 0)
    assert 0 <= facts.hit_rate <= 1 and listing.sublists([]).hit_rate == 0
    server.sessions.client_pending(1, 7)
    assert listing.pending_bytes(session) == 7
    server.sessions.gone(1, "")
    assert [one.subject for one in listing.of_session(session)] == ["a", "q"]
    assert (account.out_messages, account.out_bytes) == (1, 1)
