"""The publisher of a task, without Spark: rows that come slowly, connections that break."""

import time
from collections.abc import Iterable
from types import SimpleNamespace

import pytest

from jsctl.spark.connection.jetstream import JetStream
from jsctl.spark.options import sink_options
from jsctl.spark.writing import publish
from jsctl.spark.writing.publish import Publisher
from jsctl.spark.writing.rows import Outgoing
from jsctl.testing import Broker
from tests.support.filling import Filler

HOUR_S = 3_600.0


def nothing(_streams: Iterable[str]) -> set[str]:
    """No stream holds any of the ids."""
    return set()


def test_rows_that_come_slowly_do_not_use_up_the_time_of_an_outage(
    broker: Broker, filler: Filler, fresh: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    filler.stream(fresh)
    ahead = [0.0]
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + ahead[0], sleep=time.sleep)
    monkeypatch.setattr(publish, "time", clock)
    given = sink_options({"servers": broker.url})
    with JetStream(given.connection) as js:
        publisher = Publisher(js, given, nothing)
        for number in range(3):
            subject = f"{fresh.lower()}.{number}"
            publisher.send(Outgoing(subject, str(number), b"", b"x"), fresh)
            ahead[0] += HOUR_S
            js.wire.close()
        publisher.finish()
        assert publisher.written == 3
    assert filler.state(fresh)["messages"] == 3
