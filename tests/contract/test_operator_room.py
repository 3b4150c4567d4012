"""Accounts that may store more than a server alone has: at its start, in a reload, when pushed."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jsctl.auth.claims import Account, JetStreamLimits
from jsctl.dataclass import replace
from jsctl.testing import BrokerFailed
from tests.support.login import Caller
from tests.support.operators import SYSTEM, OperatorWorld, limits
from tests.support.reloading import KINDS, Reloading
from tests.support.tiers import ANY
from tests.support.waiting import wait_for

MIB = 1 << 20
SERVER = 'server_name: one\njetstream { store_dir: "@DIR/js", max_mem: 20MB, max_file: 10MB }\n'


def storing(store: int, memory: int = 1) -> Account:
    """An account with limits in MiB."""
    given = JetStreamLimits(memory * MIB, store * MIB, -1, -1)
    return Account(limits=limits(given))


class Narrow:
    """A server with little room."""

    def __init__(self, server: Reloading, world: OperatorWorld) -> None:
        self.server = server
        self.world = world

    def enter(self, account: str) -> Caller:
        """A new user."""
        caller = Caller(self.server.port)
        assert caller.login(self.world.user(account).login(caller.challenge)), caller.refusal
        return caller

    def stores(self, account: str) -> Any:
        """The limit of files that INFO tells, in MiB; None for an account without JetStream, whom
        nats-server does not answer."""
        with self.enter(account) as caller:
            if not self.detail(account)["jetstream_enabled"]:
                return None
            found = json.loads(caller.request("$JS.API.INFO")[1])
            return found["limits"]["max_storage"] // MIB

    def detail(self, account: str) -> Any:
        """What monitoring tells of an account."""
        public = self.world.tenants[account].public
        page: Any = self.server.broker.monitor(f"/accountz?acc={public}")
        return page["account_detail"]

    def push(self, account: str, said: Account) -> None:
        """Another JWT of an account, which is always taken."""
        made = self.world.account(account, said)
        with self.enter(SYSTEM) as caller:
            subject = f"$SYS.REQ.ACCOUNT.{made.public}.CLAIMS.UPDATE"
            answer = json.loads(caller.request(subject, made.token.encode())[1])
            assert answer["data"]["code"] == 200, answer

    def told(self, account: str, kind: str, code: int) -> None:
        """Wait until the log says that an account does not have what it wants."""
        tag = f"[{self.world.tenants[account].public}/{account}]"
        text = f"insufficient {kind} resources available ({code})"
        line = f"Error configuring jetstream for account {tag}: {text}"
        wait_for(lambda: line in self.server.broker.logs, line)


@pytest.fixture(params=["memory", "full"])
def place(request: pytest.FixtureRequest) -> str:
    """Where JWTs are."""
    return str(request.param)


@pytest.fixture(params=list(KINDS))
def narrow(
    request: pytest.FixtureRequest, place: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Narrow]:
    """Accounts of which some want too much."""
    world = OperatorWorld(tmp_path_factory.mktemp("world"))
    world.account("FITS", storing(4))
    world.account("LARGE", storing(40))
    world.account("MEMORY", storing(1, 40))
    tiers = {"R1": replace(ANY, disk_storage=3 * MIB), "R3": replace(ANY, disk_storage=30 * MIB)}
    world.account("TIERS", Account(limits=limits(tiers=tiers)))
    world.account("GROWS", storing(1))
    world.account("ANY")
    accounts = world.config() if place == "memory" else world.full_config()
    with Reloading(str(request.param), SERVER + accounts) as server:
        yield Narrow(server, world)


def test_an_account_that_wants_too_much_has_no_jetstream(narrow: Narrow) -> None:
    assert narrow.stores("FITS") == 4
    assert narrow.stores("GROWS") == 1
    assert narrow.stores("LARGE") is None
    narrow.told("LARGE", "storage", 10047)
    assert narrow.stores("MEMORY") is None
    narrow.told("MEMORY", "memory", 10028)
    assert narrow.stores("TIERS") is None
    narrow.told("TIERS", "storage", 10047)
    assert narrow.stores("ANY") == -1 // MIB
    assert [narrow.detail(name)["complete"] for name in ("FITS", "LARGE", "ANY")] == [
        True, False, True,
    ]  # fmt: skip


def test_limits_that_are_pushed_count_as_far_as_there_is_room(narrow: Narrow) -> None:
    assert [narrow.stores("FITS"), narrow.stores("GROWS")] == [4, 1]
    narrow.push("GROWS", storing(50))
    narrow.told("GROWS", "storage", 10047)
    assert narrow.stores("GROWS") == 1
    assert not narrow.detail("GROWS")["complete"]
    narrow.push("GROWS", storing(2))
    assert narrow.stores("GROWS") == 2
    assert narrow.detail("GROWS")["complete"]
    assert narrow.stores("LARGE") is None
    narrow.push("LARGE", storing(5))
    assert narrow.stores("LARGE") is None
    narrow.push("LARGE", storing(3))
    assert narrow.stores("LARGE") == 3
    with narrow.enter("LARGE") as caller:
        asked = b'{"name":"S","subjects":["s"],"max_bytes":1000}'
        assert b'"config"' in caller.request("$JS.API.STREAM.CREATE.S", asked)[1]
        assert b'"seq":1' in caller.request("s", b"x")[1]
    narrow.push("GROWS", storing(4))
    assert narrow.stores("GROWS") == 2


@pytest.mark.parametrize("place", ["memory"], indirect=True)
def test_limits_of_a_file_that_is_read_again(narrow: Narrow) -> None:
    assert [narrow.stores("FITS"), narrow.stores("GROWS")] == [4, 1]
    narrow.world.account("GROWS", storing(50))
    narrow.server.must_reload(SERVER + narrow.world.config())
    narrow.told("GROWS", "storage", 10047)
    assert [narrow.stores("FITS"), narrow.stores("GROWS")] == [4, 1]
    narrow.world.account("GROWS", storing(6))
    narrow.server.must_reload(SERVER + narrow.world.config())
    assert narrow.stores("GROWS") == 6


def test_whoever_stores_something_comes_first_here(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """A nats-server gives room to who logs in first."""
    world = OperatorWorld(tmp_path_factory.mktemp("world"))
    names = ("A", "B", "C")
    for name in names:
        world.account(name, storing(1))
    with Reloading("jsctl", SERVER + world.config()) as server:
        narrow = Narrow(server, world)
        for name in names:
            for other in names:
                world.account(other, storing(6))
            narrow.server.must_reload(SERVER + world.config(without=set(names) - {name}))
            assert narrow.stores(name) == 6
            with narrow.enter(name) as caller:
                asked = b'{"name":"S","subjects":["s"]}'
                assert b'"config"' in caller.request("$JS.API.STREAM.CREATE.S", asked)[1]
                server.broker.config = SERVER + world.config()
                server.broker.restart()
            assert [narrow.stores(one) for one in names] == [
                6 if one == name else None for one in names
            ]
            with narrow.enter("C" if name == "A" else "A") as caller:
                refused = json.loads(caller.request("$JS.API.INFO")[1])
                assert refused["error"]["err_code"] == 10039
            with narrow.enter(name) as caller:
                assert b"true" in caller.request("$JS.API.STREAM.DELETE.S")[1]


def accounts(one: int, other: int) -> str:
    """Two of a file, with limits in MiB."""
    blocks = [
        f"{name} {{ jetstream {{ max_file: {size}MB }}, users: [{{ user: {name}, password: p }}] }}"
        for name, size in (("A", one), ("B", other))
    ]
    return f"{SERVER}accounts {{\n{blocks[0]}\n{blocks[1]}\n}}\n"


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("sizes", [(40, 1), (6, 6)])
def test_a_server_does_not_start_with_accounts_of_its_file_that_want_too_much(
    kind: str, sizes: tuple[int, int]
) -> None:
    with pytest.raises(BrokerFailed) as caught, Reloading(kind, accounts(*sizes)):
        pass
    wanted = (
        "Can't start JetStream: Error enabling jetstream on configured accounts: "
        "insufficient storage resources available (10047)"
    )
    assert wanted in str(caught.value)


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_reload_does_not_give_what_is_not_there(kind: str) -> None:
    with Reloading(kind, accounts(4, 1)) as server:
        lines = server.reload(accounts(40, 1))
        said = "on configured accounts: insufficient storage resources available (10047)"
        assert any(said in line for line in lines), lines
        with Caller(server.port) as caller:
            assert caller.login({"user": "A", "pass": "p"})
            found = json.loads(caller.request("$JS.API.INFO")[1])
            assert found["limits"]["max_storage"] == 4 * MIB


def test_a_broker_takes_no_account_for_too_large_for_its_disk(tmp_path: Path) -> None:
    """Without `max_file`: what is free is less at the next start, by what is stored."""
    world = OperatorWorld(tmp_path / "world")
    world.account("A", storing(1 << 40))
    with Reloading("jsctl", f"server_name: one\njetstream: enabled\n{world.config()}") as server:
        assert Narrow(server, world).stores("A") == 1 << 40
