"""Fills the layouts of events; what an event lacks is empty or zero, never an error."""

import re
import time
from collections.abc import Callable, Iterator, Mapping

from jsctl.api.times import SECOND_NS, format_duration, format_time, parse_time
from jsctl.render.humanize import number, size
from jsctl.render.reports.events.layouts import COMPACT, EXTENDED
from jsctl.render.table import safe

Event = Mapping[str, object]

SCHEMAS = "https://raw.githubusercontent.com/nats-io/jsm.go/master/schemas/"
INDENT = 10
_PART = re.compile(r"\{([a-z_.]+)(?:\|([a-z_]+))?\}")
_CONDITION = re.compile(r"\?([a-z_.]+)\?")


def kind_of(event: Event) -> str:
    """The type of an event, empty for what is none that is known."""
    kind = event.get("type")
    return kind if isinstance(kind, str) and kind in COMPACT else ""


def compact(event: Event) -> str:
    """One line."""
    return f"{_clock(event.get('timestamp'))} {_filled(COMPACT[kind_of(event)], event)}"


def extended(event: Event) -> str:
    """A paragraph; an empty line stands above it."""
    title, *lines = EXTENDED[kind_of(event)]
    head = f"[{_clock(event.get('timestamp'))}] [{_text(event.get('id'))}]"
    shown = [f"\n{head} {_filled(title, event)}"]
    for line in lines:
        shown += _shown(line, event)
    return "\n".join(shown)


def cloud_event(event: Event) -> dict[str, object]:
    """As CloudEvents 1.0 has it."""
    kind = kind_of(event)
    parts = kind.split(".")
    return {
        "type": kind,
        "time": event.get("timestamp"),
        "id": event.get("id"),
        "source": f"urn:nats:{parts[2]}",
        "dataschema": SCHEMAS + "/".join(parts[2:]) + ".json",
        "specversion": "1.0",
        "subject": parts[3],
        "data": event,
    }


def indented(text: str) -> str:
    """Every line further to the right."""
    return "\n".join(" " * INDENT + safe(line) for line in text.split("\n"))


def _shown(line: str, event: Event) -> Iterator[str]:
    condition = _CONDITION.match(line)
    if condition is not None:
        if not _value(event, condition[1]):
            return
        line = line[condition.end() :]
    if line == "@replicas":
        yield from _replicas(event.get("replicas"))
    elif line == "@ranges":
        yield from _ranges(event.get("ranges"))
    elif line == "@request":
        yield indented(_lines(event.get("request")) or "Empty Request")
    elif line == "@response":
        yield indented(_lines(event.get("response")))
    else:
        yield _filled(line, event)


def _replicas(found: object) -> Iterator[str]:
    peers = found if isinstance(found, list) else []
    for peer in peers or [None]:
        yield ""
        if isinstance(peer, dict):
            yield f"             Name: {_text(peer.get('name'))}"
            yield f"          Current: {_word(peer.get('current'))}"
            yield f"           Active: {_duration(peer.get('active'))}"
    if peers:
        yield ""


def _ranges(found: object) -> Iterator[str]:
    for one in found if isinstance(found, list) else []:
        if isinstance(one, dict):
            yield f"     Sequences: {_text(one.get('first'))} - {_text(one.get('last'))}"


def _filled(line: str, event: Event) -> str:
    def word(found: re.Match[str]) -> str:
        value = _value(event, found[1])
        return _SHOWN[found[2] or ""](value)

    return _PART.sub(word, line)


def _value(event: Event, way: str) -> object:
    found: object = event
    for key in way.split("."):
        found = found.get(key) if isinstance(found, dict) else None
    return found


def _lines(value: object) -> str:
    return value if isinstance(value, str) else _text(value)


def _text(value: object) -> str:
    return "" if value is None else safe(str(value))


def _whole(value: object) -> int:
    return int(value) if isinstance(value, int | float) else 0


def _plain(value: object) -> str:
    return "0" if value is None else _text(value)


def _word(value: object) -> str:
    return "true" if value is True else "false"


def _duration(value: object) -> str:
    return format_duration(_whole(value))


def _time_ns(value: object) -> int:
    try:
        return parse_time(value) if isinstance(value, str) else 0
    except ValueError:
        return 0


def _clock(value: object) -> str:
    """The time of day as the event has it, in UTC."""
    return time.strftime("%H:%M:%S", time.gmtime(_time_ns(value) // SECOND_NS))


def _milliseconds(value: object) -> str:
    return f"{_clock(value)}.{_time_ns(value) // 1_000_000 % 1000:03}"


def _moment(value: object) -> str:
    return format_time(_time_ns(value)).replace("T", " ").replace("Z", " +0000 UTC")


def _before(text: str) -> Callable[[object], str]:
    return lambda value: f"{text}{_text(value)}" if value else ""


_SHOWN: Mapping[str, Callable[[object], str]] = {
    "": _text,
    "clock": _clock,
    "colon": _before(": "),
    "commas": lambda value: number(_whole(value)),
    "complete": lambda value: "Failed" if value else "Complete",
    "completed": lambda value: "Failed" if value else "Completed",
    "count": lambda value: str(len(value) if isinstance(value, list) else 0),
    "dash": _before(" - "),
    "duration": _duration,
    "in_cluster": _before(" in cluster "),
    "in_domain": lambda value: f"in domain {_text(value)} " if value else "",
    "joined": lambda value: ",".join(map(_text, value)) if isinstance(value, list) else "",
    "known": lambda value: _text(value) or "Unknown",
    "milliseconds": _milliseconds,
    "moment": _moment,
    "plain": _plain,
    "size": lambda value: size(max(0, _whole(value))),
    "spaced": _before(" "),
    "then_space": lambda value: f"{_text(value)} " if value else "",
    "title": lambda value: _text(value).title(),
    "until": lambda value: f" until {_moment(value)}" if _time_ns(value) else "",
    "user": _before("user: "),
    "user_at": lambda value: f" {_text(value)} @" if value else "",
    "word": _word,
}
