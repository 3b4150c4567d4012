"""Accounts of JWTs that change while a server runs: push, look up, list, delete."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from jsctl.auth.claims import Account, JetStreamLimits
from jsctl.auth.keys import KeyKind, KeyPair, generate
from tests.contract.conftest import KINDS
from tests.support.login import Caller
from tests.support.operators import Member, limits, now_s
from tests.support.resolver_world import ResolverWorld
from tests.support.waiting import wait_for

EXPIRED = "-ERR 'Account Authentication Expired'"
FULL = "-ERR 'maximum account active connections exceeded'"
REVOKED = "-ERR 'User Authentication Revoked'"


class Place:
    """A server, its operator, and the directory of its JWTs."""

    def __init__(self, kind: str, directory: Path) -> None:
        self.kind = kind
        self.world = ResolverWorld()
        self.directory = directory / "jwt"
        config = self.world.config(str(self.directory), "allow_delete: true")
        self.server = KINDS[kind]("-js", name="one", config=config)

    def file(self, account: KeyPair) -> Path:
        """Where a JWT lies."""
        return self.directory / f"{account.public}.jwt"

    @property
    def ours(self) -> bool:
        """Whether it is no nats-server."""
        return self.kind != "nats-server"


@pytest.fixture(scope="module", params=list(KINDS))
def place(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Place]:
    """A server with a resolver of type full."""
    made = Place(str(request.param), tmp_path_factory.mktemp("resolver"))
    with made.server:
        yield made


def key() -> KeyPair:
    """Of a new account."""
    return generate(KeyKind.ACCOUNT)


def expect(caller: Caller, line: str) -> None:
    """What a client is told before the server hangs up."""
    heard = caller.line()
    while heard == "PING":
        heard = caller.line()
    assert heard == line
    assert not caller.line()


@pytest.mark.parametrize(
    "subject",
    [
        "$SYS.REQ.CLAIMS.UPDATE",
        "$SYS.REQ.ACCOUNT.{}.CLAIMS.UPDATE",
        "$SYS.ACCOUNT.{}.CLAIMS.UPDATE",
    ],
)
def test_a_pushed_account_is_there_at_once(place: Place, subject: str) -> None:
    world, server, account = place.world, place.server, key()
    user = world.user(account)
    assert not world.may_come(server, user)
    assert world.look_up(server, account.public) == ""
    token = world.account(account)
    answer = world.ask(server, subject.format(account.public), token.encode())
    told = {"account": account.public, "code": 200, "message": "jwt updated"}
    assert answer == {"data": told}
    assert world.may_come(server, user)
    assert world.look_up(server, account.public) == token
    assert account.public in world.listed(server)
    assert place.file(account).read_text() == token
    assert world.push(server, token) == {"data": told}


@pytest.mark.parametrize("case", ["rubbish", "nothing", "deep", "large", "user", "another"])
def test_what_is_no_jwt_of_the_account_is_refused(place: Place, case: str) -> None:
    world, server, account = place.world, place.server, key()
    other = key()
    payload = {
        "rubbish": b"eyJ.x.y",
        "nothing": b"",
        "deep": b"." + b"[" * 100_000 + b".",
        "large": b"x" * 1_000_000,
        "user": world.user(account).token.encode(),
        "another": world.account(other).encode(),
    }[case]
    subject = f"$SYS.REQ.ACCOUNT.{account.public}.CLAIMS.UPDATE"
    error = world.ask(server, subject, payload)["error"]
    assert error["code"] == 500
    assert error["account"] == (account.public if case == "another" else "n/a")
    assert error["description"].startswith("jwt update resulted in error - ")
    assert not {account.public, other.public} & set(world.listed(server))


def test_what_makes_no_sense_is_refused(place: Place) -> None:
    world, server, account = place.world, place.server, key()
    said = Account(limits=limits(), signing_keys=("nonsense",))
    error = world.push(server, world.account(account, said))["error"]
    assert error["account"] == account.public and error["code"] == 500
    assert error["description"].startswith("jwt validation failed - validation errors: ")
    assert not place.file(account).exists()


def test_another_operator_cannot_push_what_counts(place: Place) -> None:
    """nats-server stores it, and lets nobody in by it."""
    world, server, account = place.world, place.server, key()
    stranger = generate(KeyKind.OPERATOR)
    token = world.account(account, issuer=stranger)
    answer = world.push(server, token)
    assert ("error" in answer) == place.ours
    assert place.file(account).exists() != place.ours
    assert not world.may_come(server, world.user(account))


def test_ordinary_accounts_cannot_push(place: Place) -> None:
    world, server, account, other = place.world, place.server, key(), key()
    world.push(server, world.account(account))
    with world.asking(server, world.user(account)) as caller:
        subject = f"$SYS.REQ.ACCOUNT.{other.public}.CLAIMS.UPDATE"
        token = world.account(other)
        for one in (subject, "$SYS.REQ.CLAIMS.UPDATE"):
            caller.ask(f"PUB {one} {len(token)}\r\n{token}\r\n".encode())
    assert world.look_up(server, other.public) == ""


def test_clients_live_with_what_their_account_says_now(place: Place) -> None:
    world, server, account = place.world, place.server, key()
    user = world.user(account, issued_s=now_s() - 100)
    world.push(server, world.account(account))
    with world.asking(server, user) as first, world.asking(server, user) as second:
        world.push(server, world.account(account, Account(limits=limits(connections=1))))
        expect(second, FULL)
        assert first.ask(b"") == []
        revoked = Account(limits=limits(), revocations={user.pair.public: now_s()})
        world.push(server, world.account(account, revoked))
        expect(first, REVOKED)
    assert not world.may_come(server, user)
    assert world.may_come(server, world.user(account))


def test_an_account_may_store_when_its_jwt_says_so(place: Place) -> None:
    world, server, account = place.world, place.server, key()
    user = world.user(account)
    nothing = Account(limits=limits(JetStreamLimits()))
    world.push(server, world.account(account, nothing))
    with world.asking(server, user) as caller:
        stream = b'{"name":"J","subjects":["j"],"max_bytes":%d}'
        world.push(server, world.account(account))
        wanted = stream % 1_000_000
        assert b'"config"' in caller.request("$JS.API.STREAM.CREATE.J", wanted)[1]
        little = JetStreamLimits(2_000_000, 2_000_000, 1, 5)
        world.push(server, world.account(account, Account(limits=limits(little))))
        told = json.loads(caller.request("$JS.API.INFO")[1])
        assert told["limits"]["max_storage"] == 2_000_000 and told["limits"]["max_streams"] == 1
        refused = caller.request("$JS.API.STREAM.CREATE.K", b'{"name":"K","subjects":["k"]}')[1]
        assert json.loads(refused)["error"]["err_code"] in (10027, 10047, 10113)
        world.push(server, world.account(account, nothing, name="off"))
        world.push(server, world.account(account, name="on"))
        wait_for(
            lambda: b'"config"' in caller.request("$JS.API.STREAM.INFO.J")[1],
            "what was stored is there again",
        )


def test_a_deleted_account_is_gone(place: Place) -> None:
    world, server, account = place.world, place.server, key()
    user = world.user(account)
    world.push(server, world.account(account))
    with world.asking(server, user) as caller:
        stream = b'{"name":"S","subjects":["s"]}'
        assert b'"config"' in caller.request("$JS.API.STREAM.CREATE.S", stream)[1]
        answer = world.ask(server, "$SYS.REQ.CLAIMS.DELETE", world.deletion(account.public))
        assert answer == {"data": {"code": 200, "message": "deleted 1 accounts"}}
        expect(caller, EXPIRED)
    assert not world.may_come(server, user)
    assert account.public not in world.listed(server)
    assert world.look_up(server, account.public) == ""
    kept = place.file(account)
    assert not kept.exists() and kept.with_name(kept.name + ".deleted").exists()
    world.push(server, world.account(account, name="again"))
    check_stored(place, user, b'"seq":1')
    world.ask(server, "$SYS.REQ.CLAIMS.DELETE", world.deletion(account.public))
    server.restart()
    assert not world.may_come(server, user)
    world.push(server, world.account(account, name="once more"))
    check_stored(place, user, b'"seq":2')


def check_stored(place: Place, user: Member, acknowledgement: bytes) -> None:
    """Its stream is there, with what was in it, and takes more."""
    with place.world.asking(place.server, user) as caller:
        wait_for(
            lambda: b'"config"' in caller.request("$JS.API.STREAM.INFO.S")[1], "the stream is there"
        )
        assert acknowledgement in caller.request("s", b"x")[1]


def test_who_may_not_delete_is_refused(place: Place) -> None:
    world, server, account = place.world, place.server, key()
    world.push(server, world.account(account))
    stranger = generate(KeyKind.OPERATOR)

    def refusal(order: bytes) -> str:
        error = world.ask(server, "$SYS.REQ.CLAIMS.DELETE", order)["error"]
        assert error["code"] == 500 and "account" not in error
        return str(error["description"])

    begins = f"delete accounts request by {world.pair.public} failed - "
    assert refusal(world.deletion(account.public, by=stranger)) == (
        f"delete accounts request by {stranger.public} failed - not trusted"
    )
    assert refusal(world.deletion("nobody")) == f"{begins}malformed request"
    assert refusal(world.deletion(said={"a": 1})) == f"{begins}malformed request"
    system = world.deletion(account.public, world.system.public)
    assert refusal(system) == f"{begins}not allowed to delete system account"
    assert refusal(b"rubbish").startswith("delete accounts request by  failed - ")
    assert account.public in world.listed(server)
    unknown = world.ask(server, "$SYS.REQ.CLAIMS.DELETE", world.deletion(key().public))
    assert unknown == {"data": {"code": 200, "message": "deleted 1 accounts"}}


def test_servers_compare_what_they_have(place: Place) -> None:
    """Whoever asks hears nothing new when it has the same, or else everything."""
    world, server = place.world, place.server
    account = key()
    token = world.account(account)
    world.push(server, token)
    with world.asking(server) as caller:
        caller.ask(b"SUB here 1\r\n")
        caller.send(b"PUB $SYS.REQ.CLAIMS.PACK here 4\r\nnone\r\n")
        lines: list[str] = []
        while not lines or lines[-1] != "":
            assert caller.line().startswith("MSG here 1 ")
            lines.append(caller.line())
    pairs = dict(line.split("|") for line in lines[:-1])
    assert pairs[account.public] == token
    assert world.system.public in pairs and set(pairs) >= set(world.listed(server)) - {""}
    both = hash_of(pairs)
    with world.asking(server) as caller:
        assert caller.request("$SYS.REQ.CLAIMS.PACK", both)[1] == b""


def hash_of(pairs: dict[str, str]) -> bytes:
    """As all servers reckon it."""
    from hashlib import sha256

    found = 0
    for token in pairs.values():
        found ^= int.from_bytes(sha256(token.encode()).digest(), "big")
    return found.to_bytes(32, "big")


def test_what_was_answered_stays(place: Place) -> None:
    world, server, account = place.world, place.server, key()
    token = world.account(account)
    assert "data" in world.push(server, token)
    server.restart(kill=True)
    assert world.look_up(server, account.public) == token
    assert world.may_come(server, world.user(account))


def test_an_account_ends_by_its_time(place: Place) -> None:
    world, server, account = place.world, place.server, key()
    user = world.user(account)
    world.push(server, world.account(account, expires_s=now_s() + 3))
    with world.asking(server, user) as caller:
        expect(caller, EXPIRED)
    assert not world.may_come(server, user)
    world.push(server, world.account(account))
    wait_for(lambda: world.may_come(server, user), "the account is renewed")
