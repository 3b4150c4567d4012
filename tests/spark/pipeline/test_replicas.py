"""The replica audit names the server and the message when a replica holds another content."""

from pathlib import Path

import pytest

from jsctl.client.manager import Manager
from jsctl.errors import JsctlError
from jsctl.spark.pipeline.jobs.replicas import verdicts
from jsctl.testing import Broker, Cluster
from tests.spark.pipeline.conftest import Run, make_stream, on, orders, publish
from tests.support.altered_replica import alter
from tests.support.waiting import wait_for

NUMBER, ALTERED = 500, 123
UNDECIDED = "differs, no majority says which is right"


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
    except JsctlError:
        return False


def followers_of(server: Broker, stream: str) -> list[str]:
    info = on(server, lambda manager: manager.stream_info(stream))
    return [one.name for one in info.cluster.replicas]


@pytest.mark.timeout(240)
@pytest.mark.usefixtures("spark")
def test_an_altered_message_on_a_follower_is_found(cli: Run) -> None:
    with Cluster(3) as cluster:
        first = next(iter(cluster))
        make_stream(first, "ORDERS", num_replicas=3)
        publish(first, orders("ORDERS", NUMBER))
        wait_for(lambda: is_whole(first, "ORDERS"), "all replicas are current")
        servers = ("-s", ",".join(cluster.urls))
        audit = ("pipeline", "audit", "replicas", "--stream", "ORDERS", "-j", *servers)
        done = cli(*audit)
        assert done.code == 0, done.err
        peers = done.json["tables"]["replicas"]
        assert sorted(row["peer"] for row in peers) == ["n1", "n2", "n3"]
        assert {row["messages"] for row in peers} == {NUMBER}
        assert len({row["digest"] for row in peers}) == 1

        name = followers_of(first, "ORDERS")[0]
        cluster[name].stop()
        plant(cluster[name].store_dir)
        cluster[name].start()
        up = next(one for one in cluster if one.name != name)
        wait_for(lambda: is_whole(up, "ORDERS"), "the follower is back")
        done = cli(*audit)
        assert done.code == 1, done.out
        assert done.json["findings"] == 1
        assert done.json["tables"]["different"] == [
            {
                "stream": "ORDERS",
                "seq": ALTERED,
                "peer": name,
                "problem": "other content than the majority",
            }
        ]
        names = on(up, lambda manager: manager.consumer_names("ORDERS"))
        assert names == [], "the audit leaves nothing behind"


def plant(store: Path) -> None:
    """Another key in one message."""
    n = ALTERED - 1
    alter(store, f'{{"id": {n}, '.encode(), f'{{"ix": {n}, '.encode())


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
