"""What goes wrong in the work of pipelines, in one line with a remedy.

Most of it is Spark's and explained there; here are the failures of writing files and of queries
that give up by themselves, which Spark buries in the middle of a trace.
"""

import re
from pathlib import Path

from jsctl.errors import JsctlError
from jsctl.spark.failures import explain_failure

AGAIN = "run the same command again afterwards: it goes on where it was, nothing is there twice"
_RAISED = re.compile(r"\[USER_RAISED_EXCEPTION\] (.+?)(?: SQLSTATE: \w+|$)", re.MULTILINE)
_REMEDY = re.compile(r"^(.*); (decode\.on_error: .*)$")
_WRITTEN = re.compile(r"while writing rows to (?:file:)?(\S+?)\.? SQLSTATE")
_STORAGE = re.compile(
    r"(No space left on device|Disk quota exceeded|Read-only file system|Input/output error"
    r"|Permission denied)"
)
_REMEDIES = {
    "Permission denied": "the user of this process, or of Spark's workers, must be able to write",
    "Read-only file system": "choose another path, or mount it for writing",
}


def explain(error: BaseException, *, log_file: Path | None = None) -> JsctlError:
    """As `explain_failure`, for whoever writes files and runs queries of people."""
    known = explain_failure(error, log_file=log_file)
    if isinstance(error, JsctlError):
        return known
    text = _text(error)
    made = _raised(text) or _storage(error, text) or _of_system(error)
    if made is None:
        return known
    logged = known.hints[-1:] if log_file is not None else ()
    return JsctlError(str(made), hints=(*made.hints, *logged))


def _raised(text: str) -> JsctlError | None:
    """What a query said itself, as `decoded` does for payloads that do not fit."""
    found = _RAISED.findall(text)
    if not found:
        return None
    message = found[0].strip()
    parted = _REMEDY.match(message)
    if parted is None:
        return JsctlError(message)
    return JsctlError(parted[1], hints=(parted[2],))


def _storage(error: BaseException, text: str) -> JsctlError | None:
    """A disk that is full, or cannot be written."""
    found = _STORAGE.search(text)
    if found is None:
        return None
    place = _WRITTEN.findall(text) or [getattr(error, "filename", None) or ""]
    where = str(place[-1]).partition("/_staging/")[0]
    remedy = _REMEDIES.get(found[1], "make room")
    problem = found[1][0].lower() + found[1][1:]
    return JsctlError(f"{where}: {problem}" if where else problem, hints=(remedy, AGAIN))


def _of_system(error: BaseException) -> JsctlError | None:
    """What the system says of a file of this process."""
    if isinstance(error, OSError) and error.filename and error.strerror:
        return JsctlError(f"{error.filename}: {error.strerror}")
    return None


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - Java may be gone when its exception is to be printed
        return type(error).__name__
