"""A hub and a leaf node with JetStream in domains of one name, whose system accounts are linked:
each server goes on with a JetStream of its own, and ours say so."""

from collections.abc import Iterator
from contextlib import AsyncExitStack
from functools import partial

import pytest
from nats.js import JetStreamContext
from nats.js.errors import ServiceUnavailableError

from jsctl.testing import Broker
from tests.contract.conftest import KINDS
from tests.support.leafs import hub_block, leaf_port, linked, remote, spoke_block
from tests.support.listeners import WAIT_S, connected
from tests.support.waiting import eventually

ACCOUNTS = """
accounts {
    SYS: { users: [ {user: admin, password: p} ] }
    APP: { jetstream: enabled, users: [ {user: app, password: p} ] }
}
system_account: SYS
no_auth_user: app
"""
SAME = "jetstream { domain: D }\n" + ACCOUNTS
REASON = 'JetStream domain "D" is not extended'


PAIRS = [("jsctl", "jsctl"), ("nats-server", "jsctl"), ("jsctl", "nats-server")]
"""(hub, leaf node). Two real servers answer for each other, or become one cluster."""


@pytest.fixture(scope="module", params=PAIRS, ids=["-".join(pair) for pair in PAIRS])
def servers(request: pytest.FixtureRequest) -> Iterator[tuple[Broker, Broker]]:
    """The hub and the leaf node."""
    hub_kind, leaf_kind = (KINDS[kind] for kind in request.param)
    with hub_kind("-js", config=SAME + hub_block(), name="hub") as hub:
        port = leaf_port(hub)
        remotes = [remote(port, f"account: {name}", login) for name, login in LOGINS.items()]
        with leaf_kind("-js", config=SAME + spoke_block(*remotes), name="leaf") as leaf:
            linked(hub, 2)
            linked(leaf, 2)
            yield hub, leaf


LOGINS = {"SYS": "admin:p", "APP": "app:p"}


async def added(js: JetStreamContext, name: str) -> bool:
    """Whether a stream could be made. A nats-server that has just been linked to a hub has, now and
    then, no JetStream for the account for a moment."""
    try:
        await js.add_stream(name=name, subjects=[f"{name}.>"])
    except ServiceUnavailableError:
        return False
    return True


async def listed(js: JetStreamContext) -> list[str]:
    """The streams that there are; none where that cannot be told just now, as above."""
    try:
        return [str(one.config.name) for one in await js.streams_info()]
    except ServiceUnavailableError:
        return []


async def counted(js: JetStreamContext) -> int:
    """How many streams the account has; none where that cannot be told just now, as above."""
    try:
        return int((await js.account_info()).streams)
    except ServiceUnavailableError:
        return 0


async def test_each_server_has_its_own_streams(servers: tuple[Broker, Broker]) -> None:
    async with AsyncExitStack() as stack:
        for server in servers:
            js = (await connected(stack, server)).jetstream(timeout=WAIT_S)
            assert await js.streams_info() == []
            await eventually(partial(added, js, server.name), f"a stream of {server.name}")
            assert await eventually(partial(listed, js), "the list") == [server.name]
            assert await eventually(partial(counted, js), "the account") == 1


def test_ours_say_why(servers: tuple[Broker, Broker]) -> None:
    hub, leaf = servers
    if type(leaf) is Broker:
        # A real leaf node alone does not say that it has a JetStream.
        assert REASON in leaf.logs
        assert (REASON in hub.logs) is (type(hub) is Broker)


def test_a_hint_that_cannot_be_followed_is_named() -> None:
    config = "jetstream { domain: D, extension_hint: will_extend }\n"
    with Broker("-js", config=config, name="alone") as server:
        assert '"extension_hint" has no effect in this server (JetStream is not ext' in server.logs
