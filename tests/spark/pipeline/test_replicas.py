"""The replica audit names the server and the message when a replica holds another content."""

import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from jsctl.api.errors import ApiError
from jsctl.client.manager import Manager
from jsctl.errors import JsctlError
from jsctl.settings import Context, Settings
from jsctl.spark.connection.jetstream import JetStream
from jsctl.spark.options import ConnectionOptions
from jsctl.spark.pipeline.jobs.replicas import verdicts
from jsctl.spark.pipeline.replicas.reader import OUTAGE_NS, pin, read_replica, unpin
from jsctl.testing import Broker, Cluster, RealServer
from tests.spark.pipeline.conftest import Result, Run, make_stream, on, orders, publish, stored
from tests.support.altered_replica import alter
from tests.support.waiting import wait_for

NUMBER, PLANTED = 500, 123
UNDECIDED = "differs, no majority says which is right"


def alter_order(store: Path) -> None:
    """Another key in one message of our broker."""
    n = PLANTED - 1
    alter(store, f'{{"id": {n}, '.encode(), f'{{"ix": {n}, '.encode())


def lose_order(store: Path) -> None:
    """One message less in a nats-server: a server of its own deletes it from the files."""
    files = next(store.rglob("streams/ORDERS")) / "msgs"
    with RealServer("-js", name="alone") as alone:
        make_stream(alone, "ORDERS")
        alone.stop()
        place = next(alone.store_dir.rglob("streams/ORDERS")) / "msgs"
        shutil.copytree(files, place, dirs_exist_ok=True)
        alone.start()
        on(alone, lambda manager: manager.delete_message("ORDERS", PLANTED))
        assert stored(alone, "ORDERS") == NUMBER - 1
        alone.stop()
        shutil.rmtree(files)
        shutil.copytree(place, files)


def is_whole(server: Broker, stream: str) -> bool:
    """Whether the stream has a leader and all its replicas are current."""

    async def look(manager: Manager) -> bool:
        cluster = (await manager.stream_info(stream)).cluster
        assert cluster is not None
        replicas = cluster.replicas
        return (
            bool(cluster.leader)
            and len(replicas) == 2
            and all(one.current and not one.offline for one in replicas)
        )

    try:
        return bool(on(server, look))
    except (JsctlError, ApiError):
        return False


def is_offline(server: Broker, stream: str, name: str) -> bool:
    """Whether a stream's leader says that a replica is offline."""
    try:
        info = on(server, lambda manager: manager.stream_info(stream))
    except (JsctlError, ApiError):
        return False
    return any(one.name == name and one.offline for one in info.cluster.replicas)


def followers_of(server: Broker, stream: str) -> list[str]:
    info = on(server, lambda manager: manager.stream_info(stream))
    return [one.name for one in info.cluster.replicas]


def audited(cli: Run, cluster: Cluster, stream: str) -> Result:
    """The audit of a stream; it leaves no consumer behind."""
    servers = ",".join(one.url for one in cluster if one.running)
    done = cli("pipeline", "audit", "replicas", "--stream", stream, "-j", "-s", servers)
    assert done.out, done.err
    up = next(one for one in cluster if one.running)
    assert on(up, lambda manager: manager.consumer_names(stream)) == []
    return done


@pytest.mark.processes
@pytest.mark.parametrize("kind", [Broker, RealServer])
def test_a_consumer_that_is_gone_before_its_task_begins_is_made_again(kind: type[Broker]) -> None:
    """A server keeps it for some minutes, and the tasks before may take longer."""
    with Cluster(3, server=kind) as cluster:
        first = next(iter(cluster))
        make_stream(first, "ORDERS", num_replicas=3)
        publish(first, orders("ORDERS", NUMBER))
        wait_for(lambda: is_whole(first, "ORDERS"), "all replicas are current")
        settings = Settings(connection=Context(url=first.url))
        pinned = pin(settings, "ORDERS", "n2", 3, 1, NUMBER)
        with JetStream(ConnectionOptions(settings, OUTAGE_NS)) as js:
            unpin(js, pinned)
        found = [seq for batch in read_replica(pinned) for seq in batch.column("seq").to_pylist()]
        assert found == list(range(1, NUMBER + 1))
        assert on(first, lambda manager: manager.consumer_names("ORDERS")) == []


def differing(seq: int, peer: str, problem: str) -> dict[str, object]:
    return {"stream": "ORDERS", "seq": seq, "peer": peer, "problem": problem}


@pytest.mark.timeout(240)
@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(("kind", "plant", "problem"), [
    (Broker, alter_order, "other content than the majority"),
    (RealServer, lose_order, "missing"),
], ids=["jsctl", "nats-server"])  # fmt: skip
def test_what_one_follower_holds_otherwise_is_found(
    cli: Run, kind: type[Broker], plant: Callable[[Path], None], problem: str
) -> None:
    with Cluster(3, server=kind) as cluster:
        first = next(iter(cluster))
        make_stream(first, "ORDERS", num_replicas=3)
        publish(first, orders("ORDERS", NUMBER))
        wait_for(lambda: is_whole(first, "ORDERS"), "all replicas are current")
        done = audited(cli, cluster, "ORDERS")
        assert done.code == 0, done.err
        peers = done.json["tables"]["replicas"]
        assert [row["peer"] for row in peers] == ["n1", "n2", "n3"]
        assert {row["messages"] for row in peers} == {NUMBER}
        assert len({row["digest"] for row in peers}) == 1

        name = followers_of(first, "ORDERS")[0]
        cluster[name].stop()
        up = next(one for one in cluster if one.name != name)
        wait_for(lambda: is_offline(up, "ORDERS", name), "the others know it")
        cluster.wait_meta_leader()
        done = audited(cli, cluster, "ORDERS")
        assert done.code == 1
        assert done.json["notes"] == [f"ORDERS: {name} is offline and was not compared"]
        assert len(done.json["tables"]["replicas"]) == 2
        assert done.json["tables"]["different"] == []

        plant(cluster[name].store_dir)
        cluster[name].start()
        wait_for(lambda: is_whole(up, "ORDERS"), "the follower is back")
        cluster.wait_meta_leader()
        done = audited(cli, cluster, "ORDERS")
        assert done.code == 1, done.out
        assert done.json["findings"] == 1
        assert done.json["tables"]["different"] == [differing(PLANTED, name, problem)]
        peers = {row["peer"]: row for row in done.json["tables"]["replicas"]}
        lost = 1 if problem == "missing" else 0
        assert peers[name]["messages"] == NUMBER - lost
        digests = Counter(row["digest"] for row in peers.values())
        assert digests[peers[name]["digest"]] == 1, "it differs from two that are the same"
        assert len(digests) == 2


@pytest.mark.usefixtures("spark")
def test_what_cannot_be_compared_is_said(cli: Run, broker: Broker, fresh: str) -> None:
    make_stream(broker, fresh)
    words = ("pipeline", "audit", "replicas", "--stream", fresh, "-j", "-s", broker.url)
    done = cli(*words)
    assert (done.code, done.json["notes"]) == (
        0, [f"{fresh} has one replica, there is nothing to compare"]
    )  # fmt: skip


@pytest.mark.parametrize(
    ("copies", "expected"),
    [
        ({"a": 1, "b": 1, "c": 2}, [("c", "other content than the majority")]),
        ({"a": 1, "b": 1}, [("c", "missing")]),
        ({"a": 1, "b": 2, "c": 3}, [(n, UNDECIDED) for n in "abc"]),
        ({"a": 1}, [("a", UNDECIDED), ("b", "missing"), ("c", "missing")]),
    ],
)  # fmt: skip
def test_the_majority_tells_who_is_wrong(
    copies: dict[str, int], expected: list[tuple[str, str]]
) -> None:
    assert verdicts(copies, ["a", "b", "c"]) == expected
