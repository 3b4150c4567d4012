"""Templates of signing keys filled in, times of day, and limits, apart from any server."""

from datetime import datetime

import pytest

from jsctl.auth.claims import NatsLimits, Permission, Permissions, UserPermissionLimits
from jsctl.broker.claims.hours import HoursUnknown, open_for_ns
from jsctl.broker.claims.rules import (
    EXPANSIONS_MAX,
    BadTemplate,
    Subject,
    filled_in,
    permission_rules,
    user_rules,
)
from jsctl.broker.login_options.operators import UserRules
from jsctl.broker.login_options.permissions import SubjectPermission

NOON_NS = 1_800_014_400 * 10**9
"""2027-01-15 12:00:00 UTC."""
HOUR_NS = 3600 * 10**9
WHO = Subject("jane", "UJANE", ("team:red", "team:blue"), "AONE", "one", ("region:east",))


def filled(
    allow: tuple[str, ...] = (), deny: tuple[str, ...] = (), who: Subject = WHO
) -> SubjectPermission | None:
    """What a user may publish by a template."""
    said = UserPermissionLimits(permissions=Permissions(pub=Permission(allow, deny)))
    found = filled_in(user_rules(said), who).permissions
    return None if found is None else found.publish


@pytest.mark.parametrize(
    ("entry", "subjects"),
    [
        ("plain", ("plain",)),
        ("a.{{name()}}.{{subject()}}", ("a.jane.UJANE",)),
        ("{{account-name()}}.{{Account-Subject()}}", ("one.AONE",)),
        ("{{tag(team)}}.{{ tag(TEAM) }}", ("red.red", "red.blue", "blue.red", "blue.blue")),
        ("{{tag(team)}}.{{tag(team)}}", ("red.red", "blue.blue")),
        ("{{account-tag(region)}}.>", ("east.>",)),
        ("{{tag(region)}}", ()),
        ("{{}}", ("{{}}",)),
    ],
)
def test_an_entry_stands_for(entry: str, subjects: tuple[str, ...]) -> None:
    found = filled((entry, "always"))
    assert found == SubjectPermission((*subjects, "always"), ())


def test_nothing_that_is_left_denies_everything() -> None:
    assert filled(("{{tag(none)}}",), ("x",)) == SubjectPermission((), ("x", ">"))
    spaced = Subject("jane doe", "U", (), "A", "a", ())
    assert filled(("x.{{name()}}",), (), spaced) == SubjectPermission((), (">",))


@pytest.mark.parametrize(
    ("allow", "deny"),
    [
        (("{{none()}}",), ()), (("{{tag}}",), ()), ((), ("{{tag(none)}}",)),
        ((), ("x.{{account-tag(none)}}",)),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(allow: tuple[str, ...], deny: tuple[str, ...]) -> None:
    with pytest.raises(BadTemplate):
        filled(allow, deny)


def test_expansions_are_limited() -> None:
    many = Subject("n", "U", tuple(f"t:{n}" for n in range(100)), "A", "a", ())
    assert filled(("{{tag(t)}}",), (), many) is not None
    with pytest.raises(BadTemplate, match=str(EXPANSIONS_MAX)):
        filled(("{{tag(t)}}.{{ tag(t) }}",), (), many)
    with pytest.raises(BadTemplate, match=str(EXPANSIONS_MAX)):
        filled(tuple(f"{n}.{{{{tag(t)}}}}" for n in range(50)), (), many)


def test_nothing_said_is_no_rule() -> None:
    assert permission_rules(Permissions()) is None
    assert user_rules(UserPermissionLimits()) == UserRules(subscriptions_max=0, payload_bytes_max=0)


@pytest.mark.parametrize(
    ("named", "kinds"),
    [
        ((), ()), (("standard",), ("STANDARD",)), (("new", "MQTT"), ("MQTT",)), (("new",), ("",)),
    ],
)  # fmt: skip
def test_kinds_of_connections(named: tuple[str, ...], kinds: tuple[str, ...]) -> None:
    said = UserPermissionLimits(nats=NatsLimits(-1, -1, -1), allowed_connection_types=named)
    assert user_rules(said).connection_types == kinds


@pytest.mark.parametrize(
    ("hours", "zone", "left_h"),
    [
        ((("11:00:00", "13:00:00"),), "UTC", 1),
        ((("11:00:00", "13:00:00"), ("10:00:00", "15:00:00")), "UTC", 3),
        ((("12:00:00", "13:00:00"),), "UTC", 0),
        ((("13:00:00", "14:00:00"),), "UTC", 0),
        ((("20:00:00", "22:00:00"),), "Asia/Tokyo", 1),
        ((("22:00:00", "13:00:00"),), "UTC", 1),
        ((("11:00:00", "02:00:00"),), "UTC", 14),
        ((("13:00:00", "11:00:00"),), "UTC", 0),
        ((("12:00:00", "12:00:00"),), "UTC", 0),
        ((), "UTC", 0),
    ],
)
def test_hours(hours: tuple[tuple[str, str], ...], zone: str, left_h: int) -> None:
    assert open_for_ns(hours, zone, NOON_NS) == left_h * HOUR_NS


@pytest.mark.parametrize(
    ("now", "hours", "left_h"),
    [
        # In Berlin clocks go from 2 to 3 on 31 March 2030, and from 3 to 2 on 27 October 2030.
        ("2030-03-31T00:30Z", ("01:00:00", "04:30:00"), 2),
        ("2030-03-30T22:00Z", ("22:00:00", "06:00:00"), 6),
        ("2030-03-31T02:00Z", ("01:30:00", "06:00:00"), 2),
        ("2030-03-31T00:30Z", ("01:00:00", "02:30:00"), 1),
        ("2030-03-31T00:30Z", ("02:30:00", "01:00:00"), 0),
        ("2030-10-27T00:00Z", ("01:00:00", "05:00:00"), 4),
        ("2030-10-26T21:00Z", ("22:00:00", "06:00:00"), 8),
        ("2030-10-27T00:30Z", ("02:00:00", "03:30:00"), 0),
        ("2030-10-27T03:00Z", ("01:30:00", "06:00:00"), 2),
    ],
)
def test_hours_in_which_clocks_are_set(now: str, hours: tuple[str, str], left_h: int) -> None:
    now_ns = int(datetime.fromisoformat(now).timestamp()) * 1_000_000_000
    assert open_for_ns((hours,), "Europe/Berlin", now_ns) == left_h * HOUR_NS


@pytest.mark.parametrize(
    ("start", "zone"),
    [("x", "UTC"), ("", "UTC"), ("25:00:00", "UTC"), ("11:00:00", "No/Where"),
     ("11:00:00", "../../etc/passwd"), ("11:00:00", "\0"), ("11:00:00", "x" * 5000)],
)  # fmt: skip
def test_times_that_are_none(start: str, zone: str) -> None:
    with pytest.raises(HoursUnknown):
        open_for_ns(((start, "13:00:00"),), zone, NOON_NS)
