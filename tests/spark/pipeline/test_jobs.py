"""Reports and audits: planted facts are found and named; without history they say so."""

import asyncio
import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from jsctl.api.consumer import ConsumerConfig
from jsctl.api.stream import StreamConfig, StreamInfo, StreamSource, StreamState
from jsctl.api.words import AckPolicy
from jsctl.client.manager import Manager
from jsctl.spark.pipeline.capture import Capture, capture
from jsctl.spark.pipeline.jobs.capacity import forecast
from jsctl.spark.pipeline.jobs.duplicates import cause
from jsctl.spark.pipeline.jobs.gaps import _removals as removals
from jsctl.spark.pipeline.jobs.gaps import by_settings
from jsctl.spark.pipeline.jobs.gaps import cause as cause_of_gap
from jsctl.spark.pipeline.jobs.model import Input
from jsctl.testing import Broker, RealServer
from tests.spark.pipeline.conftest import KINDS, Run, make_stream, on, orders, publish
from tests.support.waiting import eventually, wait_for

pytestmark = pytest.mark.usefixtures("spark")
SECOND_NS = 1_000_000_000


def tables(done: Any) -> Any:
    assert done.code in (0, 1), done.err
    return done.json["tables"]


def test_without_history_reports_say_so(broker: Broker, cli: Run, fresh: str) -> None:
    make_stream(broker, fresh)
    publish(broker, orders(fresh, 3))
    for group, job in (("report", "lag"), ("report", "redelivery"), ("audit", "api")):
        words = ("pipeline", group, job, "--telemetry", "NONE", "-s", broker.url)
        found = cli(*words, "-j").json
        assert (found["history"], found["tables"]) == (False, {})
        assert found["notes"][0].startswith("no history")
    assert "no history" in cli(*words).out


@pytest.mark.timeout(240)
@pytest.mark.parametrize("kind", list(KINDS))
def test_reports_of_captured_history(kind: str, cli: Run, tmp_path: Path) -> None:
    with KINDS[kind]("-js", name="one") as server:
        make_stream(server, "ORDERS")
        publish(server, orders("ORDERS", 1500))
        on(server, a_day)
        words = ("-s", server.url, "-j")
        lag = tables(cli("pipeline", "report", "lag", *words))["lag"]
        assert [(row["consumer"], row["pending_max"]) for row in lag] == [("C1", 1500)]
        assert (lag[0]["pending"], lag[0]["looks"] >= 3) == (0, True)
        assert lag[0]["over_1000_s"] > 0

        make_stream(server, "OTHER")
        other = cli("pipeline", "report", "lag", "--stream", "OTHER", *words).json
        assert (other["history"], other["tables"]) == (False, {}), "only the stream that was named"
        assert other["notes"][0] == "no consumer was seen"

        again = tables(cli("pipeline", "report", "redelivery", *words))
        assert [(row["seq"], row["deliveries"]) for row in again["poison"]] == [(1, 2)]

        audits_tell_who_did_it(cli, words)
        page, charts = tmp_path / "page.html", tmp_path / "charts"
        done = cli(
            "pipeline", "report", "all", "--html", str(page), "--charts", str(charts), *words
        )
        assert done.code == 0, done.err
        assert {one["job"] for one in done.json} == {
            "capacity", "subjects", "sizes", "redelivery", "lag",
        }  # fmt: skip
        text = page.read_text()
        assert text.count("<svg") == len(list(charts.glob("*.svg"))) == 7
        assert not re.search(r"""(src|href)=["']https?:""", text), "it needs nothing else"


def audits_tell_who_did_it(cli: Run, words: tuple[str, ...]) -> None:
    """By the audit advisories of the API."""
    calls = tables(cli("pipeline", "audit", "api", *words))["counts"]
    kept = {row["action"]: row["calls"] for row in calls}
    assert {"stream_purge": 1, "stream_msg_delete": 1}.items() <= kept.items()
    assert not any("info" in name or "list" in name for name in kept)
    gaps = tables(cli("pipeline", "audit", "gaps", "--stream", "ORDERS", *words))["gaps"]
    causes = {(row["first_seq"], row["last_seq"]): row["cause"] for row in gaps}
    assert causes[(1, 100)].startswith("purged by jsctl")
    assert causes[(777, 777)].startswith("deleted by jsctl")


async def a_day(manager: Manager) -> None:
    """What happens while a capture runs: lag, a poison message, a delete, a purge."""
    what = Capture(every_ns=SECOND_NS // 5)
    looks: asyncio.Queue[int] = asyncio.Queue()

    async def look() -> None:
        while not looks.empty():  # those of before tell nothing of what was done since
            looks.get_nowait()
        for _ in range(2):
            await asyncio.wait_for(looks.get(), 60)

    async with asyncio.TaskGroup() as group:
        group.create_task(capture(manager, what, lambda counts: looks.put_nowait(counts.looks)))
        await asyncio.wait_for(looks.get(), 60)
        config = ConsumerConfig(
            durable_name="C1",
            ack_policy=AckPolicy.EXPLICIT,
            ack_wait=SECOND_NS // 5,
            max_deliver=2,
            max_ack_pending=10_000,
        )
        await manager.create_consumer("ORDERS", config)
        await look()
        js = manager.client.jetstream()
        subscription = await js.pull_subscribe_bind("C1", stream="ORDERS")
        messages = await subscription.fetch(1500, timeout=20)
        for message in messages[1:]:
            await message.ack()
        first, *_ = await subscription.fetch(1, timeout=20)
        assert first.metadata.num_delivered == 2
        await pull_until_given_up(manager, subscription)
        await look()
        await manager.delete_message("ORDERS", 777)
        await manager.purge("ORDERS", seq=101)
        await look()
        what.stopping.set()


async def pull_until_given_up(manager: Manager, subscription: Any) -> None:
    """A server notices that a message was delivered too often when it looks again."""
    from nats.errors import TimeoutError as NothingCame

    for _ in range(5):
        try:
            await subscription.fetch(1, timeout=0.4)
        except NothingCame:
            continue


def test_repeated_ids_are_found_in_an_archive(
    broker: Broker, cli: Run, fresh: str, tmp_path: Path
) -> None:
    make_stream(broker, fresh, duplicate_window=SECOND_NS // 10)
    publish(broker, [(f"{fresh}.a", b"1", {"Nats-Msg-Id": "x"}), (f"{fresh}.a", b"2")])
    publish(broker, [(f"{fresh}.b", b"same"), (f"{fresh}.b", b"same")])
    publish(broker, [(f"{fresh}.c", b""), (f"{fresh}.c", b"")])
    sent_again(broker, fresh)
    there = str(tmp_path / "archive")
    assert cli("pipeline", "export", fresh, there, "-s", broker.url).code == 0
    words = ("pipeline", "audit", "duplicates", "--archive", there, "-j")
    for more in ((), ("--stream", fresh, "-s", broker.url)):
        done = cli(*words, *more)
        assert (done.code, done.json["findings"]) == (1, 1)
        assert tables(done)["counts"] == [
            {"stream": fresh, "messages": 7, "repeated_ids": 1, "repeated_payloads": 2}
        ]
        rows = tables(done)["duplicates"]
        assert [(row["kind"], row["value"], row["times"]) for row in rows] == [
            ("message id", "x", 2),
            ("payload", f"{fresh}.a", 2),
            ("payload", f"{fresh}.b", 2),
        ]
    assert rows[0]["cause"] == "sent again after the window of 0.1 s"


def sent_again(broker: Broker, stream: str) -> None:
    """The first message once more, as soon as the server has forgotten its id."""

    async def send(manager: Manager) -> None:
        async def stored() -> bool:
            reply = await manager.client.request(
                f"{stream}.a", b"1", timeout=30, headers={"Nats-Msg-Id": "x"}
            )
            return not json.loads(reply.data).get("duplicate")

        await eventually(stored, "the id is forgotten")

    on(broker, send)


@pytest.mark.timeout(180)
def test_a_mirror_and_its_origin(cli: Run, fresh: str) -> None:
    """On nats-server alone: the broker has no mirrors."""
    with RealServer("-js", name="one") as server:
        compare_a_mirror(server, cli, fresh)


def compare_a_mirror(broker: Broker, cli: Run, fresh: str) -> None:
    make_stream(broker, fresh)
    publish(broker, orders(fresh, 200))
    make_stream(broker, f"{fresh}M", subjects=(), mirror=StreamSource(name=fresh))

    def mirrored() -> bool:
        info = on(broker, lambda manager: manager.stream_info(f"{fresh}M"))
        return bool(info.state.messages == 200)

    wait_for(mirrored, "the mirror has everything")
    words = ("pipeline", "audit", "mirror", "--stream", f"{fresh}M", "-j", "-s", broker.url)
    done = cli(*words)
    assert (done.code, done.json["findings"]) == (0, 0)
    on(broker, lambda manager: manager.delete_message(f"{fresh}M", 33))
    done = cli(*words)
    assert (done.code, done.json["findings"]) == (1, 1)
    assert tables(done)["different"] == [
        {"copy": f"{fresh}M", "origin": fresh, "seq": 33, "kind": "missing"}
    ]


def info_of(**config: Any) -> StreamInfo:
    return StreamInfo(
        config=StreamConfig(name="S", **config), state=StreamState(bytes=1000, messages=10)
    )


def test_forecasts() -> None:
    row = {"stream": "S", "messages": 10, "bytes": 900, "seconds": 86_400.0}
    found = forecast(row, info_of(max_bytes=4000))
    assert (found["bytes_per_day"], found["days_left"]) == (1000, 3.0)
    day = 86_400 * SECOND_NS
    found = forecast(row, info_of(max_bytes=4000, max_age=2 * day))
    assert (found["days_left"], found["steady_bytes"]) == (None, 2000), "age keeps it below"
    assert found["steady_bytes_double_age"] == 4000
    assert found["cluster_bytes_r3"] == 6000
    found = forecast(row, info_of(max_bytes=1500, max_age=2 * day))
    assert found["days_left"] == 0.5
    found = forecast({**row, "seconds": 10.0}, None)
    assert (found["bytes_per_day"], found["days_left"]) == (None, None), "no guess"


def test_causes() -> None:
    row = {"kind": "message id", "apart_s": 1.0}
    assert cause(row, 2.0).startswith("INSIDE")
    assert cause(row, 0.5).startswith("sent again after")
    assert cause(row, None).startswith("unknown")
    assert by_settings(StreamConfig(name="S"), leading=True).startswith("unknown")
    config = StreamConfig(name="S", max_age=5, max_msgs_per_subject=1)
    assert by_settings(config, leading=True) == "probably max_age or max_msgs_per_subject"
    assert by_settings(config, leading=False) == "probably max_msgs_per_subject"


def test_removals_that_no_server_told_of_explain_nothing() -> None:
    at = "2026-01-01T00:00:00Z"
    delete, purge = "$JS.API.STREAM.MSG.DELETE.S", "$JS.API.STREAM.PURGE.S"
    rows = [
        {"subject": subject, "request": request, "response": None, "at": when, "client": None}
        for subject in (delete, purge)
        for request, when in (('{"seq": "x"}', at), ('{"seq": [7]}', at), ("{}", "then"))
    ]
    given = cast(Input, SimpleNamespace(query=lambda *_words: rows))
    found = removals(given)
    assert [(one.kind, one.seq) for one in found] == [("delete", 0)] * 2 + [("purge", 0)] * 2
    gap = {"stream": "S", "first_seq": 7, "last_seq": 7, "before": None}
    assert cause_of_gap(gap, None, found).startswith(f"purged by unknown at {at}")
