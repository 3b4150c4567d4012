"""What the commands that start Spark share: where it runs, its log, how it goes."""

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from jsctl.commands.call import Call
from jsctl.settings import Settings
from jsctl.spark.pipeline.progress import Display
from jsctl.spark.pipeline.spec import Spec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MASTER, MEMORY = "local[*]", "1g"
Start = Callable[[], "SparkSession"]


@dataclass(frozen=True, slots=True)
class Work:
    """A command at work: `start` gives the session, made at its first call."""

    start: Start
    display: Display
    log_file: Path


@contextmanager
def at_work(
    call: Call, name: str, settings: Settings, spec: Spec | None = None, *, short: bool = False
) -> Iterator[Work]:
    """Everything a command needs to use Spark; the session ends with it.

    Options win over the pipeline's file. Java's output goes to a log file, which is removed
    again when all went well.
    """
    handle, path = tempfile.mkstemp(prefix=f"jsctl-{name}-", suffix=".log")
    os.close(handle)
    log = Path(path)
    display = Display(call.output.stderr, settings, enabled=call.flag("progress"))
    started: list[SparkSession] = []

    def start() -> "SparkSession":
        from jsctl.spark.runtime import start_session

        there = _active()
        if there is not None:
            return there
        display.phase("starting Java")
        started.append(_start(call, name, spec, log, short, start_session))
        display.phase("warming up")
        return started[0]

    with display.shown("planning"):
        try:
            yield Work(start, display, log)
        finally:
            if started:
                from jsctl.spark.runtime import stop_session

                stop_session(started[0])
    log.unlink(missing_ok=True)


def _active() -> "SparkSession | None":
    """A session that this process has already; who made it ends it."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        return None
    return SparkSession.getActiveSession()


def _start(
    call: Call,
    name: str,
    spec: Spec | None,
    log: Path,
    short: bool,
    start_session: "Callable[..., SparkSession]",
) -> "SparkSession":
    master = call.text("master") or (spec.spark.master if spec else MASTER)
    memory = call.text("memory") or (spec.spark.memory if spec else MEMORY)
    conf = {**(spec.spark.conf if spec else {}), **call.mapping("conf")}
    defaults = {"spark.sql.shuffle.partitions": str(os.cpu_count() or 2)}
    if not master.startswith("local"):
        defaults = {}
    return start_session(
        f"jsctl {name}",
        master=master,
        memory=memory,
        log_file=log,
        conf={**defaults, **conf},
        short=short,
    )
