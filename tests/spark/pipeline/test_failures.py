"""Failures of files and queries are one line with a remedy, however deep Spark buries them."""

import errno
import os
from pathlib import Path

import pytest

from jsctl.errors import Conflict, JsctlError
from jsctl.spark.pipeline.failures import AGAIN, explain

FULL_DISK = """\
An error occurred while calling o271.parquet.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 1 in stage 5.0 failed
org.apache.spark.SparkException: [TASK_WRITE_FAILED] Task failed while writing rows to \
file:/lake/orders/_staging/batch=1. SQLSTATE: 58030
\tat org.apache.spark.sql.errors.QueryExecutionErrors$.taskFailedWhileWritingRowsError(x.scala:9)
Caused by: org.apache.parquet.util.AutoCloseables$ParquetCloseResourceException: Unable to close
Caused by: org.apache.hadoop.fs.FSError: java.io.IOException: No space left on device
"""
RAISED = """\
An error occurred while calling o9.parquet.
: org.apache.spark.SparkRuntimeException: [USER_RAISED_EXCEPTION] message O#7 on o.a is not json: \
no value; decode.on_error: skip or dead_letter goes on without it SQLSTATE: P0001
\tat org.apache.spark.sql.errors.QueryExecutionErrors$.raiseError(QueryExecutionErrors.scala:2)
"""


@pytest.mark.parametrize(
    ("text", "message", "hints"),
    [
        (FULL_DISK, "/lake/orders: no space left on device", ("make room", AGAIN)),
        (RAISED, "message O#7 on o.a is not json: no value",
         ("decode.on_error: skip or dead_letter goes on without it",)),
    ],
)  # fmt: skip
def test_one_line_and_a_remedy(
    text: str, message: str, hints: tuple[str, ...], tmp_path: Path
) -> None:
    log = tmp_path / "log"
    found = explain(RuntimeError(text), log_file=log)
    assert str(found) == message
    assert found.hints == (*hints, f"the whole log is in {log}")
    assert text in log.read_text(), "nothing of the trace is lost"


def test_what_the_system_says_names_the_file() -> None:
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/lake/state.json")
    assert str(explain(full)) == "/lake/state.json: no space left on device"
    missing = OSError(errno.ENOENT, os.strerror(errno.ENOENT), "/proc/x")
    assert str(explain(missing)) == "/proc/x: No such file or directory"


def test_what_was_explained_stays() -> None:
    known = Conflict("taken", hints=("wait",))
    assert explain(known) is known
    assert isinstance(explain(ValueError("odd")), JsctlError)
