"""`backup info` and `validate`: reading all of an archive."""

from pathlib import Path

from jsctl.api.times import format_time
from jsctl.backups.scan import Contents, read_contents
from jsctl.commands.backup.progress import reading
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.render.humanize import counted, number
from jsctl.render.reports.backup import contents_screen, subject_lines

NEVER = "0001-01-01T00:00:00Z"


def info(call: Call) -> None:
    """What is in a backup."""
    source = Path(call.text("source"))
    with reading(call, "Reading", source) as progress:
        found = read_contents(source, progress)
    if call.as_json:
        call.output.json(_document(found, subjects=call.flag("subjects")))
        return
    call.output.details(contents_screen(found, str(source)))
    if call.flag("subjects"):
        call.output.print()
        call.output.print(subject_lines(found, call.output.theme, call.output.width))
        call.output.print()


def _document(found: Contents, *, subjects: bool) -> dict[str, object]:
    about = found.description
    document: dict[str, object] = {
        "config": about.config,
        "declared": found.declared,
        "declared_counts_advisory": found.counts_are_advisory,
    }
    document |= {"edit": about.edit} if about.edit else {}
    document |= {"source": about.source} if about.source else {}
    document |= {
        "consumers": found.consumers or None,
        "messages": found.messages,
        "num_subjects": len(found.subjects),
    }
    if subjects and found.subjects:
        document["subjects"] = dict(sorted(found.subjects.items()))
    return document | {
        "bytes": found.bytes,
        "first_seq": found.first_sequence,
        "last_seq": found.last_sequence,
        "first_time": format_time(found.first_time_ns) if found.messages else NEVER,
        "last_time": format_time(found.last_time_ns) if found.messages else NEVER,
    }


def validate(call: Call) -> None:
    """Whether a backup is whole: every block, every entry, up to the archive's end."""
    source = Path(call.text("source"))
    with reading(call, "Validating", source) as progress:
        found = read_contents(source, progress)
    if call.as_data:
        call.output.json({"entries": found.entries, **_document(found, subjects=False)})
        return
    first, last = number(found.first_sequence), number(found.last_sequence)
    sequences = f"sequences {first} to {last}" if found.messages else "no messages"
    parts = (
        counted(found.entries, "entry", "entries"),
        counted(len(found.consumers), "consumer"),
        counted(found.messages, "message"),
        counted(len(found.subjects), "subject"),
        sequences,
    )
    call.output.print(f"OK: {', '.join(parts)}")
