"""`audit analyze`: the checks, run on an archive."""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from jsctl.api.fields import ZERO_TIME
from jsctl.api.jsontext import parse
from jsctl.api.times import format_time
from jsctl.commands.audit import rules, server_rules
from jsctl.commands.audit.catalog import CHECKS, Check
from jsctl.commands.audit.examples import (
    FAIL,
    OUTCOMES,
    PASS,
    SKIP,
    WARN,
    CannotTell,
    Examples,
    at,
    number,
    objects,
    text,
)
from jsctl.commands.toolkit.archives.files import Document, Reader
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import Conflict, NotFound, UsageError
from jsctl.files import write_whole
from jsctl.render.details import Details
from jsctl.render.humanize import counted, moment
from jsctl.render.table import readable, safe

REPORT_TYPE = "io.nats.audit.v1.analysis"
_FACTS = (
    "capture_timestamp",
    "connected_server_name",
    "connected_server_version",
    "connect_url",
    "user_name",
    "version",
)
Log = Callable[[str], None]
Rule = Callable[[Check, Reader, Examples], str]
_RULES: Mapping[str, Rule] = {
    "ACCOUNTS_001": rules.account_limits,
    "CLUSTER_001": rules.memory_outliers,
    "CLUSTER_002": rules.uniform_gateways,
    "CLUSTER_003": rules.many_assets,
    "CLUSTER_004": rules.cluster_names,
    "JETSTREAM_001": rules.lagging_replicas,
    "JETSTREAM_002": rules.many_subjects,
    "JETSTREAM_003": rules.stream_limits,
    "JETSTREAM_004": rules.stream_metadata,
    "JETSTREAM_005": rules.consumer_metadata,
    "LEAF_001": rules.leaf_names,
    "META_001": rules.meta_online,
    "META_002": rules.meta_leader,
    "SERVER_001": server_rules.health,
    "SERVER_002": server_rules.versions,
    "SERVER_003": server_rules.busy,
    "SERVER_004": server_rules.slow_consumers,
    "SERVER_005": server_rules.resources,
    "SERVER_006": server_rules.domains,
    "SERVER_007": server_rules.authentication,
    "SERVER_008": server_rules.certificates,
}


def analyze(call: Call) -> None:
    """Runs all checks that are not skipped; or shows a report that was saved."""
    limit = call.integer("max-examples")
    if limit < 0:
        raise UsageError("max-examples cannot be negative")
    if call.given("load"):
        _show(call, _loaded(call.text("load")), call.text("load"), limit)
        return
    target = Path(call.text("save"))
    if call.given("save") and target.exists() and not call.flag("force"):
        raise Conflict(f'result file "{target}" already exist, use --force to overwrite')
    if not call.given("archive"):
        raise UsageError("archive path is required")
    path = call.text("archive")
    reader = _CountingReader(Path(path))
    log = call.output.log if call.flag("verbose") else _say_nothing
    try:
        report = _analyzed(reader, call.texts("skip"), limit, log)
    finally:
        reader.close()
    _show(call, report, path, limit)
    if call.given("save"):
        write_whole(target, json.dumps(report, indent=2))


def _say_nothing(_text: str) -> None:
    """The log of those who want none."""


class _CountingReader(Reader):
    """Counts what a check reads, and notes what it looks for in vain."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.read = 0
        self.lacking: list[str] = []

    def each(self, **tags: str) -> Iterator[Document]:
        """As of every reader."""
        before = self.read
        for document in super().each(**tags):
            self.read += 1
            yield document
        if self.read == before:
            kind = tags.pop("artifact_type", "document")
            self.lacking.append(f"no {kind} of {', '.join(map(' '.join, tags.items()))}")

    def tell(self, about: str, log: Log) -> None:
        """What was read since it was told last."""
        for one in self.lacking:
            log(safe(f"{about}: {one}"))
        log(f"{about}: {counted(self.read, 'document')} read")
        self.read, self.lacking = 0, []


def _analyzed(reader: _CountingReader, skipped: Sequence[str], limit: int, log: Log) -> Document:
    metadata = reader.metadata()
    if not metadata:
        log("the archive does not say who gathered it, and when")
    unwanted = {code.upper() for code in skipped}
    results = [
        _result(check, reader, limit, log)
        if check.code not in unwanted
        else _told(check, SKIP, Examples(), "")
        for check in CHECKS
    ]
    counts = Counter(text(result, "outcome_string") for result in results)
    facts = {key: text(metadata, key) for key in _FACTS}
    facts["capture_timestamp"] = facts["capture_timestamp"] or ZERO_TIME
    return {
        "type": REPORT_TYPE,
        "time": format_time(time.time_ns()),
        "metadata": facts,
        "skipped_checks": sorted(dict.fromkeys(skipped)),
        "skipped_suites": [],
        "checks": results,
        "outcomes": {outcome: counts[outcome] for outcome in sorted(OUTCOMES)},
    }


def _result(check: Check, reader: _CountingReader, limit: int, log: Log) -> Document:
    found = Examples(limit)
    try:
        outcome, error = _RULES[check.code](check, reader, found), ""
    except (CannotTell, UsageError) as problem:
        outcome, error = SKIP, str(problem)
    reader.tell(check.code, log)
    log(f"{check.code}: {outcome}, {counted(len(found.kept) + found.dropped, 'issue')}")
    return _told(check, outcome, found, error)


def _told(check: Check, outcome: str, found: Examples, error: str) -> Document:
    examples: Document = {}
    if found.kept:
        examples["examples"] = found.kept
    if found.dropped:
        examples["more"] = found.dropped
    if error:
        examples["error"] = error
    return {
        "check": check.document(),
        "outcome": OUTCOMES.index(outcome),
        "outcome_string": outcome,
        "examples": examples,
    }


def _loaded(path: str) -> Document:
    try:
        report = parse(Path(path).read_bytes())
    except OSError as error:
        raise NotFound(f"open {path}: {(error.strerror or '').lower()}") from None
    except ValueError:
        raise UsageError(f"{path} is no report: it is not JSON") from None
    if not isinstance(report, dict) or report.get("type") != REPORT_TYPE:
        raise UsageError(f'unexpected analysis type "{text(report, "type")}"')
    return report


def _show(call: Call, report: Document, path: str, limit: int) -> None:
    if call.as_json:
        call.output.json(report)
    elif call.output.form in ("csv", "tsv", "names"):
        call.output.json(_rows(report, limit))
    elif call.flag("markdown") or call.output.asked:
        call.output.print(readable(_markdown(report, limit)))
    else:
        _show_lines(call, report, path, limit)


def _show_lines(call: Call, report: Document, path: str, limit: int) -> None:
    facts = at(report, "metadata")
    captured = _captured(text(facts, "capture_timestamp") or ZERO_TIME)
    call.output.print(f'NATS Audit Report "{path}" captured at {safe(captured)}\n')
    for result in objects(report, "checks"):
        outcome, check = text(result, "outcome_string"), at(result, "check")
        about = f"[{outcome}] [{text(check, 'code')}] {text(check, 'description')}"
        call.output.print(safe(about))
        if error := text(result, "examples", "error"):
            call.output.print(safe(f"Error: {error}"))
        if examples := _limited(result, limit):
            call.output.print("".join(f" - {safe(example)}\n" for example in examples))
    call.output.print()
    screen = Details("Report Summary")
    screen.section("Archive Information")
    screen.row("Connection Server", text(facts, "connect_url"))
    screen.row("Server Version", text(facts, "connected_server_version"))
    screen.row("Creator", text(facts, "version"))
    screen.row("User", text(facts, "user_name"))
    screen.section("Summary of Checks")
    told = at(report, "outcomes")
    outcomes = told if isinstance(told, dict) else {}
    counts = {one: int(number(outcomes, one)) for one in outcomes}
    for outcome in sorted(counts, key=lambda one: (counts[one], one)):
        screen.row(outcome, counts[outcome])
    call.output.details(screen)


def _captured(told: str) -> str:
    """As it stands where it is no time: who wrote the archive says what he likes."""
    try:
        return moment(told)
    except ValueError:
        return told


def _rows(report: Document, limit: int) -> list[dict[str, object]]:
    """A check in each."""
    return [
        {
            "code": text(one, "check", "code"),
            "suite": text(one, "check", "suite"),
            "outcome": text(one, "outcome_string"),
            "description": text(one, "check", "description"),
            "examples": "; ".join(_limited(one, limit)),
        }
        for one in objects(report, "checks")
    ]


def _limited(result: Document, limit: int) -> list[str]:
    """The examples, with a last line that counts those that are left out."""
    given = at(result, "examples", "examples")
    kept = [str(one) for one in given] if isinstance(given, list) else []
    more = at(result, "examples", "more")
    dropped = more if isinstance(more, int) else 0
    if limit and len(kept) > limit:
        kept, dropped = kept[:limit], dropped + len(kept) - limit
    return [*kept, f"... and {dropped} more ..."] if dropped else kept


def _markdown(report: Document, limit: int) -> str:
    facts = at(report, "metadata")
    lines = [
        f"# NATS Audit Report produced {_rfc822(text(report, 'time'))}",
        "",
        "## Connection Details",
        "",
        f"Report generated using archive from **{text(facts, 'connect_url')}** by "
        f"**{text(facts, 'user_name')}** created "
        f"**{_rfc822(text(facts, 'capture_timestamp'))}**",
        "",
        "## Report Summary",
        "",
        "|Status|Count|",
        "|------|-----|",
        *(f"|{outcome}|{at(report, 'outcomes', outcome)}|" for outcome in (FAIL, WARN, PASS, SKIP)),
        "",
        "## Results",
    ]
    suite = ""
    results = objects(report, "checks")
    for result in sorted(
        results, key=lambda one: (text(one, "check", "suite"), text(one, "check", "code"))
    ):
        if text(result, "check", "suite") != suite:
            suite = text(result, "check", "suite")
            lines.append(f"### Check Suite: {suite}")
        lines += _markdown_result(result, limit)
    return "\n".join(lines)


def _markdown_result(result: Document, limit: int) -> list[str]:
    given = at(result, "examples", "examples")
    examples = [str(one) for one in given] if isinstance(given, list) else []
    lines = [
        f"#### {text(result, 'check', 'name')}",
        "",
        f"Outcome: **{text(result, 'outcome_string')}**",
        "",
    ]
    if examples:
        lines += ["|#|Example|", "|-|-------|"]
        shown = enumerate(examples[: limit or None], start=1)
        cells = ((count, safe(one).replace("|", "\\|")) for count, one in shown)
        lines += [f"|{count}|{cell}|" for count, cell in cells]
        lines.append("")
    return lines


def _rfc822(moment_text: str) -> str:
    try:
        when = datetime.fromisoformat(moment_text).astimezone(UTC)
    except (ValueError, OverflowError):  # the latter of a day before the first year
        when = datetime(1, 1, 1, tzinfo=UTC)
    return when.strftime("%d %b %y %H:%M %z")
