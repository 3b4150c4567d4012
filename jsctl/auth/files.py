"""Files that are whole or not there, and secrets that only their owner may read."""

import os
import stat
from pathlib import Path

from jsctl.errors import Conflict, JsctlError, sentence_of

SECRET_MODE = 0o600
FOLDER_MODE = 0o700
DEVICES = (("dev",), ("proc",))
"""Folders at the root where no file is anybody's own."""
FILE_BYTES_MAX = 64 * 1024 * 1024


def write_whole(path: Path, data: bytes | str, *, mode: int = SECRET_MODE) -> None:
    """Writes beside the file and renames: whoever reads meets the old or the new contents.

    Raises JsctlError; then nothing new is left.
    """
    try:
        replace_file(path, data.encode() if isinstance(data, str) else data, mode)
    except OSError as error:
        raise JsctlError(sentence_of(error, path)) from None


def replace_file(path: Path, content: bytes, mode: int) -> None:
    """The same, with the OSError as it came."""
    if is_device(path):
        path.write_bytes(content)
        return
    draft = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
        with os.fdopen(handle, "wb") as file:
            os.fchmod(handle, mode)
            file.write(content)
            file.flush()
            os.fsync(handle)
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def is_device(path: Path) -> bool:
    """Whether a device or a pipe is there, as `/dev/null` and `/dev/stdout`: it is written to, and
    stays. A file in its place would be in everybody's way."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    if stat.S_ISREG(mode):
        # Standard output may lead into a file, and has a name there all the same.
        return path.absolute().parts[1:2] in DEVICES
    return not stat.S_ISDIR(mode)


def write_new(path: Path, data: str, *, what: str) -> None:
    """The same for a file that must not be there yet. Raises Conflict, and JsctlError."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.draft")
    write_whole(draft, data)
    try:
        os.link(draft, path)
    except FileExistsError:
        raise Conflict(f"{what} {path} already exists") from None
    except OSError as error:
        raise JsctlError(sentence_of(error, path)) from None
    finally:
        draft.unlink(missing_ok=True)


def make_folder(path: Path) -> None:
    """A folder for secrets, with those above it. Raises JsctlError."""
    missing = [one for one in (path, *path.parents) if not one.exists()]
    try:
        for folder in reversed(missing):
            folder.mkdir(mode=FOLDER_MODE, exist_ok=True)
        path.mkdir(exist_ok=True)  # says what is in the way, if it is no folder
    except OSError as error:
        raise JsctlError(f"cannot make {path}: {error.strerror}") from None


def read_bytes(path: Path) -> bytes:
    """A file of at most `FILE_BYTES_MAX`. Raises JsctlError that names it."""
    try:
        with path.open("rb") as file:
            content = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        raise JsctlError(sentence_of(error, path)) from None
    if len(content) > FILE_BYTES_MAX:
        raise JsctlError(f"{path} is larger than {FILE_BYTES_MAX} bytes")
    return content


def read_text(path: Path) -> str:
    """A text file. Raises JsctlError that names it."""
    try:
        return read_bytes(path).decode()
    except UnicodeDecodeError:
        raise JsctlError(f"{path} is not text") from None
