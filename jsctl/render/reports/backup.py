"""Screens and tables of backups on disk."""

from collections.abc import Mapping

from jsctl.backups.edit import Edited
from jsctl.backups.filters import Dropped
from jsctl.backups.scan import Contents
from jsctl.render.column import Cell
from jsctl.render.details import Details
from jsctl.render.humanize import duration, limit, moment_ns, number, size
from jsctl.render.table import table
from jsctl.render.theme import Theme

_RETENTION = {"workqueue": "WorkQueue"}
WIDE, WIDER = 20, 30
"""Shorter subjects stand three and two beside each other."""


def contents_screen(found: Contents, directory: str) -> Details:
    """What `backup info` shows."""
    config = found.description.config
    screen = Details(f"Information for backup of Stream {found.description.name} in {directory}")
    screen.section("Configuration")
    screen.row("Name", found.description.name)
    subjects = config.get("subjects")
    screen.row_if("Subjects", ", ".join(map(str, subjects)) if isinstance(subjects, list) else "")
    screen.row("Storage", str(config.get("storage", "file")).title())
    retention = str(config.get("retention", "limits"))
    screen.row("Retention", _RETENTION.get(retention, retention.title()))
    screen.row("Replicas", number(_number(config, "num_replicas")))
    screen.row("Maximum Messages", limit(_number(config, "max_msgs")))
    screen.row("Maximum Per Subject", limit(_number(config, "max_msgs_per_subject"), none_from=0))
    screen.row("Maximum Bytes", _size(_number(config, "max_bytes")))
    age = _number(config, "max_age")
    screen.row("Maximum Age", duration(age) if age > 0 else "unlimited")
    screen.row("Maximum Message Size", _size(_number(config, "max_msg_size")))
    screen.row("Maximum Consumers", limit(_number(config, "max_consumers")))
    screen.section("Consumers")
    screen.row("Count", number(len(found.consumers)))
    screen.row_if("Names", ", ".join(found.consumers))
    screen.section("Messages")
    screen.row("Messages", number(found.messages))
    screen.row("Bytes", size(found.bytes))
    if found.messages:
        first, last = moment_ns(found.first_time_ns), moment_ns(found.last_time_ns)
        screen.row("First Sequence", f"{number(found.first_sequence)} @ {first}")
        screen.row("Last Sequence", f"{number(found.last_sequence)} @ {last}")
    screen.row("Subjects", number(len(found.subjects)))
    _add_declared(screen, found)
    _add_records(screen, found)
    return screen


def _add_declared(screen: Details, found: Contents) -> None:
    advisory = " (message and byte counts are advisory)" if found.counts_are_advisory else ""
    screen.section(f"Declared State{advisory}")
    declared = found.declared
    screen.row("Messages", number(_number(declared, "messages")))
    screen.row("Bytes", size(_number(declared, "bytes")))
    screen.row("First Sequence", number(_number(declared, "first_seq")))
    screen.row("Last Sequence", number(_number(declared, "last_seq")))
    screen.row("Consumers", number(_number(declared, "consumer_count")))


def _add_records(screen: Details, found: Contents) -> None:
    edit, source = found.description.edit, found.description.source
    if edit is not None:
        screen.section("Edit")
        screen.row_if("Tool Version", edit.get("version", ""))
        options = edit.get("options")
        words = ", ".join(map(str, options)) if isinstance(options, list) else ""
        screen.row("Options", words or "none")
        screen.row("Source Digest", edit.get("source_digest", ""))
        screen.row("Obfuscated", bool(edit.get("obfuscated")))
    if source is not None:
        screen.section("Source")
        subjects = source.get("subjects")
        words = ", ".join(map(str, subjects)) if isinstance(subjects, list) else ""
        screen.row_if("Subjects", words)
        screen.row_if("Stream", source.get("stream", ""))
        screen.row("Started", source.get("started", ""))
        screen.row("Ended", source.get("ended", ""))
        screen.row("Dropped", number(_number(source, "dropped")))


def _number(document: Mapping[str, object], key: str) -> int:
    value = document.get(key, 0)
    return value if isinstance(value, int) else 0


def _size(value: int) -> str:
    return "unlimited" if value == -1 else size(max(value, 0))


def subject_lines(found: Contents, theme: Theme, width_max: int) -> str:
    """Subjects with their counts, in as many columns as their names allow."""
    pairs = sorted(found.subjects.items())
    widest = max((len(name) for name, _ in pairs), default=0)
    widest += max((len(number(count)) for _, count in pairs), default=0)
    columns = 3 if widest < WIDE else 2 if widest < WIDER else 1
    rows = -(-len(pairs) // columns)
    cells: list[list[Cell]] = []
    for at in range(rows):
        row: list[Cell] = []
        for column in range(columns):
            place = at + column * rows
            name, count = pairs[place] if place < len(pairs) else ("", None)
            row += [name, number(count) if count is not None else ""]
        cells.append(row)
    title = f"{len(pairs)} Subjects in backup of stream {found.description.name}"
    heads = ["Subject", "Count"] * columns
    return table(heads, cells, title=title, theme=theme, width_max=width_max)


def edited_table(
    done: Edited, target: str, theme: Theme, *, dry_run: bool, per_subject: bool
) -> str:
    """What an edit did, or would do."""
    state = done.description.state
    head = [("Stream", done.description.name), ("Target", target)]
    counts = [
        ("Source Messages", number(done.source_messages)),
        ("Source Subjects", number(done.source_subjects)),
        ("Messages Kept", number(done.kept)),
        ("Subjects Kept", number(done.kept_subjects)),
    ]
    counts += [(one.value, number(done.dropped[one])) for one in Dropped if done.dropped[one]]
    counts += [
        ("Consumers Kept", number(done.consumers_kept)),
        ("Consumers Dropped", number(done.consumers_dropped)),
    ]
    if done.tombstones:
        counts.append(("KV Tombstones Removed by Content Filters", number(done.tombstones)))
    if per_subject:
        counts.append(("Subject State Keys", number(done.state_keys)))
        counts.append(("Subject State Bytes", size(done.state_bytes)))
    counts += [("Warning", text) for text in done.warnings]
    restored = [
        ("Restored Messages", number(_number(state, "messages"))),
        ("Restored Bytes", size(_number(state, "bytes"))),
        ("Restored First Sequence", number(_number(state, "first_seq"))),
        ("Restored Last Sequence", number(_number(state, "last_seq"))),
        ("Restored Consumers", number(_number(state, "consumer_count"))),
    ]
    title = "Dry Run, Nothing Was Written" if dry_run else "Backup Edit Report"
    rules: tuple[int, ...] = (len(head) - 1, len(head) + len(counts) - 1)
    hidden = done.obfuscated
    if hidden is not None:
        rules = (*rules, rules[-1] + len(restored))
        restored.append(("Obfuscated Tokens", number(hidden.tokens)))
        restored.append(("Message Bodies Padded", number(hidden.bodies)))
        restored += [("Key File", str(hidden.key_file))] if hidden.key_file else []
    rows = [*head, *counts, *restored]
    return table([], rows, title=title, theme=theme, rules_after=rules)
