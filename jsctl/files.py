"""Files that are whole or not there, and secrets that only their owner may read."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from jsctl.errors import Conflict, JsctlError, sentence_of

SECRET_MODE = 0o600
PLAIN_MODE = 0o666
"""Less what the process takes away."""
FOLDER_MODE = 0o700
DEVICES = (("dev",), ("proc",))
"""Folders at the root where no file is anybody's own."""
FILE_BYTES_MAX = 64 * 1024 * 1024


def write_whole(path: Path, data: bytes | str, *, mode: int = SECRET_MODE) -> None:
    """A file as `drafted` writes it. Raises JsctlError; then nothing new is left."""
    try:
        replace_file(path, data.encode() if isinstance(data, str) else data, mode)
    except OSError as error:
        raise JsctlError(sentence_of(error, path)) from None


def replace_file(path: Path, content: bytes, mode: int) -> None:
    """The same, with the OSError as it came."""
    with drafted(path, mode) as file:
        file.write(content)


@contextmanager
def drafted(path: Path, mode: int | None = None) -> Iterator[BinaryIO]:
    """What is written in the body is a draft beside the file, and takes its place at the end:
    whoever reads meets the old or the new contents. What is no file is written to as it stands.

    `mode` of a new file is that of the process if it is None. Raises OSError; then, and when the
    body fails, nothing new is left.
    """
    target = file_at(path)
    if target is None:
        with path.open("wb") as device:
            yield device
        return
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    draft = draft_of(target)
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        handle = os.open(draft, flags, PLAIN_MODE if mode is None else mode)
        with os.fdopen(handle, "wb") as file:
            if mode is not None:
                os.fchmod(handle, mode)
            yield file
            file.flush()
            os.fsync(handle)
        draft.replace(target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def draft_of(target: Path) -> Path:
    """Where a file is written that is to stand there."""
    return target.parent / f".{target.name}.{os.getpid()}.new"


def file_at(path: Path) -> Path | None:
    """The file that one of this name takes the place of; links are followed.

    None where a device or a pipe is, as at `/dev/null` and `/dev/stdout`, also where that leads
    into a file: a file in its place would be in everybody's way.
    """
    try:
        mode = path.stat().st_mode
    except OSError:
        return path.resolve() if path.is_symlink() else path
    if stat.S_ISDIR(mode):
        return path
    if not stat.S_ISREG(mode) or path.absolute().parts[1:2] in DEVICES:
        return None
    return path.resolve() if path.is_symlink() else path


def write_new(path: Path, data: str, *, what: str) -> None:
    """As `write_whole`, a file that must not be there yet. Raises Conflict, and JsctlError."""
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


def write_at_once(path: Path, data: bytes) -> None:
    """One file of many, which no power failure is feared for: it is written where it stands, and
    is not there if that fails. Raises OSError."""
    with path.open("wb") as file:
        try:
            file.write(data)
            file.flush()
        except BaseException:
            path.unlink(missing_ok=True)
            raise


def make_folder(path: Path) -> None:
    """A folder for secrets, with those above it. Raises JsctlError."""
    missing = [one for one in (path, *path.parents) if not one.exists()]
    try:
        for folder in reversed(missing):
            folder.mkdir(mode=FOLDER_MODE, exist_ok=True)
        path.mkdir(exist_ok=True)  # says what is in the way, if it is no folder
    except OSError as error:
        raise JsctlError(f"cannot make {path}: {error.strerror}") from None


@contextmanager
def new_folder(path: Path) -> Iterator[None]:
    """A folder, with those above it; where the body fails, those that are new and empty are gone
    again. Raises OSError."""
    missing = [one for one in (path, *path.parents) if not one.exists()]
    path.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except Exception:
        with suppress(OSError):
            for folder in missing:
                folder.rmdir()
        raise


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
