"""`pipeline run` and `compact`."""

from pathlib import Path

from jsctl.commands.pipeline.session import at_work
from jsctl.commands.pipeline.spec import settings_of, spec_of
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import UsageError
from jsctl.render.humanize import counted, number, size
from jsctl.spark.pipeline.compaction import compact_now as merge
from jsctl.spark.pipeline.layout import BatchDirectory
from jsctl.spark.pipeline.specification.spec import load_spec
from jsctl.spark.pipeline.state import Registry, RunState

_ENDS = {"finished": "all of it is read", "stopped": "stopped on request"}


def run(call: Call) -> None:
    """Runs a pipeline."""
    from jsctl.spark.pipeline.run import Runner

    spec = spec_of(call)
    settings = settings_of(call, spec)
    if (call.text("master") or spec.spark.master).startswith("sc://"):
        raise UsageError(
            "a pipeline cannot run over Spark Connect: the driver writes its batches",
            hints=("use local[*], spark://, yarn or k8s://",),
        )
    _check_source(call, settings, spec.source.stream)
    Registry.default(call.environ).note(spec.name, spec.path, spec.checkpoint)
    with at_work(call, spec.name, settings, spec) as work:

        def report(state: RunState) -> None:
            if state.state == "running":
                lag = f", {number(state.lag)} waiting" if state.lag >= 0 else ""
                batch = f"batch {state.batch}" if state.batch >= 0 else "first batch, warming up"
                work.display.phase(f"{batch}, {counted(state.rows, 'row')} written{lag}")

        runner = Runner(
            spec,
            settings,
            once=call.flag("once"),
            show=call.output.print,
            report=report,
            progress_subject=work.display.subject,
            log_file=work.log_file,
        )
        state = runner.run(work.session.start)
    dead = f", {counted(state.dead_letters, 'dead letter')}" if state.dead_letters else ""
    call.output.note(
        f"{spec.name}: {counted(state.rows, 'row')} "
        f"in {counted(state.batches, 'batch', 'batches')}{dead}; "
        f"{_ENDS.get(state.state, state.state)}"
    )


def _check_source(call: Call, settings: object, stream: str) -> None:
    """That the server is there and has the stream, before Java is started."""
    import asyncio

    from jsctl.client.manager import open_manager
    from jsctl.settings import Settings
    from jsctl.spark.pipeline.plan import stream_of

    assert isinstance(settings, Settings)

    async def look() -> None:
        async with open_manager(settings, call.output.log) as manager:
            if stream:
                await stream_of(manager, stream)

    asyncio.run(look())


def compact(call: Call) -> None:
    """Merges batches."""
    target = Path(call.text("file"))
    directory = BatchDirectory(target)
    if target.is_file():
        spec = load_spec(str(target), call.environ)
        if spec.sink.type != "parquet":
            raise UsageError(f"{target}: a {spec.sink.type} sink has nothing to compact")
        directory = BatchDirectory(Path(spec.sink.path))
    directory.manifest()
    with directory.locked(), at_work(call, "compact", call.settings, short=True) as work:
        work.display.phase("merging")
        found = merge(
            work.session.start,
            directory,
            keep=call.integer("keep"),
            file_bytes=call.size("file-size"),
            log_file=work.log_file,
        )
    if call.as_json:
        call.output.json(found.document())
    elif not found.batches:
        call.output.print("Nothing to merge")
    else:
        before = f"{counted(found.files_before, 'file')} of {size(found.bytes_before)}"
        after = f"{found.files_after} of {size(found.bytes_after)}"
        rows = f"{counted(found.batches, 'batch', 'batches')}, {counted(found.rows, 'row')}"
        call.output.print(f"Merged {rows}: {before} became {after}")
