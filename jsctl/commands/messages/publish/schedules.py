"""The headers of a message that is to be made later, or again and again."""

import time

from jsctl.api.times import SECOND_NS, format_duration, format_time, parse_time
from jsctl.commands.toolkit.content.bodies import HeaderPairs
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import UsageError

AFTER, AT, EVERY, CRON = (f"schedule-{how}" for how in ("after", "at", "every", "cron"))
SCHEDULES = (AFTER, AT, EVERY, CRON)
OTHERS = ("schedule-dest", "schedule-source", "schedule-ttl")
TOGETHER = (
    ((AT, AFTER), "--schedule-at and --schedule-after are mutually exclusive"),
    ((EVERY, AT), "--schedule-every may not be used with --schedule-at or --schedule-after"),
    ((EVERY, AFTER), "--schedule-every may not be used with --schedule-at or --schedule-after"),
    *(
        (
            (CRON, other),
            "--schedule-at, --schedule-every and --schedule-after may not be used with "
            "--schedule-cron",
        )
        for other in (AT, AFTER, EVERY)
    ),
)
"""What cannot be given together, and what is said of it."""


def schedule_headers(call: Call) -> HeaderPairs:
    """None without a schedule. Raises UsageError for one that cannot be."""
    given = {name for name in (*SCHEDULES, *OTHERS) if call.given(name) and call.text(name)}
    if not given:
        return []
    if not call.text("schedule-dest"):
        raise UsageError("schedule destination is required when setting schedule properties")
    for name in sorted({AFTER, EVERY} & given):
        if call.duration(name) <= 0:
            raise UsageError(f"--{name} must be greater than 0")
    for names, problem in TOGETHER:
        if given.issuperset(names):
            raise UsageError(problem)
    headers = [("Nats-Schedule-Target", call.text("schedule-dest"))]
    headers += [("Nats-Schedule", _when(call, name)) for name in SCHEDULES if name in given]
    if "schedule-ttl" in given:
        headers.append(("Nats-Schedule-TTL", format_duration(call.duration("schedule-ttl"))))
    if "schedule-source" in given:
        headers.append(("Nats-Schedule-Source", call.text("schedule-source")))
    return headers


def _when(call: Call, name: str) -> str:
    if name == AFTER:
        at_ns = time.time_ns() + call.duration(AFTER)
        return f"@at {format_time(at_ns // SECOND_NS * SECOND_NS)}"
    if name == AT:
        return f"@at {_moment(call.text(AT))}"
    if name == EVERY:
        return f"@every {format_duration(call.duration(EVERY))}"
    return call.text(CRON)


def _moment(text: str) -> str:
    try:
        parse_time(text)
    except ValueError as error:
        raise UsageError(f"--schedule-at: {error}") from None
    return text
