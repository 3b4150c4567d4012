"""Reads from three servers while one of them dies or stands still: exact, or an error."""

import threading
from collections.abc import Callable
from contextlib import suppress

import pytest

from benchmarks.wire import Address
from jsctl.spark.connection.jetstream import JetStream
from jsctl.spark.options import SourceOptions, source_options
from jsctl.spark.reading.plan import Bounds, batch_ranges
from jsctl.spark.scan.read import read
from jsctl.testing import HOST, Cluster, ClusterFactory
from tests.spark.conftest import KINDS
from tests.support.filling import Filler, plain
from tests.support.waiting import wait_for

COUNT = 60_000


ATTEMPT_S = 5.0


def filler(cluster: Cluster, name: str = "n1", timeout_s: float = 30.0) -> Filler:
    """A connection to one server."""
    return Filler(Address(HOST, cluster[name].port), timeout_s)


def filled(cluster: Cluster, count: int = COUNT) -> str:
    """A stream with three replicas; the server that leads it."""
    wait_for(lambda: is_made(cluster), "the stream is made and has a leader")
    wait_for(lambda: is_filled(cluster, count), "the stream is filled", 120)
    with filler(cluster) as made:
        wait_for(lambda: current(made), "all replicas are current", 60)
        leader: str = made.api("STREAM.INFO.S")["cluster"]["leader"]
        return leader


def is_made(cluster: Cluster) -> bool:
    """Whether the stream, tried anew, is there and somebody takes messages."""
    try:
        with filler(cluster, timeout_s=ATTEMPT_S) as made:
            made.stream("S", num_replicas=3, allow_direct=True)
            return bool(made.api("STREAM.INFO.S").get("cluster", {}).get("leader"))
    except (RuntimeError, TimeoutError):  # who does not lead does not answer
        return False


def is_filled(cluster: Cluster, count: int) -> bool:
    """Whether an empty stream took so many; one whose leader changes meanwhile is begun anew."""
    try:
        with filler(cluster) as made:
            with suppress(RuntimeError):  # An attempt before may have got no further than this.
                made.api("STREAM.DELETE.S")
            made.stream("S", num_replicas=3, allow_direct=True)
            made.publish(plain(count, "s"))
            return True
    except (RuntimeError, TimeoutError):
        return False


def current(made: Filler) -> bool:
    """Whether all replicas have everything."""
    replicas = made.api("STREAM.INFO.S")["cluster"]["replicas"]
    return all(one["current"] and not one.get("lag") for one in replicas)


def options(cluster: Cluster, **more: str) -> SourceOptions:
    """Of a read that knows all servers."""
    given = {"servers": ",".join(cluster.urls), "stream": "S", "timeout": "2s"}
    return source_options({**given, "outageTimeout": "40s", **more})


def sequences(given: SourceOptions, event: Callable[[JetStream], None]) -> list[int]:
    """What a read gives when something happens behind its first rows."""
    found: list[int] = []
    with JetStream(given.connection) as js:
        for wanted in batch_ranges(js, given, Bounds(), headers_only=False):
            for chunk in read(js, wanted):
                if not found:
                    event(js)
                found += chunk.seqs
    return found


@pytest.fixture(params=list(KINDS))
def cluster(request: pytest.FixtureRequest, jsctl_cluster: ClusterFactory) -> Cluster:
    """Three servers of a kind."""
    return jsctl_cluster(3, server=KINDS[str(request.param)])


@pytest.mark.timeout(180)
@pytest.mark.parametrize("mode", ["consumer", "direct"])
def test_a_leader_that_dies_costs_no_row(cluster: Cluster, mode: str) -> None:
    leader = filled(cluster)
    given = options(cluster, readMode=mode)
    assert sequences(given, lambda _: cluster.kill(leader)) == list(range(1, COUNT + 1))


@pytest.mark.timeout(180)
def test_the_server_of_the_consumer_dies(cluster: Cluster) -> None:
    filled(cluster)

    def kill(_: JetStream) -> None:
        with filler(cluster) as asking:
            listed = asking.api("CONSUMER.LIST.S")["consumers"]
        victim = listed[0]["cluster"]["leader"]
        cluster.kill(victim)

    assert sequences(options(cluster), kill) == list(range(1, COUNT + 1))


@pytest.mark.spark_long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("mode", ["consumer", "direct"])
def test_a_replica_that_stood_still_hides_nothing(cluster: Cluster, mode: str) -> None:
    """Read again and again while a replica catches up; every read has what was acknowledged."""
    leader = filled(cluster, 5_000)
    lazy = next(name for name in cluster.names if name != leader)
    awake = next(name for name in cluster.names if name != lazy)
    for turn in range(1, 6):
        cluster[lazy].pause()
        with filler(cluster, awake) as made:
            made.publish(plain(5_000, "s"))
        resumed = threading.Timer(0.2, cluster[lazy].resume)
        resumed.start()
        count = 5_000 * (turn + 1)
        for _ in range(5):
            given = options(cluster, readMode=mode, servers=cluster[awake].url)
            assert sequences(given, lambda _: None) == list(range(1, count + 1))
        resumed.join()
