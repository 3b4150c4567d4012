"""Times and lengths of time as Go writes and reads them."""

from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jsctl.api.fields import ZERO_TIME
from jsctl.api.times import (
    format_duration,
    format_time,
    parse_duration,
    parse_time,
    time_error,
)


@given(st.integers(min_value=-62_000_000_000 * 10**9, max_value=250_000_000_000 * 10**9))
def test_times_come_back(time_ns: int) -> None:
    assert parse_time(format_time(time_ns)) == time_ns


@given(st.datetimes(min_value=datetime(1, 1, 2), max_value=datetime(9999, 12, 30)))
def test_times_agree_with_the_calendar(moment: datetime) -> None:
    moment = moment.replace(microsecond=0, tzinfo=UTC)
    assert format_time(int(moment.timestamp()) * 10**9 or 1)[:10] == moment.isoformat()[:10]


@given(
    st.from_regex(
        r"[0-9]{4}-[01][0-9]-[0-3][0-9]T[0-9]{1,2}:[0-9]{2}:[0-9]{2}([.,][0-9]+)?"
        r"(Z|[+-][0-9]{2}:[0-9]{2})",
        fullmatch=True,
    )
)
@example("0000-01-01T0:00:00Z")
@example("2026-02-29T00:00:00Z")
def test_what_is_taken_from_others_has_a_number(text: str) -> None:
    if not time_error(text):
        parse_time(text)


def test_spellings_of_times() -> None:
    assert parse_time("2026-11-20T15:22:59.011610762Z") == 1795188179011610762
    assert parse_time("2026-11-20T16:22:59+01:00") == parse_time("2026-11-20T15:22:59Z")
    assert format_time(1795188179_500000000) == "2026-11-20T15:22:59.5Z"
    assert format_time(0) == ZERO_TIME
    assert parse_time(ZERO_TIME) == parse_time("") == 0
    for wrong in ("yesterday", "2026-13-01T00:00:00Z", "2026-01-01T00:00:00"):
        with pytest.raises(ValueError, match="RFC 3339"):
            parse_time(wrong)


@given(st.integers(min_value=-(2**62), max_value=2**62))
def test_durations_come_back(duration_ns: int) -> None:
    text = format_duration(duration_ns)
    assert abs(parse_duration(text) - duration_ns) < 1000


@pytest.mark.parametrize(
    ("text", "duration_ns"),
    [
        ("1h2m3.5s", 3_723_500_000_000),
        ("1.5ms", 1_500_000),
        ("0", 0),
        ("-1s", -1_000_000_000),
        ("1d", 86_400_000_000_000),
        ("1y2M3d4h", (365 + 60 + 3) * 86_400_000_000_000 + 4 * 3_600_000_000_000),
        ("2w", 14 * 86_400_000_000_000),
        ("10us", 10_000),
    ],
)
def test_spellings_of_durations(text: str, duration_ns: int) -> None:
    assert parse_duration(text) == duration_ns


LONG = ("1" * 150 + "h", "9" * 100 + ".0s", "1" * 100_000, "1." * 50_000, "9" * 5_000 + "s")


@pytest.mark.parametrize("text", ["", "x", "1", "1h x", "h", "1q", "++1s", "\u0661s", *LONG])
def test_wrong_durations(text: str) -> None:
    with pytest.raises(ValueError, match="duration"):
        parse_duration(text)


def test_go_itself_has_no_days() -> None:
    assert parse_duration("24h", go_only=True) == parse_duration("1d")
    with pytest.raises(ValueError, match="invalid duration"):
        parse_duration("1d", go_only=True)
