"""The system account's own JWT is pushed: to a server whose tools log in to that account."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jsctl.auth.claims import Account, Export, JetStreamLimits
from jsctl.auth.keys import KeyPair
from jsctl.dataclass import replace
from jsctl.testing import Broker
from tests.contract.conftest import KINDS
from tests.support.login import Caller
from tests.support.operators import (
    NO_STORAGE,
    SYSTEM,
    Member,
    OperatorWorld,
    account_key,
    deletion,
    limits,
)
from tests.support.waiting import wait_for

PLAIN = Account(limits=limits(NO_STORAGE))
REVOKED = "-ERR 'User Authentication Revoked'"
FULL = "-ERR 'maximum account active connections exceeded'"


class Pushed:
    """A server, and the system account on it."""

    def __init__(self, server: Broker, world: OperatorWorld) -> None:
        self.server = server
        self.world = world
        self.public = world.tenants[SYSTEM].public

    def member(self, issuer: KeyPair | None = None) -> Member:
        """A new user of the system account."""
        return self.world.user(SYSTEM, issuer=issuer)

    def enter(self, member: Member) -> Caller:
        """Log in."""
        caller = Caller(self.server.port)
        assert caller.login(member.login(caller.challenge)), caller.refusal
        return caller

    def may_come(self, member: Member) -> bool:
        """Whether a user is let in."""
        with Caller(self.server.port) as caller:
            return caller.login(member.login(caller.challenge))

    def push(self, said: Account) -> None:
        """Give the server another JWT of the account; who asks for that stays."""
        made = self.world.account(SYSTEM, said)
        with self.enter(self.member()) as caller:
            answer = json.loads(caller.request("$SYS.REQ.CLAIMS.UPDATE", made.token.encode())[1])
        told = {"account": self.public, "code": 200, "message": "jwt updated"}
        assert answer["data"] == told

    def detail(self) -> Any:
        """What monitoring tells of the account."""
        page: Any = self.server.monitor(f"/accountz?acc={self.public}")
        return page["account_detail"]


@pytest.fixture(params=list(KINDS))
def pushed(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Pushed]:
    """A server with JetStream and a resolver of type full."""
    world = OperatorWorld(tmp_path / "world")
    config = world.full_config(str(tmp_path / "jwt"), "allow_delete: true")
    with KINDS[str(request.param)]("-js", name="one", config=config) as server:
        yield Pushed(server, world)


def rest(caller: Caller) -> list[str]:
    """What is said until the server hangs up."""
    heard: list[str] = []
    while line := caller.line():
        if not line.startswith("PING"):
            heard.append(line)
    return heard


def test_a_user_that_is_revoked_goes(pushed: Pushed) -> None:
    gone, stays = pushed.member(), pushed.member()
    with pushed.enter(gone) as one, pushed.enter(stays) as other:
        until_s = 4_000_000_000
        pushed.push(replace(PLAIN, revocations={gone.pair.public: until_s}))
        assert rest(one) == [REVOKED]
        assert other.ask(b"") == []
    assert not pushed.may_come(gone)
    assert pushed.may_come(stays)
    pushed.push(PLAIN)
    assert pushed.may_come(gone)


def test_keys_come_and_go(pushed: Pushed) -> None:
    key = account_key()
    member = pushed.member(key)
    assert not pushed.may_come(member)
    pushed.push(replace(PLAIN, signing_keys=(key.public,)))
    with pushed.enter(member) as caller:
        pushed.push(PLAIN)
        assert rest(caller) == []
    assert not pushed.may_come(member)


def test_connections_are_counted(pushed: Pushed) -> None:
    with pushed.enter(pushed.member()) as one, pushed.enter(pushed.member()) as other:
        # Who pushes is the third one, and the last that came: it is not answered any more.
        made = pushed.world.account(SYSTEM, Account(limits=limits(NO_STORAGE, connections=2)))
        with pushed.enter(pushed.member()) as caller:
            caller.send(b"PUB $SYS.REQ.CLAIMS.UPDATE %d\r\n" % len(made.token))
            caller.send(made.token.encode() + b"\r\n")
            assert rest(caller) == [FULL]
        assert one.ask(b"") == other.ask(b"") == []


def test_what_it_offers_follows(pushed: Pushed) -> None:
    def offered() -> set[str]:
        return {one["subject"] for one in pushed.detail()["exports"]}

    before = offered()
    pushed.push(replace(PLAIN, exports=(Export(subject="svc", type_="service"),)))
    assert offered() == before | {"svc"}
    pushed.push(PLAIN)
    assert offered() == before


def test_it_has_no_jetstream(pushed: Pushed) -> None:
    """Whatever its JWT says; and the server starts all the same, as long as its file does not."""
    pushed.push(Account(limits=limits(JetStreamLimits(-1, -1, -1, -1))))
    tag = f"[{pushed.public}/{SYSTEM}]"
    line = f"Error configuring jetstream for account {tag}: jetstream can not be enabled on the"
    wait_for(lambda: line in pushed.server.logs, line)
    assert not pushed.detail()["jetstream_enabled"] and not pushed.detail()["complete"]
    page: Any = pushed.server.monitor("/jsz?accounts=1")
    assert page["accounts"] == 0
    pushed.push(PLAIN)
    assert pushed.detail()["complete"]


def test_it_is_not_deleted(pushed: Pushed) -> None:
    with pushed.enter(pushed.member()) as caller:
        order = deletion(pushed.world.pair, pushed.public)
        error = json.loads(caller.request("$SYS.REQ.CLAIMS.DELETE", order)[1])["error"]
        assert error["description"].endswith("not allowed to delete system account")
        found = json.loads(caller.request("$SYS.REQ.CLAIMS.LIST")[1])["data"]
        assert pushed.public in found


def test_a_broker_starts_with_a_pushed_system_account_that_stores(tmp_path: Path) -> None:
    """As its store has it; a nats-server does not."""
    world = OperatorWorld(tmp_path / "world")
    config = world.full_config(str(tmp_path / "jwt"))
    said = Account(limits=limits(JetStreamLimits(-1, -1, -1, -1)))
    newer = world.account(SYSTEM, said, issued_s=4_000_000_000).token
    with KINDS["jsctl"]("-js", name="one", config=config) as server:
        place = Pushed(server, world)
        with place.enter(place.member()) as caller:
            answer = caller.request("$SYS.REQ.CLAIMS.UPDATE", newer.encode())[1]
            assert json.loads(answer)["data"]["code"] == 200
        server.restart()
        assert not place.detail()["jetstream_enabled"]
