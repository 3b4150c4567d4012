"""Sessions as transcripts: what a client says, what it hears, how it ends."""

import json
from dataclasses import replace

import pytest

from jsctl.broker.login_options.permissions import (
    PermissionRules,
    ResponsePermission,
    SubjectPermission,
)
from jsctl.broker.options import (
    AccountLimits,
    AccountOptions,
    AuthOptions,
    MappingOptions,
    MappingTarget,
    Options,
    UserOptions,
)
from jsctl.broker.routing.limits import SECOND_NS, RoutingLimits
from tests.broker.routing.routing_bench import QUIET, Server

ERR = b"-ERR '%s'\r\n"
NO = b"-ERR 'Permissions Violation %s'|"


@pytest.mark.parametrize(
    ("said", "heard", "closed"),
    [
        (b"PING\r\n", b"PONG\r\n", ""),
        (b"CONNECT {}\r\n", b"+OK\r\n", ""),
        (b"SUB a 1\r\nPUB a 1\r\nx\r\n", b"+OK\r\n+OK\r\nMSG a 1 1\r\nx\r\n", ""),
        (b"PUB a.* 0\r\n\r\n", ERR % b"Invalid Publish Subject" + b"+OK\r\n", ""),
        (b"SUB a..b 1\r\n", ERR % b"Invalid Subject", ""),
        (b"UNSUB 9\r\n", b"+OK\r\n", ""),
        (b"+OK\r\nINFO {}\r\n", b"", ""),
        (b"PONG\r\n", b"", ""),
        (b"-ERR 'x'\r\n", b"", "Client Closed"),
        (b"FOO\r\n", ERR % b"Unknown Protocol Operation", "Parse Error"),
        (b"PUB foo\r\n", b"", "Protocol Violation"),
        (b"CONNECT {x\r\n", b"", "Protocol Violation"),
        (b"CONNECT []\r\n", b"", "Protocol Violation"),
        (b'CONNECT {"verbose":1}\r\n', b"", "Protocol Violation"),
        (b'CONNECT {"protocol":"1"}\r\n', b"", "Protocol Violation"),
        (
            b'CONNECT {"protocol":2}\r\n',
            ERR % b"invalid client protocol",
            "Bad Client Protocol Version",
        ),
        (
            b'CONNECT {"no_responders":true}\r\n',
            ERR % b"no responders requires headers support",
            "No Responders Requires Headers",
        ),
        (
            b'CONNECT {"account":"A"}\r\n',
            ERR % b"Authorization Violation",
            "Authentication Failure",
        ),
        (b"HPUB a 0 0\r\n\r\n", b"", "Message Header Violation"),
        (
            b"PUB a 2000000\r\n",
            ERR % b"Maximum Payload Violation",
            "Maximum Message Payload Exceeded",
        ),
        (
            b"SUB " + b"a" * 4097 + b"\r\n",
            ERR % b"maximum control line exceeded",
            "Maximum Control Line Exceeded",
        ),
    ],
)
def test_before_and_at_connect(said: bytes, heard: bytes, closed: str) -> None:
    for cut in (0, 3, len(said) - 2):
        server = Server()
        server.open(1)
        server.say(1, said[:cut])
        server.say(1, said[cut:])
        assert server.heard(1) == heard
        assert server.closes.get(1, "") == closed


@pytest.mark.parametrize(
    ("said", "heard"),
    [
        (b"SUB a 1|PUB a 1|x|", b"MSG a 1 1|x|"),
        (b"SUB a 1|SUB b 1|PUB b 0||PUB a 0||", b"MSG a 1 0||"),
        (b"SUB a 1|SUB * 2|PUB a 0||", b"MSG a 2 0||MSG a 1 0||"),
        (b"SUB a 1|UNSUB 1|PUB a 0||", b""),
        (b"SUB a 1|UNSUB 1 2|" + b"PUB a 0||" * 20, b"MSG a 1 0||" * 2),
        (b"SUB a 1|" + b"PUB a 0||" * 3 + b"UNSUB 1 3|PUB a 0||", b"MSG a 1 0||" * 3),
        (b"SUB foo.* 1|PUB foo.* 0||", b"MSG foo.* 1 0||"),
        (b"SUB foo.> 1|PUB foo..x 0||", b""),
        (b"SUB a 1|HPUB a 5 6|XXXXXa|", b"HMSG a 1 5 6|XXXXXa|"),
        (b"SUB a _sys_ 1|", NO % b'for Subscription to "a" using queue "_sys_"'),
        (b"PUB _GR_.a 0||", NO % b'for Publish to "_GR_.a"'),
        (b"PUB $NRG.a 0||", NO % b'for Publish to "$NRG.a"'),
        (b"PUB a _R_.x 0||", NO % b'for Publish with Reply of "_R_.x"'),
        (
            b"SUB in 7|PUB nobody in 0||",
            b"HMSG in 7 38 38|NATS/1.0 503|Nats-Subject: nobody|||",
        ),
        (b"SUB in q 7|PUB nobody in 0||", b""),
    ],
)
def test_quiet_client(said: bytes, heard: bytes) -> None:
    server = Server()
    server.client(1, b',"no_responders":true')
    server.say(1, said.replace(b"|", b"\r\n"))
    assert server.heard(1) == heard.replace(b"|", b"\r\n")


def test_greeting_and_second_info() -> None:
    server = Server()
    server.open(1)
    first = json.loads(server.heard(1, info=True)[5:])
    assert first["version"] == "2.15.1" and first["client_ip"] == "1.2.3.4"
    assert first["api_lvl"] == 5 and first["headers"] and "auth_required" not in first
    server.say(1, QUIET % b',"protocol":1' + b"PING\r\nPING\r\n")
    pong, rest = server.heard(1, info=True).split(b"\r\n", 1)
    assert pong == b"PONG" and rest.endswith(b"\r\nPONG\r\n")
    second = json.loads(rest.split(b"\r\n")[0][5:])
    assert second["connect_info"] and second["remote_account"] == "$G"
    server.identity.connect_urls = ("a:1",)
    server.sessions.send_info()
    server.emit()
    assert b'"connect_urls":["a:1"]' in server.heard(1, info=True)


def test_old_clients_get_no_second_info() -> None:
    server = Server()
    server.client(1)
    server.say(1, b"PING\r\n")
    server.sessions.send_info()
    server.emit()
    assert server.heard(1, info=True) == b"PONG\r\n"


def test_echo_off_and_clients_without_headers() -> None:
    server = Server()
    server.client(1, b',"echo":false')
    server.open(2, b'CONNECT {"verbose":false}\r\nSUB a 1\r\n')
    server.inbox.clear()
    server.say(1, b"SUB a 1\r\nHPUB a 2 3\r\nHHx\r\n")
    assert server.heard(1) == b"" and server.heard(2) == b"MSG a 1 1\r\nx\r\n"


USERS = Options(
    auth=AuthOptions(
        token="tok",
        users=(
            UserOptions(name="u", password="p"),
            UserOptions(name="h", password="$2a$04$" + "a" * 53),
            UserOptions(name="ws", password="p", connection_types=("WEBSOCKET",)),
        ),
    )
)


@pytest.mark.parametrize(
    ("fields", "accepted"),
    [
        (b'"user":"u","pass":"p"', True),
        (b'"user":"u","pass":"x"', False),
        (b'"user":"u"', False),
        (b'"user":"nobody","pass":"p"', False),
        (b'"user":"ws","pass":"p"', False),
        (b'"auth_token":"tok"', True),
        (b'"auth_token":"no"', False),
        (b'"nkey":"U"', False),
        (b'"lang":"x"', False),
    ],
)
def test_passwords_and_tokens(fields: bytes, accepted: bool) -> None:
    server = Server(USERS)
    server.open(1, b"CONNECT {%s}\r\n" % fields)
    heard = b"+OK\r\n" if accepted else ERR % b"Authorization Violation"
    assert server.heard(1) == heard
    assert (1 in server.closes) != accepted


def test_hashed_passwords_are_checked_elsewhere() -> None:
    for ok in (True, False):
        server = Server(USERS)
        server.open(1, b'CONNECT {"user":"h","pass":"s"}\r\nPING\r\n')
        server.say(1, b"PI")
        assert server.heard(1) == b""
        assert [(one.token, one.password) for one in server.verifies] == [(1, b"s")]
        server.sessions.verified(1, ok)
        server.say(1, b"NG\r\n" if ok else b"")
        expected = b"+OK\r\nPONG\r\nPONG\r\n" if ok else ERR % b"Authorization Violation"
        assert server.heard(1) == expected


def test_flood_while_waiting_for_a_check() -> None:
    server = Server(USERS, RoutingLimits(waiting_bytes_max=10))
    server.open(1, b'CONNECT {"user":"h","pass":"s"}\r\n')
    server.say(1, b"PING\r\n" * 2)
    assert server.closes[1] == "Protocol Violation"


def test_auth_comes_first_and_in_time() -> None:
    server = Server(USERS)
    server.open(1, b"PING\r\n")
    assert server.heard(1) == ERR % b"Authorization Violation"
    server.open(2)
    assert b'"auth_required":true' in server.heard(2, info=True)
    server.tick(2 * SECOND_NS)
    assert server.heard(2) == ERR % b"Authentication Timeout"
    assert server.closes[2] == "Authentication Timeout"


def test_no_auth_user_and_account_limits() -> None:
    account = AccountOptions(
        name="A",
        users=(UserOptions(name="a", password="x"),),
        limits=AccountLimits(connections_max=1, subscriptions_max=1),
    )
    server = Server(Options(accounts=(account,), no_auth_user="a"))
    server.open(1, b"SUB a 1\r\nSUB b 2\r\n")
    assert server.heard(1) == b"+OK\r\n" + ERR % b"maximum subscriptions exceeded"
    server.open(2)
    assert server.heard(2) == ERR % b"maximum account active connections exceeded"
    server.sessions.gone(1, "")
    server.open(3, b'CONNECT {"user":"a","pass":"x"}\r\n')
    assert server.heard(3) == b"+OK\r\n"


def test_connecting_again_drops_subscriptions() -> None:
    server = Server()
    server.client(1)
    server.say(1, b"SUB a 1\r\n" + QUIET % b"" + b"PUB a 0\r\n\r\n")
    assert server.heard(1) == b"" and server.accounts.default.connections == 1


def test_limits_of_a_connection() -> None:
    limits = RoutingLimits(subscriptions_max=1, subscription_tokens_max=2, connections_max=1)
    server = Server(limits=limits)
    server.client(1)
    server.say(1, b"SUB a.b.c 1\r\nSUB a 1\r\nSUB b 2\r\n")
    text = b'Permissions Violation for Subscription to "a.b.c", too many tokens'
    assert server.heard(1) == ERR % text + ERR % b"maximum subscriptions exceeded"
    server.open(2)
    assert server.heard(2) == ERR % b"maximum connections exceeded"


def test_pings_and_stale_connections() -> None:
    server = Server(limits=RoutingLimits(ping_interval_ns=SECOND_NS))
    server.client(1)
    server.client(2)
    for _ in range(2):
        server.tick(SECOND_NS + SECOND_NS // 5)
        assert server.heard(1) == b"PING\r\n"
        server.now_ns += 5
        server.say(2, b"PONG\r\n")
    server.tick(SECOND_NS)
    assert server.heard(1) == ERR % b"Stale Connection"
    assert server.closes == {1: "Stale Connection"}
    session = server.sessions.get(2)
    assert session is not None and session.alive.rtt_ns > 0
    assert server.sessions.deadline_ns() == session.alive.deadline_ns


def test_nobody_is_pinged_soon_who_has_not_greeted() -> None:
    """Who is busy with TLS says CONNECT and PING then, and takes the next line for the answer."""
    server = Server(limits=RoutingLimits(ping_interval_ns=60 * SECOND_NS))
    server.open(1)
    server.heard(1)
    server.tick(59 * SECOND_NS)
    assert server.heard(1) == b""
    server.say(1, QUIET % b"" + b"PING\r\n")
    assert server.heard(1) == b"PONG\r\n"
    server.tick(3 * SECOND_NS)
    assert server.heard(1) == b"PING\r\n", "the first one comes soon after that"
    server.open(2)
    server.heard(2)
    server.tick(61 * SECOND_NS)
    assert server.heard(2) == b"PING\r\n", "who never greets is found out all the same"


def test_who_talks_is_pinged_once_an_hour() -> None:
    """For the round trip; such a client is not stale although it never answers."""
    server = Server(limits=RoutingLimits(ping_interval_ns=2 * SECOND_NS))
    server.client(1)
    pings = 0
    for _ in range(3700):
        server.tick(SECOND_NS + SECOND_NS // 5)
        server.say(1, b"PUB a 0\r\n\r\n")
        pings += server.heard(1).count(b"PING\r\n")
    assert (pings, server.closes) == (2, {})


def test_permissions_of_a_user() -> None:
    rules = PermissionRules(
        publish=SubjectPermission(("ok", "req")),
        subscribe=SubjectPermission(("in.>", "ok"), ("in.secret",)),
    )
    responder = PermissionRules(responses=ResponsePermission())
    users = (
        UserOptions(name="u", password="p", permissions=rules),
        UserOptions(name="r", password="p", permissions=responder),
    )
    server = Server(Options(auth=AuthOptions(users=users)))
    server.client(1, b',"user":"u","pass":"p"')
    server.client(2, b',"user":"r","pass":"p"')
    server.say(1, b"SUB in.> 1\r\nSUB no 2\r\nPUB no 0\r\n\r\nPUB req in.1 0\r\n\r\n")
    assert server.heard(1) == (
        ERR % b'Permissions Violation for Subscription to "no"'
        + ERR % b'Permissions Violation for Publish to "no"'
    )
    server.say(2, b"SUB req 1\r\n")
    server.say(1, b"PUB req in.1 0\r\n\r\n")
    assert server.heard(2) == b"MSG req 1 in.1 0\r\n\r\n"
    server.say(2, b"PUB in.1 0\r\n\r\nPUB in.1 0\r\n\r\n")
    assert server.heard(1) == b"MSG in.1 1 0\r\n\r\n"
    assert server.heard(2) == ERR % b'Permissions Violation for Publish to "in.1"'
    server.router.publish(server.accounts.default, b"in.secret", b"")
    server.router.publish(server.accounts.default, b"in.open", b"")
    server.emit()
    assert server.heard(1) == b"MSG in.open 1 0\r\n\r\n"


def test_mappings_of_an_account() -> None:
    mappings = (
        MappingOptions("a.*", (MappingTarget("b.$1"),)),
        MappingOptions("drop", (MappingTarget("drop", 0),)),
        MappingOptions("half", (MappingTarget("other", 50),)),
    )
    server = Server(Options(mappings=mappings))
    server.client(1)
    server.say(1, b"SUB > 1\r\nPUB a.x 0\r\n\r\nPUB drop 0\r\n\r\nPUB c 0\r\n\r\n")
    assert server.heard(1) == b"MSG b.x 1 0\r\n\r\nMSG c 1 0\r\n\r\n"
    server.say(1, b"PUB half 0\r\n\r\n" * 100)
    heard = server.heard(1)
    assert heard.count(b"MSG other") == 50 and heard.count(b"MSG half") == 50


def test_counters() -> None:
    server = Server()
    server.client(1)
    server.say(1, b"SUB a 1\r\n" + b"PUB a 3\r\nabc\r\n" * 20 + b"HPUB a 2 3\r\nHHx\r\n")
    session = server.sessions.get(1)
    assert session is not None
    assert (session.in_messages, session.in_bytes) == (21, 63)
    assert (session.out_messages, session.payload_bytes_out) == (21, 63)
    server.sessions.gone(1, "")
    assert [one.closing for one in server.sessions.closed] == ["Client Closed"]
    assert len(server.sessions) == 0 and not list(server.accounts.default.sublist)


def test_nothing_is_said_to_connections_that_are_gone() -> None:
    server = Server()
    server.client(1)
    server.client(2)
    session = server.sessions.get(1)
    assert session is not None
    server.sessions.feed(1, b"SUB a 1\r\nPING\r\n", server.now_ns)
    server.sessions.gone(1, "Read Error")
    server.sessions.gone(1, "Read Error")
    server.say(2, b"PUB a 0\r\n\r\n")
    server.sessions.feed(1, b"PING\r\n", server.now_ns)
    server.sessions.kick(2, "Kicked")
    server.emit()
    assert server.last.closes == [(2, "Kicked")] and server.last.writes == []
    assert session.closing == "Read Error" and server.sessions.deadline_ns() is None


@pytest.mark.parametrize("login", [AuthOptions(user="u", password="p"), AuthOptions(token="t")])
def test_default_permissions_hold_for_a_single_user_and_a_token(login: AuthOptions) -> None:
    rules = PermissionRules(publish=SubjectPermission(allow=()))
    server = Server(Options(auth=replace(login, default_permissions=rules)))
    server.client(1, b',"user":"u","pass":"p"' if login.user else b',"auth_token":"t"')
    server.say(1, b"PUB a 0\r\n\r\n")
    assert server.heard(1) == (NO % b'for Publish to "a"').replace(b"|", b"\r\n")


def test_a_wildcard_gets_around_no_denial_of_a_queue() -> None:
    rules = PermissionRules(subscribe=SubjectPermission(deny=("foo v1",)))
    one = UserOptions("u", "x", permissions=rules)
    server = Server(Options(auth=AuthOptions(users=(one,))))
    server.client(1, b',"user":"u","pass":"x"')
    server.client(2, b',"user":"u","pass":"x"')
    server.say(1, b"SUB * v1 1\r\n")
    server.say(2, b"PUB foo 1\r\nx\r\nPUB bar 1\r\ny\r\n")
    assert server.heard(1) == b"MSG bar 1 1\r\ny\r\n"


def congest(server: Server, conn: int) -> None:
    """A client that listens to a subject of its own number does not keep up."""
    server.client(conn)
    server.say(conn, b"SUB to.%d 1\r\n" % conn)
    server.sessions.client_pending(conn, server.router.limits.pending_bytes_high + 1)


def test_who_is_let_go_and_held_again_in_one_turn_is_not_read() -> None:
    server = Server()
    server.client(1)
    for conn in (2, 3):
        congest(server, conn)
    server.say(1, b"PUB to.2 0\r\n\r\n")
    assert (server.last.pauses, server.last.resumes) == ([1], [])
    server.sessions.client_pending(2, 0)
    server.say(1, b"PUB to.3 0\r\n\r\n")
    assert (server.last.pauses, server.last.resumes) == ([], [])
    server.sessions.client_pending(3, 0)
    server.emit()
    assert (server.last.pauses, server.last.resumes) == ([], [1])


def test_who_has_carried_out_the_rest_and_met_a_slow_one_is_not_read() -> None:
    server = Server(limits=RoutingLimits(turn_units_max=64))
    server.client(1)
    congest(server, 2)
    assert server.sessions.begin(1) == []
    server.say(1, b"".join(b"SUB s %d\r\n" % n for n in range(100)) + b"PUB to.2 0\r\n\r\n")
    assert (server.last.pauses, server.last.resumes) == ([1], [])
    for conn in server.sessions.begin(0):
        server.sessions.go_on(conn)
    server.emit()
    assert server.heard(2).count(b"MSG") == 1
    assert (server.last.pauses, server.last.resumes) == ([], [])
    server.sessions.client_pending(2, 0)
    server.emit()
    assert server.last.resumes == [1]


def test_who_is_held_and_let_go_in_one_turn_is_read_on() -> None:
    server = Server()
    server.client(1)
    server.sessions.hold("x", [server.sessions.get(1)])
    server.sessions.relieve("x")
    server.emit()
    assert (server.last.pauses, server.last.resumes) == ([], [])
