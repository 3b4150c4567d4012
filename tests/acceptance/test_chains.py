"""`jsctl stream verify` on three real servers: what it proves, and what it names."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import nats
import pytest
from nats.errors import Error

from jsctl.auth.keys import KeyKind, generate
from jsctl.cli import main
from jsctl.testing import Cluster
from tests.acceptance.test_audits import WAIT_S, ask, current, one_other
from tests.support.forging import forge_directory
from tests.support.waiting import eventually, wait_for

pytestmark = pytest.mark.processes
COUNT = 300
Run = Callable[..., tuple[int, str]]


async def filled(cluster: Cluster, count: int = COUNT) -> None:
    client = await nats.connect(servers=cluster.urls, connect_timeout=30)
    config = {"name": "S", "subjects": ["s.>"], "num_replicas": 3}
    await ask(client, "STREAM.CREATE.S", **config, metadata={"jsctl.chain": "sha256"})
    js = client.jetstream(timeout=WAIT_S)
    for number in range(count):
        await js.publish("s.a", b"message %d" % number)
    for seq in (7, 8, 120):
        await ask(client, "STREAM.MSG.DELETE.S", seq=seq)
    await current(client)
    await client.close()


async def leader_killed(cluster: Cluster) -> None:
    """The leader dies by kill -9 while others publish, and comes back."""
    client = await nats.connect(servers=cluster.urls, connect_timeout=30)
    js = client.jetstream(timeout=3)
    leader = await current(client)
    stored = 0

    async def publish() -> bool:
        nonlocal stored
        try:
            await js.publish("s.b", b"later")
            stored += 1
        except Error:
            pass
        return stored >= 50

    await publish()
    cluster.kill(leader)
    await eventually(publish, "publishes", WAIT_S)
    cluster.restart(leader)
    await current(client)
    await client.close()


async def another(cluster: Cluster) -> str:
    client = await nats.connect(servers=cluster.urls, connect_timeout=30)
    leader = await current(client)
    await client.close()
    return next(name for name in cluster.names if name != leader)


def test_a_stream_is_proved_and_what_was_done_to_it_is_named(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    pair, other = generate(KeyKind.USER), generate(KeyKind.USER)
    config = f"jetstream {{ chain_seed: {pair.seed} }}"
    head, late = tmp_path / "head", tmp_path / "late"
    with Cluster(3, config=config) as cluster:

        def run(*words: str) -> tuple[int, str]:
            capfd.readouterr()
            code = main(["--server", ",".join(cluster.urls), "--timeout", "20s", *words])
            found = capfd.readouterr()
            return code, found.out + found.err

        asyncio.run(filled(cluster))
        code, out = run("stream", "verify", "S", "--save", str(head), "--key", pair.public)
        assert code == 0, out
        assert "Stream S is proved" in out and f"signed by {pair.public}" in out
        asyncio.run(leader_killed(cluster))
        words = ("stream", "verify", "S", "--head", str(head), "--key", pair.public)
        code, out = run(*words, "--save", str(late))
        assert code == 0, out
        code, out = run("stream", "verify", "S", "--key", other.public)
        assert code == 1 and "by none of --key" in out

        told = json.loads(head.read_text())
        for key, value in (("hash", "00" * 32), ("seq", 5), ("time", "2020-01-01T00:00:00Z")):
            head.write_text(json.dumps(told | {key: value}))
            code, out = run(*words)
            assert code == 1 and "signature verification failed" in out

        backup = tmp_path / "backup"
        assert run("stream", "backup", "S", str(backup))[0] == 0
        victim = asyncio.run(another(cluster))
        cluster[victim].stop()
        assert forge_directory(cluster[victim].store_dir, one_other)
        cluster.restart(victim)
        asyncio.run(another(cluster))
        document = {}

        def answered() -> bool:
            code, out = run("stream", "verify", "S", "-j")
            document.update(json.loads(out))
            assert code == 1 and not document["proved"]
            states = {one["state"] for one in document["verify"]["replicas"]}
            return not states & {"offline", "unanswered"}

        wait_for(answered, "all replicas to answer")
        found = {one["name"]: one for one in document["verify"]["replicas"]}
        assert found.pop(victim)["breaks"] == [{"seq": 217, "reason": "the message was changed"}]
        assert [one["state"] for one in found.values()] == ["proved", "proved"]

        assert run("stream", "rm", "S", "--force")[0] == 0
        assert run("stream", "restore", str(backup))[0] == 0
        head.write_text(json.dumps(told))
        code, out = run(*words)
        assert code == 0, out
        assert run("stream", "rm", "S", "--force")[0] == 0
        asyncio.run(filled(cluster, COUNT // 2))
        code, out = run(*words)
        assert code == 1 and "the chain ends at sequence 150" in out
        asyncio.run(filled(cluster))
        code, out = run(*words)
        assert code == 1 and "a message up to there is not what it was" in out
