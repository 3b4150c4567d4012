"""One server of a super-cluster without sockets: type lines as another cluster, read what comes."""

import random
from dataclasses import replace
from typing import ClassVar

import pytest

from jsctl.broker.accounts.accounts import Accounts
from jsctl.broker.accounts.leaf_guard import LeafGuard, Subjects
from jsctl.broker.interest.links import GatewayLink
from jsctl.broker.interest.targets import LeafLink, RouteLink
from jsctl.broker.login_options.permissions import ResponsePermission
from jsctl.broker.options import AccountOptions, ExportOptions, ImportOptions, Options, UserOptions
from jsctl.broker.protocol.route import GatewayParser, LeafParser
from jsctl.broker.routing.gateway_replies import RECENT_NS, WAYS_MAX, mark, replies_of
from jsctl.broker.routing.gateways import GatewayRouting
from jsctl.broker.routing.leafs import LeafRouting, Offence
from jsctl.broker.routing.limits import RoutingLimits
from jsctl.broker.routing.router import Router
from jsctl.broker.sessions.sessions import Sessions
from tests.broker.routing.routing_bench import Server

OUT, IN, ROUTE, CLIENT, OTHER, LEAF, GUARDED = 201, 202, 101, 1, 2, 301, 302
SECOND = 1_000_000_000
OWN = b"_GR_." + mark("A") + b"." + mark("NID") + b"."
DRAWN = b"_INBOX." + b"d" * 22
THEIRS = b"_GR_." + mark("B") + b"." + mark("NB") + b"."


class Gateway(Server):
    """A server of cluster A that sends to B, is sent to by B, and has another server in A."""

    members: ClassVar = 0

    def __init__(self, options: Options | None = None) -> None:
        super().__init__(options)
        self.replies = replies_of("A", "NID")
        self.accounts = Accounts(options or Options())
        limits = RoutingLimits()
        jitter = self.router.jitter
        self.router = Router(self.accounts, limits, jitter, self.replies)
        self.sessions = Sessions(self.router, self.identity, limits)

        def switch(account: str, begins: bool) -> bytes:
            return b"%s %s\r\n" % (b"BEGIN" if begins else b"END", account.encode())

        self.gates = GatewayRouting(self.router, self.replies, switch)
        self.out = self.link(OUT, "B", outbound=True)
        self.near = RouteLink(ROUTE, "NA2", name="a2")
        self.router.add_route(self.near)
        self.inward = self.link(IN, "B", outbound=False)
        self.emit()
        self.greeting = self.heard(IN)
        self.inbox.clear()

    def link(self, conn: int, cluster: str, *, outbound: bool) -> GatewayLink:
        found = GatewayLink(
            conn, conn, f"N{cluster}", cluster, mark(cluster), self.replies.replying,
            outbound=outbound,
        )  # fmt: skip
        self.gates.add(found)
        return found

    def gate(self, link: GatewayLink, lines: bytes) -> str:
        self.router.now_ns = self.now_ns
        wrong = self.gates.take(link, GatewayParser(65536, 1 << 20).feed(lines))
        self.emit()
        return wrong

    def later(self) -> None:
        """What was subscribed a moment ago is not new any more."""
        self.now_ns += RECENT_NS
        self.replies.tick(self.now_ns)


@pytest.fixture
def server() -> Gateway:
    """With two clients."""
    found = Gateway()
    found.client(CLIENT)
    found.client(OTHER)
    return found


def test_whoever_sends_here_is_told_of_everything_at_once(server: Gateway) -> None:
    assert server.greeting == b"BEGIN $G\r\nEND $G\r\nBEGIN $SYS\r\nEND $SYS\r\n"
    server.say(CLIENT, b"SUB a 1\r\nSUB a 2\r\nSUB b q 3\r\n")
    server.say(OTHER, b"SUB b q 1\r\n")
    server.route(server.near, b"RS+ $G c\r\nRS+ $G b q 4\r\nLS+ L $G d\r\n")
    said = server.heard(IN)
    assert said == b"RS+ $G a\r\nRS+ $G b q 1\r\nRS+ $G c\r\nRS+ $G d\r\n"
    link = server.link(203, "C", outbound=False)
    server.emit()
    told = server.heard(link.conn)
    assert told.startswith(b"RS+ $G b q 1\r\n") and told.endswith(b"END $SYS\r\n")
    server.say(CLIENT, b"UNSUB 1\r\nUNSUB 3\r\n")
    server.say(OTHER, b"UNSUB 1\r\n")
    assert server.heard(IN) == b"", "somebody is left"
    server.route(server.near, b"RS- $G b q\r\n")
    server.say(CLIENT, b"UNSUB 2\r\n")
    assert server.heard(IN) == b"RS- $G b q\r\nRS- $G a\r\n"


def test_nothing_crosses_without_interest(server: Gateway) -> None:
    server.say(CLIENT, b"PUB a 1\r\nx\r\n")
    assert server.heard(OUT) == b""
    server.gate(server.out, b"RS+ $G a\r\nRS+ $G a\r\nRS+ NONE a\r\n")
    server.say(CLIENT, b"PUB a 1\r\nx\r\nHPUB a 2 3\r\nHHy\r\n")
    assert server.heard(OUT) == b"RMSG $G a 1\r\nx\r\nHMSG $G a 2 3\r\nHHy\r\n"
    server.gate(server.out, b"RS- $G a\r\n")
    server.say(CLIENT, b"PUB a 1\r\nx\r\n")
    assert server.heard(OUT) == b""


def test_what_comes_in_goes_no_further(server: Gateway) -> None:
    server.gate(server.out, b"RS+ $G a\r\n")
    server.route(server.near, b"RS+ $G a\r\n")
    server.say(CLIENT, b"SUB a 1\r\n")
    server.inbox.clear()
    server.gate(server.inward, b"RMSG $G a 1\r\nx\r\n")
    assert server.heard(CLIENT) == b"MSG a 1 1\r\nx\r\n"
    assert server.heard(ROUTE) == b"RMSG $G a 1\r\nx\r\n"
    assert server.heard(OUT) == b""
    server.route(server.near, b"RMSG $G a 1\r\ny\r\n")
    assert server.heard(OUT) == b"" and server.heard(ROUTE) == b""


def test_a_group_is_served_near_by_and_else_in_the_nearest_cluster(server: Gateway) -> None:
    far = server.link(204, "C", outbound=True)
    server.out.rtt_ns, far.rtt_ns = 50, 20
    for link in (server.out, far):
        server.gate(link, b"RS+ $G a q 1\r\n")
    server.say(CLIENT, b"PUB a 1\r\nx\r\n")
    assert (server.heard(OUT), server.heard(204)) == (b"", b"RMSG $G a | q 1\r\nx\r\n")
    server.route(server.near, b"RS+ $G a q 1\r\n")
    server.say(CLIENT, b"PUB a 1\r\nx\r\n")
    assert server.heard(ROUTE) == b"RMSG $G a | q 1\r\nx\r\n" and server.heard(204) == b""
    server.say(OTHER, b"SUB a 1\r\n")
    server.inbox.clear()
    server.gate(server.inward, b"RMSG $G a 1\r\nx\r\n")
    assert server.heard(OTHER) == b"MSG a 1 1\r\nx\r\n", "no group was named"
    assert server.heard(ROUTE) == b""


def test_a_reply_of_a_moment_ago_says_where_it_leads(server: Gateway) -> None:
    server.gate(server.out, b"RS+ $G a\r\n")
    server.say(CLIENT, b"SUB in.* 1\r\nPUB a in.1 1\r\nx\r\nPUB a other 1\r\nx\r\n")
    assert server.heard(OUT) == b"RMSG $G a " + OWN + b"in.1 1\r\nx\r\nRMSG $G a other 1\r\nx\r\n"
    server.later()
    server.say(CLIENT, b"PUB a in.1 1\r\nx\r\n")
    assert server.heard(OUT) == b"RMSG $G a in.1 1\r\nx\r\n"


def test_an_answer_is_led_to_the_server_that_asked(server: Gateway) -> None:
    server.say(CLIENT, b"SUB in.* 1\r\n")
    server.route(server.near, b"RS+ $G in.>\r\n")
    server.inbox.clear()
    server.gate(server.inward, b"RMSG $G " + OWN + b"in.1 1\r\nx\r\n")
    assert server.heard(CLIENT) == b"MSG in.1 1 1\r\nx\r\n"
    other = b"_GR_." + mark("A") + b"." + mark("NA2") + b".in.1"
    server.inbox.clear()
    server.gate(server.inward, b"RMSG $G " + other + b" 1\r\ny\r\n")
    assert server.heard(CLIENT) == b""
    assert server.heard(ROUTE) == b"RMSG $G " + other + b" 1\r\ny\r\n"
    server.route(server.near, b"RMSG $G " + OWN + b"in.1 1\r\nz\r\n")
    assert server.heard(CLIENT) == b"MSG in.1 1 1\r\nz\r\n"


@pytest.mark.parametrize("rest", [b"", b"NI", b".x", b"in..1", b"in.1.", b"in.*"])
def test_what_leads_nowhere_is_dropped(server: Gateway, rest: bytes) -> None:
    server.say(CLIENT, b"SUB > 1\r\n")
    server.inbox.clear()
    whole = OWN + rest if rest != b"NI" else OWN[:-3]
    server.gate(server.inward, b"RMSG $G " + whole + b" 1\r\nx\r\n")
    server.route(server.near, b"RMSG $G " + whole + b" 1\r\nx\r\n")
    assert server.heard(CLIENT) == server.heard(ROUTE) == b""


def test_clients_cannot_come_in_by_the_door(server: Gateway) -> None:
    server.say(CLIENT, b"SUB in.* 1\r\n")
    server.inbox.clear()
    server.say(OTHER, b"PUB " + OWN + b"in.1 1\r\nx\r\n")
    assert server.heard(CLIENT) == b""


def test_what_is_said_to_a_mapped_reply_goes_straight_back(server: Gateway) -> None:
    server.say(CLIENT, b"SUB ask 1\r\n")
    server.route(server.near, b"RS+ $G ask\r\n")
    server.inbox.clear()
    server.gate(server.inward, b"RMSG $G ask " + THEIRS + b"in.1 1\r\nx\r\n")
    assert server.heard(CLIENT) == b"MSG ask 1 in.1 1\r\nx\r\n"
    assert server.heard(ROUTE) == b"RMSG $G ask " + THEIRS + b"in.1 1\r\nx\r\n"
    server.say(CLIENT, b"PUB in.1 1\r\ny\r\n")
    assert server.heard(OUT) == b"RMSG $G " + THEIRS + b"in.1 1\r\ny\r\n"
    server.gate(server.inward, b"RMSG $G in.1 1\r\nz\r\n")
    assert server.heard(OUT) == b"", "what comes from there does not go back"
    server.later()
    server.say(CLIENT, b"PUB in.1 1\r\ny\r\n")
    assert server.heard(OUT) == b""


def test_an_answer_by_another_server_of_the_cluster_finds_back(server: Gateway) -> None:
    server.say(CLIENT, b"SUB ask 1\r\n")
    server.inbox.clear()
    server.route(server.near, b"RMSG $G ask " + THEIRS + b"in.1 1\r\nx\r\n")
    assert server.heard(CLIENT) == b"MSG ask 1 in.1 1\r\nx\r\n"
    server.say(CLIENT, b"PUB in.1 1\r\ny\r\n")
    assert server.heard(OUT) == b"RMSG $G " + THEIRS + b"in.1 1\r\ny\r\n"


def test_replies_of_one_client_are_led_back_together(server: Gateway) -> None:
    inbox = b"_INBOX.%s." % (b"Ab3" * 8)[:22]
    server.say(CLIENT, b"SUB svc 1\r\n")
    server.gate(server.inward, b"RMSG $G svc %s%s1 2\r\nhi\r\n" % (THEIRS, inbox))
    account = server.accounts.default
    generation, size = account.sublist.generation, len(account.sublist)
    for number in range(2, 40):
        line = b"RMSG $G svc %s%s%d 2\r\nhi\r\n" % (THEIRS, inbox, number)
        server.gate(server.inward, line)
    assert (account.sublist.generation, len(account.sublist)) == (generation, size)
    server.inbox.clear()
    server.say(OTHER, b"PUB %s7 2\r\nyo\r\nPUB %s8.x 2\r\nno\r\n" % (inbox, inbox))
    assert server.heard(OUT) == b"RMSG $G %s%s7 2\r\nyo\r\n" % (THEIRS, inbox)
    server.inbox.clear()
    server.gate(server.inward, b"RMSG $G svc %s_INBOX.short.1 2\r\nhi\r\n" % THEIRS)
    assert len(account.sublist) == size + 1
    server.say(OTHER, b"PUB _INBOX.short.2 2\r\nno\r\n")
    assert server.heard(OUT) == b""


def test_deliveries_show_their_subject_on_both_ways(server: Gateway) -> None:
    ack = b"$JS.ACK.S.C.1.1.1.1700000000000000000.0"
    server.say(CLIENT, b"SUB in 1\r\n")
    server.inbox.clear()
    server.gate(server.inward, b"RMSG $G in " + THEIRS + ack + b"@orders.1 1\r\nx\r\n")
    assert server.heard(CLIENT) == b"MSG orders.1 1 " + ack + b" 1\r\nx\r\n"
    server.say(CLIENT, b"PUB " + ack + b" 4\r\n+ACK\r\n")
    assert server.heard(OUT) == b"RMSG $G " + THEIRS + ack + b" 4\r\n+ACK\r\n"


@pytest.mark.slow
def test_replies_that_are_led_back_are_bounded() -> None:
    replies, account = replies_of("A", "N"), Accounts(Options()).default
    for number in range(WAYS_MAX + 5):
        assert replies.noted(account, THEIRS + b"r.%d" % number, 1) == (b"r.%d" % number, b"")
    assert len(account.sublist) == WAYS_MAX
    assert replies.prefix_of(account, b"r.4") == b""
    assert replies.prefix_of(account, b"r.5") == THEIRS
    assert replies.noted(account, THEIRS + b"a..b", 1) == (THEIRS + b"a..b", b"")
    replies.tick(1 + RECENT_NS)
    assert len(account.sublist) == 0 and replies.deadline_ns() is None


def test_requests_of_one_turn_are_noted_as_each_would_be_alone() -> None:
    """Whatever was noted just before."""
    chance, accounts = random.Random(1), Accounts(Options())
    both = list(accounts)[:2]
    ours = replies_of("A", "NID")
    prefixes = [b"_GR_." + mark(name) + b"." + mark("N" + name) + b"." for name in "BC"]
    tails = [b"%s.%d" % (DRAWN, number) for number in range(3)]
    tails += [DRAWN + b".*", DRAWN + b".", DRAWN + b".1.2", b"own.ack", b"own.other"]
    tails += [b"own.>", b"own.ack.1", DRAWN]
    tails += [b"$JS.ACK.S.C.1.2.3.4.5@shown.1", b"$JS.ACK.S.C.1.2.3.4.5@shown.2"]
    now_ns = 1
    for _ in range(2000):
        account = chance.choice(both)
        prefix = chance.choice(prefixes)
        reply = prefix + chance.choice(tails)
        told = ours.noted(account, reply, now_ns)
        assert told == replies_of("A", "NID").noted(Accounts(Options()).default, reply, 0)
        if told[0] != reply:
            assert ours.prefix_of(account, told[0]) == prefix
        now_ns += chance.choice([0, 0, 0, 1, RECENT_NS])


def test_each_side_says_what_is_its_own(server: Gateway) -> None:
    assert "outbound" in server.gate(server.out, b"RMSG $G a 1\r\nx\r\n")
    assert "RS+" in server.gate(server.inward, b"RS+ $G a\r\n")
    assert "RS-" in server.gate(server.inward, b"RS- $G a\r\n")


def test_a_connection_that_is_gone_leaves_nothing(server: Gateway) -> None:
    server.gate(server.out, b"RS+ $G a\r\nRS+ $G b q 1\r\nRS+ LATER c\r\n")
    came = [(sub.subject, came) for sub, came in server.gates.take_news()]
    assert came == [(b"a", True), (b"b", True)]
    server.gates.drop(server.out)
    gone = [(sub.subject, came) for sub, came in server.gates.take_news()]
    assert gone == [(b"a", False), (b"b", False)] and not server.gates.take_news()
    server.say(CLIENT, b"PUB a 1\r\nx\r\nPUB b 1\r\nx\r\n")
    assert server.heard(OUT) == b"" and not server.replies.links


def test_accounts_come_and_go(server: Gateway) -> None:
    server.gate(server.out, b"RS+ LATER c\r\n")
    later = AccountOptions("LATER")
    server.reload(replace(Options(), accounts=(later,)))
    assert server.heard(IN) == b"BEGIN LATER\r\nEND LATER\r\n"
    account = server.accounts.get("LATER")
    assert account is not None and server.router.has_interest(account, b"c")
    server.reload(Options())
    server.reload(replace(Options(), accounts=(later,)))
    again = server.accounts.get("LATER")
    assert again is not None and server.router.has_interest(again, b"c")


def test_replies_in_an_account_that_came_back_say_where_they_lead() -> None:
    """What was new in the one that has gone, and is so no more, is nothing to it."""
    both = replace(
        Options(), accounts=(AccountOptions("X", (UserOptions("x", "x"),)), AccountOptions("Y"))
    )
    server, login = Gateway(both), b',"user":"x","pass":"x"'
    server.client(CLIENT, login)
    server.say(CLIENT, b"SUB in.1 1\r\n")
    server.reload(replace(Options(), accounts=both.accounts[1:]))
    server.reload(both)
    server.gate(server.out, b"RS+ X a\r\n")
    server.now_ns += RECENT_NS // 2
    server.client(OTHER, login)
    server.say(OTHER, b"SUB in.2 1\r\n")
    server.now_ns += RECENT_NS // 2
    server.replies.tick(server.now_ns)
    server.say(OTHER, b"PUB a in.2 1\r\nx\r\n" * 2)
    assert server.heard(OUT) == b"RMSG X a %sin.2 1\r\nx\r\n" % OWN * 2
    server.later()
    assert not server.replies.replying


def test_services_are_imported_where_the_request_is_made() -> None:
    accounts = (
        AccountOptions("X", exports=(ExportOptions("do", service=True),)),
        AccountOptions("$G", imports=(ImportOptions("X", "do", service=True),)),
    )
    server = Gateway(replace(Options(), accounts=accounts))
    assert b" do" not in server.greeting, "the import itself is nobody's business elsewhere"
    server.client(CLIENT)
    server.gate(server.out, b"RS+ X do\r\n")
    server.inbox.clear()
    server.say(CLIENT, b"SUB in 1\r\nPUB do in 1\r\nx\r\n")
    (line,) = [one for one in server.heard(OUT).split(b"\r\n") if b"MSG X do" in one]
    reply = line.split(b" ")[3]
    assert reply.startswith(OWN + b"_R_.")
    server.heard(CLIENT)
    server.gate(server.inward, b"RMSG X " + reply + b" 1\r\ny\r\n")
    assert server.heard(CLIENT) == b"MSG in 1 1\r\ny\r\n"


def test_marks_are_those_of_nats_server() -> None:
    assert mark("B") == b"b2oh2L"
    assert len(mark("A")) == 6


class Hub(Gateway):
    """The same with a leaf node, and another one whose requests and answers are restricted."""

    def __init__(self) -> None:
        super().__init__()
        self.leafs = LeafRouting(self.router)
        self.router.watchers.append(self.leafs)
        rules = Subjects().but([b"in.secret"])
        self.leaf = self.hang(LEAF, LeafGuard(Subjects(), Subjects(), rules))
        once = LeafGuard(Subjects(), Subjects(), Subjects(allow=()), ResponsePermission(1, SECOND))
        self.guarded = self.hang(GUARDED, once)
        self.emit()

    def hang(self, conn: int, guard: LeafGuard) -> LeafLink:
        account = self.accounts.default
        name = f"L{conn}"
        cluster = name.encode()
        link = LeafLink(conn, conn, account, hub=False, peer=name, cluster=cluster, guard=guard)
        self.leafs.add(link)
        return link

    def said(self, link: LeafLink, lines: bytes) -> tuple[Offence, bytes] | None:
        """A leaf node says something."""
        self.router.now_ns = self.now_ns
        wrong = self.leafs.take(link, LeafParser(65536, 1 << 20).feed(lines))
        self.emit()
        return wrong


def test_a_leaf_node_is_told_where_an_answer_leads() -> None:
    """It may hear of the request before it hears of who asks it."""
    hub = Hub()
    assert b"LS+ _GR_.>\r\n" in hub.heard(LEAF)
    hub.said(hub.leaf, b"LS+ ask\r\n")
    hub.gate(hub.inward, b"RMSG $G ask " + THEIRS + b"in.1 1\r\nx\r\n")
    assert hub.heard(LEAF) == b"LMSG ask " + THEIRS + b"in.1 1\r\nx\r\n"
    hub.said(hub.leaf, b"LMSG " + THEIRS + b"in.1 1\r\ny\r\n")
    assert hub.heard(OUT) == b"RMSG $G " + THEIRS + b"in.1 1\r\ny\r\n"
    # What came in at another server of the cluster does so, too.
    hub.route(hub.near, b"RMSG $G ask " + THEIRS + b"in.2 1\r\nx\r\n")
    assert hub.heard(LEAF) == b"LMSG ask " + THEIRS + b"in.2 1\r\nx\r\n"
    hub.client(CLIENT)
    hub.say(CLIENT, b"SUB > 1\r\nPUB ask in.2 1\r\nx\r\n")
    assert b"LMSG ask in.2 1\r\nx\r\n" in hub.heard(LEAF), "who asks here is here"


def test_a_leaf_node_cannot_come_in_by_the_door() -> None:
    hub = Hub()
    hub.client(CLIENT)
    hub.say(CLIENT, b"SUB in.* 1\r\n")
    hub.heard(CLIENT)
    hub.said(hub.leaf, b"LMSG " + OWN + b"in.1 1\r\nx\r\n")
    unknown = b"_GR_." + mark("C") + b"." + mark("NC") + b"."
    hub.said(hub.leaf, b"LMSG " + unknown + b"in.1 1\r\nx\r\nLMSG _GR_. 1\r\nx\r\n")
    assert hub.heard(CLIENT) == hub.heard(OUT) == b""


def test_permissions_of_leaf_nodes_are_for_the_reply_itself() -> None:
    hub = Hub()
    secret = THEIRS + b"in.secret"
    assert hub.said(hub.leaf, b"LMSG " + secret + b" 1\r\nx\r\n") == (Offence.PUBLISHED, secret)
    hub.said(hub.guarded, b"LS+ ask\r\n")
    hub.gate(hub.inward, b"RMSG $G ask " + THEIRS + b"in.1 1\r\nx\r\n")
    answer = b"LMSG " + THEIRS + b"in.1 1\r\ny\r\n"
    assert hub.said(hub.guarded, answer) is None
    assert hub.heard(OUT) == b"RMSG $G " + THEIRS + b"in.1 1\r\ny\r\n"
    assert hub.said(hub.guarded, answer) == (Offence.PUBLISHED, THEIRS + b"in.1"), "one is enough"
    assert hub.heard(OUT) == b""


def test_a_traced_request_is_answered_as_another() -> None:
    hub = Hub()
    hub.client(CLIENT)
    hub.say(CLIENT, b"SUB ask 1\r\nSUB trace 2\r\n")
    hub.inbox.clear()
    headers = b"NATS/1.0\r\nNats-Trace-Dest: trace\r\n\r\n"
    size = len(headers)
    hub.gate(hub.inward, b"HMSG $G ask %sin.1 %d %d\r\n%s\r\n" % (THEIRS, size, size, headers))
    assert hub.heard(CLIENT).startswith(b"HMSG ask 1 in.1 ")
    hub.say(CLIENT, b"PUB in.1 1\r\ny\r\n")
    assert hub.heard(OUT) == b"RMSG $G " + THEIRS + b"in.1 1\r\ny\r\n"
