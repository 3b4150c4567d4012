"""Files that commands write: whole under their names, or not at all."""

from pathlib import Path

from jsctl.auth.files import SECRET_MODE, replace_file
from jsctl.errors import JsctlError, sentence_of

SHARED_MODE = 0o644


def save(path: Path, data: str | bytes, *, mode: int = SECRET_MODE) -> None:
    """Replaces a file in one step; what is none, as a terminal or a pipe, is written to.

    Who may read a file that is there stays as it is. Raises JsctlError; then the file is as it was.
    """
    content = data.encode() if isinstance(data, str) else data
    target = path.resolve() if path.is_symlink() else path
    try:
        if not target.exists():
            replace_file(target, content, mode)
        elif target.is_file():
            replace_file(target, content, target.stat().st_mode & 0o777)
        else:
            target.write_bytes(content)
    except OSError as error:
        raise JsctlError(sentence_of(error, path)) from None
