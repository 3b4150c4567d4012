"""The router: sinks, queue groups, other servers, slow consumers."""

import re
from typing import ClassVar

import pytest

from jsctl.broker.interest.targets import RouteLink, Sink
from jsctl.broker.options import AccountOptions, Options, UserOptions
from jsctl.broker.protocol.deliveries import AckRun, Deliveries, OutgoingMessage, singly
from jsctl.broker.routing.limits import RoutingLimits
from jsctl.broker.routing.router import SLOW_CONSUMER
from jsctl.broker.routing.routes import pool_index
from jsctl.broker.routing.shown import split_reply
from jsctl.broker.sessions.session import ClientSession
from tests.broker.routing.routing_bench import Server, interest_count

TWO = Options(
    accounts=(
        AccountOptions(name="A", users=(UserOptions(name="a", password="x"),)),
        AccountOptions(name="B", users=(UserOptions(name="b", password="x"),)),
    )
)


def test_sinks_capture_with_their_origin() -> None:
    server = Server()
    account = server.accounts.default
    sink, other = Sink("mine"), Sink()
    subscription = server.router.subscribe(account, b"a.>", sink)
    server.router.subscribe(account, b"a.b", other, b"q", local_only=True)
    server.client(1)
    server.say(1, b"PUB a.b r 1\r\nx\r\nHPUB a.c 2 3\r\nHHy\r\n")
    assert server.router.take_dirty() == [sink, other]
    session = server.sessions.get(1)
    assert sink.take() == [(b"a.b", b"r", b"", b"x", session), (b"a.c", b"", b"HH", b"y", session)]
    assert other.take() == [(b"a.b", b"r", b"", b"x", session)]
    assert server.router.take_dirty() == [] and sink.take() == []
    assert server.router.has_interest(account, b"a.b")
    assert interest_count(account, b"a.b") == 2
    server.router.unsubscribe(subscription)
    assert not server.router.has_interest(account, b"a.c")
    assert account.interest == {}


def test_every_account_has_its_own_sink() -> None:
    server = Server(TWO)
    server.router.subscribe_everywhere(b"$SYS.REQ.USER.INFO", "owner")
    server.client(1, b',"user":"b","pass":"x"')
    server.say(1, b"PUB $SYS.REQ.USER.INFO r 0\r\n\r\n")
    (dirty,) = server.router.take_dirty()
    assert dirty.owner == "owner"
    assert dirty.account is server.accounts.get("B")


def test_accounts_are_separate() -> None:
    server = Server(TWO)
    server.client(1, b',"user":"a","pass":"x"')
    server.client(2, b',"user":"b","pass":"x"')
    server.say(1, b"SUB > 1\r\n")
    server.say(2, b"SUB > 1\r\nPUB a 0\r\n\r\n")
    assert server.heard(1) == b"" and server.heard(2) == b"MSG a 1 0\r\n\r\n"


def test_publish_from_inside() -> None:
    server = Server()
    account = server.accounts.default
    server.client(1)
    server.client(2, b',"echo":false')
    server.say(1, b"SUB deliver 1\r\n")
    assert not server.router.publish(account, b"none", b"x")
    assert server.router.publish(
        account, b"deliver", b"x", reply=b"$JS.ACK.s", deliver_as=b"orders.1"
    )
    server.router.publish_batch(
        account,
        [
            (b"deliver", b"", b"", b"1", b""),
            (b"no", b"", b"", b"2", b""),
            (b"deliver", b"r", b"H", b"3", b"s"),
        ],
    )
    server.emit()
    assert server.heard(1) == (
        b"MSG orders.1 1 $JS.ACK.s 1\r\nx\r\nMSG deliver 1 1\r\n1\r\nHMSG s 1 r 1 2\r\nH3\r\n"
    )


@pytest.mark.parametrize("others", ["", "client", "group", "route", "limit"])
def test_what_goes_out_together_reaches_everybody(others: str) -> None:
    server = Server()
    for conn in (1, 2):
        server.client(conn)
    server.say(1, b"SUB in.* 1\r\n" + (b"UNSUB 1 3\r\n" if others == "limit" else b""))
    if others in ("client", "group"):
        server.say(2, b"SUB in.b 5\r\n" if others == "client" else b"SUB in.b grp 5\r\n")
    if others == "route":
        linked(server, 9, "p", b"RS+ $G in.a\r\n")
    rows = [(seq, 10, b"s", b"", b"%d" % seq) for seq in range(5, 9)]
    made = Deliveries(b"r.", rows, [b"in.a", b"in.b"], 1, 3)
    last = (b"in.a", b"", b"", b"end", b"")
    server.router.publish_batch(server.accounts.default, [last, made, last])
    server.emit()
    lines = [b"MSG s 1 r.%d.%d.10.%d 1\r\n%d\r\n" % (4 + n, n, 4 - n, 4 + n) for n in range(1, 5)]
    end = b"MSG in.a 1 3\r\nend\r\n"
    whole = end + b"".join(lines) + end
    assert server.heard(1) == (end + b"".join(lines[:2]) if others == "limit" else whole)
    if others in ("client", "group"):
        assert server.heard(2) == (lines[1] + lines[3]).replace(b"MSG s 1", b"MSG s 5")
    if others == "route":
        assert [line[-3:-2] for line in server.heard(9).split(b"RMSG")[1:]] == [
            b"d",
            b"5",
            b"7",
            b"d",
        ]


@pytest.mark.parametrize("account", [None, "$G"])
def test_what_goes_out_together_to_another_server_is_what_goes_one_by_one(
    account: str | None,
) -> None:
    front = b"$JS.ACK.S.C.1."
    rows = [(seq, 10, b"s.%d" % seq, b"", b"%d" % seq) for seq in range(5, 9)]
    said: list[OutgoingMessage] = [
        (b"in.a", b"", b"NATS/1.0 404\r\n\r\n", b"", b""),
        Deliveries(front, rows, [b"in.a", b"in.b"], 1, 3),
        (b"in.b", front + b"9.5.10.0", b"NATS/1.0\r\n\r\n", b"h", b"s.9"),
        (b"in.b", b"reply", b"", b"p", b"shown"),
        (b"in.b", b"", b"", b"p", b""),
        AckRun([b"in.%d" % n for n in range(9, 12)], 9, (b'{"seq":', b"}")),
        (b"nobody", b"", b"", b"p", b""),
    ]
    heard = []
    for batches in ([said], [[one] for one in singly(said)]):
        server = Server()
        link = RouteLink(9, "p", account)
        server.router.add_route(link)
        server.route(link, b"RS+ in.*\r\n" if account else b"RS+ $G in.*\r\n")
        server.heard(9)
        for batch in batches:
            server.router.publish_batch(server.accounts.default, batch)
        server.emit()
        counts = link.out_messages, link.payload_bytes_out, server.accounts.default.out_bytes
        heard.append((server.heard(9), counts))
    assert heard[0] == heard[1]
    assert heard[0][0].count(b"MSG") == 11
    assert b"@s.5 1\r\n5\r\n" in heard[0][0]


@pytest.mark.parametrize("among", ["", "closing", "nobody", "limit", "two", "route", "one"])
def test_acknowledgements_to_many_clients_are_what_they_are_one_by_one(among: str) -> None:
    """Each has an inbox; what is `among` them has not, or is another kind of target."""
    inboxes = [b"in.%d" % n for n in (1, 2, 3, 1)] + [b"in.4.x"]
    said: list[OutgoingMessage] = [
        (b"in.2", b"", b"", b"before", b""),
        AckRun(inboxes, 98, (b'{"seq":', b"}")),
        (b"in.1", b"", b"", b"behind", b""),
    ]
    found = []
    for batches in ([said], [[one] for one in singly(said)]):
        server = Server()
        for conn in (1, 2, 3, 4):
            server.client(conn)
            pattern = b"in.%d" % conn if among != "one" else b">" if conn == 4 else b"other"
            server.say(conn, b"SUB %s s%d\r\n" % (pattern, conn))
        server.say(1, b"SUB in.4.* 77\r\n" if among not in ("nobody", "one") else b"")
        if among == "limit":
            server.say(2, b"UNSUB s2 2\r\n")
        if among == "two":
            server.say(3, b"SUB in.2 9\r\n")
        if among == "route":
            linked(server, 9, "p", b"RS+ $G in.3\r\n")
        session = server.sessions.get(2)
        if among == "closing" and session is not None:
            session.closing = "for a reason"
        for batch in batches:
            server.router.publish_batch(server.accounts.default, batch)
        server.emit()
        account = server.accounts.default
        sessions = [(one.out_messages, one.payload_bytes_out) for one in server.sessions]
        subs = [[sub.delivered for sub in one.subscriptions.values()] for one in server.sessions]
        heard = [server.heard(conn) for conn in (1, 2, 3, 4, 9)]
        found.append((heard, sessions, subs, account.out_messages, account.out_bytes))
    assert found[0] == found[1]
    acks = b"".join(found[0][0]).count(b'{"seq":')
    assert acks == {"closing": 4, "nobody": 4, "two": 6, "route": 6}.get(among, 5)
    if not among:
        assert found[0][0][0] == (
            b'MSG in.1 s1 10\r\n{"seq":98}\r\nMSG in.1 s1 11\r\n{"seq":101}\r\n'
            b'MSG in.4.x 77 11\r\n{"seq":102}\r\nMSG in.1 s1 6\r\nbehind\r\n'
        )


def linked(server: Server, conn: int, peer: str, lines: bytes = b"") -> RouteLink:
    link = RouteLink(conn, peer)
    server.router.add_route(link)
    server.route(link, lines)
    server.heard(conn)
    return link


def test_queue_members_are_drawn_by_weight() -> None:
    server = Server()
    server.client(1)
    server.client(2)
    server.say(2, b"SUB q grp 1\r\n")
    linked(server, 9, "p", b"RS+ $G q grp 2\r\n")
    server.say(1, b"PUB q 0\r\n\r\n" * 900)
    here = server.heard(2).count(b"MSG q 1 0\r\n")
    there = server.heard(9).count(b"RMSG $G q | grp 0\r\n")
    assert here + there == 900
    assert 250 < here < 350, "one member of three is here"


class Near(Sink):
    """Is drawn before members of other servers."""

    __slots__ = ()

    nearest: ClassVar[bool] = True


@pytest.mark.parametrize("nearest", [False, True])
def test_members_here_are_drawn_before_others_where_they_are_nearest(nearest: bool) -> None:
    server = Server()
    server.client(1)
    sinks = [Near() if nearest else Sink(), Sink()]
    subs = [server.router.subscribe(server.accounts.default, b"q", one, b"grp") for one in sinks]
    linked(server, 9, "p", b"RS+ $G q grp 2\r\n")
    server.say(1, b"PUB q 0\r\n\r\n" * 400)
    here = [len(one.take()) for one in sinks]
    there = server.heard(9).count(b"RMSG $G q | grp 0\r\n")
    assert sum(here) + there == 400
    assert all(here)
    assert 150 < there < 250 if not nearest else not there
    server.router.unsubscribe(subs[0])
    server.say(1, b"PUB q 0\r\n\r\n" * 30)
    assert server.heard(9).count(b"RMSG $G q | grp 0\r\n") > 10


def test_a_member_that_cannot_take_it_is_passed_over() -> None:
    server = Server()
    server.client(1, b',"echo":false,"no_responders":true')
    server.client(2)
    server.say(1, b"SUB q grp 1\r\nSUB in 2\r\n")
    server.say(2, b"SUB q grp 1\r\n")
    server.say(1, b"PUB q 0\r\n\r\n" * 10)
    assert server.heard(2).count(b"MSG") == 10
    server.say(2, b"UNSUB 1\r\n")
    server.say(1, b"PUB q in 0\r\n\r\n")
    assert b"503" in server.heard(1)
    linked(server, 9, "p", b"RS+ $G q grp 1\r\n")
    server.say(1, b"PUB q in 0\r\n\r\n" * 2)
    assert server.heard(9).count(b"RMSG $G q + in grp 0\r\n") == 2


def test_interest_is_told_to_other_servers() -> None:
    server = Server()
    server.client(1)
    server.say(1, b"SUB a 1\r\nSUB q grp 2\r\n")
    link = RouteLink(9, "p")
    server.router.add_route(link)
    server.emit()
    assert server.heard(9) == b"RS+ $G a\r\nRS+ $G q grp 1\r\n"
    server.say(1, b"SUB a 3\r\nSUB q grp 4\r\nUNSUB 1\r\n")
    assert server.heard(9) == b"RS+ $G q grp 2\r\n"
    server.say(1, b"UNSUB 3\r\nUNSUB 4\r\nUNSUB 2\r\n")
    assert server.heard(9) == b"RS- $G a\r\nRS+ $G q grp 1\r\nRS- $G q grp\r\n"


def test_one_message_a_link_and_none_back() -> None:
    server = Server()
    server.client(1)
    server.client(2)
    link = linked(server, 9, "p", b"RS+ $G a.*\r\nRS+ $G a.>\r\nRS+ $G a.b grp 1\r\n")
    other = linked(server, 8, "p2", b"RS+ $G a.b\r\n")
    server.say(1, b"HPUB a.b r 2 3\r\nHHx\r\n")
    assert server.heard(9) == b"HMSG $G a.b + r grp 2 3\r\nHHx\r\n"
    assert server.heard(8) == b"HMSG $G a.b r 2 3\r\nHHx\r\n"
    server.say(2, b"SUB a.b 1\r\nSUB a.b grp 2\r\nSUB a.b other 3\r\n")
    server.heard(8), server.heard(9)
    server.route(link, b"RMSG $G a.b | grp 1\r\ny\r\nRMSG $G a.b 1\r\nz\r\n")
    assert server.heard(2) == b"MSG a.b 1 1\r\ny\r\nMSG a.b 2 1\r\ny\r\nMSG a.b 1 1\r\nz\r\n"
    assert server.heard(8) == b"" and other.out == []


def test_interest_of_other_servers_goes_with_them() -> None:
    server = Server()
    account = server.accounts.default
    link = linked(server, 9, "p", b"RS+ $G a\r\nRS+ $G a\r\nRS+ $G q g 2\r\nRS+ $G q g 5\r\n")
    assert interest_count(account, b"a") == 1
    assert interest_count(account, b"q") == 5
    server.route(link, b"RS+ NONE a\r\nRS- $G a\r\nRS- $G zzz\r\nRMSG NONE a 0\r\n\r\n")
    assert not server.router.has_interest(account, b"a")
    server.router.remove_route(link)
    assert not server.router.has_interest(account, b"q") and list(server.router.routes) == []


def test_pools_and_dedicated_links() -> None:
    server = Server(TWO)
    size = 3
    pool = [RouteLink(10 + n, "p", pool_index=n, pool_size=size) for n in range(size)]
    dedicated = RouteLink(20, "p", account="A")
    for link in [*pool, dedicated]:
        server.router.add_route(link)
    assert server.router.routes.links_of("A") == [dedicated]
    assert server.router.routes.links_of("B") == [pool[pool_index("B", size)]]
    server.client(1, b',"user":"a","pass":"x"')
    server.say(1, b"SUB foo 1\r\nSUB foo q 2\r\n")
    assert server.heard(20) == b"RS+ foo\r\nRS+ foo q 1\r\n"
    server.route(dedicated, b"RS+ bar\r\n")
    server.say(1, b"PUB bar r 1\r\nx\r\n" + b"PUB bar 1\r\ny\r\n" * 3)
    assert server.heard(20) == b"RMSG bar r 1\r\nx\r\n" + b"RMSG bar 1\r\ny\r\n" * 3


def test_interest_is_told_on_one_link_of_a_peer_only() -> None:
    server = Server(TWO)
    pooled, dedicated = RouteLink(10, "p", pool_size=1), RouteLink(20, "p", account="A")
    server.client(1, b',"user":"a","pass":"x"')
    server.say(1, b"SUB foo 1\r\nSUB foo q 2\r\n")
    server.router.add_route(pooled)
    server.emit()
    assert server.heard(10) == b"RS+ A foo\r\nRS+ A foo q 1\r\n"
    server.router.add_route(dedicated)
    server.emit()
    assert server.heard(10) == b"RS- A foo\r\nRS- A foo q\r\n"
    assert server.heard(20) == b"RS+ foo\r\nRS+ foo q 1\r\n"
    server.router.remove_route(dedicated)
    server.emit()
    assert server.heard(10) == b"RS+ A foo\r\nRS+ A foo q 1\r\n"


def test_deliveries_of_streams_cross_routes_with_their_subject() -> None:
    reply = b"$JS.ACK.S.C.1.2.3.4.5"
    server = Server()
    link = linked(server, 9, "p", b"RS+ $G deliver\r\n")
    server.router.publish(
        server.accounts.default, b"deliver", b"x", reply=reply, deliver_as=b"orders.@.1"
    )
    server.emit()
    line = server.heard(9)
    assert line == b"RMSG $G deliver %s@orders.@.1 1\r\nx\r\n" % reply
    server.client(1)
    server.say(1, b"SUB deliver 1\r\n")
    server.route(link, line)
    assert server.heard(1) == b"MSG orders.@.1 1 %s 1\r\nx\r\n" % reply


@pytest.mark.parametrize(
    ("reply", "outcome"),
    [
        (b"inbox@x", (b"inbox@x", b"")),
        (b"$JS.ACK.a@b.c", (b"$JS.ACK.a@b.c", b"")),
        (b"$JS.ACK.a@b.C.1.2.3.4.5@s@t", (b"$JS.ACK.a@b.C.1.2.3.4.5", b"s@t")),
        (b"$JS.ACK.a.C.1.2.3.4.5@", (b"$JS.ACK.a.C.1.2.3.4.5@", b"")),
    ],
)
def test_split_reply(reply: bytes, outcome: tuple[bytes, bytes]) -> None:
    assert split_reply(reply) == outcome


def test_slow_consumers_are_closed_and_producers_pause() -> None:
    limits = RoutingLimits(pending_bytes_max=1000, pending_bytes_high=500)
    server = Server(limits=limits)
    server.client(1)
    server.client(2)
    server.say(2, b"SUB a 1\r\n")
    server.sessions.client_pending(2, 600)
    server.say(1, b"PUB a 1\r\nx\r\n")
    assert server.last.pauses == [1]
    server.say(1, b"PUB a 1\r\nx\r\n")
    assert server.last.pauses == []
    server.sessions.client_pending(2, 100)
    server.emit()
    assert server.last.resumes == [1] and not server.closes
    server.heard(2)
    server.say(1, b"PUB a 300\r\n" + b"x" * 300 + b"\r\n" + b"PUB a 700\r\n" + b"x" * 700 + b"\r\n")
    assert server.closes == {2: SLOW_CONSUMER} and server.heard(2) == b""
    assert not server.router.has_interest(server.accounts.default, b"a")


def test_slow_by_what_the_kernel_does_not_take() -> None:
    limits = RoutingLimits(pending_bytes_max=1000, pending_bytes_high=500)
    server = Server(limits=limits)
    server.client(1)
    server.client(2)
    server.say(1, b"SUB a 1\r\n")
    server.sessions.client_pending(1, 600)
    server.say(2, b"PUB a 1\r\nx\r\n")
    assert server.last.pauses == [2]
    server.sessions.client_pending(1, 1001)
    server.emit()
    assert server.closes == {1: SLOW_CONSUMER} and server.last.resumes == [2]
    assert server.accounts.default.slow_consumers == 1


def test_nobody_is_read_any_more_at_the_end() -> None:
    server = Server(limits=RoutingLimits(pending_bytes_max=1000, pending_bytes_high=500))
    for conn in (1, 2, 3):
        server.client(conn)
    server.say(2, b"SUB a 1\r\n")
    server.sessions.client_pending(2, 600)
    server.say(1, b"PUB a 1\r\nx\r\n")
    assert server.last.pauses == [1]
    server.sessions.hush()
    server.emit()
    assert server.last.pauses == [2, 3]
    server.sessions.client_pending(2, 100)
    server.emit()
    assert server.last.resumes == [], "although what it waited for takes data again"
    assert server.heard(2) == b"MSG a 1 1\r\nx\r\n", "what is sent still arrives"


def test_requests_answered_through_the_lane_and_the_session_alike() -> None:
    server = Server()
    server.client(1, b',"no_responders":true')
    server.say(1, b"SUB in.* 1\r\n" + b"".join(b"PUB no in.%d 0\r\n\r\n" % n for n in range(30)))
    subjects = re.findall(rb"HMSG (in\.\d+) 1 34 34", server.heard(1))
    assert subjects == [b"in.%d" % n for n in range(30)]
    assert isinstance(server.sessions.get(1), ClientSession)
