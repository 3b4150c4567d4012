"""Who may hang on a hub, as what, and what may cross then."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from pathlib import Path

import pytest
from nats.aio.client import Client

from jsctl.testing import HOST, Broker
from tests.contract.conftest import KINDS
from tests.support.certificates import make_certificates
from tests.support.leafs import (
    IDS,
    PAIRS,
    hub_block,
    leaf_port,
    leafz,
    linked,
    pair,
    told,
)
from tests.support.listeners import connected, known, listen, settle
from tests.support.login import Seed

KEY, OTHER = Seed(7), Seed(8)
HASH = "$2b$04$VYDMVowrzcGNAFqDxij8ZeQfGq1DK.VuPlGbFC7BkORbAbp7O7FBW"
"""Of the password `secret`."""
ACCOUNTS = """accounts {
  A { users: [ {user: a, password: p} ] }
  B { users: [ {user: b, password: p} ] }
  $SYS { users: [ {user: sys, password: p} ] }
}
"""
NKEYS = f"accounts {{ A {{ users: [ {{nkey: {KEY.public}}}, {{user: a, password: p}} ] }} }}\n"
LEAF_ONLY = """accounts { A { users: [
  {user: a, password: p}, {user: l, password: p, allowed_connection_types: [LEAFNODE]}
  {user: s, password: p, allowed_connection_types: [STANDARD]}
] } }
"""
TOKEN = "authorization { token: hush }\n"
MAY = {
    # name: (in the block of the hub, configuration of the hub, login, in the remote, account)
    "everybody": ("", "", "", "", "$G"),
    "a user of the block": ("authorization { user: l, password: p }", "", "l:p", "", "$G"),
    "its account": ("authorization { user: l, password: p, account: B }", ACCOUNTS, "l:p", "", "B"),
    "a hashed password": (f"authorization {{ user: l, password: '{HASH}' }}", "", "l:secret", "",
                          "$G"),
    "one of its users": (
        "authorization { users: [ {user: l, password: x}, {user: m, password: p, account: A} ] }",
        ACCOUNTS, "m:p", "", "A",
    ),
    "an nkey of the block": (f"authorization {{ nkey: {KEY.public}, account: A }}", ACCOUNTS, "",
                             f"nkey: {KEY.text}", "A"),
    "a user of the server": ("", ACCOUNTS, "b:p", "", "B"),
    "an nkey of the server": ("", NKEYS, "", f"nkey: {KEY.text}", "A"),
    "a user for leaf nodes": ("", LEAF_ONLY, "l:p", "", "A"),
    "a token": ("", TOKEN, "hush", "", "$G"),
    "the system": ("", ACCOUNTS, "sys:p", 'account: "$SYS"', "$SYS"),
}  # fmt: skip
MAY_NOT = {
    "nobody": ("authorization { user: l, password: p }", "", "", ""),
    "a wrong password": ("authorization { user: l, password: p }", "", "l:q", ""),
    "another user": ("authorization { user: l, password: p }", "", "m:p", ""),
    "a hash as a password": (f"authorization {{ user: l, password: '{HASH}' }}", "", "l:wrong", ""),
    "a user of the server beside the block's": (
        "authorization { user: l, password: p }", ACCOUNTS, "a:p", "",
    ),
    "an unknown user of several": ("authorization { users: [ {user: l, password: p} ] }", "",
                                   "m:p", ""),
    "another nkey": (f"authorization {{ nkey: {KEY.public} }}", "", "", f"nkey: {OTHER.text}"),
    "nobody of the server": ("", ACCOUNTS, "", ""),
    "a client's user": ("", LEAF_ONLY, "s:p", ""),
    "a wrong token": ("", TOKEN, "loud", ""),
}  # fmt: skip


@pytest.mark.parametrize("kinds", PAIRS, ids=IDS)
@pytest.mark.parametrize("name", list(MAY))
def test_who_may_hang_on_a_hub(kinds: tuple[str, str], name: str) -> None:
    block, config, login, more, account = MAY[name]
    leaf = ""
    with pair(kinds, listen=block, hub=config, login=login, remote_more=more, leaf=leaf) as found:
        (row,) = linked(found[0])
        (other,) = linked(found[1])
        assert (row["account"], row["is_spoke"], row["name"]) == (account, False, "leaf")
        assert (other["account"], other["is_spoke"], other["name"]) == (
            "$SYS" if more == 'account: "$SYS"' else "$G",
            True,
            "hub",
        )


@pytest.mark.parametrize("kinds", PAIRS, ids=IDS)
@pytest.mark.parametrize("name", list(MAY_NOT))
def test_who_may_not(kinds: tuple[str, str], name: str) -> None:
    block, config, login, more = MAY_NOT[name]
    with pair(kinds, listen=block, hub=config, login=login, remote_more=more, links=0) as found:
        hub, leaf = found
        leaf.wait_log("Authorization Violation")
        hub.wait_log("authentication error")
        assert leafz(hub) == leafz(leaf) == []
        assert leaf.logs.count("Leafnode connection created") >= 1


@asynccontextmanager
async def scene(
    kinds: tuple[str, str], **words: str
) -> AsyncIterator[tuple[tuple[Broker, Broker], Client, Client]]:
    """A hub and a leaf node, and a client of each."""
    user = words.pop("user", "")
    with pair(kinds, **words) as servers:  # type: ignore[arg-type]
        async with AsyncExitStack() as stack:
            yield (
                servers,
                await connected(stack, servers[0], user),
                await connected(stack, servers[1]),
            )


@pytest.mark.parametrize("kinds", PAIRS, ids=IDS)
async def test_a_remote_denies(kinds: tuple[str, str]) -> None:
    more = 'deny_imports: ["in.no", "never.>"], deny_exports: ["out.no", "secret.>"]'
    async with scene(kinds, remote_more=more) as (servers, up, down):
        at_hub, at_leaf = await listen(up, ">"), await listen(down, ">")
        await known(up, "in.early", at_leaf, at_hub)
        await known(down, "out.early", at_hub, at_leaf)
        for subject in ("out.yes", "out.no", "secret.a", "never.a", "in.no"):
            await down.publish(subject)
        await down.publish("out.last")
        await at_leaf.reach(6)
        await settle(up, down)
        heard = [one.subject for one in at_hub]
        assert heard[0] == "out.yes" and heard[-1] == "out.last"
        assert not {"out.no", "secret.a"} & set(heard)
        at_hub.clear()
        at_leaf.clear()
        for subject in ("in.yes", "in.no", "never.a", "secret.b"):
            await up.publish(subject)
        await up.publish("in.last")
        await settle(up, down)
        await at_hub.reach(5)
        heard = [one.subject for one in at_leaf]
        assert heard[0] == "in.yes" and heard[-1] == "in.last"
        assert not {"in.no", "never.a"} & set(heard)
        await down.subscribe("never.here")
        await down.subscribe("in.here")
        await down.flush()
        told(servers[0], "in.here")
        (row,) = linked(servers[0])
        assert "never.here" not in row["subscriptions_list"]


ANSWERS = """accounts { A { users: [
  {user: a, password: p}
  {user: r, password: p, permissions: {publish: {deny: ">"}, allow_responses: {max: 2}}}
] } }
no_auth_user: a
"""


@pytest.mark.parametrize("kinds", PAIRS, ids=IDS)
@pytest.mark.parametrize("end", [0, 1], ids=["at the hub", "at the leaf node"])
async def test_who_may_answer_answers_the_other_end(kinds: tuple[str, str], end: int) -> None:
    words = {"hub": ANSWERS, "leaf": ANSWERS, "login": "a:p", "remote_more": "account: A"}
    with pair(kinds, **words) as servers:  # type: ignore[arg-type]
        async with AsyncExitStack() as stack:
            refused: list[str] = []

            async def note(error: Exception) -> None:
                refused.append(str(error))

            asks = await connected(stack, servers[1 - end], "a")
            answers = await connected(stack, servers[end], "r", error_cb=note)
            asked, heard = await listen(answers, "ask.*"), await listen(asks, "reply.*")
            await known(asks, "ask.early", asked)
            for number in range(2):
                await asks.publish(f"ask.{number}", reply=f"reply.{number}")
            await asked.reach(2)
            for _ in range(3):
                for number in range(3):
                    await answers.publish(f"reply.{number}")
            await heard.reach(4)
            await settle(answers, asks)
            said = [one.subject for one in heard]
            assert said == ["reply.0", "reply.1"] * 2
            assert len(refused) == 5, "the third answers, and those that nobody waits for"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate of this machine."""
    return make_certificates(tmp_path_factory.mktemp("certificates"))


def tls(certificates: Path, more: str = "") -> str:
    """A `tls` block with a certificate."""
    return (
        f"tls {{ cert_file: '{certificates / 'cert.pem'}', key_file: '{certificates / 'key.pem'}'"
        f", ca_file: '{certificates / 'ca.pem'}', timeout: 5, {more} }}"
    )


def trusting(certificates: Path, more: str = "") -> str:
    """A `tls` block of a remote that shows no certificate."""
    return f"tls {{ ca_file: '{certificates / 'ca.pem'}', timeout: 5, {more} }}"


SECURED = {
    # name: (at the hub, at the leaf node; None for no block)
    "the hub's certificate": ("", ""),
    "both certificates": ("verify: true", None),
    "the handshake first": ("handshake_first: true", "handshake_first: true"),
    "the handshake first if it comes": ('handshake_first: "300ms"', "handshake_first: true"),
    "no handshake first though it might": ('handshake_first: "300ms"', ""),
    "without looking": ("", "insecure: true"),
}


@pytest.mark.parametrize("kinds", PAIRS, ids=IDS)
@pytest.mark.parametrize("name", list(SECURED))
async def test_connections_are_secured(
    kinds: tuple[str, str], name: str, certificates: Path
) -> None:
    hub, leaf = SECURED[name]
    block = tls(certificates) if leaf is None else trusting(certificates, leaf)
    async with scene(kinds, listen=tls(certificates, hub), remote_more=block) as (_, up, down):
        heard = await listen(up, "x")
        await known(down, "x", heard)
        await down.publish("x", b"y" * 100_000)
        (message,) = await heard.reach(1)
        assert len(message.data) == 100_000


def test_urls_take_turns_until_one_answers() -> None:
    """Whatever of the first addresses refuses, the last one is found."""
    for kind in KINDS.values():
        with ExitStack() as stack:
            hub = stack.enter_context(KINDS["nats-server"](config=hub_block(), name="hub"))
            urls = f'"nats://{HOST}:1", "nats://{HOST}:2", "nats://{HOST}:{leaf_port(hub)}"'
            block = f'leafnodes {{ reconnect: "50ms", remotes: [ {{ urls: [ {urls} ]'
            config = f"{block}, no_randomize: true }} ] }}\n"
            leaf = stack.enter_context(kind(config=config, name="leaf"))
            linked(leaf)
            assert f'remote server "{HOST}:1" (attempt 1)' in leaf.logs
