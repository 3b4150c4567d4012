"""`events`: every kind, in every form, as the real tool shows it."""

import asyncio
import csv
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from jsctl.client.connection import connect
from jsctl.render.reports.events.layouts import COMPACT, JETSTREAM, METRIC, SERVER, SERVER_METRIC
from jsctl.settings import Context, Settings
from jsctl.testing import Broker
from tests.commands.parity.conftest import NATS, PASSWORD, Same, environment
from tests.support.waiting import wait_for

TIME = "2026-02-03T04:05:06.789012345Z"
CLIENT = {
    "start": TIME,
    "user": "bob",
    "name": "shop",
    "acc": "APP",
    "id": 7,
    "host": "10.0.0.1",
    "lang": "go",
    "ver": "1.2.3",
    "rtt": 1_234_567,
    "kind": "Client",
    "client_type": "nats",
    "jwt": "x",
    "issuer_key": "K",
    "name_tag": "T",
    "tags": ["a", "b"],
}
COMMON = {
    "id": "ID1",
    "timestamp": TIME,
    "stream": "S",
    "consumer": "C",
    "client": CLIENT,
    "reason": "because",
    "domain": "hub",
    "account": "APP",
}
PEERS = [
    {"name": "n1", "current": True, "active": 0},
    {"name": "n2", "current": False, "offline": True, "active": 5_000_000},
]
STREAMS = {
    **COMMON,
    **{"server": "n1", "server_id": "NID", "cluster": "c1", "subject": "$JS.API.INFO"},
    **{"request": '{"a":1}\nmore', "response": '{"b":2}', "dropped": 12345, "action": "create"},
    **{"group": "g", "pinned_id": "PIN", "leader": "n1", "replicas": PEERS, "paused": True},
    **{"pause_until": TIME, "stream_seq": 12345, "consumer_seq": 6, "deliveries": 7},
    **{"bytes": 123456, "start": TIME, "end": TIME, "batch": "B1", "ack_time": 1_500_000},
    "state": {"messages": 12345, "bytes": 54321, "first_seq": 1, "last_seq": 20000},
    "stream_config": {},
}
SERVERS = {
    **COMMON,
    **{"acc": "APP", "conns": 3, "leafnodes": 1, "slow_consumers": 2345, "total_conns": 3},
    "server": {"name": "n1", "cluster": "c1", "id": "NID", "host": "h", "ver": "2"},
    "sent": {"msgs": 12345, "bytes": 54321},
    "received": {"msgs": 2, "bytes": 3},
}
SERVICE = {
    **{"id": "ID1", "timestamp": TIME, "status": 200, "start": TIME, "service": 1_000_000},
    **{"system": 2_000_000, "total": 3_000_000, "requestor": CLIENT, "responder": CLIENT},
}
OPTIONAL = (
    "domain",
    "error",
    "request",
    "reason",
    "received",
    "cluster",
    "requestor",
    "user",
    "pause_until",
)
"""Left out in a second document of each kind."""


def documents() -> Iterator[dict[str, object]]:
    for kind in COMPACT:
        whole = STREAMS if kind.startswith((JETSTREAM, METRIC)) else SERVERS
        whole = SERVICE if kind.startswith(SERVER_METRIC) else whole
        yield {"type": kind, **whole}
        if kind.startswith(SERVER_METRIC):
            continue
        less = {key: value for key, value in whole.items() if key not in OPTIONAL}
        client = {key: CLIENT[key] for key in ("acc", "id", "host", "ver")}
        yield {"type": kind, **less, "client": client, "paused": False, "replicas": []}
    yield {"type": JETSTREAM + "snapshot_complete", **STREAMS, "error": "disk"}
    yield {"type": SERVER_METRIC + "service_latency", **SERVICE, "description": "late"}


UNKNOWN_TO_NATS = {JETSTREAM + "api_limit_reached", JETSTREAM + "stream_damage"}
PAYLOADS = [json.dumps(one).encode() for one in documents() if one["type"] not in UNKNOWN_TO_NATS]
END = b'{"type":"io.nats.nobody.knows","end":1}'


def test_every_kind_has_a_document() -> None:
    assert {json.loads(one)["type"] for one in PAYLOADS} == set(COMPACT) - UNKNOWN_TO_NATS
    assert {kind.rpartition(".")[0] + "." for kind in COMPACT} == {
        JETSTREAM,
        METRIC,
        SERVER,
        SERVER_METRIC,
    }


async def publish(server: Broker) -> None:
    context = Context(url=server.url, user="both", password=PASSWORD)
    async with connect(Settings(connection=context)) as client:
        for payload in (*PAYLOADS, b"no json", END):
            await client.publish("seen.it", payload)
        await client.flush()


def spaces(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.splitlines())


@pytest.mark.processes
@pytest.mark.parametrize(
    "form", ["", "--short", "--cloudevent", "--json", "--short --filter terminated"]
)
def test_events(one_server: Broker, form: str, tmp_path: Path) -> None:
    assert NATS is not None
    words = ["events", "--no-srv-advisory", "--subjects", "seen.>", *form.split()]
    own = {**os.environ, **environment(one_server, "both"), "PYTHONUNBUFFERED": "1"}
    programs = {"nats": [NATS], "jsctl": [sys.executable, "-m", "jsctl"]}
    running = {}
    try:
        for name, program in programs.items():
            with (tmp_path / name).open("wb") as out:
                running[name] = subprocess.Popen([*program, *words], stdout=out, env=own)
        subscriptions = "/subsz?subs=1&acc=both"
        wait_for(lambda: str(one_server.monitor(subscriptions)).count("seen.>") == 2, "both listen")
        asyncio.run(publish(one_server))
        last, times = ("[JS Delivery Terminated]", 2) if "filter" in form else ("nobody.knows", 1)
        logs = [tmp_path / name for name in programs]

        def shown() -> bool:
            return all(log.read_text().count(last) >= times for log in logs)

        wait_for(shown, "both have shown all")
        theirs, ours = (normal_event(log.read_text()) for log in logs)
        assert ours == theirs
    finally:
        for one in running.values():
            one.terminate()
            one.wait()


@pytest.mark.processes
@pytest.mark.parametrize("form", ["csv", "tsv", "yaml"])
def test_events_of_all_kinds_have_the_same_columns_and_lose_nothing(
    one_server: Broker, form: str, tmp_path: Path
) -> None:
    words = ["events", "--no-srv-advisory", "--subjects", "seen.>", "-o", form]
    own = {**os.environ, **environment(one_server, "both")}
    log = tmp_path / "rows"
    with log.open("wb") as out:
        running = subprocess.Popen([sys.executable, "-m", "jsctl", *words], stdout=out, env=own)
    try:
        subscriptions = "/subsz?subs=1&acc=both"
        wait_for(lambda: "seen.>" in str(one_server.monitor(subscriptions)), "it listens")
        asyncio.run(publish(one_server))
        wait_for(lambda: log.read_text().count("nobody.knows") > (form != "yaml"), "all is shown")
    finally:
        running.terminate()
        running.wait()
    sent = [*map(json.loads, PAYLOADS), "no json", json.loads(END)]
    if form == "yaml":
        assert list(yaml.safe_load_all(log.read_text())) == sent
        return
    with log.open(newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t" if form == "tsv" else ","))
    assert [_read(row["event"]) for row in rows] == sent
    columns = ["time", "type", "id", "subject", "server", "account", "stream", "consumer", "event"]
    assert {tuple(row) for row in rows} == {tuple(columns)}
    assert [row["type"] for row in rows[:-2]] == [one["type"] for one in sent[:-2]]
    assert {row["server"] for row in rows[:-2]} == {"n1", ""}
    assert {row["stream"] for row in rows[:-2]} == {"S", ""}
    assert (rows[-2]["subject"], rows[-2]["type"]) == ("seen.it", "")


def _read(text: str) -> object:
    return json.loads(text) if text.startswith("{") else text


def normal_event(text: str) -> str:
    """Without what Go says of text that is no JSON, and without what it leaves out of documents."""
    text = re.sub(r"parsing failed: .*", "parsing failed", text)
    text = re.sub(r'\n  "data": \{\n.*?\n  \}', "", text, flags=re.DOTALL)
    return spaces(text)


def test_wrong_choices(same: Same) -> None:
    same(
        """
        events --no-srv-advisory
        events --stream NOPE
        events --stream NOPE --all
        events more
        """
    )
