"""Clients that are here when users change: the cases that take two turns, and limits."""

import json
from dataclasses import replace

import bcrypt
import pytest

from jsctl.broker.login_options.permissions import (
    PermissionRules,
    ResponsePermission,
    SubjectPermission,
)
from jsctl.broker.options import AccountOptions, Options, UserOptions
from jsctl.broker.routing.limits import RoutingLimits
from jsctl.broker.turn import Accepted, ConnKind
from tests.broker.routing.routing_bench import QUIET, Server
from tests.support.login import Seed

HASHES = [bcrypt.hashpw(b"x", bcrypt.gensalt(4)).decode() for _ in range(3)]
LOGIN = b',"user":"u","pass":"x"'


def users(password: str, rules: PermissionRules | None = None, account: str = "A") -> Options:
    one = UserOptions("u", password, permissions=rules)
    return Options(accounts=(AccountOptions(account, (one,)), AccountOptions("Z")))


def here(options: Options) -> Server:
    server = Server(options)
    server.client(1, LOGIN)
    if server.verifies:
        answer(server, ok=True)
    return server


def answer(server: Server, *, ok: bool) -> None:
    server.verifies.clear()
    server.sessions.verified(1, ok)
    server.emit()


@pytest.mark.parametrize("ok", [True, False])
def test_a_password_is_checked_against_another_hash_while_the_client_works(ok: bool) -> None:
    server = here(users(HASHES[0]))
    server.say(1, b"SUB a 1\r\n")
    server.reload(users(HASHES[1]))
    assert [one.hashed.decode() for one in server.verifies] == [HASHES[1]]
    assert server.last.pauses == [1] and server.closes == {}
    server.say(1, b"PUB a 0\r\n\r\n")
    assert server.heard(1) == b"MSG a 1 0\r\n\r\n"
    answer(server, ok=ok)
    assert server.closes == ({} if ok else {1: "Authentication Failure"})
    assert (server.last.resumes == [1]) == ok


def test_the_same_hash_is_not_checked_again() -> None:
    server = here(users(HASHES[0]))
    server.reload(replace(users(HASHES[0]), server_name="other"))
    assert server.verifies == [] and server.closes == {}


def test_another_hash_while_one_is_checked() -> None:
    server = here(users(HASHES[0]))
    server.reload(users(HASHES[1]))
    server.reload(users(HASHES[2]))
    assert server.closes == {1: "Client Closed"}


@pytest.mark.parametrize("ok", [True, False])
@pytest.mark.parametrize("back", [HASHES[0], "x"], ids=["the first hash", "no hash"])
def test_a_hash_that_is_taken_back_while_it_is_checked(ok: bool, back: str) -> None:
    """Nothing is to be shown any more, whatever the verdict: the client is read again."""
    server = here(users(HASHES[0]))
    server.reload(users(HASHES[1]))
    server.reload(users(back))
    answer(server, ok=ok)
    assert server.closes == {} and server.last.resumes == [1]
    server.say(1, b"SUB a 1\r\nPUB a 0\r\n\r\n")
    assert server.heard(1) == b"MSG a 1 0\r\n\r\n"


def test_a_verdict_on_a_hash_that_was_taken_back_counts_for_no_other() -> None:
    server = here(users(HASHES[0]))
    server.reload(users(HASHES[1]))
    server.reload(users(HASHES[0]))
    server.reload(users(HASHES[2]))
    assert server.closes == {1: "Client Closed"}


def test_a_verdict_that_is_awaited_again_counts() -> None:
    server = here(users(HASHES[0]))
    for password in (HASHES[1], HASHES[0], HASHES[1]):
        server.reload(users(password))
    assert len(server.verifies) == 1
    answer(server, ok=False)
    assert server.closes == {1: "Authentication Failure"}


def test_nobody_waits_for_a_check_of_who_is_gone() -> None:
    """A stranger may hang up at once: nothing is kept of that, and no password is checked."""
    server = Server(users(HASHES[0]))
    server.router.now_ns = server.now_ns
    server.sessions.accept(Accepted(1, ConnKind.CLIENT, "1.2.3.4", 99), server.now_ns)
    server.sessions.feed(1, QUIET % LOGIN, server.now_ns)
    server.sessions.gone(1, "Client Closed")
    server.emit()
    assert (server.last.pauses, server.last.verifies) == ([], [])


def test_a_login_that_waits_for_its_check_is_checked_as_the_user_of_now() -> None:
    server = Server(users(HASHES[0]))
    server.client(1, LOGIN)
    server.reload(users(HASHES[0], PermissionRules(publish=SubjectPermission(allow=("ok",)))))
    answer(server, ok=True)
    server.say(1, b"PUB no 0\r\n\r\n")
    assert b"Permissions Violation" in server.heard(1)


def test_a_login_that_waits_for_a_check_of_no_worth() -> None:
    server = Server(users(HASHES[0]))
    server.client(1, LOGIN)
    server.reload(users(HASHES[1]))
    assert server.closes == {1: "Client Closed"}
    server.client(2, LOGIN)
    server.reload(users("y"))
    assert server.closes[2] == "Authentication Failure"


def test_a_client_that_has_said_nothing_is_judged_by_what_it_says_then() -> None:
    server = Server(users("x"))
    server.open(1)
    server.reload(users("y"))
    assert server.closes == {}
    server.say(1, b'CONNECT {"user":"u","pass":"y"}\r\nPING\r\n')
    assert b"PONG" in server.heard(1)


def test_replies_may_still_be_given_under_new_rules() -> None:
    answers = PermissionRules(publish=SubjectPermission(allow=()), responses=ResponsePermission())
    server = here(users("x", answers))
    server.client(2, LOGIN)
    server.say(1, b"SUB ask 1\r\n")
    account = server.accounts.get("A")
    assert account is not None
    server.router.publish(account, b"ask", b"", reply=b"back")
    server.emit()
    server.reload(users("x", replace(answers, subscribe=SubjectPermission(deny=("z",)))))
    server.heard(1)
    server.say(1, b"PUB back 0\r\n\r\n")
    assert server.heard(1) == b""


def test_limits_count_for_clients_that_are_here() -> None:
    server = Server(Options())
    for conn in (1, 2, 3):
        server.client(conn)
    server.say(1, b"PUB a 5\r\nhello\r\n")
    server.sessions.change_limits(RoutingLimits(payload_bytes_max=4, connections_max=2))
    server.sessions.shed()
    server.emit()
    assert server.closes == {3: "Maximum Connections Exceeded"}
    assert "Closed 1 connections to fall within max_connections" in server.last.logs[0].text
    server.say(1, b"PUB a 5\r\nhello\r\n")
    assert server.closes[1] == "Maximum Message Payload Exceeded"


def test_a_shorter_ping_interval_counts_at_once() -> None:
    server = Server(Options())
    server.client(1)
    server.now_ns += 10**9 * 10
    server.router.now_ns = server.now_ns
    server.sessions.tick(server.now_ns)
    server.say(1, b"PONG\r\n")
    server.sessions.change_limits(RoutingLimits(ping_interval_ns=10**9))
    due = server.sessions.deadline_ns()
    assert due is not None and due <= server.now_ns + 10**9


def test_who_was_let_in_without_a_signature_has_to_give_one() -> None:
    """Whoever names the nkey of those that say nothing need not sign, as long as it is theirs."""
    key = Seed(7).public
    accounts = (AccountOptions("A", (UserOptions(nkey=key), UserOptions("other", "x"))),)
    server = Server(Options(accounts=accounts, no_auth_user=key))
    server.client(1, b',"nkey":"%b"' % key.encode())
    server.client(2)
    assert server.closes == {}
    server.reload(Options(accounts=accounts))
    assert server.closes == dict.fromkeys((1, 2), "Authentication Failure")


def test_who_has_signed_once_stays() -> None:
    seed = Seed(7)
    one = UserOptions(nkey=seed.public)
    server = Server(Options(accounts=(AccountOptions("A", (one,)),)))
    server.open(1)
    greeting = json.loads(server.heard(1, info=True).split(b" ", 1)[1])
    signed = seed.sign(greeting["nonce"])
    server.say(1, QUIET % f',"nkey":"{seed.public}","sig":"{signed}"'.encode())
    for deny in ("a", "b"):
        rules = PermissionRules(subscribe=SubjectPermission(deny=(deny,)))
        changed = replace(one, permissions=rules)
        server.reload(Options(accounts=(AccountOptions("A", (changed,)),)))
    assert server.closes == {}


def test_who_logs_in_anew_while_it_is_checked_is_not_let_in_by_that_verdict() -> None:
    def options(password: str) -> Options:
        admin = UserOptions("admin", HASHES[2])
        return Options(
            accounts=(
                AccountOptions("A", (UserOptions("u", password),)),
                AccountOptions("Z", (admin,)),
            )
        )

    server = here(options(HASHES[0]))
    server.reload(options(HASHES[1]))
    server.say(1, QUIET % b',"user":"admin","pass":"wrong"')
    answer(server, ok=True)
    assert server.closes == {1: "Client Closed"}
    assert [one.name for one in server.accounts if one.connections] == []
