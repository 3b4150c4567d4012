"""`backup edit`: a copy with only some of the messages."""

import re
import time
from pathlib import Path

from jsctl import __version__
from jsctl.api.times import parse_duration, parse_time
from jsctl.backups.edit import Edit, Edited, edit_backup
from jsctl.backups.filters import Filter
from jsctl.commands.backup.progress import reading
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import UsageError
from jsctl.render.reports.backup import edited_table

PATTERN_LENGTH_MAX = 1000


def edit(call: Call) -> None:
    """Makes the copy, or says what it would be."""
    source, target = Path(call.text("source")), Path(call.text("target"))
    now_ns = time.time_ns()
    wanted = _filter(call, now_ns)
    wanted.check()
    dry_run = call.flag("dry-run")
    passes = 2 if wanted.per_subject else 1
    with reading(call, "Editing", source, passes) as progress:
        done = edit_backup(
            source,
            target,
            Edit(
                wanted=wanted,
                renumber=call.flag("renumber"),
                dry_run=dry_run,
                tool=f"jsctl {__version__}",
                now_ns=now_ns,
                progress=progress,
            ),
        )
    if call.as_json:
        call.output.json(_document(done))
        return
    theme = call.output.theme
    call.output.print(
        edited_table(done, str(target), theme, dry_run=dry_run, per_subject=wanted.per_subject)
    )
    call.output.print()


def _filter(call: Call, now_ns: int) -> Filter:
    last = call.integer("last-per-subject")
    if call.given("last-per-subject") and last < 1:
        raise UsageError(f"LastPerSubject requires at least 1, got {last}")
    headers = [text.partition(":") for text in call.texts("header")]
    return Filter(
        subjects=call.texts("subject"),
        exclude_subjects=call.texts("exclude-subject"),
        after_ns=_moment(call, "after", now_ns),
        before_ns=_moment(call, "before", now_ns),
        first_sequence=_sequence(call, "first-seq"),
        last_sequence=_sequence(call, "last-seq"),
        headers=tuple((name, value if colon else None) for name, colon, value in headers),
        exclude_headers=call.texts("exclude-header"),
        payloads=tuple(_pattern(text) for text in call.texts("payload-match")),
        exclude_payloads=tuple(_pattern(text) for text in call.texts("exclude-payload-match")),
        last_per_subject=last,
        kv_compact=call.flag("kv-compact"),
    )


def _sequence(call: Call, name: str) -> int | None:
    if not call.given(name):
        return None
    if call.integer(name) < 0:
        raise UsageError(f"--{name} is a sequence, got '{call.text(name)}'")
    return call.integer(name)


def _moment(call: Call, name: str, now_ns: int) -> int | None:
    text = call.text(name)
    if not text:
        return None
    try:
        return parse_time(text) if "T" in text else now_ns - parse_duration(text)
    except ValueError:
        raise UsageError(
            f'invalid time "{text}": expected an RFC3339 time or a duration like 2h'
        ) from None


def _pattern(text: str) -> re.Pattern[bytes]:
    if len(text) > PATTERN_LENGTH_MAX:
        raise UsageError(f"a payload expression has at most {PATTERN_LENGTH_MAX} characters")
    try:
        return re.compile(text.encode())
    except (re.error, OverflowError) as error:
        raise UsageError(f'invalid payload expression "{text}": {error}') from None


def _document(done: Edited) -> dict[str, object]:
    return {
        "config": done.description.config,
        "state": done.description.state,
        "source_messages": done.source_messages,
        "source_subjects": done.source_subjects,
        "kept": done.kept,
        "kept_subjects": done.kept_subjects,
        "dropped": {reason.name.lower(): count for reason, count in done.dropped.items() if count},
        "consumers_kept": done.consumers_kept,
        "consumers_dropped": done.consumers_dropped,
        "warnings": done.warnings,
    }
