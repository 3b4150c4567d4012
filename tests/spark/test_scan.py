"""Ranges are read exactly: with holes, filters, headers, in both modes, on both servers."""

import random
from collections.abc import Iterator
from dataclasses import replace

import pytest

from jsctl.errors import Conflict, NotFound, Unreachable, UsageError
from jsctl.spark.connection.jetstream import JetStream
from jsctl.spark.options import ReadMode, SourceOptions, source_options
from jsctl.spark.reading.arrow import parse_headers
from jsctl.spark.reading.plan import Bounds, batch_ranges
from jsctl.spark.scan import read as scan
from jsctl.spark.scan.range import Chunk, Interrupted, Range, Reader
from jsctl.spark.scan.read import make_reader, read
from jsctl.testing import Broker
from tests.support.filling import Filler, Row

Found = dict[int, tuple[str, bytes, dict[bytes, list[bytes]]]]
MODES = ["consumer", "direct"]
FILTERS = {"0.1 %": "rare", "1 %": "some", "100 %": "", "two": "rare,some"}


def rows(count: int, prefix: str) -> list[Row]:
    """One in a thousand is rare, one in a hundred is some; every seventh has headers."""
    made: list[Row] = []
    for number in range(count):
        kind = "rare" if number % 1000 == 7 else "some" if number % 100 == 3 else "many"
        headers: dict[str, str | list[str]] = {}
        if number % 7 == 0:
            headers = {"N": str(number), "Twice": ["a", "b: c"]}
        made.append((f"{prefix}.{kind}.{number % 5}", headers, b"%d" % number))
    return made


def options(broker: Broker, stream: str, **more: str) -> SourceOptions:
    return source_options({"servers": broker.url, "stream": stream, "timeout": "3s", **more})


def scanned(given: SourceOptions) -> Found:
    """What the ranges of a plan hold; every sequence may come once."""
    found: Found = {}
    with JetStream(given.connection) as js:
        for wanted in batch_ranges(js, given, Bounds(), headers_only=False):
            for chunk in read(js, wanted):
                assert chunk.seqs == sorted(chunk.seqs)
                for row, seq in enumerate(chunk.seqs):
                    assert seq not in found, "a message came twice"
                    assert wanted.first <= seq < wanted.end
                    headers = parse_headers(chunk.heads[row]) if chunk.heads[row] else {}
                    found[seq] = (chunk.subjects[row].decode(), chunk.payloads[row], headers)
    return found


def expected(made: list[Row], deleted: set[int], words: str) -> Found:
    """The reference: what was published, without what was deleted."""
    found: Found = {}
    for seq, (subject, headers, payload) in enumerate(made, 1):
        if seq in deleted or (words and subject.split(".")[1] not in words.split(",")):
            continue
        block = {
            name.encode(): [v.encode() for v in ([values] if isinstance(values, str) else values)]
            for name, values in headers.items()
        }
        found[seq] = (subject, payload, block)
    return found


@pytest.fixture(scope="module")
def holey(broker: Broker) -> Iterator[tuple[str, list[Row], set[int]]]:
    """A stream of 12,000 messages with single holes and a wide one."""
    made = rows(12_000, "holey")
    chosen = random.Random(7).sample(range(2, 12_000), 150)
    deleted = {*chosen, *range(5_000, 5_200)}
    with Filler(broker) as filler:
        filler.stream("HOLEY", allow_direct=True)
        filler.publish(made)
        for seq in sorted(deleted):
            filler.api("STREAM.MSG.DELETE.HOLEY", {"seq": seq, "no_erase": True})
        yield "HOLEY", made, deleted
        filler.api("STREAM.DELETE.HOLEY")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("words", FILTERS.values(), ids=FILTERS)
def test_what_is_read_is_what_was_published(
    broker: Broker, holey: tuple[str, list[Row], set[int]], mode: str, words: str
) -> None:
    stream, made, deleted = holey
    filters = ",".join(f"holey.{word}.*" for word in words.split(",") if word)
    given = options(broker, stream, readMode=mode, filterSubjects=filters, minPartitions="5")
    assert scanned(given) == expected(made, deleted, words)


@pytest.mark.parametrize("every", [3, 5_000])
def test_line_breaks_in_payloads(broker: Broker, filler: Filler, fresh: str, every: int) -> None:
    prefix = fresh.lower()
    made: list[Row] = [
        (
            f"{prefix}.{at % 5}",
            {},
            b"%d%s" % (at, b"\r\nMSG a 1 b 3\r\n" if at % every == 1 else b""),
        )
        for at in range(25_000)
    ]
    filler.stream(fresh)
    filler.publish(made)
    given = options(broker, fresh, readMode="consumer", minPartitions="2")
    assert scanned(given) == expected(made, set(), "")


@pytest.mark.parametrize("mode", MODES)
def test_bounds_are_exact(
    broker: Broker, holey: tuple[str, list[Row], set[int]], mode: str
) -> None:
    stream, made, deleted = holey
    whole = expected(made, deleted, "")
    given = options(
        broker,
        stream,
        readMode=mode,
        startingOffsets='{"HOLEY": 4990}',
        endingOffsets='{"HOLEY": 5210}',
        maxRecordsPerPartition="17",
    )
    assert scanned(given) == {seq: row for seq, row in whole.items() if 4990 <= seq < 5210}


@pytest.mark.parametrize("mode", MODES)
def test_times_bound_a_read(broker: Broker, filler: Filler, fresh: str, mode: str) -> None:
    filler.stream(fresh, allow_direct=True)
    filler.publish([(f"{fresh.lower()}.a", {}, b"early")] * 30)
    edge = filler.api(f"STREAM.MSG.GET.{fresh}", {"seq": 30})["message"]["time"]
    filler.publish([(f"{fresh.lower()}.a", {}, b"late")] * 20)
    late = scanned(options(broker, fresh, readMode=mode, startingTimestamp=edge))
    early = scanned(options(broker, fresh, readMode=mode, endingTimestamp=edge))
    assert sorted(early | late) == list(range(1, 51))
    assert not set(early) & set(late)
    assert {row[1] for seq, row in late.items() if seq > 30} == {b"late"}
    assert {row[1] for row in early.values()} <= {b"early"}


@pytest.mark.parametrize("mode", MODES)
def test_large_messages_arrive_whole(broker: Broker, filler: Filler, fresh: str, mode: str) -> None:
    filler.stream(fresh, allow_direct=True)
    bodies = [bytes([n]) * (1_000_000 - n) for n in range(20)]
    filler.publish([(f"{fresh.lower()}.big", {"N": str(n)}, b) for n, b in enumerate(bodies)])
    found = scanned(options(broker, fresh, readMode=mode))
    assert [found[seq][1] for seq in sorted(found)] == bodies


@pytest.mark.parametrize("mode", MODES)
def test_an_empty_stream_has_no_rows(broker: Broker, filler: Filler, fresh: str, mode: str) -> None:
    filler.stream(fresh, allow_direct=True)
    assert scanned(options(broker, fresh, readMode=mode)) == {}
    filler.publish([(f"{fresh.lower()}.a", {}, b"x")] * 3)
    filler.api(f"STREAM.PURGE.{fresh}")
    assert scanned(options(broker, fresh, readMode=mode)) == {}


def test_a_consumer_that_is_deleted_is_replaced(broker: Broker, filler: Filler, fresh: str) -> None:
    filler.stream(fresh)
    made = rows(40_000, fresh.lower())
    filler.publish(made)
    given = options(broker, fresh)
    seen: list[int] = []
    deletions = 0
    with JetStream(given.connection) as js:
        (wanted,) = batch_ranges(js, given, Bounds(), headers_only=False)
        for chunk in read(js, wanted):
            seen += chunk.seqs
            for name in filler.api(f"CONSUMER.NAMES.{fresh}").get("consumers") or []:
                filler.api(f"CONSUMER.DELETE.{fresh}.{name}")
                deletions += 1
    assert deletions > 1
    assert seen == list(range(1, 40_001))


def test_a_work_queue_is_read_without_taking_anything(
    broker: Broker, filler: Filler, fresh: str
) -> None:
    filler.stream(fresh, retention="workqueue", allow_direct=True)
    filler.publish([(f"{fresh.lower()}.{n}", {}, b"%d" % n) for n in range(50)])
    assert len(scanned(options(broker, fresh))) == 50
    assert filler.state(fresh)["messages"] == 50
    with pytest.raises(UsageError, match="work queue"):
        scanned(options(broker, fresh, readMode="consumer"))


def test_direct_reading_needs_a_stream_that_allows_it(
    broker: Broker, filler: Filler, fresh: str
) -> None:
    filler.stream(fresh)
    filler.publish([(f"{fresh.lower()}.a", {}, b"x")])
    with pytest.raises(UsageError, match="does not allow direct gets") as caught:
        scanned(options(broker, fresh, readMode="direct"))
    assert "--allow-direct" in caught.value.hints[0]


def test_a_stream_that_is_not_there_is_named(broker: Broker) -> None:
    with pytest.raises(NotFound, match="stream NOPE does not exist"):
        scanned(options(broker, "NOPE"))


@pytest.mark.parametrize("mode", MODES)
def test_a_purge_while_reading_is_an_error(
    broker: Broker, filler: Filler, fresh: str, mode: str
) -> None:
    filler.stream(fresh, allow_direct=True)
    filler.publish(rows(60_000, fresh.lower()))
    given = options(broker, fresh, readMode=mode)
    with JetStream(given.connection) as js:
        (wanted,) = batch_ranges(js, given, Bounds(), headers_only=False)
        reading = read(js, wanted)
        next(reading)
        filler.api(f"STREAM.PURGE.{fresh}", {"seq": 59_000})
        with pytest.raises(Conflict, match=f"stream {fresh} lost messages"):
            list(reading)
        lenient = read(js, replace(wanted, complete=False))
        assert [seq for chunk in lenient for seq in chunk.seqs][-1] == 60_000


class Around(Reader):
    """A reader that stands between a scan and another one."""

    def __init__(self, inner: Reader) -> None:
        super().__init__(inner.js, inner.range, inner.next)
        self.inner = inner

    def chunk(self) -> Chunk:
        chunk = self.inner.chunk()
        self.next = self.inner.next
        return chunk

    def close(self) -> None:
        self.inner.close()


class Lagging(Around):
    """A reader on a replica that is behind: it ends too early, several times."""

    def __init__(self, inner: Reader, limit: int, lies: list[int]) -> None:
        super().__init__(inner)
        self.limit, self.lies = limit, lies

    def chunk(self) -> Chunk:
        if self.lies[0] and self.inner.next >= self.limit:
            self.lies[0] -= 1
            return Chunk()
        return super().chunk()


@pytest.mark.parametrize("mode", MODES)
def test_a_replica_that_lags_never_ends_a_range_early(
    broker: Broker, filler: Filler, fresh: str, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    filler.stream(fresh, allow_direct=True)
    filler.publish(rows(3_000, fresh.lower()))
    lies = [3]

    def made(js: JetStream, wanted: Range, first: int) -> Reader:
        return Lagging(make_reader(js, wanted, first), first, lies)

    monkeypatch.setattr(scan, "make_reader", made)
    given = options(broker, fresh, readMode=mode, filterSubjects=f"{fresh.lower()}.>")
    assert len(scanned(given)) == 3_000
    assert lies == [0]
    lies[0] = 10**9
    given = options(broker, fresh, readMode=mode, outageTimeout="300ms")
    with pytest.raises(Unreachable, match=r"nothing came for 0\.3 s"):
        scanned(given)


class Ending(Around):
    """A reader whose server says that it ends, and is gone before anything is answered."""

    def __init__(self, inner: Reader, goodbyes: list[int]) -> None:
        super().__init__(inner)
        self.goodbyes = goodbyes

    def chunk(self) -> Chunk:
        if self.goodbyes[0]:
            self.goodbyes[0] -= 1
            self.js.wire.close()
            raise Interrupted("409 Server Shutdown")
        return super().chunk()


@pytest.mark.parametrize("mode", MODES)
def test_a_server_that_is_gone_after_its_goodbye_costs_nothing(
    broker: Broker, filler: Filler, fresh: str, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    filler.stream(fresh, allow_direct=True)
    filler.publish(rows(3_000, fresh.lower()))
    goodbyes = [2]
    monkeypatch.setattr(scan, "make_reader", lambda *args: Ending(make_reader(*args), goodbyes))
    assert len(scanned(options(broker, fresh, readMode=mode))) == 3_000
    assert goodbyes == [0]


def test_auto_takes_a_consumer_where_that_disturbs_nobody(
    broker: Broker, filler: Filler, fresh: str
) -> None:
    filler.stream(fresh, allow_direct=True)
    filler.publish([(f"{fresh.lower()}.a", {}, b"x")])
    given = options(broker, fresh)
    with JetStream(given.connection) as js:
        (wanted,) = batch_ranges(js, given, Bounds(), headers_only=False)
    assert wanted.mode is ReadMode.CONSUMER
