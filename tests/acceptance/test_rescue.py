"""Two of three servers are lost for good: an operator brings back what is left, by two commands."""

import asyncio
import json
import re
import shutil
from base64 import b64decode
from collections.abc import Callable
from urllib.error import HTTPError

import pytest

from jsctl.cli import main
from jsctl.testing import (
    SYSTEM_PASSWORD,
    SYSTEM_USER,
    Broker,
    BrokerFactory,
    Cluster,
    ClusterFactory,
)
from tests.support.load import connection
from tests.support.waiting import eventually, wait_for

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
    assert code == 0 and "3 online / 3 peers" in out
    assert out.endswith("\nCluster is healthy with a leader, no rescue needed\n")
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
    for name in ("n2", "n3"):
        shutil.rmtree(cluster[name].store_dir)
        cluster[name].launch()
    cluster.wait_whole()
    for replicas in ("1", "3"):
        code, _, err = cli(*url, "stream", "edit", "S", "--replicas", replicas, "-f")
        assert code == 0, err
    assert asyncio.run(publish(cluster)) == COUNT + 3

    def thrice() -> bool:
        code, out, _ = cli(*url, "stream", "check", "S", "-j")
        found = json.loads(out)["streams"]["S"]["replicas"] if not code else []
        return [one["name"] for one in found] == ["n1", "n2", "n3"]

    wait_for(thrice, "three whole replicas")


def test_an_operator_is_refused_what_he_does_not_mean(
    jsctl_cluster: ClusterFactory, cli: Callable[..., tuple[int, str, str]]
) -> None:
    cluster = jsctl_cluster(3)
    asyncio.run(fill(cluster, {"name": "S", "subjects": ["s.>"], "num_replicas": 3}))
    url = ("-s", cluster["n1"].url)
    system = (*url, "--user", SYSTEM_USER, "--password", SYSTEM_PASSWORD)
    cluster["n3"].kill()

    def led(*words: str) -> bool:
        code, out, _ = cli(*words)
        return code == 0 and "no rescue needed" in out

    wait_for(lambda: led(*system, "server", "cluster", "rescue"), "two of three lead")
    wait_for(lambda: led(*url, "stream", "cluster", "rescue", "S"), "they lead the stream")
    cluster["n2"].kill()
    wait_for(lambda: "1 of 3" in cli(*system, "server", "cluster", "rescue")[2], "nobody leads")
    ask = (*url, "stream", "cluster", "rescue")
    wait_for(lambda: "not there: n2, n3" in cli(*ask, "S")[2], "nobody leads the stream")
    refused: tuple[tuple[str, ...], ...] = (
        (*url, "server", "cluster", "rescue", "-f"),
        (*system, "stream", "cluster", "rescue", "S", "-f"),
        (*ask, "NONE", "-f"),
        (*ask, "S", "-f", "--host", "n2"),
        (*ask, "S", "-f", "--host", "other"),
    )
    for words in refused:
        code, out, err = cli(*words)
        assert code == 1 and "error" in err, (words, out, err)
    assert "lowered" not in cluster["n1"].logs


async def texts(url: str) -> list[bytes]:
    """All messages of the stream."""
    found = []
    async with connection([url]) as client:
        info = json.loads((await client.request("$JS.API.STREAM.INFO.S", b"", timeout=20)).data)
        for seq in range(1, info["state"]["last_seq"] + 1):
            asked = json.dumps({"seq": seq}).encode()
            got = await client.request("$JS.API.STREAM.MSG.GET.S", asked, timeout=20)
            found.append(b64decode(json.loads(got.data)["message"]["data"]))
    return found


async def publish_all(url: str, *messages: bytes) -> None:
    """Each once; before the first, somebody may have to be elected."""
    async with connection([url]) as client:

        async def led() -> bool:
            info = await client.request("$JS.API.STREAM.INFO.S", b"", timeout=20)
            leader = json.loads(info.data).get("cluster", {}).get("leader", "alone")
            return bool(leader)

        await eventually(led, "a leader")
        for one in messages:
            ack = await client.request("s.x", one, timeout=20)
            assert b'"seq"' in ack.data, ack.data


def test_servers_that_come_back_with_more_give_it_up(
    jsctl_cluster: ClusterFactory, cli: Callable[..., tuple[int, str, str]]
) -> None:
    """Or else one of them would lead some day, with messages that nobody else has."""
    cluster = jsctl_cluster(3)
    url = cluster["n1"].url
    system = ("--user", SYSTEM_USER, "--password", SYSTEM_PASSWORD)
    asyncio.run(fill(cluster, {"name": "S", "subjects": ["s.>"], "num_replicas": 3}))
    cluster["n1"].kill()
    asyncio.run(publish_all(cluster["n2"].url, *(b"theirs %d" % n for n in range(COUNT))))
    for name in ("n2", "n3"):
        cluster[name].kill()
    cluster["n1"].start()
    wait_for(lambda: cli("-s", url, *system, "server", "cluster", "rescue", "-f")[0] == 0, "led")
    asked = ("-s", url, "stream", "cluster", "rescue", "S", "-f")
    wait_for(lambda: cli(*asked)[0] == 0, "a leader of the stream")
    asyncio.run(publish_all(url, *(b"ours %d" % n for n in range(5))))
    kept = asyncio.run(texts(url))
    assert kept[-5:] == [b"ours %d" % n for n in range(5)]
    for name in ("n2", "n3"):
        cluster[name].start()
    for name in ("n2", "n3"):
        cluster[name].wait_log("went on without this one")

        def leads(name: str = name) -> bool:
            step = ("stream", "cluster", "step-down", "S", "--preferred", name, "-f")
            return cli("-s", url, *step)[0] == 0

        wait_for(leads, f"{name} to be able to lead")
        assert asyncio.run(texts(cluster[name].url)) == kept
    asyncio.run(publish_all(url, b"on"))


CONFIG = """
accounts {
  $SYS { users: [{user: admin, password: p}] }
  A { jetstream: enabled, users: [{user: a, password: p}] }
}
no_auth_user: a
"""


def without_its_log(broker: Broker, cli: Callable[..., tuple[int, str, str]]) -> None:
    """The log is zeroed, and an operator has the server go on."""
    broker.kill()
    for segment in broker.store_dir.rglob("*.wal"):
        segment.write_bytes(bytes(segment.stat().st_size))
    broker.start()
    assert "by `jsctl server cluster rescue`" in broker.logs
    with pytest.raises(HTTPError) as health:
        broker.monitor("/healthz")
    assert "log was lost" in health.value.read().decode()
    system = ("-s", broker.url, "--user", "admin", "--password", "p")
    code, _, err = cli(*system, "server", "cluster", "rescue", "-f")
    assert code == 0, err


def assigned(broker: Broker) -> int:
    """How many streams and consumers are told of beside their data."""
    data = b"".join(path.read_bytes() for path in sorted(broker.store_dir.rglob("assigned/*")))
    told = dict(re.findall(rb"((?:streams|consumers)/[\w-]+)\n({?)", data))
    return sum(map(bool, told.values()))


def test_what_was_made_since_the_last_checkpoint_is_taken_up_again(
    jsctl_broker: BrokerFactory, cli: Callable[..., tuple[int, str, str]]
) -> None:
    """Only the log, which is lost, had these streams; one that was deleted does not come back."""
    broker = jsctl_broker("-js", config=CONFIG)
    url = ("-s", broker.url)
    for name in ("S", "GONE"):
        words = ("stream", "add", name, "--subjects", f"{name.lower()}.>", "--defaults")
        assert cli(*url, *words)[0] == 0
    assert cli(*url, "consumer", "add", "S", "C", "--pull", "--defaults")[0] == 0
    messages = [b"%d" % n for n in range(COUNT)]
    asyncio.run(publish_all(broker.url, *messages))
    wait_for(lambda: assigned(broker) == 3, "two streams and a consumer")
    assert cli(*url, "stream", "rm", "GONE", "-f")[0] == 0
    wait_for(lambda: assigned(broker) == 2, "the files of the stream are gone")

    without_its_log(broker, cli)

    broker.wait_log("Taken up again from")
    wait_for(lambda: cli(*url, "stream", "cluster", "rescue", "S", "-f")[0] == 0, "a leader")
    assert asyncio.run(texts(broker.url)) == messages
    assert cli(*url, "consumer", "info", "S", "C")[0] == 0
    assert cli(*url, "stream", "info", "GONE")[0] != 0
    asyncio.run(publish_all(broker.url, b"after"))
    broker.restart(kill=True)
    assert asyncio.run(texts(broker.url)) == [*messages, b"after"]
    assert cli(*url, "consumer", "info", "S", "C")[0] == 0
    assert broker.monitor("/healthz") == {"status": "ok"}


def test_a_server_alone_goes_on_with_what_its_disk_has(
    jsctl_broker: BrokerFactory, cli: Callable[..., tuple[int, str, str]]
) -> None:
    """Its log is zeroed: nobody is to take that for an empty one, and what is acknowledged
    afterwards stays."""
    broker = jsctl_broker("-js", config=CONFIG)
    code, _, err = cli("-s", broker.url, "stream", "add", "S", "--subjects", "s.>", "--defaults")
    assert code == 0, err
    asyncio.run(publish_all(broker.url, *(b"%d" % n for n in range(COUNT))))
    broker.restart()  # What there is gets written beside the log.
    asyncio.run(publish_all(broker.url, *(b"later %d" % n for n in range(COUNT))))
    without_its_log(broker, cli)
    url = ("-s", broker.url)
    wait_for(lambda: cli(*url, "stream", "cluster", "rescue", "S", "-f")[0] == 0, "a leader")
    before = asyncio.run(texts(broker.url))
    assert before[:COUNT] == [b"%d" % n for n in range(COUNT)]
    asyncio.run(publish_all(broker.url, *(b"after %d" % n for n in range(COUNT))))
    broker.restart(kill=True)
    assert asyncio.run(texts(broker.url)) == [*before, *(b"after %d" % n for n in range(COUNT))]
    assert broker.monitor("/healthz") == {"status": "ok"}
