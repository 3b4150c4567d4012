"""What the commands that start Spark share: where it runs, its log, how it goes."""

import logging
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from jsctl.commands.toolkit.invocation.call import Call
from jsctl.dataclass import dataclass
from jsctl.settings import Settings
from jsctl.spark.pipeline.progress import Display
from jsctl.spark.pipeline.session import LazySession
from jsctl.spark.pipeline.specification.spec import Spec

MASTER, MEMORY = "local[*]", "1g"


@dataclass(frozen=True, slots=True)
class Work:
    """A command at work; Spark is started by the first `session.start()`."""

    session: LazySession
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
    session = LazySession(
        f"jsctl {name}",
        call.text("master") or (spec.spark.master if spec else MASTER),
        call.text("memory") or (spec.spark.memory if spec else MEMORY),
        log,
        conf={**(spec.spark.conf if spec else {}), **call.mapping("conf")},
        short=short,
        told=display.phase,
    )
    with display.shown("planning"), quiet_interrupts():
        try:
            yield Work(session, display, log)
        finally:
            session.close()
    log.unlink(missing_ok=True)


@contextmanager
def quiet_interrupts() -> Iterator[None]:
    """Within it nothing is shown of where Ctrl-C found the way to Java, which py4j logs with a
    trace before it lets it through."""
    root = logging.getLogger()
    root.addFilter(_is_no_interrupt)
    try:
        yield
    finally:
        root.removeFilter(_is_no_interrupt)


def _is_no_interrupt(record: logging.LogRecord) -> bool:
    return record.exc_info is None or record.exc_info[0] is not KeyboardInterrupt
