"""Files that commands write: whole under their names, or not at all."""

from pathlib import Path

from jsctl.errors import JsctlError, sentence_of
from jsctl.files import SECRET_MODE, file_at, replace_file

SHARED_MODE = 0o644


def save(path: Path, data: str | bytes, *, mode: int = SECRET_MODE) -> None:
    """Replaces a file in one step; what is none, as a terminal or a pipe, is written to.

    Who may read a file that is there stays as it is. Raises JsctlError; then the file is as it was.
    """
    content = data.encode() if isinstance(data, str) else data
    try:
        there = file_at(path)
        kept = there.stat().st_mode & 0o777 if there is not None and there.exists() else mode
        replace_file(path, content, kept)
    except OSError as error:
        raise JsctlError(sentence_of(error, path)) from None
