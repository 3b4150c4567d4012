"""Results of benchmarks, and the busiest subjects."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jsctl.render.reports.bench import (
    Sample,
    as_bench_csv,
    documents_of,
    latencies_of,
    result_lines,
    together,
)
from jsctl.render.reports.subjects import busiest, subject_footer, subject_title

SECOND = 1_000_000_000


def test_one_client_is_one_line() -> None:
    plain = Sample(2000, 2048 * 1000, 0, 2 * SECOND)
    assert result_lines("X", [plain]) == ["NATS X stats: 1,000 msgs/sec ~ 1000 KiB/sec"]
    timed = Sample(4, 4, 0, SECOND, [1000, 2000, 3000, 4000])
    assert result_lines("X", [timed]) == [
        "NATS X stats: 4 msgs/sec ~ 4 B/sec ~ min: 1.00us ~ avg: 2.50us ~ max: 4.00us ~ "
        "P50: 2.00us ~ P90: 4.00us ~ P99: 4.00us ~ P99.9: 4.00us"
    ]


def test_several_clients_are_added_up() -> None:
    samples = [
        Sample(100, 1000, 0, SECOND, [1000]),
        Sample(300, 3000, 0, 2 * SECOND, [3000]),
    ]
    lines = result_lines("X", samples)
    assert lines[0].startswith("  [1] 100 msgs/sec ~ 1000 B/sec ~ min: 1.00us")
    assert lines[1].endswith("(300 msgs)")
    assert lines[3:5] == [
        " NATS X aggregated stats: 200 msgs/sec ~ 2.0 KiB/sec",
        " message rates min 100 | avg 125 | max 150 | stddev 25 msgs",
    ]
    assert lines[5].startswith(
        " latencies per operation min 1.00us | avg 2.00us | max 3.00us | stddev 1.00us | P50 1.00us"
    )
    assert together(samples).seconds == 2.0


def test_csv_has_one_line_a_client() -> None:
    text = as_bench_csv("RUN", "S", [Sample(10, 20, 0, SECOND)])
    assert text.splitlines() == [
        "#RunID,ClientID,MsgCount,MsgBytes,MsgsPerSec,BytesPerSec,DurationSecs",
        "RUN,S0,10,20,10,20.000000,1.000000",
    ]
    timed = as_bench_csv("RUN", "P", [Sample(1, 2, 0, SECOND, [5000])]).splitlines()
    assert timed[0].endswith(",StdDevLatencyMicroSecs")
    assert timed[1].endswith(",5.000000,5.000000,0.000000")


def test_documents_for_programs() -> None:
    document = documents_of("X", [Sample(10, 20, 0, SECOND, [1000])])
    assert document["benchmark"] == "X"
    total = document["total"]
    assert isinstance(total, dict)
    assert total["messages_per_second"] == pytest.approx(10)
    assert total["latency_us"]["p99.9"] == 1.0


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=50))
def test_percentiles_lie_between_least_and_most(samples: list[int]) -> None:
    found = latencies_of(samples)
    assert found is not None
    ordered = [found.least, *found.percentiles, found.most]
    assert ordered == sorted(ordered)
    assert found.least <= found.mean + 1e-6
    assert found.mean <= found.most + 1e-6


def test_busiest_subjects() -> None:
    counts = {"b": (2, 10), "a": (2, 5), "c": (9, 1)}
    rows = busiest(counts, 2)
    assert [row.subject for row in rows] == ["c", "a"]
    assert subject_footer(rows) == ["Totals", "11", "6 B"]
    assert len(busiest(counts, 0)) == 3
    assert subject_title(1) == "Top Subject Report"
    assert subject_title(5) == "Top 5 Active Subjects Report"
