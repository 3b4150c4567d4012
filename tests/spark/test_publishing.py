"""The publisher of a task, without Spark: rows that come slowly, connections that break."""

import time
from collections.abc import Iterable
from types import SimpleNamespace

import pytest

from jsctl.errors import Conflict
from jsctl.spark.connection.jetstream import JetStream
from jsctl.spark.options import sink_options
from jsctl.spark.writing import publish
from jsctl.spark.writing.identity import Scope
from jsctl.spark.writing.memory import Memory, Record
from jsctl.spark.writing.publish import Publisher
from jsctl.spark.writing.rows import Outgoing
from jsctl.spark.writing.sink import Written, remember
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


def test_a_target_that_was_made_again_is_remembered_where_it_is_now(
    broker: Broker, filler: Filler, fresh: str
) -> None:
    """Behind the place where the old one was a restart would see nothing of a batch."""
    filler.stream(fresh)
    given = sink_options({"servers": broker.url, "stateBucket": f"B{fresh}"})
    scope = Scope("query", "run", 1, "")
    with JetStream(given.connection) as js:
        memory = Memory(js, given.state_bucket, scope.name)
        memory.begin(Record("run", 0, {fresh: 1000, "OTHER": 7}), 1)
        remember(given, [Written(scope, 5, 0, {fresh: 5}), Written(scope, 4, 0, {fresh: 4})])
        record = memory.load()
    assert record is not None
    assert (record.batch, record.positions) == (1, {fresh: 5, "OTHER": 7})


def test_a_duplicate_says_nothing_of_where_a_target_is(
    broker: Broker, filler: Filler, fresh: str
) -> None:
    filler.stream(fresh)
    given = sink_options({"servers": broker.url})
    old, new = (
        Outgoing(f"{fresh.lower()}.x", key, f"NATS/1.0\r\nNats-Msg-Id: {key}\r\n\r\n".encode(), b"")
        for key in ("old", "new")
    )
    with JetStream(given.connection) as js:
        for messages, positions in (([old], {fresh: 1}), ([old], {}), ([new, old], {fresh: 2})):
            publisher = Publisher(js, given, nothing)
            for message in messages:
                publisher.send(message, fresh)
            publisher.finish()
            assert publisher.positions == positions


def test_a_stream_may_be_called_error(broker: Broker, filler: Filler) -> None:
    filler.stream("error")
    given = sink_options({"servers": broker.url})
    with JetStream(given.connection) as js:
        publisher = Publisher(js, given, nothing)
        publisher.send(Outgoing("error.x", "1", b"", b""), "error")
        publisher.finish()
    assert publisher.written == 1


def test_answers_of_who_listens_too_are_nobodys(broker: Broker) -> None:
    """A message is stored, then a service answers: nothing is in flight under that number."""
    given = sink_options({"servers": broker.url})
    with JetStream(given.connection) as js:
        publisher = Publisher(js, given, nothing)
        publisher._pending[1] = (Outgoing("a", "1", b"", b""), "S")
        publisher._acknowledged(1, b'{"stream":"S","seq":1}')
        for answer in (b"ok", b"[]"):
            publisher._acknowledged(1, answer)
        assert publisher.written == 1
        publisher._pending[2] = (Outgoing("a", "2", b"", b""), "S")
        for answer in (b"ok", b"[]", b'{"error": "no"}'):
            with pytest.raises(Conflict, match="refuses a message to a"):
                publisher._acknowledged(2, answer)
