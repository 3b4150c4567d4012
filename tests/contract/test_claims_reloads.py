"""Accounts of JWTs in a file that is read again, and pushed to a server that stores none."""

import pytest

from jsctl.auth.claims import Account, Export, Import
from jsctl.auth.keys import KeyKind, KeyPair, generate
from tests.contract.test_claims_updates import FULL, expect
from tests.support.operators import limits, now_s
from tests.support.reloading import KINDS, Reloading
from tests.support.resolver_world import ResolverWorld
from tests.support.waiting import wait_for

REFUSED = "Failed to reload server configuration: "


def key() -> KeyPair:
    """Of a new account."""
    return generate(KeyKind.ACCOUNT)


def named(config: str) -> str:
    """With a name for the server, which is told to whoever asks."""
    return f"server_name: one\n{config}"


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_server_without_a_store_takes_what_is_pushed(kind: str) -> None:
    world, account, absent = ResolverWorld(), key(), key()
    config = named(world.in_memory((account.public, world.account(account))))
    with Reloading(kind, config) as server:
        server.broker.name = "one"
        broker, user = server.broker, world.user(account)

        def push(one: KeyPair, token: str) -> object:
            subject = f"$SYS.REQ.ACCOUNT.{one.public}.CLAIMS.UPDATE"
            return world.ask(broker, subject, token.encode())

        with world.asking(broker, user) as first, world.asking(broker, user) as second:
            said = Account(limits=limits(connections=1))
            told = {"account": account.public, "code": 200}
            answer = push(account, world.account(account, said))
            assert answer == {"data": {**told, "message": "jwt updated"}}
            expect(second, FULL)
            assert first.ask(b"") == []
            assert not world.may_come(broker, user)
        skipped = {"account": absent.public, "code": 200, "message": "jwt update skipped"}
        assert push(absent, world.account(absent)) == {"data": skipped}
        assert not world.may_come(broker, world.user(absent))
        for token, begins in (
            ("", "jwt update error - request body is empty"),
            ("rubbish", "jwt update resulted in error - "),
            (world.account(absent), "jwt update resulted in error - subject does not match jwt"),
            (
                world.account(account, issuer=generate(KeyKind.OPERATOR)),
                "jwt update resulted in error - ",
            ),
        ):
            error = push(account, token)["error"]  # type: ignore[index]  # an answer is a document
            assert error["account"] == account.public and error["code"] == 500
            assert error["description"].startswith(begins)
        server.again()
        with world.asking(broker, user), world.asking(broker, user):
            pass  # What the file says counts again.


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_file_with_other_accounts_is_taken(kind: str) -> None:
    world, stays, goes, comes = ResolverWorld(), key(), key(), key()
    tokens = {one: (one.public, world.account(one)) for one in (stays, goes, comes)}
    with Reloading(kind, named(world.in_memory(tokens[stays], tokens[goes]))) as server:
        broker = server.broker
        kept, lost = world.user(stays), world.user(goes)
        with world.asking(broker, kept) as here, world.asking(broker, lost) as there:
            server.reload(named(world.in_memory(tokens[stays], tokens[comes])))
            assert here.ask(b"") == []
            wait_for(lambda: there.line() == "", "the client of the lost account is closed")
        assert not world.may_come(broker, lost)
        assert world.may_come(broker, world.user(comes))


@pytest.mark.parametrize("kind", list(KINDS))
def test_another_operator_is_refused(kind: str) -> None:
    world, other, account = ResolverWorld(), ResolverWorld(), key()
    config = named(world.in_memory((account.public, world.account(account))))
    with Reloading(kind, config) as server:
        lines = server.reload(config.replace(world.token, other.token))
        assert lines[-1].startswith(REFUSED)
        assert world.may_come(server.broker, world.user(account))


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_newer_jwt_of_the_file_takes_the_place_of_what_is_stored(kind: str) -> None:
    """nats-server has it count when it starts again."""
    world, account = ResolverWorld(), key()
    old = world.account(account, issued_s=now_s() - 100)
    new = world.account(account, Account(limits=limits(connections=1)), issued_s=now_s() - 50)

    def config(token: str) -> str:
        given = f'{account.public}: "{token}"'
        return named(world.config("@DIR/jwt", preload=given))

    with Reloading(kind, config(old)) as server:
        broker = server.broker
        place = broker.directory / "jwt" / f"{account.public}.jwt"
        assert place.read_text() == old
        user = world.user(account)
        assert world.may_come(broker, user)
        server.reload(config(new))
        assert place.read_text() == new
        with world.asking(broker, user):
            assert world.may_come(broker, user) == (kind != "jsctl")
        server.reload(config(old))
        assert place.read_text() == new


@pytest.mark.parametrize("kind", list(KINDS))
def test_an_import_ends_with_its_token(kind: str) -> None:
    world, giver, taker = ResolverWorld(), key(), key()
    offer = Export(name="help", subject="help", type_="service", token_req=True)
    gives = world.account(giver, Account(limits=limits(), exports=(offer,)))
    token = world.activation(giver, taker, "help", expires_s=now_s() + 4)
    wanted = Import(name="help", subject="help", account=giver.public, type_="service", token=token)
    takes = world.account(taker, Account(limits=limits(), imports=(wanted,)))
    config = named(world.in_memory((giver.public, gives), (taker.public, takes)))
    with Reloading(kind, config) as server:
        broker = server.broker
        with (
            world.asking(broker, world.user(giver)) as serves,
            world.asking(broker, world.user(taker)) as asks,
        ):
            serves.ask(b"SUB help 1\r\n")

            def is_heard() -> bool:
                asks.ask(b"PUB help 0\r\n\r\n")
                return any("MSG help" in line for line in serves.ask(b""))

            assert is_heard()
            wait_for(lambda: not is_heard(), "the token has expired")
            assert world.may_come(broker, world.user(taker))
