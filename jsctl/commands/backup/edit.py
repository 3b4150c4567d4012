"""`backup edit`: a copy with only some of the messages."""

import re
import time
from dataclasses import replace
from pathlib import Path

from jsctl import __version__
from jsctl.api.times import parse_duration, parse_time
from jsctl.backups.edit import Edit, Edited, edit_backup
from jsctl.backups.filters import Filter
from jsctl.backups.obfuscation import Obfuscator
from jsctl.commands.backup.progress import reading
from jsctl.commands.toolkit.grammar.regexps import compiled_bytes
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.commands.toolkit.invocation.reading import broken_off
from jsctl.errors import UsageError
from jsctl.render.reports.backup import edited_table

PATTERN_LENGTH_MAX = 1000
KEEP_PRIVATE = (
    "The key file maps the obfuscated names back to the originals: "
    "share the backup, keep the key file private.\n"
)


def edit(call: Call) -> None:
    """Makes the copy, or says what it would be."""
    source, target = Path(call.text("source")), Path(call.text("target"))
    now_ns = time.time_ns()
    dry_run, keys = call.flag("dry-run"), call.text("obfuscation-key")
    chosen = _filter(call, now_ns)
    chosen.check()
    wanted = Edit(
        wanted=chosen,
        renumber=call.flag("renumber"),
        dry_run=dry_run,
        hidden=_obfuscator(call, keys),
        key_file=Path(keys).expanduser() if keys else None,
        tool=f"jsctl {__version__}",
        now_ns=now_ns,
    )
    per_subject = chosen.per_subject
    passes = 2 if per_subject else 1
    with broken_off(), reading(call, "Editing", source, passes) as progress:
        done = edit_backup(source, target, replace(wanted, progress=progress))
    if call.as_data:
        call.output.json(_document(done))
        return
    theme = call.output.theme
    call.output.print(
        edited_table(done, str(target), theme, dry_run=dry_run, per_subject=per_subject)
    )
    call.output.print()
    if done.obfuscated is not None and done.obfuscated.key_file is not None:
        call.output.print(KEEP_PRIVATE)


def _obfuscator(call: Call, keys: str) -> Obfuscator | None:
    if call.flag("obfuscate"):
        return Obfuscator.of_file(Path(keys).expanduser()) if keys else Obfuscator.fresh()
    if keys:
        raise UsageError("ObfuscationKeyFile requires Obfuscate")
    return None


def lookup(call: Call) -> None:
    """What obfuscated names stand for."""
    keys = Obfuscator.of_file(Path(call.text("keyfile")).expanduser())
    found = {value: keys.reveal(value) for value in call.texts("value")}
    if call.output.asked:
        call.output.json([{"value": value, "is": name} for value, name in found.items()])
        return
    for value in call.texts("value"):
        call.output.print(found[value])


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
        return compiled_bytes(text)
    except re.error as error:
        raise UsageError(f'invalid payload expression "{text}": {error}') from None


def _document(done: Edited) -> dict[str, object]:
    hidden = done.obfuscated
    keys = {"key_file": str(hidden.key_file)} if hidden and hidden.key_file else {}
    counts = {"tokens_mapped": hidden.tokens, "bodies_padded": hidden.bodies} if hidden else {}
    return ({"obfuscation": {**counts, **keys}} if hidden else {}) | {
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
