"""A backup's directory: the archive, and `backup.json` with what the stream was.

`backup.json` is written last: without it a backup is not whole.
"""

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from pathlib import Path
from typing import BinaryIO

from jsctl.api import jsontext
from jsctl.api.codec import DecodeError
from jsctl.backups.documents import check_stream_config, check_stream_state
from jsctl.dataclass import dataclass
from jsctl.errors import Conflict, JsctlError, NotFound, UsageError
from jsctl.files import make_folder, read_bytes, write_whole

BUFFER_BYTES = 1 << 20

DESCRIPTION = "backup.json"
ARCHIVE = "stream.arc.s2"
"""Of servers from 2.15 on."""
OLD_ARCHIVE = "stream.tar.s2"
"""Of older ones: it can be restored and not be looked into."""


@dataclass(frozen=True, slots=True)
class Description:
    """`backup.json`; configuration and state are kept as they were written."""

    config: Mapping[str, object]
    state: Mapping[str, object] = field(default_factory=dict)
    edit: Mapping[str, object] | None = None
    source: Mapping[str, object] | None = None

    @property
    def name(self) -> str:
        """The stream's."""
        return str(self.config["name"])

    @property
    def in_memory(self) -> bool:
        """Whether the stream kept its messages in memory."""
        return self.config.get("storage") == "memory"

    @property
    def is_bucket(self) -> bool:
        """Whether it is the stream of a Key-Value bucket."""
        bucket = self.name.removeprefix("KV_")
        subjects = self.config.get("subjects")
        return bool(bucket) and bucket != self.name and subjects == [f"$KV.{bucket}.>"]

    def text(self) -> str:
        """As it is written."""
        parts = {"config": self.config, "state": self.state}
        parts |= {"edit": self.edit} if self.edit else {}
        parts |= {"source": self.source} if self.source else {}
        return json.dumps(parts, indent=2, ensure_ascii=False)


def archive_of(directory: Path) -> Path:
    """The archive in a directory. Raises NotFound, and UsageError for two of them."""
    if not directory.is_dir():
        told = "is not a directory" if directory.exists() else "does not exist"
        raise NotFound(f"path '{directory}' {told}")
    found = [path for name in (ARCHIVE, OLD_ARCHIVE) if (path := directory / name).is_file()]
    if len(found) > 1:
        raise UsageError(f"{directory} holds both {ARCHIVE} and {OLD_ARCHIVE}")
    if not found:
        raise NotFound(f"stat {directory / ARCHIVE}: no such file or directory")
    return found[0]


def description_of(directory: Path) -> Description:
    """What `backup.json` says. Raises NotFound, and JsctlError for a broken one."""
    path = directory / DESCRIPTION
    if not path.is_file():
        raise NotFound(f"stat {path}: no such file or directory")
    try:
        document = jsontext.parse_object(read_bytes(path))
    except DecodeError as error:
        raise JsctlError(f"{path}: {error}") from None
    parts = {key: document.get(key) for key in ("config", "state", "edit", "source")}
    config = parts["config"] if isinstance(parts["config"], dict) else {}
    name = config.get("name")
    if not isinstance(name, str) or not name:
        raise JsctlError(f"{path}: config has no stream name")
    if set(name) & set(" \t\r\n\f.*>/\\"):
        raise JsctlError(f'{path}: invalid stream name "{name}"')
    state, edit, source = (_part(path, parts, key) for key in ("state", "edit", "source"))
    try:
        check_stream_config(config)
        check_stream_state(state or {})
    except DecodeError as error:
        raise JsctlError(f"{path}: {error}") from None
    return Description(config, state or {}, edit, source)


def _part(path: Path, document: Mapping[str, object], key: str) -> dict[str, object] | None:
    found = document[key]
    if found is None or isinstance(found, dict):
        return found
    raise JsctlError(f"{path}: {key} is no object")


@dataclass(frozen=True, slots=True)
class Stage:
    """A directory beside its place, until it is whole."""

    draft: Path
    target: Path

    @contextmanager
    def archive(self) -> Iterator[BinaryIO]:
        """The archive to be written; it is on the disk afterwards."""
        with open(self.draft / ARCHIVE, "xb", buffering=BUFFER_BYTES, opener=_secret) as out:
            yield out
            out.flush()
            os.fsync(out.fileno())

    def describe(self, description: Description) -> None:
        """Writes `backup.json`."""
        write_whole(self.draft / DESCRIPTION, description.text())

    def commit(self) -> None:
        """The directory appears in its place. Raises OSError."""
        self.draft.replace(self.target)


@contextmanager
def staged(target: Path) -> Iterator[Stage]:
    """Where to write a backup; nothing is left of one that is not committed.

    Raises Conflict for a target that is not empty, and JsctlError for what the disk refuses.
    """
    target = target.absolute()
    if target.exists() and not target.is_dir():
        raise Conflict(f"target {target} exists and is not a directory")
    if target.is_dir() and any(target.iterdir()):
        raise Conflict(f"target directory {target} is not empty")
    make_folder(target.parent)
    draft = target.parent / f".{target.name}.backup-{os.urandom(8).hex()}"
    try:  # Before it is there: an interrupt may come at once.
        draft.mkdir(mode=0o700)
        yield Stage(draft, target)
    except OSError as error:
        raise JsctlError(f"cannot write {target}: {error.strerror}") from None
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _secret(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
