"""Advisories and server events as lines for people."""

from collections.abc import Callable

from jsctl.api.stream import SequenceRange
from jsctl.api.subjects import parse_api
from jsctl.dashboard.model.documents import Document, flag, integer, section, sections, text
from jsctl.dashboard.model.snapshot import Event, Level
from jsctl.dashboard.model.tracks import time_of
from jsctl.render.humanize import counted
from jsctl.render.reports.stream.checks import ranges_text

CATEGORIES = ("all", "problems", "changes", "api", "clients")
"""What the list of events can be limited to."""
READS = frozenset(
    {
        "account_info",
        "stream_names",
        "stream_list",
        "stream_info",
        "stream_msg_get",
        "consumer_names",
        "consumer_list",
        "consumer_info",
        "consumer_msg_next",
        "direct_get",
    }
)
"""Requests that change nothing; programs send many of them."""
Line = tuple[Level, str, str, str]
"""Level, category, who, what is said."""


def event_of(subject: str, document: Document, now_ns: int) -> Event | None:
    """The event that a message announces; None for what nobody needs to read."""
    line = _line(subject, document)
    if line is None:
        return None
    at_ns = time_of(text(document, "timestamp")) or now_ns
    return Event(at_ns, *line, subject=subject)


def belongs(event: Event, category: str) -> bool:
    """Whether an event is of one of `CATEGORIES`."""
    if category == "problems":
        return event.level >= Level.WARN
    if category == "changes":
        return event.what not in ("client", "api")
    if category == "clients":
        return event.what in ("client", "auth")
    return category == "all" or event.what == category


def _line(subject: str, document: Document) -> Line | None:
    name = text(document, "type").rpartition(".")[2]
    if name in _BUILDERS:
        return _BUILDERS[name](document)
    words = subject.split(".")
    if words[:2] == ["$SYS", "SERVER"] and len(words) == 4:
        server = text(section(document, "server") or document, "name") or words[2]
        if words[3] == "SHUTDOWN":
            return Level.WARN, "server", server, "shut down"
        if words[3] == "LAMEDUCK":
            return Level.WARN, "server", server, "lame duck: sends its clients away, then ends"
    return None


def _asset(document: Document) -> str:
    stream, consumer = text(document, "stream"), text(document, "consumer")
    return f"{stream} > {consumer}" if consumer else stream


def _stream_action(document: Document) -> Line:
    words = {"create": "created", "delete": "deleted", "modify": "changed"}
    action = text(document, "action")
    level = Level.NOTE if action == "delete" else Level.OK
    return level, "stream", _asset(document), words.get(action, action)


def _consumer_action(document: Document) -> Line:
    _, _, who, said = _stream_action(document)
    return Level.OK, "consumer", who, said


def _elected(document: Document) -> Line:
    who = _asset(document) or "meta group"
    return Level.OK, "leader", who, f"elected {text(document, 'leader')}"


def _quorum_lost(document: Document) -> Line:
    return Level.BAD, "quorum", _asset(document), "lost its quorum: no writes"


def _damaged(document: Document) -> Line:
    server, count = text(document, "server"), integer(document, "messages")
    messages, action = counted(count, "message"), text(document, "action")
    if action == "repaired":
        return Level.OK, "damage", _asset(document), f"{messages} repaired on {server}"
    if action == "lost":
        return Level.BAD, "damage", _asset(document), f"{messages} lost: no replica has them"
    ranges = ranges_text(
        SequenceRange(first=integer(one, "first"), last=integer(one, "last"))
        for one in sections(document, "ranges")
    )
    said = f"{messages} damaged on {server}" + (f": {ranges}" if ranges else "")
    return Level.WARN, "damage", _asset(document), said


def _max_deliver(document: Document) -> Line:
    said = (
        f"seq {integer(document, 'stream_seq'):,} delivered "
        f"{integer(document, 'deliveries'):,} times, given up"
    )
    return Level.WARN, "maxdeliv", _asset(document), said


def _terminated(document: Document) -> Line:
    reason = text(document, "reason")
    said = f"seq {integer(document, 'stream_seq'):,} terminated"
    return Level.NOTE, "term", _asset(document), f"{said}: {reason}" if reason else said


def _naked(document: Document) -> Line:
    said = f"seq {integer(document, 'stream_seq'):,} refused by its client"
    return Level.NOTE, "nak", _asset(document), said


def _paused(document: Document) -> Line:
    if flag(document, "paused"):
        return Level.NOTE, "pause", _asset(document), f"until {text(document, 'pause_until')}"
    return Level.OK, "pause", _asset(document), "resumed"


def _pinned(document: Document) -> Line:
    said = f"group {text(document, 'group')} pinned to {text(document, 'pinned_id')}"
    return Level.OK, "pin", _asset(document), said


def _unpinned(document: Document) -> Line:
    said = f"group {text(document, 'group')} unpinned: {text(document, 'reason')}"
    return Level.NOTE, "pin", _asset(document), said


def _audit(document: Document) -> Line | None:
    subject = text(document, "subject")
    call = parse_api(subject.encode())
    if call is not None and call.operation in READS:
        return None
    client = section(document, "client")
    who = next((found for key in ("user", "name", "acc") if (found := text(client, key))), "?")
    refused = '"error"' in text(document, "response")
    said = subject.removeprefix("$JS.API.") + (" refused" if refused else "")
    return (Level.NOTE if refused else Level.OK), "api", who, said


def _client(document: Document, word: str) -> Line | None:
    client = section(document, "client")
    if text(client, "name").startswith("jsctl dashboard"):
        return None
    who = text(client, "name") or text(client, "user") or text(client, "host")
    reason = text(document, "reason")
    said = f"{word} {text(section(document, 'server'), 'name')} ({text(client, 'host')})"
    if "Authentication" in reason:
        return Level.WARN, "auth", who, f"{reason} from {text(client, 'host')}"
    return Level.OK, "client", who, f"{said}: {reason}" if reason else said


def _snapshot(said: str) -> Callable[[Document], Line]:
    def line(document: Document) -> Line:
        error = text(document, "error")
        level = Level.WARN if error else Level.OK
        return level, "backup", _asset(document), f"{said}: {error}" if error else said

    return line


def _no_space(document: Document) -> Line:
    return Level.BAD, "space", text(document, "server"), "out of storage: JetStream is disabled"


def _removed(document: Document) -> Line:
    return Level.WARN, "server", text(document, "server"), "removed from the meta group"


def _limit(document: Document) -> Line:
    said = f"API queue full, {integer(document, 'dropped'):,} requests dropped"
    return Level.WARN, "api", text(document, "server"), said


_BUILDERS: dict[str, Callable[[Document], Line | None]] = {
    "stream_action": _stream_action,
    "consumer_action": _consumer_action,
    "stream_leader_elected": _elected,
    "consumer_leader_elected": _elected,
    "domain_leader_elected": _elected,
    "stream_quorum_lost": _quorum_lost,
    "consumer_quorum_lost": _quorum_lost,
    "stream_damage": _damaged,
    "max_deliver": _max_deliver,
    "terminated": _terminated,
    "nak": _naked,
    "consumer_pause": _paused,
    "consumer_group_pinned": _pinned,
    "consumer_group_unpinned": _unpinned,
    "api_audit": _audit,
    "client_connect": lambda document: _client(document, "connected to"),
    "client_disconnect": lambda document: _client(document, "left"),
    "snapshot_create": _snapshot("backup started"),
    "snapshot_complete": _snapshot("backup ended"),
    "restore_create": _snapshot("restore started"),
    "restore_complete": _snapshot("restore ended"),
    "server_out_of_space": _no_space,
    "server_removed": _removed,
    "api_limit_reached": _limit,
}
"""Last word of an event's type -> its line."""
