"""`pipeline audit` and `pipeline report`: run jobs, show their results."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from jsctl.api.stream import StreamInfo
from jsctl.client.manager import Manager
from jsctl.commands.pipeline.session import Work, at_work
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.dataclass import dataclass
from jsctl.errors import JsctlError, UsageError
from jsctl.render.column import Align, Column
from jsctl.spark.pipeline.capture import ROOT
from jsctl.spark.pipeline.failures import explain
from jsctl.spark.pipeline.jobs.model import Field, Input, Result, Row, Unit
from jsctl.spark.pipeline.jobs.registry import (
    AUDITS,
    NEEDS_ARCHIVE,
    REPORTS,
    Job,
    message_views,
    run_job,
    telemetry_view,
)
from jsctl.spark.pipeline.shown import shown


@dataclass(frozen=True, slots=True)
class Facts:
    """What the servers say before Spark is started."""

    infos: tuple[StreamInfo, ...]
    telemetry: bool


def report(call: Call) -> int:
    """Figures."""
    return _run(call, REPORTS)


def audit(call: Call) -> int:
    """Checks; 1 when something was found."""
    return _run(call, AUDITS)


def _run(call: Call, jobs: Mapping[str, Job]) -> int:
    chosen = _chosen(call, jobs)
    facts = asyncio.run(_facts(call))
    if not facts.infos and not call.given("archive"):
        raise JsctlError("there are no streams to look at")
    with at_work(call, "report", call.settings, short=True) as work:
        results = _results(call, chosen, facts, work)
    _write_pictures(call, results)
    if call.as_json:
        documents = [result.document() for result in results]
        call.output.json(documents if call.text("job") == "all" else documents[0])
    else:
        for result in results:
            _show(call, result)
    is_audit = jobs is AUDITS
    return 1 if is_audit and any(result.findings for result in results) else 0


def _chosen(call: Call, jobs: Mapping[str, Job]) -> list[Job]:
    name = call.text("job")
    if name != "all":
        return [jobs[name]]
    left_out = () if call.given("archive") else (NEEDS_ARCHIVE,)
    return [job for job in jobs.values() if job.name not in left_out]


async def _facts(call: Call) -> Facts:
    """The streams that were named, or all; whether there is telemetry."""
    from jsctl.render.reports.stream.tables import is_system_stream
    from jsctl.spark.pipeline.plan import stream_of

    wanted, telemetry = call.texts("stream"), call.text("telemetry")
    if call.given("archive") and not wanted and "url" not in call.settings.given:
        return Facts((), telemetry=False)
    async with call.manager() as manager:
        if wanted:
            infos = [await stream_of(manager, name) for name in wanted]
        else:
            found = (await manager.streams()).items
            infos = [
                info
                for info in found
                if not is_system_stream(info.config.name) and info.config.name != telemetry
            ]
        stored = [info for info in await _all(manager) if info.config.name == telemetry]
    return Facts(tuple(infos), any(info.state.messages for info in stored))


async def _all(manager: "Manager") -> Sequence[StreamInfo]:
    return (await manager.streams(f"{ROOT}.capture")).items


def _results(call: Call, chosen: Sequence[Job], facts: Facts, work: Work) -> list[Result]:
    archive = Path(call.text("archive")) if call.given("archive") else None
    names = [info.config.name for info in facts.infos]
    results = []
    try:
        spark = work.session.start()
        if any(job.messages for job in chosen):
            message_views(spark, call.settings, names, archive, work.display.subject)
        if facts.telemetry and any(job.telemetry for job in chosen):
            about = names if call.given("stream") else ()
            telemetry_view(spark, call.settings, call.text("telemetry"), about)
        given = Input(
            spark=spark,
            settings=call.settings,
            infos=facts.infos,
            streams=names if call.given("stream") else (),
            archive=archive,
            telemetry=facts.telemetry,
            top=max(1, call.integer("top", 20)),
            now_ns=time.time_ns(),
            phase=work.display.phase,
        )
        for job in chosen:
            work.display.phase(job.name)
            results.append(run_job(job, given))
    except JsctlError:
        raise
    except Exception as error:
        raise explain(error, log_file=work.log_file) from error
    return results


def _show(call: Call, result: Result) -> None:
    for table in result.tables:
        columns = [_column(field) for field in table.fields]
        if not table.rows and not call.output.machine:
            call.output.print(f"{table.title}: none\n")
            continue
        call.output.table(table.rows, columns, table.title)
        if not call.output.machine:
            call.output.print()
    for note in result.notes:
        if call.output.machine:
            call.output.note(note)
        else:
            call.output.print(f"{result.title}: {note}")


def _column(field: Field) -> Column[Row]:
    def value(row: Row) -> object:
        found = row.get(field.key)
        return "" if found is None else found

    def text(unit: Unit, row: Row) -> str:
        return shown(row.get(field.key), unit)

    align = Align.LEFT if field.unit is Unit.TEXT else Align.RIGHT
    return Column(field.key, field.title, value, partial(text, field.unit), align=align)


def _write_pictures(call: Call, results: Sequence[Result]) -> None:
    """Charts into a directory, and the page, if they were asked for."""
    from jsctl.spark.pipeline.charts import page, write_chart

    try:
        if call.given("charts"):
            directory = Path(call.text("charts"))
            directory.mkdir(parents=True, exist_ok=True)
            for result in results:
                for chart in result.charts if result.history else ():
                    path = directory / f"{chart.key}.{call.text('chart-format')}"
                    write_chart(chart, path)
                    call.output.note(f"wrote {path}")
        if call.given("html"):
            text = page("JetStream report", results)
            Path(call.text("html")).write_text(text, encoding="utf-8")
            call.output.note(f"wrote {call.text('html')}")
    except OSError as error:
        raise UsageError(f"{error.filename}: {error.strerror}") from None
