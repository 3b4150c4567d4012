"""What goes wrong in Spark, in one line with a remedy: Java and Python traces -> JsctlError.

Errors of readers and writers happen in other processes and come back as text inside a Java
exception. The last line of the Python trace names the class and the message; remedies travel in
the message, in brackets.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import ParamSpec, TypeVar

from jsctl import errors
from jsctl.api.errors import ApiError
from jsctl.errors import JsctlError, RequestFailed, Unreachable

P = ParamSpec("P")
R = TypeVar("R")

MESSAGE_MAX = 500
_HINT = re.compile(r" \[hint: ([^\]]*)\]")
_OURS = re.compile(r"^(?:\w+\.)*jsctl\.(?:errors|spark\.failures)\.(\w+): (.+)$", re.MULTILINE)
_PYTHON = re.compile(r"^(?:\w+\.)*(\w*(?:Error|Exception|Interrupt)): (.+)$", re.MULTILINE)
_JAVA = re.compile(
    r"^(?:Caused by: |: )?(?:[\w$]+\.)+(\w*(?:Exception|Error)): (.+)$", re.MULTILINE
)
_PYTHON_ENDED = ("Python worker exited unexpectedly", "Python worker failed to connect back")
_CALLED = "An error occurred while calling"
"""What the bridge to Java says of every failure."""
_ONLY_APPENDS = "jetstream does not support Update mode"
_DISK_FULL = "No space left on device"
_WRITING_TO = re.compile(r"writing rows to (\S+?)\.?\s")
_JAVA_GONE = ("Py4JNetworkError", "ConnectionRefusedError", "ConnectionResetError", "Answer from")


class SparkFailure(JsctlError):
    """Spark itself failed."""

    kind = "spark"


def reported(body: Callable[P, R]) -> Callable[P, R]:
    """Marks a method that Spark calls in another process: its errors keep their remedy."""

    @wraps(body)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        with reporting():
            return body(*args, **kwargs)

    return call


@contextmanager
def reporting() -> Iterator[None]:
    """Within it expected failures leave with their remedies in the text, all as JsctlError."""
    try:
        yield
    except ApiError as error:
        raise JsctlError(str(RequestFailed(error))) from error
    except JsctlError as error:
        raise _portable(error) from error
    except OSError as error:
        raise Unreachable(f"{type(error).__name__}: {error}") from error


def _portable(error: JsctlError) -> JsctlError:
    text = " ".join(str(error).split())
    for hint in error.hints:
        marked = f" [hint: {hint.replace(']', ')')}]"
        text = text if marked in text else text + marked
    kind = JsctlError if isinstance(error, RequestFailed) else type(error)
    return kind(text)


def explain_failure(error: BaseException, *, log_file: Path | None = None) -> JsctlError:
    """One line that says what happened, the remedy as a hint, and where the whole text is."""
    if isinstance(error, JsctlError):
        return error
    text = f"{type(error).__name__}: {_text(error)}"
    made = _ours(text) or _known(text) or SparkFailure(_line(text, error))
    hints = made.hints
    if log_file is not None:
        _append(log_file, text)
        hints = (*hints, f"the whole log is in {log_file}")
    return type(made)(str(made), hints=hints)


def _ours(text: str) -> JsctlError | None:
    found = _OURS.findall(text)
    if not found:
        return None
    name, message = found[-1]
    kind = getattr(errors, name, JsctlError)
    if not (isinstance(kind, type) and issubclass(kind, JsctlError)) or kind is RequestFailed:
        kind = JsctlError
    return kind(_HINT.sub("", message).strip(), hints=tuple(_HINT.findall(message)))


def _known(text: str) -> JsctlError | None:
    if "JAVA_GATEWAY_EXITED" in text:
        return SparkFailure("Java ended while Spark started")
    if any(words in text for words in _JAVA_GONE) and "java.lang" not in text:
        return SparkFailure(
            "Spark's Java process is gone", hints=("was it killed, or out of memory?",)
        )
    if "java.lang.OutOfMemoryError" in text:
        return SparkFailure("Java ran out of memory", hints=("give the session more memory",))
    if _ONLY_APPENDS in text:
        return SparkFailure(
            "Spark does not let sinks in Python update rows",
            hints=("write each batch in foreachBatch, with option sinkName",),
        )
    if _DISK_FULL in text:
        where = _WRITING_TO.search(text)
        return SparkFailure(
            _DISK_FULL + (f": {where[1]}" if where is not None else ""),
            hints=("make room and start it again: a query with a checkpoint goes on",),
        )
    if "DATA_SOURCE_NOT_FOUND" in text and "jetstream" in text:
        return SparkFailure(
            'Spark does not know the format "jetstream"',
            hints=("install jsctl in the Python that Spark's workers run, see PYSPARK_PYTHON",),
        )
    if any(words in text for words in _PYTHON_ENDED):
        return SparkFailure(
            "a Python worker of Spark ended", hints=("PYSPARK_PYTHON names the Python it runs",)
        )
    return None


def _line(text: str, error: BaseException) -> str:
    for pattern in (_PYTHON, _JAVA):
        found = [
            message
            for _, message in pattern.findall(text)
            if not message.startswith(("o.a.", _CALLED))
        ]
        if found:
            return f"{found[-1].strip()}"[:MESSAGE_MAX]
    lines = [line for line in _text(error).splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__)[:MESSAGE_MAX]


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - Java may be gone when its exception is to be printed
        return type(error).__name__


def _append(log_file: Path, text: str) -> None:
    try:
        with log_file.open("a", encoding="utf-8") as log:
            log.write(text + "\n")
    except OSError:
        return
