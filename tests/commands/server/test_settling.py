"""`--wait` of the commands that move what a cluster has: followed until it is whole again."""

import json
from collections.abc import Callable

import pytest

from jsctl.api.cluster import ClusterInfo, PeerInfo
from jsctl.api.monitoring.jsz import AccountDetail, Jsz, StreamDetail
from jsctl.api.stream import StreamConfig
from jsctl.commands.server.cluster.settling import unsettled
from jsctl.testing import SYSTEM_PASSWORD, SYSTEM_USER, Cluster
from tests.commands.conftest import KINDS, Result, Server

Run = Callable[..., Result]
WAIT = ("--wait", "1m")
ELECTIONS = 5
AS_SYSTEM = ("--user", SYSTEM_USER, "--password", SYSTEM_PASSWORD)
CURRENT = PeerInfo(name="n2", current=True)
BEHIND = PeerInfo(name="n2", lag=4)


def of(cluster: ClusterInfo, replicas: int = 2) -> Jsz:
    config = StreamConfig(name="S", num_replicas=replicas)
    stream = StreamDetail(name="S", cluster=cluster, config=config)
    return Jsz(account_details=(AccountDetail(name="A", stream_detail=(stream,)),))


@pytest.mark.parametrize(
    ("cluster", "replicas", "left"),
    [
        (ClusterInfo(name="C", leader="n1", replicas=(CURRENT,)), 2, []),
        (ClusterInfo(name="C", leader="n1", replicas=(BEHIND,)), 2, ["A > S: n2 is 4 behind"]),
        (ClusterInfo(name="C", replicas=(CURRENT,)), 2, ["A > S: it has no leader"]),
        (
            ClusterInfo(name="C", leader="n1", replicas=(CURRENT,)),
            3,
            ["A > S: it has 2 of 3 replicas"],
        ),
        (
            ClusterInfo(name="C", leader="n1", replicas=(PeerInfo(name="n3", current=True),)),
            2,
            ["A > S: n3 is one of its servers"],
        ),
    ],
)
def test_what_is_not_whole(cluster: ClusterInfo, replicas: int, left: list[str]) -> None:
    assert unsettled([("n1", of(cluster, replicas))], "n3") == left


@pytest.mark.parametrize("server", list(KINDS), indirect=True, scope="package")
def test_elections_and_moves_are_followed(run: Run, server: Server) -> None:
    words = ("--subjects", "settle", "--replicas", "3", "--defaults")
    assert run("stream", "add", "SETTLE", *words).code == 0
    made = run("consumer", "add", "SETTLE", "C", "--pull", "--replicas", "3", "--defaults")
    assert made.code == 0, made.err
    wait = ("--wait", "1m")
    for command, what in (
        (("stream", "cluster", "step-down", "SETTLE"), 'stream "SETTLE"'),
        (("consumer", "cluster", "step-down", "SETTLE", "C"), 'consumer "SETTLE > C"'),
    ):
        done = run(*command, *wait, "-f", "-j")
        assert done.code == 0, done.err
        assert f"All replicas of {what} are current" in done.err
        assert all(one["current"] for one in json.loads(done.out)["cluster"]["replicas"])
    done = run(*AS_SYSTEM, "server", "cluster", "step-down", *wait, "-f")
    assert done.code == 0, done.err
    assert "All replicas of the meta group are current" in done.err


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(KINDS))
def test_what_a_server_has_is_followed_to_others(kind: str, cli: Run) -> None:
    """Evacuated, a server is stopped and taken out; what it had is whole on the others."""
    with Cluster(4, server=KINDS[kind]) as cluster:
        cluster.wait_meta_leader()
        url = ("--server", ",".join(cluster.urls), "--timeout", "10s")
        for name, replicas in (("ONE", "1"), ("THREE", "3")):
            words = ("--subjects", name, "--replicas", replicas, "--defaults", "-j")
            assert cli(*url, "stream", "add", name, *words).code == 0
            assert cli(*url, "pub", name, "body", "-J", "-q").code == 0
        made = cli(*url, "consumer", "add", "THREE", "C", "--pull", "--defaults", "-j")
        assert made.code == 0, made.err
        group = json.loads(made.out)["cluster"]
        gone = str(group["replicas"][0]["name"])
        moved = cli(*url, "consumer", "cluster", "evacuate", "THREE", "C", gone, "-f", *WAIT)
        refused = "consumer" in moved.err and moved.code != 0  # it stays where its stream is
        assert refused or 'All replicas of consumer "THREE > C" are current' in moved.err
        left = cli(*url, *AS_SYSTEM, "server", "cluster", "evacuate", gone, "-f", *WAIT)
        assert left.code == 0, left.err
        assert "All streams and consumers are current on their servers" in left.err
        cluster[gone].stop()
        cluster.wait_meta_leader()  # It may have been the one who stopped.
        living = ",".join(broker.url for broker in cluster if broker.name != gone)
        others = ("--server", living, "--timeout", "10s")
        removed = cli(*others, *AS_SYSTEM, "server", "cluster", "peer-remove", gone, "-f", *WAIT)
        assert removed.code == 0, removed.err
        assert "All streams and consumers are current on their servers" in removed.err
        info = json.loads(cli(*others, "stream", "info", "THREE", "-j").out)
        servers = {info["cluster"]["leader"], *(one["name"] for one in info["cluster"]["replicas"])}
        assert len(servers) == 3
        assert gone not in servers


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(KINDS))
def test_a_wait_ends_with_what_is_left(kind: str, cli: Run) -> None:
    """A server that left is in no info; one that is down is what the others wait for."""
    with Cluster(4, server=KINDS[kind]) as cluster:
        cluster.wait_meta_leader()
        url = ("--server", ",".join(cluster.urls), "--timeout", "10s")
        words = ("--subjects", "S", "--replicas", "3", "--defaults", "-j")
        made = json.loads(cli(*url, "stream", "add", "S", *words).out)["cluster"]
        for gone in (made["replicas"][0]["name"], made["leader"]):
            remove = ("stream", "cluster", "peer-remove", "S", gone, "-f", *WAIT)
            left = cli(*url, *remove)
            assert left.code == 0, left.err
            assert 'All replicas of stream "S" are current' in left.err
            assert gone not in peers_of(cli, url)
            again = cli(*url, *remove)
            assert (again.code, "peer not a member (10040)" in again.err) == (1, True)
        down = next(name for name in peers_of(cli, url)[1:] if name != cluster.meta_leader())
        cluster.kill(down)
        alive = ",".join(broker.url for broker in cluster if broker.running)
        others = ("--server", alive, "--timeout", "10s")
        meta = (*AS_SYSTEM, "server", "cluster", "step-down")
        stream = ("stream", "cluster", "step-down", "S")
        told: tuple[tuple[tuple[str, ...], str], ...]
        told = ((stream, 'stream "S"'), (meta, "the meta group"))
        for command, what in told:
            waited = cli(*others, *command, "-f", "--wait", "1s")
            for _ in range(ELECTIONS):
                if "is not done after" in waited.err:
                    break
                cluster.wait_meta_leader()  # Two of three may take long to elect.
                waited = cli(*others, *command, "-f", "--wait", "1s")
            assert waited.code == 1, waited.err
            assert f"error: {what} is not done after 1s: {down} is " in waited.err
            assert "the cluster goes on by itself" in waited.err
        cluster.restart(down)
        again = cli(*others, "stream", "cluster", "step-down", "S", "-f", *WAIT)
        assert again.code == 0, again.err


def peers_of(cli: Run, url: tuple[str, ...]) -> list[str]:
    """The servers of the stream, its leader first."""
    found = json.loads(cli(*url, "stream", "info", "S", "-j").out)["cluster"]
    return [found["leader"], *(one["name"] for one in found["replicas"])]
