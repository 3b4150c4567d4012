"""A reload at one end of a leaf node's connection, which stays: what is mapped and imported from
then on is known at the other end."""

from collections.abc import Iterator
from contextlib import AsyncExitStack, ExitStack

import pytest

from jsctl.testing import Broker
from tests.support.leafs import (
    IDS,
    PAIRS,
    hub_block,
    leaf_port,
    leafz,
    linked,
    remote,
    spoke_block,
    told,
)
from tests.support.listeners import connected, known, listen, settle
from tests.support.reloading import Reloading

USERS = {"$G": "g", "A": "a"}
OURS = "jsctl"
ENDS = ("hub", "leaf")


def accounts(mapped: str = "", taken: str = "") -> str:
    """Users of two accounts; one of them has a mapping, or A imports a stream of B."""
    here = {name: "mappings: { src: dest }" if name == mapped else "" for name in USERS}
    return f"""
    authorization {{ users: [ {{user: g, password: p}} ] }}
    {here["$G"]}
    accounts {{
        A {{
            users: [ {{user: a, password: p}} ]
            {here["A"]}
            {taken}
        }}
        B {{ users: [ {{user: b, password: p}} ], exports: [ {{stream: "news.>"}} ] }}
    }}
    """


class Pair:
    """A hub and a leaf node, whose files tests change."""

    def __init__(self, kinds: tuple[str, str], stack: ExitStack) -> None:
        self.kinds = dict(zip(ENDS, kinds, strict=True))
        self.servers: dict[str, Reloading] = {}
        for end in ENDS:
            found = Reloading(self.kinds[end], self.config(end))
            self.servers[end] = stack.enter_context(found)
        for end in ENDS:
            linked(self[end], 2)

    def __getitem__(self, end: str) -> Broker:
        return self.servers[end].broker

    def config(self, end: str, **changed: str) -> str:
        """Of one of them."""
        if end == "hub":
            return hub_block("no_advertise: true") + accounts(**changed)
        port = leaf_port(self["hub"])
        remotes = [remote(port, login="g:p"), remote(port, "account: A", login="a:p")]
        return spoke_block(*remotes) + accounts(**changed)

    def reload(self, end: str, **changed: str) -> None:
        """Change it."""
        self.servers[end].must_reload(self.config(end, **changed))


@pytest.fixture(scope="module", params=PAIRS, ids=IDS)
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    """One for all tests of two kinds."""
    with ExitStack() as stack:
        yield Pair(request.param, stack)


both_ends = pytest.mark.parametrize(("here", "there"), [ENDS, ENDS[::-1]])


@both_ends
@pytest.mark.parametrize("account", list(USERS))
async def test_what_is_mapped_is_asked_for(pair: Pair, here: str, there: str, account: str) -> None:
    """A nats-server tells it of the global account alone, and goes on to map there."""
    ours, rows = pair.kinds[here] == OURS, leafz(pair[here])
    async with AsyncExitStack() as stack:
        near, far = [await connected(stack, pair[end], USERS[account]) for end in (here, there)]
        heard = await listen(near, "dest")
        await known(far, "dest", heard)
        pair.reload(here, mapped=account)
        if ours or account == "$G":
            told(pair[there], "src")
            await far.publish("src", b"1")
            await heard.reach(1)
        pair.reload(here)
        if ours:
            told(pair[there], "src", gone=True)
            await known(far, "dest", heard)
            assert [row["id"] for row in leafz(pair[here])] == [row["id"] for row in rows]


@both_ends
async def test_what_is_imported_is_heard(pair: Pair, here: str, there: str) -> None:
    """Whoever listens at the other end of a nats-server hears it when the link is made anew."""
    async with AsyncExitStack() as stack:
        owner = await connected(stack, pair[here], "b")
        heard = await listen(await connected(stack, pair[there], "a"), "news.>")
        told(pair[here], "news.>")
        pair.reload(here, taken='imports: [ {stream: {account: B, subject: "news.>"}} ]')
        if pair.kinds[here] == OURS:
            await known(owner, "news.1", heard)
            pair.reload(here)
        await owner.publish("news.2")
        await settle(owner)
        assert heard == []
