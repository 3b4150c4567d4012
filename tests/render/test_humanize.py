"""Numbers, sizes and times as natscli writes them."""

import pytest

from jsctl.api.fields import NANOS_MAX, ZERO_TIME
from jsctl.render import humanize


@pytest.mark.parametrize(
    ("byte_count", "text"),
    [
        (0, "0 B"),
        (9, "9 B"),
        (512, "512 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1536, "1.5 KiB"),
        (10 * 1024, "10 KiB"),
        (10_700, "10 KiB"),
        (10_711, "10 KiB"),
        (10_752, "11 KiB"),
        (10_711, "10 KiB"),
        (100_830, "98 KiB"),
        (1024 * 10 - 1, "10 KiB"),
        (101_847, "99 KiB"),
        (868_900, "849 KiB"),
        (53 * 1024**2, "53 MiB"),
        (8 * 1024**3 + 100 * 1024**2, "8.1 GiB"),
        (2**60, "1.0 EiB"),
    ],
)
def test_sizes(byte_count: int, text: str) -> None:
    assert humanize.size(byte_count) == text


@pytest.mark.parametrize(("count", "text"), [(0, "0 rows"), (1, "1 row"), (1_200, "1,200 rows")])
def test_what_is_counted(count: int, text: str) -> None:
    assert humanize.counted(count, "row") == text


def test_words_with_a_plural_of_their_own() -> None:
    assert humanize.counted(1, "batch", "batches") == "1 batch"
    assert humanize.counted(3, "batch", "batches") == "3 batches"


@pytest.mark.parametrize(
    ("duration_ns", "text"),
    [
        (0, "0s"),
        (231_400, "231µs"),
        (999_900, "1ms"),
        (35_400_000, "35ms"),
        (999_900_000, "1s"),
        (1_200_000_000, "1.20s"),
        (12_340_000_000, "12.34s"),
        (65 * 10**9, "1m5s"),
        (7384 * 10**9, "2h3m4s"),
        ((3 * 86400 + 7260) * 10**9, "3d2h1m0s"),
        ((367 * 86400 + 3 * 3600 + 4 * 60 + 5) * 10**9, "1y2d3h4m5s"),
        (365 * 86400 * 10**9, "1y0d0h0m0s"),
        (NANOS_MAX, "never"),
        (-(10**9), "-1.00s"),
    ],
)
def test_durations(duration_ns: int, text: str) -> None:
    assert humanize.duration(duration_ns) == text


def test_the_rest() -> None:
    assert humanize.number(1234567) == "1,234,567"
    assert humanize.number(1234.5) == "1,234.500"
    assert humanize.number(2.0) == "2.000"
    assert humanize.number(1e16) == "10,000,000,000,000,000.000"
    assert humanize.number(0.00042) == "0.000"
    assert humanize.number(-1.9996) == "-1.999"
    assert humanize.number(1e-9) == "0.000"
    assert humanize.number(1234567.125) == "1,234,567.125"
    assert humanize.limit(-1) == "unlimited"
    assert humanize.limit(0) == "0"
    assert humanize.limit(0, none_from=0) == "unlimited"
    assert humanize.boolean(True) == "true"
    assert humanize.boolean(False) == "false"
    assert humanize.joined(["a", 1]) == "a, 1"
    assert humanize.moment(ZERO_TIME) == "0001-01-01 00:00:00"
    assert humanize.moment("2026-11-21T08:17:01Z").startswith("2026-11-2")
    assert humanize.moment_s(1_700_000_000).startswith("2023-11-1")
    assert humanize.moment_s(2**63 - 1) == "9223372036854775807s"
    assert humanize.since("2026-11-21T08:17:01Z", "2026-11-21T08:17:02.5Z") == "1.50s"
    assert humanize.since(ZERO_TIME, "2026-11-21T08:17:02Z") == "never"


def test_shared_domain_parts_are_cut() -> None:
    assert humanize.compact(["n1.c.example.net", "n2.c.example.net"]) == ["n1", "n2"]
    assert humanize.compact(["n1.a.net", "n2.b.net"]) == ["n1.a", "n2.b"]
    assert humanize.compact(["n1", "n2"]) == ["n1", "n2"]
    assert humanize.compact(["a.b", "a.b"]) == ["a", "a"]
    assert humanize.compact(["n1.example.net"]) == ["n1"]
    assert humanize.compact([]) == []


def test_a_time_that_no_calendar_has_is_a_number_of_seconds() -> None:
    assert humanize.moment_ns(10**30) == f"{10**21}s"
    assert humanize.moment_ns(-(10**30)) == f"-{10**21}s"
