"""`STREAM.AUDIT` on three real servers, one of which has other bytes with right checksums."""

import asyncio
import json
from typing import Any

import nats
import pytest
from nats.aio.client import Client
from nats.errors import Error
from nats.errors import TimeoutError as NoAnswer

from jsctl.broker.store.record import Record
from jsctl.cli import main
from jsctl.testing import Broker, Cluster
from tests.support.forging import forge_directory
from tests.support.waiting import eventually

pytestmark = pytest.mark.processes
WAIT_S = 60.0
COUNT = 300
FORGED = 217
LOGINS = """
authorization {
  users: [
    {user: all, password: p}
    {user: few, password: p, permissions: {
      publish: {allow: ["$JS.API.STREAM.INFO.>", "s.>"]}, subscribe: {allow: ["_INBOX.>"]}}}
  ]
}
"""


async def ask(client: Client, subject: str, **body: Any) -> Any:
    payload = json.dumps(body).encode() if body else b""
    return json.loads((await client.request(f"$JS.API.{subject}", payload, timeout=10)).data)


async def audited(client: Client) -> dict[str, Any]:
    """The replicas of an audit, by name, when it is done."""
    await ask(client, "STREAM.AUDIT.S", start=True)

    async def done() -> Any:
        try:
            found = await ask(client, "STREAM.AUDIT.S")
        except Error:
            return None
        audit = found.get("audit")
        if audit is None:
            await ask(client, "STREAM.AUDIT.S", start=True)
        return audit if audit is not None and audit["done"] else None

    audit = await eventually(done, "the audit", WAIT_S)
    return {one["name"]: one for one in audit["replicas"]}


async def current(client: Client) -> str:
    """The leader's name, when all replicas are current."""

    async def all_current() -> str:
        try:
            found = await ask(client, "STREAM.INFO.S")
        except Error:
            return ""
        cluster = found.get("cluster", {})
        peers = cluster.get("replicas", [])
        whole = len(peers) == 2 and all(one["current"] for one in peers)
        return str(cluster.get("leader", "")) if whole else ""

    return await eventually(all_current, "all replicas", WAIT_S)


def one_other(rows: list[Record]) -> list[Record]:
    """Another body in one message, as long as the old one."""
    return [one._replace(payload=one.payload[::-1]) if one.seq == FORGED else one for one in rows]


def test_other_bytes_on_one_of_three_servers_are_named(
    capfd: pytest.CaptureFixture[str],
) -> None:
    async def first(cluster: Cluster) -> str:
        client = await nats.connect(servers=cluster.urls, connect_timeout=30)
        config = {"name": "S", "subjects": ["s.>"], "num_replicas": 3}
        assert "error" not in await ask(client, "STREAM.CREATE.S", **config)
        assert "error" not in await ask(client, "STREAM.CREATE.R1", name="R1", subjects=["r"])
        js = client.jetstream(timeout=WAIT_S)
        for number in range(COUNT):
            await js.publish("s.a", b"message %d" % number)
        leader = await current(client)
        found = await audited(client)
        assert found[leader]["state"] == "leader"
        assert sorted(one["state"] for one in found.values()) == ["leader", "same", "same"]
        assert {(one["messages"], one["up_to"]) for one in found.values()} == {(COUNT, COUNT)}
        for name, code in (("NONE", 10059), ("R1", 10051)):
            answer = await ask(client, f"STREAM.AUDIT.{name}", start=True)
            assert answer["error"]["err_code"] == code
        await client.close()
        return next(name for name in cluster.names if name != leader)

    async def second(cluster: Cluster, victim: str) -> None:
        client = await nats.connect(servers=cluster.urls, connect_timeout=30)
        leader = await current(client)

        async def all_answered() -> dict[str, Any] | None:
            found = await audited(client)
            states = {one["state"] for one in found.values()}
            return None if states & {"offline", "unanswered"} else found

        found = await eventually(all_answered, "all replicas to answer", WAIT_S)
        whole = [one for name, one in found.items() if name not in (leader, victim)]
        if leader == victim:
            assert {(one["state"], one["first"]) for one in whole} == {("different", FORGED)}
        else:
            told = found[victim]
            assert (told["state"], told["first"], told["last"]) == ("different", FORGED, FORGED)
            assert [one["state"] for one in whole] == ["same"]
        away = next(name for name in cluster.names if name not in (leader, victim))
        cluster.kill(away)

        async def told_away() -> bool:
            try:
                return bool((await audited(client))[away]["state"] == "offline")
            except Error:
                return False

        await eventually(told_away, "the server to be told offline", WAIT_S)
        cluster.restart(away)
        await current(client)
        await client.close()

    with Cluster(3) as cluster:
        victim = asyncio.run(first(cluster))
        cluster[victim].stop()
        assert forge_directory(cluster[victim].store_dir, one_other)
        cluster.restart(victim)
        asyncio.run(second(cluster, victim))
        capfd.readouterr()
        code = main(["--server", ",".join(cluster.urls), "stream", "audit", "S"])
        out = capfd.readouterr().out
        assert code == 1
        assert f"other messages than the leader, first {FORGED}" in out
        assert "0 of 1 stream is the same on all replicas" in out


def test_who_may_not_ask_is_not_answered() -> None:
    async def asked(urls: list[str]) -> None:
        refused: list[str] = []

        async def failed(error: Exception) -> None:
            refused.append(str(error))

        client = await nats.connect(servers=urls, user="few", password="p", error_cb=failed)
        with pytest.raises(NoAnswer):
            await client.request("$JS.API.STREAM.AUDIT.S", b'{"start":true}', timeout=1)
        assert any("permissions violation" in one.lower() for one in refused)
        await client.close()

    with Broker("-js", config=LOGINS) as broker:
        asyncio.run(asked([broker.url]))
