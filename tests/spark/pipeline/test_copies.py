"""Copies of all kinds against what they were made of, and names that a query takes as they are."""

import json
from pathlib import Path
from typing import Any

import pytest

from jsctl.api.stream import ExternalStream, StreamSource, SubjectTransform
from jsctl.testing import Broker
from tests.spark.pipeline.conftest import Run, make_stream, on, orders, publish, stored
from tests.support.waiting import wait_for

pytestmark = pytest.mark.usefixtures("spark")


def tables(done: Any) -> Any:
    assert done.code in (0, 1), done.err
    return done.json["tables"]


def all_are_there(server: Broker, stream: str, count: int) -> None:
    wait_for(lambda: stored(server, stream) == count, f"{stream} has everything")


def test_copies_of_copies_and_under_other_subjects(server: Broker, cli: Run, fresh: str) -> None:
    """Each copy says where it comes from, in the place of what its origin says of itself."""
    make_stream(server, fresh)
    publish(server, orders(fresh, 50))
    moved = (SubjectTransform(src=f"{fresh}.>", dest=f"moved.{fresh}.>"),)
    for name, source in (
        ("B", StreamSource(name=fresh)),
        ("C", StreamSource(name=f"{fresh}B")),
        ("D", StreamSource(name=fresh, subject_transforms=moved)),
    ):
        make_stream(server, f"{fresh}{name}", subjects=(), sources=(source,))
    for name in "BCD":
        all_are_there(server, f"{fresh}{name}", 50)
        words = ("pipeline", "audit", "mirror", "--stream", f"{fresh}{name}", "-j")
        done = cli(*words, "-s", server.url)
        assert (done.code, done.json["findings"], name) == (0, 0, name)
        (summary,) = tables(done)["copies"]
        assert (summary["last_seq"], summary["messages"]) == (50, 50)


def test_an_origin_in_another_domain_is_no_stream_of_this_one(
    broker: Broker, cli: Run, fresh: str
) -> None:
    """A mirror has the name of its origin there, most of the time: it would be itself."""
    make_stream(broker, fresh)
    there = StreamSource(name=f"{fresh}M", external=ExternalStream(api="$JS.hub.API"))
    make_stream(broker, f"{fresh}M", subjects=(), mirror=there)
    done = cli("pipeline", "audit", "mirror", "--stream", f"{fresh}M", "-j", "-s", broker.url)
    assert (done.code, tables(done)["copies"]) == (0, [])
    assert done.json["notes"] == [
        f"{fresh}M: origin {fresh}M is behind $JS.hub.API, it was not compared"
    ]


def test_streams_with_quotes_in_their_names(broker: Broker, cli: Run, fresh: str) -> None:
    name = f"{fresh}'s"
    make_stream(broker, name, subjects=(f"{fresh}.>",))
    make_stream(broker, f"{fresh}T", subjects=("jsctl.telemetry.>",))
    told = json.dumps({"at": "2026-01-01T00:00:00Z", "info": {"config": {"name": name}}})
    publish(broker, [(f"jsctl.telemetry.stream.{name}", told.encode())])
    words = ("--stream", name, "--telemetry", f"{fresh}T", "-j", "-s", broker.url)
    done = cli("pipeline", "report", "lag", *words)
    on(broker, lambda manager: manager.delete_stream(f"{fresh}T"))
    assert done.code == 0, done.err


def test_an_archive_of_nothing_is_the_same_as_nothing(
    broker: Broker, cli: Run, fresh: str, tmp_path: Path
) -> None:
    """As where no message has the subject that was asked for."""
    make_stream(broker, fresh)
    publish(broker, orders(fresh, 10))
    there = str(tmp_path / "batch=7" / "archive")
    words = ("pipeline", "export", fresh, there, "-s", broker.url)
    assert cli(*words, "--filter", f"{fresh}.none").code == 0
    done = cli("pipeline", "verify", there, fresh, "-j", "-s", broker.url)
    assert (done.code, done.json["good"], done.json["rows"]) == (0, True, 0), done.err


def test_an_archive_below_a_directory_that_is_named_as_a_batch(
    broker: Broker, cli: Run, fresh: str, tmp_path: Path
) -> None:
    make_stream(broker, fresh)
    publish(broker, orders(fresh, 10))
    there = str(tmp_path / "batch=7" / "archive")
    assert cli("pipeline", "export", fresh, there, "-s", broker.url).code == 0
    done = cli("pipeline", "verify", there, "-j", "-s", broker.url)
    assert (done.code, done.json["problems"]) == (0, [])


def test_history_that_cannot_be_read_is_left_out(
    broker: Broker, cli: Run, fresh: str, tmp_path: Path
) -> None:
    """Anybody may publish there, and servers have told numbers beyond all bounds."""
    make_stream(broker, fresh)
    publish(broker, orders(fresh, 3))
    make_stream(broker, f"{fresh}T", subjects=("jsctl.telemetry.>",))
    odd = {"num_pending": 2**64 - 1, "num_redelivered": "x", "delivered": {"consumer_seq": []}}
    lost = {
        "stream": fresh,
        "consumer": "C",
        "stream_seq": "x",
        "deliveries": 2**64,
        "ack_time": "x",
    }
    events = "jsctl.telemetry.advisory"
    subjects = {
        "jsctl.telemetry.consumer": {},
        f"jsctl.telemetry.consumer.{fresh}": {"info": odd},
        f"jsctl.telemetry.consumer.{fresh}.C": {"info": odd},
        f"{events}.ADVISORY.CONSUMER.MAX_DELIVERIES.{fresh}.C": lost,
        f"{events}.METRIC.CONSUMER.ACK.{fresh}.C": lost,
        f"{events}.ADVISORY.API": {"subject": f"$JS.API.STREAM.PURGE.{fresh}", "request": "7"},
    }
    publish(broker, [(subject, json.dumps(told).encode()) for subject, told in subjects.items()])
    words = ("--stream", fresh, "--telemetry", f"{fresh}T", "-j", "-s", broker.url)
    done = [
        cli("pipeline", group, job, *words)
        for group, job in (("report", "lag"), ("report", "redelivery"), ("audit", "gaps"))
    ]
    on(broker, lambda manager: manager.delete_stream(f"{fresh}T"))
    assert [(one.code, one.err) for one in done] == [(0, "")] * 3


def test_headers_of_strangers_do_not_end_a_comparison(
    broker: Broker, cli: Run, fresh: str, tmp_path: Path
) -> None:
    """A message may say that it was restored, and of what."""
    make_stream(broker, fresh)
    publish(broker, orders(fresh, 5))
    there = str(tmp_path / "archive")
    assert cli("pipeline", "export", fresh, there, "-s", broker.url).code == 0
    make_stream(broker, f"{fresh}C")
    publish(broker, [(f"{fresh}C.x", b"", {"Jsctl-Orig-Seq": "many"})])
    done = cli("pipeline", "verify", there, f"{fresh}C", "-j", "-s", broker.url)
    assert (done.code, done.err) == (1, "")
    assert (done.json["rows"], done.json["differing"]) == (5, 5)
