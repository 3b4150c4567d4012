"""A server whose store of JWTs is lost, full, or has rubbish in it; and tools that push to it."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jsctl.auth.claims import Account
from jsctl.auth.keys import KeyKind, KeyPair, generate
from jsctl.auth.token import read_as
from jsctl.testing import Broker
from tests.contract.conftest import KINDS
from tests.support.nats_tool import nats, needed
from tests.support.resolver_world import ResolverWorld
from tests.support.waiting import wait_for

NAMES = list(KINDS)
Tool = Callable[..., subprocess.CompletedProcess[str]]


def key() -> KeyPair:
    """Of a new account."""
    return generate(KeyKind.ACCOUNT)


@pytest.fixture(params=NAMES)
def kind(request: pytest.FixtureRequest) -> str:
    """Of server."""
    return str(request.param)


class Stored:
    """A server that has room for two accounts, in a directory with rubbish."""

    def __init__(self, kind: str, directory: Path) -> None:
        self.world = ResolverWorld()
        self.directory = directory / "jwt"
        self.directory.mkdir()
        self.rubbish = self.directory / f"{key().public}.jwt"
        self.rubbish.write_bytes(b"\xff\x00rubbish|\n")
        (self.directory / "notes.txt").write_text("left alone")
        config = self.world.config(str(self.directory), "limit: 3")
        self.server: Broker = KINDS[kind](name="one", config=config)


@pytest.fixture
def stored(kind: str, tmp_path: Path) -> Iterator[Stored]:
    """A server of its own, as what it stores is destroyed."""
    made = Stored(kind, tmp_path)
    with made.server:
        yield made


def test_a_full_store_and_a_lost_one_refuse(stored: Stored, kind: str) -> None:
    world, server, first, second = stored.world, stored.server, key(), key()
    ours = kind == "jsctl"
    token = world.account(first)
    assert "data" in world.push(server, token)
    error = world.push(server, world.account(second))["error"]
    assert error["description"] == "jwt update resulted in error - jwt store is full"
    assert not world.may_come(server, world.user(second))
    assert "data" in world.push(server, world.account(first, name="changed"))
    order = world.ask(server, "$SYS.REQ.CLAIMS.DELETE", world.deletion(first.public))["error"]
    assert order["description"].endswith(" failed - delete must be enabled in server config")
    assert stored.rubbish.read_bytes() == b"\xff\x00rubbish|\n"
    assert (stored.directory / "notes.txt").exists()
    if ours:
        assert f"account {stored.rubbish.stem}: " in server.logs
        shutil.rmtree(stored.directory)
        stored.directory.write_text("in the way")
        changed = world.account(first, name="changed again")
        error = world.push(server, changed)["error"]
        assert error["description"].startswith("jwt update resulted in error - ")
        assert "is not stored" in server.logs
        assert world.may_come(server, world.user(first))
        assert world.look_up(server, first.public) != changed


def test_what_others_say_they_have_is_checked(stored: Stored, kind: str) -> None:
    """Whoever is in the system account may answer for another server."""
    world, server, account = stored.world, stored.server, key()
    strange = world.account(account, issuer=generate(KeyKind.OPERATOR))
    with world.asking(server) as caller:
        caller.ask(b"SUB $SYS.REQ.CLAIMS.PACK 1\r\n")
        inbox = f"$SYS._INBOX_{caller.info['server_id']}.CLAIMS.PACK"
        lines = [
            b"",
            b"rubbish",
            b"|||",
            b"\xff|\xff",
            f"{account.public}|rubbish".encode(),
            f"{key().public}|{world.account(account)}".encode(),
            f"../{account.public}|{world.account(account)}".encode(),
            f"{account.public}|{strange}".encode(),
            b"|" * 500_000,
        ]
        for one in [*lines, b"\n".join(lines)]:
            caller.ask(f"PUB {inbox} {len(one)}\r\n".encode() + one + b"\r\n")
        listed = json.loads(caller.request("$SYS.REQ.CLAIMS.LIST")[1])["data"]
        assert account.public not in listed
        if kind == "jsctl":
            good = f"{account.public}|{world.account(account)}".encode()
            caller.ask(f"PUB {inbox} {len(good)}\r\n".encode() + good + b"\r\n")
            known = [account.public]
            wait_for(lambda: world.listed(server) == known, "it is taken")


@needed
def test_tools_push_and_query(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An account of the store of `nsc`, pushed by either tool and asked for by both."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    credentials = tmp_path / "sys.creds"
    for words in (
        "auth operator add OP",
        "auth account add APP --defaults",
        "auth user add root SYSTEM --defaults",
        f"auth user credential {credentials} root SYSTEM",
    ):
        done(nats, words)
    store = tmp_path / "data" / "nats" / "nsc" / "stores" / "OP"
    accounts = store / "accounts"
    system = read_as(Account, (accounts / "SYSTEM" / "SYSTEM.jwt").read_text())
    config = (
        f'operator: "{store / "OP.jwt"}"\nresolver {{ type: full, dir: "{tmp_path / "jwt"}" }}\n'
        f"resolver_preload {{ {system.head.sub}:"
        f' "{(accounts / "SYSTEM" / "SYSTEM.jwt").read_text().strip()}" }}\n'
    )
    with KINDS[kind](name="one", config=config) as server:
        who = f"--server {server.url} --creds {credentials}"
        for push, query in ((nats, jsctl), (jsctl, nats)):
            done(nats, "auth account edit APP --connections 7")
            told = done(push, f"auth account push APP {who}")
            assert "Update completed on one" in told and "Success 1 Failed 0 Expected 1" in told
            output = tmp_path / "queried.jwt"
            done(query, f"auth account query APP {output} {who}")
            assert output.read_text() == (accounts / "APP" / "APP.jwt").read_text()
            output.unlink()


def done(tool: Tool, line: str) -> str:
    """What a tool says that succeeds."""
    found = tool(*line.split())
    assert found.returncode == 0, found.stdout + found.stderr
    return found.stdout + found.stderr


def jsctl(*words: str) -> subprocess.CompletedProcess[str]:
    """What ours says."""
    line = [sys.executable, "-m", "jsctl", *words]
    return subprocess.run(line, capture_output=True, text=True, timeout=60, check=False)
