"""`server check message`: age and content of the last message of a subject."""

import re
from time import time_ns

from jsctl.api.errors import ApiError
from jsctl.api.times import SECOND_NS, format_duration, parse_time
from jsctl.commands.server.check.run import (
    checked,
    critical_if_it_fails,
    manager_for,
    seconds,
)
from jsctl.commands.toolkit.assets.picking import check_name
from jsctl.commands.toolkit.grammar.regexps import compiled_bytes
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import UsageError
from jsctl.render.reports.server.check import CheckResult

NO_MESSAGE = 10037


async def message(call: Call) -> int:
    """Checks properties of a message."""
    pattern(call, "content")
    return await checked(call, "message", "Stream Message", body)


def pattern(call: Call, flag: str) -> "re.Pattern[bytes] | None":
    """A regular expression for bytes; None for an empty one. Raises UsageError."""
    text = call.text(flag)
    try:
        return compiled_bytes(text) if text else None
    except re.error as error:
        raise UsageError(f"--{flag}: {error}") from None


async def body(call: Call, result: CheckResult) -> None:
    """The check itself."""
    stream, subject = check_name(call.text("stream"), "stream"), call.text("subject")
    if "" in (subject or "-").split("."):
        raise UsageError(f'invalid subject "{subject}"')
    async with manager_for(call, result) as manager:
        with critical_if_it_fails(result, "msg load failed"):
            try:
                found = await manager.message(stream, last_for=subject)
            except ApiError as error:
                if error.err_code != NO_MESSAGE:
                    raise
                result.critical("no message found")
                return
    sent_ns = parse_time(found.time)
    if call.flag("body-timestamp"):
        try:
            sent_ns = int(found.data.strip()) * SECOND_NS
        except ValueError:
            result.critical(f"invalid timestamp body: {found.data[:40].decode('utf-8', 'replace')}")
            return
    _judge_age(call, result, time_ns() - sent_ns)
    result.measure("size", len(found.data), unit="B", help="The size of the message")
    content = pattern(call, "content")
    if content is not None and not content.search(found.data):
        result.critical(f"does not match regex: {call.text('content')}")
    result.ok_if_clean(f"Valid message on {stream} > {subject}")


def _judge_age(call: Call, result: CheckResult, age_ns: int) -> None:
    warn, critical = seconds(call, "age-warn"), seconds(call, "age-critical")
    age_ns = round(age_ns, -6)
    result.measure(
        "age",
        age_ns / SECOND_NS,
        warning=warn,
        critical=critical,
        unit="s",
        help="The age of the message",
    )
    sentence = f"{format_duration(age_ns)} old"
    if critical > 0 and age_ns > critical * SECOND_NS:
        result.critical(sentence)
    elif warn > 0 and age_ns > warn * SECOND_NS:
        result.warn(sentence)
