"""`pipeline status` and `stop`: what a checkpoint says, from any process."""

import time
from dataclasses import asdict
from pathlib import Path

from jsctl.commands.toolkit.invocation.call import Call
from jsctl.dataclass import dataclass
from jsctl.errors import Conflict, JsctlError, NotFound, Unreachable
from jsctl.render.column import Column
from jsctl.render.humanize import duration, number
from jsctl.spark.pipeline.specification.spec import load_spec
from jsctl.spark.pipeline.state import Checkpoint, Registry, RunState

LOOK_S = 0.1


@dataclass(frozen=True, slots=True)
class Row:
    """A pipeline and how it is."""

    name: str
    path: str
    checkpoint: str
    state: RunState
    committed: int
    position: dict[str, int]


def _position(row: Row) -> str:
    return ", ".join(f"{name} {number(seq)}" for name, seq in row.position.items())


def _age(row: Row) -> str:
    return duration(max(0, time.time_ns() - row.state.updated)) if row.state.updated else ""


COLUMNS: tuple[Column[Row], ...] = (
    Column("name", "Pipeline", lambda row: row.name),
    Column("state", "State", lambda row: row.state.state),
    Column("batch", "Batch", lambda row: row.committed,
           lambda row: number(row.committed) if row.committed >= 0 else ""),
    Column("rows", "Rows", lambda row: row.state.rows, lambda row: number(row.state.rows)),
    Column("dead_letters", "Dead Letters", lambda row: row.state.dead_letters, priority=2),
    Column("position", "Position", lambda row: row.position, _position),
    Column("lag", "Waiting", lambda row: row.state.lag,
           lambda row: number(row.state.lag) if row.state.lag >= 0 else ""),
    Column("updated", "Last Word", lambda row: row.state.updated, _age, priority=1),
    Column("pid", "Process", lambda row: row.state.pid, lambda row: str(row.state.pid or ""),
           priority=3),
    Column("host", "Host", lambda row: row.state.host, priority=3),
    Column("error", "Error", lambda row: row.state.error, priority=1),
)  # fmt: skip


def status(call: Call) -> None:
    """How far pipelines are."""
    found = [_row(*one) for one in _known(call)]
    if call.as_json:
        call.output.json([{**asdict(row)} for row in found])
        return
    if not found and not call.output.machine:
        call.output.print("No pipelines were run on this machine")
        return
    call.output.table(found, COLUMNS, "Pipelines")


def stop(call: Call) -> None:
    """Asks a run to end and waits for it."""
    name, _, checkpoint_path = _known(call)[0]
    checkpoint = Checkpoint(checkpoint_path)
    if not checkpoint.is_running():
        raise Conflict(f"pipeline {name} does not run")
    checkpoint.ask_to_stop()
    end = time.monotonic() + call.duration("wait") / 1e9
    while checkpoint.is_running():
        if time.monotonic() > end:
            raise Unreachable(
                f"pipeline {name} has not ended yet; it was asked to",
                hints=(f"its process is {checkpoint.state().pid} on {checkpoint.state().host}",),
            )
        time.sleep(LOOK_S)
    state = checkpoint.state()
    if state.state == "failed":
        raise JsctlError(f"pipeline {name} failed when it was to end: {state.error}")
    call.output.print(f"Pipeline {name} stopped after batch {state.batch}")


def _known(call: Call) -> list[tuple[str, str, str]]:
    """(name, file, checkpoint) of the pipeline that was named, or of all."""
    word = call.text("file")
    registered = Registry.default(call.environ).known()
    if not word:
        return [(name, one["path"], one["checkpoint"]) for name, one in registered.items()]
    if word in registered and not Path(word).is_file():
        return [(word, registered[word]["path"], registered[word]["checkpoint"])]
    if not Path(word).is_file():
        known = ", ".join(registered) or "none"
        raise NotFound(f"no pipeline {word}", hints=(f"pipelines of this machine: {known}",))
    spec = load_spec(word, call.environ)
    return [(spec.name, spec.path, spec.checkpoint)]


def _row(name: str, path: str, checkpoint: str) -> Row:
    place = Checkpoint(checkpoint)
    return Row(name, path, checkpoint, place.state(), place.committed(), place.position())
