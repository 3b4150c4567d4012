"""JetStream by tiers, on nodes in this process: the cases that go for servers, too."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from jsctl.broker.handlers.view import HeldBytes
from jsctl.broker.jsapi.usage import Usage
from jsctl.broker.options import AccountJetStream
from jsctl.broker.peers.use_items import AccountUse, TierUse
from tests.support.cluster_play import ClusterPlay
from tests.support.node_play import NodePlay, PlayClient, node_options
from tests.support.stream_requests import consumer, stream
from tests.support.tier_cases import (
    ALONE,
    ALONE_CASES,
    CLUSTERED,
    CLUSTERED_CASES,
    EMPTY,
    NO_STREAMS,
    NO_TIER,
    SHOWN_ANY,
    SHOWN_NONE,
    Case,
    Scene,
    name_of,
    play,
)
from tests.support.tiers import ANY, options

WAIT_S = 15.0
STEP_S = 0.05


class Played(Scene):
    """One node, or those of a cluster."""

    def __init__(self, node: NodePlay) -> None:
        self._node = node
        self._clients: dict[str, PlayClient] = {}

    def request(self, account: str, subject: str, payload: bytes) -> bytes:
        if account not in self._clients:
            self._clients[account] = self._node.connect(account.lower())
        client = self._clients[account]
        inbox = f"answer.{len(client.messages)}"
        client.subscribe(inbox)
        client.publish(subject, payload, inbox)
        # What is stored is added up now and then.
        self._node.run(STEP_S)
        heard: list[bytes] = []

        def answered() -> bool:
            heard[:] = [body for to, _, body in client.messages if to == inbox]
            return bool(heard)

        self.eventually(answered, f"{subject} is answered")
        return heard[0]

    def eventually(self, fact: Callable[[], bool], what: str) -> None:
        passed = 0.0
        while not fact():
            assert passed < WAIT_S, what
            self._node.run(STEP_S)
            passed += STEP_S

    def accounts_page(self) -> Any:
        return self._node.get("/jsz", accounts="1")[1]


@pytest.fixture(scope="module")
def alone() -> Scene:
    """One node."""
    return Played(NodePlay(node_options(accounts=options(ALONE))))


@pytest.fixture(scope="module")
def clustered() -> Scene:
    """Three."""
    return Played(ClusterPlay(accounts=options(CLUSTERED))["n1"])


@pytest.mark.parametrize("case", ALONE_CASES, ids=name_of)
def test_of_a_server_alone(alone: Scene, case: Case) -> None:
    play(alone, case)


@pytest.mark.parametrize("case", CLUSTERED_CASES, ids=name_of)
def test_of_a_cluster(clustered: Scene, case: Case) -> None:
    play(clustered, case)


def told(play: NodePlay, account: str = "a") -> Any:
    return play.connect(account).ask("$JS.API.INFO")


def test_a_tier_that_is_taken_away() -> None:
    """What is there stays, and is told of; nothing more is taken."""
    tiers = {"R1": replace(ANY, disk_storage=10_000), "R3": ANY}
    play = NodePlay(node_options(accounts=options({"A": tiers})))
    client = play.connect("a")
    client.ask("$JS.API.STREAM.CREATE.S", **stream(replicas=1, max_bytes=5_000))
    client.ask("$JS.API.CONSUMER.CREATE.S.C", **consumer(name="C"))
    assert b"error" not in client.request("s.x", b"m")[0]
    less = node_options(accounts=options({"A": {"R3": ANY}}))
    play.node.try_out(less)
    play.node.reload(less)
    play.turn()
    for answer in (
        json.loads(client.request("s.x", b"m")[0]),
        client.ask("$JS.API.STREAM.UPDATE.S", **stream(replicas=1, max_bytes=6_000)),
        client.ask("$JS.API.CONSUMER.CREATE.S.D", **consumer(name="D")),
    ):
        assert answer["error"]["err_code"] == NO_TIER
    client.ask("$JS.API.CONSUMER.DELETE.S.C")
    info = told(play)
    kept = {"reserved_storage": 5_000, "streams": 1, "storage": info["storage"]}
    assert info["storage"] > 0
    assert info["tiers"] == {
        "R1": {**EMPTY, **kept, "limits": SHOWN_NONE},
        "R3": {**EMPTY, "limits": SHOWN_ANY},
    }
    client.ask("$JS.API.STREAM.PURGE.S")
    # A tier of which nothing is left but names tells of no more.
    unused = {**EMPTY, "streams": 1, "limits": SHOWN_NONE}
    assert told(play)["tiers"]["R1"] == unused


def test_tiers_take_the_place_of_an_accounts_limits() -> None:
    play = NodePlay(node_options(accounts=options({"A": {"R1": ANY}})))
    client = play.connect("a")
    client.ask("$JS.API.STREAM.CREATE.S", **stream(replicas=1))
    flat = replace(options({"A": {}})[0], jetstream=AccountJetStream(streams_max=1))
    changed = node_options(accounts=(flat, options({})[0]))
    play.node.try_out(changed)
    play.node.reload(changed)
    play.turn()
    info = told(play)
    assert "tiers" not in info and info["limits"]["max_streams"] == 1
    answer = client.ask("$JS.API.STREAM.CREATE.T", **stream("T", replicas=1))
    assert answer["error"]["err_code"] == NO_STREAMS


def test_a_peer_tells_of_its_tiers_with_its_accounts() -> None:
    """Of a frame that was split tiers come behind; who has none any more tells only accounts."""
    made = options({"A": {"R3": ANY}})
    usage = Usage(node_options(accounts=made), {})
    use, part = AccountUse("A", 1, 20, 0, 0), TierUse("A", "R3", 1, 20)
    for uses, parts, held in (
        ([use], [part], HeldBytes(1, 20)),
        ([use], [], HeldBytes()),
        ([], [part], HeldBytes(1, 20)),
        ([use], [TierUse("B", "R3", 5, 5)], HeldBytes()),
    ):
        usage.told("peer", uses, parts)
        found = usage.of_account("A")
        assert (found.held, found.of_tier("R3")) == (HeldBytes(1, 20), held)
    usage.told("older", [use], [])
    assert usage.of_account("A").held == HeldBytes(2, 40)


def test_what_is_not_known_to_have_tiers_is_told_by_tier() -> None:
    """The account's limits may be known elsewhere."""
    play = NodePlay(node_options(accounts=options({"A": {"R1": ANY}})))
    client = play.connect("a")
    client.ask("$JS.API.STREAM.CREATE.S", **stream(replicas=1))
    client.request("s.x", b"m")
    assert play.node.engine is not None
    streams = play.node.engine.assets.streams
    size = streams[("A", "S")].store.size_bytes
    (part,) = Usage(node_options(accounts=options({})), streams).tiers_here()
    assert part == TierUse("A", "R1", 0, size)
    assert Usage(node_options(), streams).tiers_here() == []
