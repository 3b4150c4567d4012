"""Operator mode: the time that users have left on a day on which clocks are set."""

import json
import struct
import time
from pathlib import Path

import pytest

from jsctl.auth.claims import TimeRange, UserLimits
from jsctl.dataclass import dataclass, replace
from tests.contract.conftest import KINDS
from tests.support.login import Caller
from tests.support.operators import FREE, OperatorWorld

MINUTE_S, HOUR_S, DAY_S = 60, 3600, 86_400
SECOND_NS = 1_000_000_000
ZONE = "Test/Zone"
SLACK_S = 50
"""So long a test may take to begin."""


@dataclass(frozen=True, slots=True)
class Case:
    """What clocks show now, by how much they are set ten minutes later, and what a user has left
    then."""

    shown_s: int
    step_s: int
    hours: tuple[str, str]
    left_s: int


NOON, NIGHT = 12 * HOUR_S, 23 * HOUR_S
CASES = {
    "put forward": Case(NOON, HOUR_S, ("11:00:00", "13:40:00"), 40 * MINUTE_S),
    "put back": Case(NOON, -HOUR_S, ("11:00:00", "12:40:00"), 100 * MINUTE_S),
    "put forward in a night": Case(NIGHT, HOUR_S, ("22:00:00", "06:00:00"), 6 * HOUR_S),
    "put back in a night": Case(NIGHT, -HOUR_S, ("22:00:00", "06:00:00"), 8 * HOUR_S),
    "left alone": Case(NOON, 0, ("11:00:00", "13:40:00"), 100 * MINUTE_S),
}


def zone_file(change_s: int, ahead_s: int, step_s: int) -> bytes:
    """A time zone (RFC 8536): so far ahead of UTC until then, and by a step more from then on."""
    counts = struct.pack(">6l", 0, 0, 0, 1, 2, 8)
    kinds = struct.pack(">lbb", ahead_s, 0, 0) + struct.pack(">lbb", ahead_s + step_s, 1, 4)
    return (
        b"TZif" + bytes(16) + counts + struct.pack(">l", change_s) + b"\x01" + kinds + b"ONE\0TWO\0"
    )


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("name", list(CASES))
def test_the_time_that_is_left(kind: str, name: str, tmp_path: Path) -> None:
    case, world = CASES[name], OperatorWorld(tmp_path / "world")
    world.account("A")
    now_s = time.time_ns() // SECOND_NS
    ahead_s = (case.shown_s - now_s % DAY_S + DAY_S // 2) % DAY_S - DAY_S // 2
    zones = tmp_path / "zones"
    (zones / "Test").mkdir(parents=True)
    (zones / ZONE).write_bytes(zone_file(now_s + 10 * MINUTE_S, ahead_s, case.step_s))
    where = {"ZONEINFO": str(zones), "PYTHONTZPATH": str(zones)}
    times = UserLimits(times=(TimeRange(*case.hours),), times_location=ZONE)
    member = world.user("A", rules=replace(FREE, limits=times))
    with (
        KINDS[kind](config=world.config(), name="one", environment=where) as server,
        Caller(server.port) as caller,
    ):
        assert caller.login(member.login(caller.challenge)), caller.refusal
        answer = json.loads(caller.request("$SYS.REQ.USER.INFO")[1])
        left_s = answer["data"]["expires"] / SECOND_NS
        assert case.left_s - SLACK_S < left_s <= case.left_s
