"""The dashboard on real clusters, ours and nats-server's: what operators rely on."""

import contextlib
import dataclasses
import json
from collections import Counter
from collections.abc import AsyncIterator, Iterator

import nats
import nats.errors
import pytest
from nats.js import JetStreamContext
from nats.js.api import AckPolicy, ConsumerConfig, StreamConfig
from nats.js.errors import BadRequestError

from jsctl.dashboard.connection.link import Dialer
from jsctl.dashboard.connection.poller import Poller
from jsctl.dashboard.model.snapshot import Badge, Level, PeerState, Snapshot
from jsctl.dashboard.once import text_of
from jsctl.testing import Broker, Cluster, RealServer
from tests.dashboard.conftest import Drive, Driven, settings_of
from tests.support.waiting import eventually, wait_for

KINDS: dict[str, type[Broker]] = {"nats-server": RealServer, "jsctl": Broker}


@pytest.fixture(scope="module", params=list(KINDS))
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    with Cluster(3, server=KINDS[str(request.param)]) as running:
        yield running


@pytest.fixture
async def js(cluster: Cluster) -> AsyncIterator[JetStreamContext]:
    """JetStream on the cluster, with ORDERS on three servers and LONE1 to LONE3 on one each."""
    cluster.wait_whole()
    client = await nats.connect(cluster.urls)
    context = client.jetstream(timeout=30)

    async def placed() -> bool:
        # nats-server's meta leader may not have heard yet of the room that the others have.
        with contextlib.suppress(BadRequestError):
            await context.add_stream(name="ORDERS", subjects=["orders.>"], num_replicas=3)
            return True
        return False

    await eventually(placed, "room for three replicas")
    await context.add_consumer(
        "ORDERS", ConsumerConfig(durable_name="billing", ack_policy=AckPolicy.EXPLICIT)
    )
    for number in range(20):
        await context.publish(f"orders.new.{number % 3}", b'{"id": %d}' % number)
    yield context
    for info in await context.streams_info():
        if info.config.name is not None:
            await context.delete_stream(info.config.name)
    await client.close()


def stream(now: Snapshot, name: str) -> object:
    return next((one for one in now.streams if one.name == name), None)


def states(now: Snapshot, name: str) -> dict[str, PeerState]:
    """The replicas of a stream."""
    found = next((one for one in now.streams if one.name == name), None)
    return {peer.name: peer.state for peer in found.peers} if found else {}


async def one_look(urls: list[str]) -> Snapshot:
    """What a dashboard sees that has just started."""
    dialer = Dialer(settings_of(urls), settings_of(urls, system=True))
    return await Poller(dialer, "test", lambda _snapshot: None, 0.2).once()


async def lone_stream_on(js: JetStreamContext, server: str) -> str:
    """A stream with one replica, on that server: its leader is what stays of three."""
    config = StreamConfig(name="LONE", subjects=["lone.>"], num_replicas=3)
    await js.add_stream(config)
    preferred = json.dumps({"placement": {"preferred": server}}).encode()

    async def leads() -> bool:
        info = await js.stream_info("LONE")
        if info.cluster is not None and info.cluster.leader == server:
            return True
        with contextlib.suppress(nats.errors.TimeoutError):  # between two leaders nobody answers
            await js._nc.request("$JS.API.STREAM.LEADER.STEPDOWN.LONE", preferred, timeout=1)
        return False

    await eventually(leads, f"{server} leads")
    await js.update_stream(dataclasses.replace(config, num_replicas=1))

    async def alone() -> bool:
        info = await js.stream_info("LONE")
        return info.cluster is not None and not info.cluster.replicas

    await eventually(alone, "it has one replica")
    return "LONE"


async def test_a_killed_server_is_seen_and_comes_back(
    cluster: Cluster, js: JetStreamContext, drive: Drive
) -> None:
    victim = next(name for name in cluster.names if name != cluster.meta_leader())
    lone = await lone_stream_on(js, victim)
    others = [broker.url for broker in cluster if broker.name != victim]
    async with drive(others) as driven:
        await driven.until(lambda now: now.badge is Badge.HEALTHY, "it is healthy")
        await driven.until(lambda now: stream(now, lone), "the lone stream is listed")
        before = len(driven.now.streams)
        cluster.kill(victim)
        await driven.until(lambda now: now.badge is not Badge.HEALTHY, "the badge changed")
        await driven.until(
            lambda now: states(now, lone).get(victim) is PeerState.OFFLINE, "the stream is offline"
        )
        found = next(one for one in driven.now.streams if one.name == lone)
        assert found.level is Level.BAD
        assert driven.now.streams[0].level is Level.BAD, "the worst is at the top"
        assert len(driven.now.streams) == before, "nothing vanished"
        assert len(driven.now.servers) == 3
        picture = text_of(driven.app)
        assert f"✖ {lone}" in picture
        assert f"✖ {victim}" in picture
        fresh = await one_look(others)
        known = next(one for one in fresh.streams if one.name == lone)
        assert known.level is Level.BAD, "a dashboard that starts now lists it too"
        cluster.restart(victim)
        await driven.until(lambda now: now.badge is Badge.HEALTHY, "it recovered")
        assert len(driven.now.streams) == before


async def test_the_connection_may_go_away_with_its_server(
    cluster: Cluster, js: JetStreamContext, drive: Drive
) -> None:
    victim = next(name for name in cluster.names if name != cluster.meta_leader())
    async with drive([cluster[victim].url]) as driven:
        await driven.until(lambda now: now.badge is Badge.HEALTHY, "it is healthy")
        await driven.until(lambda now: now.streams, "streams are listed")
        cluster.kill(victim)
        await driven.until(lambda now: not now.connected or now.badge is not Badge.HEALTHY, "noted")
        await driven.until(lambda now: now.badge is not Badge.HEALTHY or now.stale_ns > 3e9, "told")
        assert "ORDERS" in text_of(driven.app), "the last data stay"
        cluster.restart(victim)
        await driven.until(
            lambda now: now.connected and now.badge is Badge.HEALTHY, "it recovered", 30.0
        )


async def test_a_step_down_through_the_keys(
    cluster: Cluster, js: JetStreamContext, drive: Drive
) -> None:
    cluster.wait_whole()
    async with drive(cluster.urls) as driven:
        await driven.until(lambda now: len(states(now, "ORDERS")) == 3, "three replicas")
        await driven.until(lambda now: now.badge is Badge.HEALTHY, "it is healthy")
        old = await leader(js)
        await driven.dialog("#streams", "$G/ORDERS", "d")
        assert "jsctl stream cluster step-down ORDERS" in text_of(driven.app)
        await driven.press("y")

        async def moved() -> bool:
            await driven.pilot.pause()
            return bool(new := await leader(js)) and new != old

        await eventually(moved, "somebody else leads")
        await driven.until(lambda now: said(driven, "step-down", "elected"), "the outcome is told")


async def test_a_peer_removal_through_the_keys(
    cluster: Cluster, js: JetStreamContext, drive: Drive
) -> None:
    await js.add_stream(name="PAIR", subjects=["pair.>"], num_replicas=2)
    async with drive(cluster.urls) as driven:
        await driven.until(lambda now: len(states(now, "PAIR")) == 2, "two replicas")
        await driven.until(lambda now: now.badge is Badge.HEALTHY, "it is healthy")
        await driven.dialog("#streams", "$G/PAIR", "R")
        gone = driven.app.screen.choice  # type: ignore[attr-defined]
        assert f"jsctl stream cluster peer-remove PAIR {gone} -f" in text_of(driven.app)
        await driven.press("enter")
        assert len(driven.app.screen_stack) == 2, "the name has to be typed first"
        await driven.type(gone)
        await driven.press("enter")

        async def left() -> bool:
            await driven.pilot.pause()
            info = await js.stream_info("PAIR")
            assert info.cluster is not None
            names = [info.cluster.leader, *(one.name for one in info.cluster.replicas or [])]
            return bool(info.cluster.leader) and gone not in names and len(names) == 2

        await eventually(left, "the stream left the server", 30.0)
        await driven.until(lambda now: said(driven, "peer-remove", gone), "the outcome is told")


async def test_more_replicas_through_the_keys(
    cluster: Cluster, js: JetStreamContext, drive: Drive
) -> None:
    await js.add_stream(name="GROWS", subjects=["grows.>"], num_replicas=1)
    async with drive(cluster.urls) as driven:
        await driven.until(lambda now: len(states(now, "GROWS")) == 1, "one replica")
        await driven.until(lambda now: len(now.servers) == 3, "three servers")
        await driven.dialog("#streams", "$G/GROWS", "n")
        await driven.press("right", "right")
        assert "$ jsctl stream edit GROWS --replicas 3 -f" in text_of(driven.app)
        await driven.press("y")
        wanted = {PeerState.LEADER: 1, PeerState.CURRENT: 2}
        await driven.until(
            lambda now: Counter(states(now, "GROWS").values()) == wanted, "three in sync", 30.0
        )


async def test_the_meta_leader_steps_down_through_the_keys(
    cluster: Cluster, js: JetStreamContext, drive: Drive
) -> None:
    async with drive(cluster.urls) as driven:
        await driven.until(lambda now: now.meta.leader, "a meta leader")
        old = driven.now.meta.leader
        await driven.press("4")
        await driven.dialog("#all-servers", old, "d")
        assert "$ jsctl server cluster step-down -f" in text_of(driven.app)
        await driven.press("y")
        await driven.until(
            lambda now: now.meta.leader and now.meta.leader != old, "another meta leader", 30.0
        )
        await driven.until(lambda now: said(driven, "step-down", "elected"), "the outcome is told")
    wait_for(cluster.meta_leader, "all agree")


async def test_a_lost_server_is_given_up_through_the_keys(
    cluster: Cluster, js: JetStreamContext, drive: Drive
) -> None:
    """The last test of the module: the server does not come back."""
    victim = next(name for name in cluster.names if name != cluster.meta_leader())
    others = [broker.url for broker in cluster if broker.name != victim]
    async with drive(others) as driven:
        await driven.until(lambda now: len(now.servers) == 3, "three servers")
        cluster.kill(victim)
        await driven.until(lambda now: now.badge is not Badge.HEALTHY, "it is missed")
        await driven.press("4")
        await driven.dialog("#all-servers", victim, "R")
        assert f"$ jsctl server cluster peer-remove {victim} -f" in text_of(driven.app)
        await driven.type(victim)
        await driven.press("enter")
        await driven.until(lambda now: now.meta.size == 2, "the meta group is smaller", 30.0)
        await driven.until(
            lambda now: victim not in {one.name for one in now.servers}, "it is not missed", 30.0
        )


async def leader(js: JetStreamContext) -> str:
    """Who leads ORDERS; empty in between."""
    info = await js.stream_info("ORDERS")
    return (info.cluster.leader if info.cluster else "") or ""


def said(driven: Driven, what: str, words: str) -> bool:
    """Whether an event tells of an action's outcome."""
    return any(one.what == what and words in one.said for one in driven.now.events)
