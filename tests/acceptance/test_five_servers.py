"""Five brokers, the real commands, a load: what an operator does on a normal and on a bad day."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jsctl.testing import Cluster
from tests.support.command_line import (
    CommandLine,
    followers_of,
    is_whole,
    leader_of,
    rows,
)
from tests.support.load import Load, contents
from tests.support.waiting import wait_for

REPLICAS = 3


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(5) as running:
        yield running


@pytest.fixture(scope="module")
def jsctl(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    home: Path = tmp_path_factory.mktemp("home")
    return CommandLine(home, cluster.urls)


def add_stream(jsctl: CommandLine, name: str, replicas: int = REPLICAS) -> None:
    words = ("--subjects", f"{name.lower()}.>", "--replicas", str(replicas), "--defaults")
    done = jsctl.run("stream", "add", name, *words)
    assert f"Stream {name} was created" in done
    whole(jsctl, name, replicas)


def info(jsctl: CommandLine, name: str) -> Any:
    return jsctl.json("stream", "info", name)


def whole(jsctl: CommandLine, name: str, replicas: int = REPLICAS) -> Any:
    """The info of a stream once all its replicas are current."""
    found: list[Any] = []

    def check() -> bool:
        found[:] = [info(jsctl, name)]
        return is_whole(found[0], replicas)

    wait_for(check, f"all replicas of {name} are current")
    return found[0]


def test_a_stream_has_a_leader_and_two_current_replicas(jsctl: CommandLine) -> None:
    add_stream(jsctl, "PLAIN")
    shown = jsctl.run("stream", "info", "PLAIN")
    assert "Leader: n" in shown
    assert shown.count("Replica: n") == 2
    assert shown.count(", current, ") == 2


def test_the_report_marks_one_leader_a_row(jsctl: CommandLine, cluster: Cluster) -> None:
    for name in ("ONE", "TWO"):
        add_stream(jsctl, name)
    table = rows(jsctl.run("stream", "report"))
    assert table[0][0] == "Stream"
    for row in table[1:]:
        names = row[-1].split(", ")
        assert row[-1].count("*") == 1, row
        assert {name.strip("*!") for name in names} <= set(cluster.names)
        assert len(names) == REPLICAS
    assert {"ONE", "TWO"} <= {row[0] for row in table[1:]}


def test_a_stream_gets_another_leader(jsctl: CommandLine) -> None:
    add_stream(jsctl, "MOVED")
    before = leader_of(info(jsctl, "MOVED"))
    done = jsctl.ask("stream", "cluster", "step-down", "MOVED")
    assert done.code == 0
    assert f'Requesting leader step down of "{before}"' in done.err
    after = leader_of(info(jsctl, "MOVED"))
    assert f'New leader elected "{after}"' in done.err
    assert after not in ("", before)


def test_a_consumer_gets_another_leader_alone(jsctl: CommandLine) -> None:
    add_stream(jsctl, "READ")
    jsctl.run("consumer", "add", "READ", "C", "--pull", "--replicas", "3", "--defaults")
    wait_for(
        lambda: is_whole(jsctl.json("consumer", "info", "READ", "C"), REPLICAS),
        "all replicas of the consumer are current",
    )
    before = leader_of(jsctl.json("consumer", "info", "READ", "C"))
    stream_leader = leader_of(info(jsctl, "READ"))
    done = jsctl.ask("consumer", "cluster", "step-down", "READ", "C")
    assert done.code == 0, done.err
    after = leader_of(jsctl.json("consumer", "info", "READ", "C"))
    assert after not in ("", before)
    assert leader_of(info(jsctl, "READ")) == stream_leader
    table = rows(jsctl.run("consumer", "report", "READ"))
    assert [row[-1].count("*") for row in table[1:]] == [1]


def test_the_jetstream_report_shows_all_servers_and_the_meta_group(
    jsctl: CommandLine, cluster: Cluster
) -> None:
    leader = cluster.wait_meta_leader()
    shown = jsctl.system("server", "report", "jetstream")
    summary, _, meta = shown.partition("RAFT Meta Group Information")
    names = [row[0] for row in rows(summary)[1:6]]
    assert {name.strip("*") for name in names} == set(cluster.names)
    assert [name for name in names if name.endswith("*")] == [f"{leader}*"]
    head, *peers = rows("│\n" + meta.partition("\n")[2])
    assert head[:6] == ["Connection Name", "ID", "Leader", "Current", "Online", "Active"]
    assert [row[0] for row in peers if row[2] == "yes"] == [leader]
    assert [row[3:5] for row in peers] == [["true", "true"]] * 5


def test_only_the_meta_leader_answers_a_request_for_it(
    jsctl: CommandLine, cluster: Cluster
) -> None:
    leader = cluster.wait_meta_leader()
    lines = jsctl.system("server", "req", "jetstream", "--leader").splitlines()
    (answer,) = (json.loads(line) for line in lines if line.strip())
    assert answer["server"]["name"] == leader
    meta = answer["data"]["meta_cluster"]
    assert (meta["leader"], meta["cluster_size"], len(meta["replicas"])) == (leader, 5, 4)


@pytest.mark.parametrize("alias", ["cluster", "raft"])
def test_the_meta_group_gets_another_leader(
    jsctl: CommandLine, cluster: Cluster, alias: str
) -> None:
    before = cluster.wait_meta_leader()
    done = jsctl.ask("--context", "sys", "server", alias, "step-down", "--force")
    assert done.code == 0, done.err
    wait_for(lambda: cluster.meta_leader() not in ("", before), "another meta leader")
    assert f'New leader elected "{cluster.wait_meta_leader()}"' in done.err


async def some(cluster: Cluster, subject: str, count: int) -> int:
    async with Load(cluster.urls, subject) as load:
        await load.more(count)
    return len(load.acked)


def test_a_removed_peer_is_replaced(jsctl: CommandLine, cluster: Cluster) -> None:
    add_stream(jsctl, "HEALED")
    count = asyncio.run(some(cluster, "healed.a", 100))
    before = info(jsctl, "HEALED")
    gone = next(iter(followers_of(before)))
    jsctl.run("stream", "cluster", "peer-remove", "HEALED", gone, "--force")

    def replaced() -> bool:
        now = info(jsctl, "HEALED")
        return is_whole(now, REPLICAS) and gone not in (leader_of(now), *followers_of(now))

    wait_for(replaced, "another replica is current")
    after = info(jsctl, "HEALED")
    fresh = set(followers_of(after)) - {leader_of(before), *followers_of(before)}
    assert len(fresh) == 1
    assert after["state"]["messages"] == before["state"]["messages"] == count


def of_servers(cluster: Cluster, stream: str) -> dict[str, Any]:
    """What each server with a replica of a stream has of it: count, bytes, bounds."""
    found: dict[str, Any] = {}
    for broker in cluster:
        page: Any = broker.monitor("/jsz?streams=1&accounts=1")
        for account in page.get("account_details", []):
            for detail in account.get("stream_detail", []):
                if detail["name"] == stream:
                    state = detail["state"]
                    keys = ("messages", "bytes", "first_seq", "last_seq")
                    found[broker.name] = [state[key] for key in keys]
    return found


async def under_load(cluster: Cluster, victims: list[str], streams: list[str]) -> list[Load]:
    """Publish to streams, kill servers, go on, bring them back; what was acknowledged."""
    loads = [Load(cluster.urls, f"{name.lower()}.x", workers=2) for name in streams]
    async with loads[0], loads[1]:
        await asyncio.gather(*(load.more(100) for load in loads))
        for name in victims:
            cluster.kill(name)
        await asyncio.gather(*(load.more(200) for load in loads))
        for name in victims:
            cluster[name].launch()
        await asyncio.gather(*(load.more(200) for load in loads))
    return loads


def wait_equal(cluster: Cluster, stream: str, replicas: int) -> None:
    """Wait until all replicas count the same."""

    def equal() -> bool:
        found = of_servers(cluster, stream)
        return len(found) == replicas and len({str(state) for state in found.values()}) == 1

    wait_for(equal, f"all servers have the same of {stream}")


def test_two_of_five_servers_die_under_load(jsctl: CommandLine, cluster: Cluster) -> None:
    streams = {"WIDE": 5, "NARROW": 3}
    for name, replicas in streams.items():
        add_stream(jsctl, name, replicas)
    narrow = info(jsctl, "NARROW")
    members = {leader_of(narrow), *followers_of(narrow)}
    other = next(name for name in cluster.names if name not in members)
    loads = asyncio.run(under_load(cluster, [leader_of(narrow), other], list(streams)))
    for name in (leader_of(narrow), other):
        cluster[name].wait_ready()
    for (name, replicas), load in zip(streams.items(), loads, strict=True):
        state = whole(jsctl, name, replicas)["state"]
        wait_equal(cluster, name, replicas)
        copies = [
            asyncio.run(contents(cluster[server].url, name, state["last_seq"]))
            for server in of_servers(cluster, name)
        ]
        assert all(copy == copies[0] for copy in copies)
        for one in load.acked:
            assert copies[0][one.seq][2] == one.message.encode()
        stored = [body for _, _, body in copies[0].values()]
        assert len(stored) == len(set(stored)), f"{name} has a message twice"
