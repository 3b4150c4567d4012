"""`pipeline export`, `verify` and `restore`."""

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from jsctl.api.stream import StreamInfo
from jsctl.commands.pipeline.session import at_work
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import UsageError
from jsctl.render.details import Details
from jsctl.render.humanize import counted, number, size
from jsctl.spark.pipeline.progress import Display

if TYPE_CHECKING:
    from jsctl.spark.pipeline.archives.restore import RestorePlan, Rule


def _info(call: Call, stream: str) -> StreamInfo:
    from jsctl.spark.pipeline.plan import stream_of

    async def look() -> StreamInfo:
        async with call.manager() as manager:
            return await stream_of(manager, stream)

    return asyncio.run(look())


def export(call: Call) -> None:
    """Archives a stream."""
    from jsctl.spark.pipeline.archives.export import Export
    from jsctl.spark.pipeline.archives.export import export as write

    started = time.monotonic()
    info = _info(call, call.text("stream"))
    if call.integer("chunk") < 1:
        raise UsageError("--chunk must be 1 or more")
    with at_work(call, "export", call.settings, short=True) as work:
        what = Export(
            call.settings,
            info,
            Path(call.text("path")),
            filters=call.texts("filter"),
            from_seq=call.integer("from-seq"),
            to_seq=call.integer("to-seq"),
            chunk=call.integer("chunk"),
            progress_subject=work.display.subject,
        )
        found = write(what, work.session.start, work.display.note, work.log_file)
    if call.as_json:
        call.output.json(found.document())
        return
    seconds = time.monotonic() - started
    if not found.batches:
        call.output.print(
            f"Nothing new: {found.path} holds {counted(found.rows_in_all, 'message')}"
        )
        return
    call.output.print(
        f"Exported {counted(found.rows, 'message')} of {found.stream} "
        f"in {counted(found.batches, 'batch', 'batches')} to "
        f"{found.path} in {seconds:.1f}s; the archive holds {number(found.rows_in_all)}"
    )


def verify(call: Call) -> int:
    """Checks an archive; 1 when something differs."""
    from jsctl.spark.pipeline.archives.verify import verify as check

    info = _info(call, call.text("stream")) if call.given("stream") else None
    with at_work(call, "verify", call.settings, short=True) as work:
        found = check(
            Path(call.text("path")),
            work.session.start,
            settings=call.settings,
            info=info,
            log_file=work.log_file,
        )
    if call.as_json:
        call.output.json(found.document())
        return 0 if found.is_good else 1
    screen = Details(f"Archive {found.path}")
    screen.row("Messages", number(found.rows))
    screen.row("Files", f"{found.files}, {size(found.bytes)}")
    screen.row("Hash", f"{found.hash:016x}")
    screen.row_if("Compared with", found.stream)
    screen.rows("Problem", found.problems)
    screen.rows("Different", [f"message {one.seq} is {one.kind}" for one in found.differences])
    screen.row_if("Different in all", found.differing)
    screen.row("Result", "the same" if found.is_good else "NOT the same")
    call.output.details(screen)
    return 0 if found.is_good else 1


def restore(call: Call) -> None:
    """Publishes an archive into a stream."""
    from jsctl.spark.pipeline.archives.restore import Rule
    from jsctl.spark.pipeline.archives.restore import restore as publish

    rules = [Rule.parse(text) for text in call.texts("subject-map")]
    plan = asyncio.run(_prepared(call, rules))
    if call.flag("dry-run"):
        _show_plan(call, plan.document())
        return
    display = Display(call.output.stderr, call.settings, enabled=call.flag("progress"))
    with display.shown("restoring"):
        done = publish(
            call.settings,
            plan,
            rules,
            rate=call.integer("rate"),
            told=lambda rows, _seq: display.advance(plan.stream, rows, plan.rows),
        )
    if call.as_json:
        call.output.json(done.document())
        return
    kept = "with their sequences" if done.kept else "with new sequences"
    call.output.print(
        f"Restored {counted(done.rows, 'message')} into {done.stream} {kept} in {done.seconds:.1f}s"
    )


async def _prepared(call: Call, rules: "Sequence[Rule]") -> "RestorePlan":
    """The plan; its stream is made unless this is a dry run."""
    from jsctl.spark.pipeline.archives.restore import make_stream, plan_restore

    async with call.manager() as manager:
        plan = await plan_restore(
            manager,
            Path(call.text("path")),
            call.text("stream"),
            rules=rules,
            from_seq=call.integer("from-seq"),
            replicas=call.integer("replicas"),
        )
        if plan.made and not call.flag("dry-run"):
            await make_stream(manager, plan)
    return plan


def _show_plan(call: Call, plan: dict[str, object]) -> None:
    if call.as_json:
        call.output.json(plan)
        return
    screen = Details(f"Restore of {plan['path']}")
    screen.row("Stream", f"{plan['stream']}{', to be made' if plan['made'] else ''}")
    screen.row("Messages", number(int(str(plan["rows"]))))
    screen.row("Sequences", f"{plan['first_seq']} to {plan['last_seq']}")
    screen.row("Sequences are kept", bool(plan["kept"]))
    screen.row_if("Goes on after", plan["resume_after"])
    call.output.details(screen)
