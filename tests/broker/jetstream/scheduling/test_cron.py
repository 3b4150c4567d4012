"""Cron expressions: which are valid, and when they are due next.

The reckoning leaps; the one beside it here goes from second to second and from day to day, as the
real server's does.
"""

import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from types import FrameType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jsctl.broker.jetstream.scheduling.cron import Cron, next_time, parse_cron
from jsctl.broker.server.time_zones import offset
from tests.support.quick import examples

ZONES = [
    "UTC",
    "Europe/Amsterdam",
    "America/New_York",
    "America/St_Johns",
    "Africa/Cairo",
    "Asia/Kathmandu",
    "Australia/Lord_Howe",
    "America/Scoresbysund",
    "Asia/Beirut",
    "Pacific/Apia",
]
OffsetAt = Callable[[int], int]
PARSE_CALLS_MAX, SEARCH_CALLS_MAX = 500, 6_000
"""Some room above what was counted: 177 and 2,318. From second to second it would be millions."""
CALLS_PER_SIGN = 12


def clock(zone: str) -> OffsetAt:
    """How far a zone is ahead."""
    return lambda at: offset(zone, at) or 0


def at(text: str) -> int:
    """A time of UTC in ns."""
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * 10**9


def shown(local: datetime, ahead: OffsetAt) -> int:
    """The Unix time at which clocks show something, or close to it."""
    seconds = int(local.replace(tzinfo=UTC).timestamp())
    first = ahead(seconds)
    return seconds - (ahead(seconds - first) if first else 0)


class Slow:
    """Finds the next time without leaps."""

    def __init__(self, cron: Cron, after_ns: int, ahead: OffsetAt) -> None:
        self.cron, self.now, self.ahead = cron, after_ns // 10**9 + 1, ahead
        self.cut = False

    @property
    def local(self) -> datetime:
        """What clocks show."""
        return datetime.fromtimestamp(self.now + self.ahead(self.now), UTC)

    def show(self, local: datetime) -> None:
        """Go where clocks show this."""
        self.now = shown(local, self.ahead)

    def fits(self, unit: str) -> bool:
        """Whether a unit of the moment is in the expression."""
        local, cron = self.local, self.cron
        if unit == "day":
            return cron.fits(int(local.timestamp()) // 86_400, local.day)
        return bool(getattr(cron, unit) >> getattr(local, unit) & 1)

    def begin(self, unit: str) -> None:
        """Go to the beginning of the unit."""
        here = self.local
        if unit == "minute":
            self.now -= self.now % 60
        elif unit == "hour":
            self.show(here.replace(minute=0, second=0))
        elif unit == "day":
            self.show(here.replace(hour=0, minute=0, second=0))
        elif unit == "month":
            self.show(here.replace(day=1, hour=0, minute=0, second=0))

    def step(self, unit: str) -> bool:
        """To the next one; whether the unit above begins anew."""
        here = self.local
        if unit == "month":
            month = (here.replace(day=1) + timedelta(days=31)).replace(day=1)
            self.show(month + timedelta(days=here.day - 1))
        elif unit == "day":
            self.show(here + timedelta(days=1))
        else:
            self.now += {"hour": 3600, "minute": 60, "second": 1}[unit]
        return bool(getattr(self.local, unit) == (1 if unit in ("month", "day") else 0))

    def goes_around(self) -> bool:
        """Whether a unit began anew on the way."""
        for unit in ("month", "day", "hour", "minute", "second"):
            while not self.fits(unit):
                if not self.cut:
                    self.cut = True
                    self.begin(unit)
                if self.step(unit):
                    return True
        return False

    def next(self) -> int | None:
        """The time."""
        last = self.local.year + 5
        while self.local.year <= last:
            if not self.goes_around():
                return self.now
        return None


def field(low: int, high: int) -> st.SearchStrategy[str]:
    """One field of an expression."""
    number = st.integers(low, high)
    spans = st.tuples(number, number).map(lambda two: f"{min(two)}-{max(two)}")
    stars = st.sampled_from(["*", "?", "*/2", "*/5"])
    steps = st.tuples(spans, st.integers(1, 9)).map(lambda two: f"{two[0]}/{two[1]}")
    one = st.one_of(number.map(str), spans, steps, stars)
    return st.lists(one, min_size=1, max_size=3).map(",".join)


EXPRESSIONS = st.tuples(
    field(0, 59), field(0, 59), field(0, 23), field(1, 31), field(1, 12), field(0, 6)
).map(" ".join)
# Around the changes of clocks of these years, and anywhere else.
TIMES = st.one_of(
    st.integers(at("2026-01-01") // 10**9, at("2029-01-01") // 10**9),
    st.sampled_from(["2026-03-29", "2026-10-25", "2026-03-08", "2026-11-01", "2026-04-24"]).flatmap(
        lambda day: st.integers(-86_400, 86_400).map(lambda s: at(day) // 10**9 + s)
    ),
)


@given(EXPRESSIONS, TIMES, st.sampled_from(ZONES), st.integers(0, 10**9 - 1))
@settings(max_examples=examples(300), deadline=None)
def test_leaps_lead_to_where_steps_do(text: str, after: int, zone: str, part: int) -> None:
    cron = parse_cron(text)
    if cron is None:
        return
    after_ns = after * 10**9 + part
    assert next_time(cron, after_ns, clock(zone)) == Slow(cron, after_ns, clock(zone)).next()


@pytest.mark.parametrize(
    ("text", "zone", "after", "expected"),
    [
        ("* * * * * *", "UTC", "2026-01-01T00:00:00", "2026-01-01T00:00:01"),
        ("0 0 0 1 1 *", "UTC", "2026-01-01T00:00:00", "2027-01-01T00:00:00"),
        ("0 0 0 29 2 *", "UTC", "2026-03-01T00:00:00", "2028-02-29T00:00:00"),
        ("0 30 4 1,15 * 5", "UTC", "2026-09-02T00:00:00", "2026-09-04T04:30:00"),
        ("0 30 4 1,15 * *", "UTC", "2026-09-02T00:00:00", "2026-09-15T04:30:00"),
        ("0 0 6 * * mon-fri", "Europe/Amsterdam", "2026-09-18T04:00:00", "2026-09-21T04:00:00"),
        # Half past two is left out, or comes when clocks have been put back for the first time.
        ("0 30 2 * * *", "Europe/Amsterdam", "2026-03-28T12:00:00", "2026-03-30T00:30:00"),
        ("0 30 2 * * *", "Europe/Amsterdam", "2026-10-24T12:00:00", "2026-10-25T00:30:00"),
        ("0 30 2 * * *", "Europe/Amsterdam", "2026-10-25T00:30:00", "2026-10-25T01:30:00"),
    ],
)
def test_when_it_is_due(text: str, zone: str, after: str, expected: str) -> None:
    cron = parse_cron(text)
    assert cron is not None
    found = next_time(cron, at(after), clock(zone))
    assert found is not None
    assert datetime.fromtimestamp(found, UTC).replace(tzinfo=None).isoformat() == expected


def calls(work: Callable[[], object]) -> int:
    """How many calls some work makes: what it costs, on any machine."""
    count = 0

    def note(_: FrameType, event: str, __: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize("text", ["7 0 0 30,31 2 *", ", 7 0 * * *", "0 7 0 31 2,4,6,9,11 *"])
def test_what_never_comes_is_seen_at_once(text: str) -> None:
    assert parse_cron(text) is None
    assert calls(lambda: parse_cron(text)) < PARSE_CALLS_MAX


def test_what_is_rare_is_found_soon() -> None:
    cron = parse_cron("59 59 23 29 2 *")
    assert cron is not None
    zone = clock("Europe/Amsterdam")
    for number in range(20):
        after = at("2026-03-01") + number
        assert next_time(cron, after, zone)
        assert calls(partial(next_time, cron, after, zone)) < SEARCH_CALLS_MAX
    # No leap year within five.
    assert next_time(cron, at("2096-03-01"), clock("UTC")) is None


@pytest.mark.parametrize(
    "text",
    [
        *("", "*", "* * * * *", "* * * * * * *", "a * * * * *", "1- * * * * *", "-1 * * * * *"),
        *("* * * * * sunday", "1,a * * * * *", "*/ * * * * *", "*/-1 * * * * *", "1.5 * * * * *"),
        *("9" * 60_000 + " * * * * *", "1" + ",1" * 30_000 + ",60 * * * * *", "- - - - - -"),
    ],
)
def test_what_is_no_expression(text: str) -> None:
    assert parse_cron(text) is None


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("0," * 30_000 + "1 * * * * *", "0,1 * * * * *"),
        ("0" * 60_000 + "1 * * * * *", "1 * * * * *"),
    ],
)
def test_long_expressions_cost_what_their_length_is(text: str, short: str) -> None:
    assert parse_cron(text) == parse_cron(short)
    assert calls(lambda: parse_cron(text)) < CALLS_PER_SIGN * len(text)
