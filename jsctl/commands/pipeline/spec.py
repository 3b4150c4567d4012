"""`pipeline init`, `validate` and `plan`: what needs neither Java nor Spark."""

from pathlib import Path

from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import Conflict, JsctlError
from jsctl.render.details import Details
from jsctl.render.humanize import counted, number
from jsctl.settings import Settings, load
from jsctl.spark.pipeline.plan import Plan, input_columns, make_plan
from jsctl.spark.pipeline.specification.spec import Spec, load_spec
from jsctl.spark.pipeline.specification.templates import template


def spec_of(call: Call) -> Spec:
    """The pipeline that the argument `file` names."""
    return load_spec(call.text("file"), call.environ)


def settings_of(call: Call, spec: Spec) -> Settings:
    """How to reach the servers: flags and environment, then the file, then the context."""
    given = call.settings.given
    if any(given.get(key) for key in ("url", "context")):
        return call.settings
    flags = dict(given)
    if spec.connection.context:
        flags["context"] = spec.connection.context
    if spec.connection.servers:
        flags["url"] = spec.connection.servers
    return load(flags, call.environ) if len(flags) > len(given) else call.settings


def init(call: Call) -> None:
    """Writes a file to start from."""
    name = call.text("name")
    path = Path(call.text("output") or f"{name}.yaml")
    if path.exists() and not call.flag("force"):
        raise Conflict(f"{path} exists already", hints=("--force writes it anew",))
    text = template(name, call.text("stream"), call.text("sink"), path.name)
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise JsctlError(f"{path}: {error.strerror}") from None
    load_spec(str(path), call.environ)
    call.output.print(f"Wrote {path}; check it with: jsctl pipeline validate {path}")


def validate(call: Call) -> None:
    """Checks a file; the columns that its query may use are shown."""
    spec = spec_of(call)
    columns = input_columns(spec)
    if call.as_json:
        call.output.json({"name": spec.name, "valid": True, "columns": list(columns)})
        return
    call.output.print(f"{call.text('file')} is valid")
    call.output.print(f"input has the columns {', '.join(columns)}")


async def plan(call: Call) -> None:
    """What a run would do."""
    from dataclasses import replace

    from jsctl.client.manager import open_manager

    spec = spec_of(call)
    settings = replace(settings_of(call, spec), trace=call.settings.trace)
    async with open_manager(settings, call.output.log) as manager:
        found = await make_plan(spec, manager)
    if call.as_json:
        call.output.json(found.document())
        return
    call.output.details(plan_screen(found))
    for warning in found.warnings:
        call.output.note(f"warning: {warning}")


def plan_screen(plan: Plan) -> Details:
    """The plan as a screen."""
    screen = Details(f"Plan of pipeline {plan.name}")
    screen.row("Reads", plan.source)
    if plan.messages:
        screen.row("Sequences", f"{number(plan.first_seq)} to {number(plan.last_seq)}")
    waiting = counted(plan.messages, "message")
    batches = counted(plan.batches, "batch", "batches")
    screen.row("Waiting", f"at most {waiting} in {batches}")
    resume = f"after batch {plan.committed_batch}" if plan.goes_on else "from the start"
    screen.row("Goes on", resume)
    screen.row("Readers", plan.partitions or "one a core")
    screen.row("Columns", ", ".join(plan.columns))
    screen.row("Query", plan.transform)
    screen.row("Writes", plan.sink)
    screen.row("Dead letters", plan.dead_letter)
    screen.row("Trigger", plan.trigger)
    screen.row("Checkpoint", plan.checkpoint)
    screen.row("Spark", plan.master)
    return screen
