"""Two of three servers are lost for good: an operator brings back what is left, by two commands."""

import asyncio
import json
from collections.abc import Callable

import pytest

from jsctl.cli import main
from jsctl.testing import SYSTEM_PASSWORD, SYSTEM_USER, Cluster, ClusterFactory
from tests.support.load import connection
from tests.support.waiting import wait_for

COUNT = 30


@pytest.fixture
def cli(capfd: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Runs a command line in this process: code, output, errors."""

    def run(*words: str) -> tuple[int, str, str]:
        capfd.readouterr()
        code = main(words)
        captured = capfd.readouterr()
        return code, captured.out, captured.err

    return run


async def fill(cluster: Cluster, config: dict[str, object]) -> None:
    async with connection([cluster["n1"].url]) as client:
        answer = await client.request(
            "$JS.API.STREAM.CREATE.S", json.dumps(config).encode(), timeout=20
        )
        assert b'"error"' not in answer.data, answer.data
        for number in range(COUNT):
            ack = await client.request("s.x", b"%d" % number, timeout=20)
            assert b'"seq"' in ack.data, ack.data


async def publish(cluster: Cluster) -> int:
    async with connection([cluster["n1"].url]) as client:
        ack = json.loads((await client.request("s.x", b"more", timeout=20)).data)
        return int(ack["seq"])


def test_what_is_left_goes_on(
    jsctl_cluster: ClusterFactory, cli: Callable[..., tuple[int, str, str]]
) -> None:
    cluster = jsctl_cluster(3)
    asyncio.run(fill(cluster, {"name": "S", "subjects": ["s.>"], "num_replicas": 3}))
    url = ("-s", cluster["n1"].url)
    system = (*url, "--user", SYSTEM_USER, "--password", SYSTEM_PASSWORD)
    code, out, _ = cli(*system, "server", "cluster", "rescue", "-f")
    assert (code, out) == (0, "Cluster is healthy with a leader, no rescue needed\n")
    code, out, _ = cli(*url, "stream", "cluster", "rescue", "S", "-f")
    assert code == 0 and "no rescue needed" in out
    for name in ("n2", "n3"):
        cluster[name].kill()

    def leaderless() -> bool:
        return "1 of 3 servers answer: n1" in cli(*system, "server", "cluster", "rescue")[2]

    wait_for(leaderless, "nobody leads")
    code, _, err = cli(*system, "server", "cluster", "rescue")
    assert code == 1 and "1 of 3 servers answer: n1" in err
    assert "cannot ask for input without a terminal" in err or "terminal" in err
    code, out, err = cli(*system, "server", "cluster", "rescue", "-f", "-j")
    assert code == 0, err
    told = {"quorum": 1, "servers": ["n1"], "refused": [], "leader": "n1"}
    assert json.loads(out) == told
    told_of_stream = f"n1: {COUNT} messages up to {COUNT}, 0 damaged"
    ask = (*url, "stream", "cluster", "rescue", "S")
    wait_for(lambda: told_of_stream in cli(*ask)[2], "nobody leads the stream")
    assert cli(*ask)[0] == 1, "the name has to be typed"
    code, out, err = cli(*url, "stream", "cluster", "rescue", "S", "-f", "-j")
    assert code == 0, err
    assert json.loads(out) == {"stream": "S", "server": "n1", "last_seq": COUNT}
    assert asyncio.run(publish(cluster)) == COUNT + 1
    for name in ("n2", "n3"):
        code, _, err = cli(*system, "server", "cluster", "peer-remove", name, "-f")
        assert code == 0, err
    assert asyncio.run(publish(cluster)) == COUNT + 2
