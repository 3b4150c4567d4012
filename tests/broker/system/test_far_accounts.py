"""What other servers tell of their accounts: what counts, for how long, and what is passed over."""

import json

import pytest

from jsctl.broker.accounts.accounts import Account
from jsctl.broker.interest.targets import Sink
from jsctl.broker.options import SECOND_NS, AccountLimits, AccountOptions, Options
from jsctl.broker.system import far_accounts
from jsctl.broker.system.far_accounts import FarAccounts, read
from tests.broker.routing.routing_bench import Server

LIMITED = AccountOptions("A", limits=AccountLimits(connections_max=3, leafnodes_max=1))
FREE = AccountOptions("B")
MINUTE_NS = 60 * SECOND_NS


class Play:
    """A server that hears of others."""

    def __init__(self, *accounts: AccountOptions) -> None:
        self.server = Server(Options(accounts=accounts))
        self.router = self.server.router
        self.router.now_ns = MINUTE_NS
        assert self.server.accounts.system is not None
        self.system = self.server.accounts.system
        self.far = FarAccounts(self.router, self.system, "ME")
        self.far.follow()
        self.questions = Sink(self, self.system)
        self.router.subscribe(self.system, b"$SYS.REQ.ACCOUNT.*.CONNS", self.questions)

    def account(self, name: str) -> Account:
        found = self.server.accounts.get(name)
        assert found is not None
        return found

    def say(self, subject: str, payload: bytes = b"") -> list[str]:
        """Names of accounts of which something was told."""
        self.router.publish(self.system, subject.encode(), payload)
        found: list[Account] = []
        for sink in self.router.take_dirty():
            if sink.owner is self.far:
                found += self.far.take(sink)
        return [one.name for one in found]

    def tell(self, server: str, clients: object, leafs: object = 0, name: str = "A") -> list[str]:
        return self.say(f"$SYS.SERVER.ACCOUNT.{name}.CONNS", body(server, clients, leafs, name))

    def asked(self) -> list[bytes]:
        """Questions since the last call."""
        self.far.tick(self.router.now_ns)
        return [subject for subject, *_ in self.questions.take()]

    def later(self, ns: int) -> None:
        self.router.now_ns += ns
        self.far.tick(self.router.now_ns)


def body(server: object, clients: object, leafs: object = 0, account: object = "A") -> bytes:
    said = {"server": {"id": server}, "acc": account, "conns": clients, "leafnodes": leafs}
    return json.dumps(said).encode()


@pytest.fixture
def play() -> Play:
    return Play(LIMITED, FREE)


def counted(play: Play, name: str = "A") -> tuple[int, int]:
    account = play.account(name)
    return account.far_connections, account.far_leafs


def test_the_last_word_of_each_counts(play: Play) -> None:
    assert play.tell("X", 1) == ["A"]
    play.tell("Y", 2, 1)
    assert counted(play) == (3, 1)
    play.tell("X", 0, 2)
    assert counted(play) == (2, 3)
    account = play.account("A")
    assert (account.connections_over(), account.connections_over(2)) == (0, 1)
    assert (account.leafs_over(), account.leafs_over(1)) == (2, 3)
    play.say("$SYS.SERVER.Y.SHUTDOWN")
    assert counted(play) == (0, 2)
    play.say("$SYS.SERVER.X.LAMEDUCK")
    play.say("$SYS.SERVER.NOBODY.LAMEDUCK")
    assert counted(play) == (0, 0)


def test_accounts_without_a_limit_are_not_listened_to(play: Play) -> None:
    assert play.tell("X", 9, name="B") == []
    # An answer to what this server asked names its account itself.
    assert play.say("$SYS._INBOX_.ME", body("X", 9, account="B")) == []
    assert play.say("$SYS._INBOX_.ME", body("X", 2)) == ["A"]
    account = play.account("B")
    assert (account.connections_over(99), account.leafs_over(99)) == (0, 0)


def test_this_server_does_not_count_itself(play: Play) -> None:
    assert play.tell("ME", 1) == []
    play.say("$SYS.SERVER.ME.STATSZ")
    assert counted(play) == (0, 0) and play.asked() == []


@pytest.mark.parametrize(
    "wrong",
    [
        b"",
        b"[]",
        b"{",
        b'{"acc":"A","conns":1}',
        body(7, 1),
        body("X", 1, account=["A"]),
        body("X", 1, account="NOBODY"),
        body("X", -1),
        body("X", 1, -1),
        body("X", True),
        body("X", 1.0),
        body("X", "1"),
        body("X", None),
        body("X", 1 << 31),
        body("X" * 300, 1),
        b'{"x":"' + b"x" * far_accounts.BODY_BYTES_MAX + b'"}',
    ],
)
def test_what_is_wrong_changes_nothing(play: Play, wrong: bytes) -> None:
    assert play.say("$SYS.SERVER.ACCOUNT.A.CONNS", wrong) == []
    assert counted(play) == (0, 0)


def test_what_is_left_out_is_nothing() -> None:
    told = read(b'{"server":{"id":"X"},"acc":"A"}')
    assert told == ("X", "A", 0, 0)


def test_there_is_room_for_so_many_servers(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(far_accounts, "SERVERS_MAX", 2)
    for name in "XYZ":
        play.tell(name, 1)
    assert counted(play) == (2, 0)
    play.say("$SYS.SERVER.X.SHUTDOWN")
    play.tell("Z", 3)
    assert counted(play) == (4, 0)


def test_who_is_silent_is_gone(play: Play) -> None:
    play.tell("X", 1)
    play.tell("Y", 1)
    for _ in range(4):
        play.later(MINUTE_NS)
        play.say("$SYS.SERVER.X.STATSZ")
    assert counted(play) == (1, 0)
    play.later(4 * MINUTE_NS)
    assert counted(play) == (0, 0)
    assert play.far.next_due_ns() is None


def test_all_are_asked_when_somebody_is_new(play: Play) -> None:
    assert play.far.next_due_ns() is None
    play.say("$SYS.SERVER.X.STATSZ")
    assert play.far.next_due_ns() == SECOND_NS
    assert play.asked() == [b"$SYS.REQ.ACCOUNT.A.CONNS"]
    play.say("$SYS.SERVER.X.STATSZ")
    assert play.asked() == []
    play.say("$SYS.SERVER.Y.STATSZ")
    assert play.asked() == [], "once a second"
    play.later(SECOND_NS)
    assert play.asked() == [b"$SYS.REQ.ACCOUNT.A.CONNS"]


def test_limits_come_and_go(play: Play) -> None:
    play.tell("X", 1)
    play.asked()
    play.router.now_ns += SECOND_NS
    play.server.reload(Options(accounts=(AccountOptions("A"), AccountOptions("B"))))
    play.far.follow()
    assert play.tell("X", 2) == [] and counted(play) == (0, 0)
    play.say("$SYS.SERVER.X.SHUTDOWN")
    play.server.reload(Options(accounts=(AccountOptions("A", limits=LIMITED.limits), FREE)))
    play.far.follow()
    assert play.asked() == [b"$SYS.REQ.ACCOUNT.A.CONNS"]
    assert play.tell("X", 3) == ["A"] and counted(play) == (3, 0)


def test_a_name_that_is_no_part_of_a_subject() -> None:
    play = Play(AccountOptions(">", limits=LIMITED.limits), AccountOptions("a..b"))
    assert play.far.next_due_ns() is None and counted(play, ">") == (0, 0)
