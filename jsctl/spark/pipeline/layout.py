"""The directory of a file sink: whole batches, and a manifest that any reader can use.

    PATH/_owner.json            whose directory this is
    PATH/_manifest.json         every file with its rows and range of sequences
    PATH/batch=<id>/…           one batch; partition directories below
    PATH/batch=<id>/_batch.json what the batch holds

Theory of operation: a batch is written to `_staging`, synced, and renamed to its place; the
rename is the commit, so nothing half-written is ever visible and a batch that is there already is
not written again. The manifest is rebuilt from the batches, so it can lag but not lie for longer
than until the next start. Compaction commits by a rename to `_compacted` and then moves step by
step; whoever opens the directory next finishes what was begun.
"""

import fcntl
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from jsctl.errors import Conflict, JsctlError, NotFound

OWNER, MANIFEST, ENTRY, LOCK = "_owner.json", "_manifest.json", "_batch.json", "_lock"
_BEGUN = (LOCK, f".{OWNER}.")
"""All that is there while a directory is made, also where that was broken off."""
STAGING, COMPACTED, TRASH = "_staging", "_compacted", "_trash"
FORMAT = 1


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A Parquet file; `path` is relative to the directory. Sequences are 0 when unknown."""

    path: str
    rows: int
    bytes: int
    first_seq: int = 0
    last_seq: int = 0


@dataclass(frozen=True, slots=True)
class BatchEntry:
    """A batch; a compacted one stands for all ids from `first` to `id`.

    `hash` is the sum of the rows' 64-bit hashes, modulo 2^64, or -1 when none was taken.
    """

    id: int
    first: int
    rows: int
    files: tuple[FileEntry, ...]
    first_seq: int = 0
    last_seq: int = 0
    hash: int = -1
    extra: dict[str, Any] = field(default_factory=dict)


class BatchDirectory:
    """The batches of one owner below one directory."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()  # Java may work in another directory
        self._known: dict[str, BatchEntry] = {}
        """Entries read before: a batch never changes in its place, except by compaction."""

    @property
    def manifest_file(self) -> Path:
        """Where the manifest is."""
        return self.root / MANIFEST

    def open(self, owner: str, kind: str) -> None:
        """Make the directory or take it up again, and finish what a crash left.

        Raises Conflict when it belongs to somebody else or holds foreign files.
        """
        self.root.mkdir(parents=True, exist_ok=True)
        marker = self.root / OWNER
        if marker.exists():
            found = read_json(marker)
            if found.get("owner") != owner:
                raise Conflict(
                    f"{self.root} was written by another {found.get('kind', 'pipeline')}",
                    hints=(
                        "a new checkpoint needs a new directory; or bring the old checkpoint back",
                    ),
                )
        elif any(not path.name.startswith(_BEGUN) for path in self.root.iterdir()):
            raise Conflict(
                f"{self.root} is not empty", hints=("choose a directory that does not exist",)
            )
        else:
            write_json(marker, {"format": FORMAT, "kind": kind, "owner": owner})
        self.recover()

    def recover(self) -> None:
        """Throw away unfinished batches, finish a compaction."""
        _remove(self.root / STAGING)
        if (self.root / COMPACTED).exists():
            self._swap()
        _remove(self.root / TRASH)

    def has(self, batch: int) -> bool:
        """Whether a batch is there, alone or inside a compacted one."""
        if self._place(batch).exists():
            return True
        return any(entry.first <= batch <= entry.id for entry in self.entries())

    def staging(self, batch: int) -> Path:
        """Where a batch is to be written, empty."""
        path = self.staging_of(batch)
        _remove(path)
        path.parent.mkdir(exist_ok=True)
        return path

    def staging_of(self, batch: int) -> Path:
        """Where a batch is being written."""
        return self.root / STAGING / f"batch={batch}"

    def publish(
        self, batch: int, extra: dict[str, Any] | None = None, *, hash: int = -1
    ) -> BatchEntry:
        """Make a staged batch visible, whole and durable."""
        staged = self.staging_of(batch)
        entry = self._sealed(staged, batch, batch, extra or {}, hash)
        staged.rename(self._place(batch))
        _sync(self.root)
        return self._relocated(entry, self._place(batch))

    def publish_compacted(
        self, staged: Path, merged: Sequence[BatchEntry], *, hash: int = -1
    ) -> None:
        """Replace batches that follow each other by one that holds the same rows."""
        extra = {**merged[0].extra, **merged[-1].extra}
        if "from" in merged[0].extra:
            extra["from"] = merged[0].extra["from"]
        self._sealed(staged, merged[0].first, merged[-1].id, extra, hash)
        staged.rename(self.root / COMPACTED)
        _sync(self.root)
        self.write_manifest()
        self._swap()
        _remove(self.root / TRASH)
        self.write_manifest()

    def entries(self) -> list[BatchEntry]:
        """All batches by id; while a compaction is under way, only its result."""
        compacted = self.root / COMPACTED
        found = [self._entry(compacted)] if compacted.exists() else []
        for place in self.root.glob("batch=*"):
            entry = self._entry(place)
            if not any(one.first <= entry.id <= one.id for one in found[:1]):
                found.append(entry)
        return sorted(found, key=lambda entry: entry.id)

    def files(self) -> list[FileEntry]:
        """All files that count."""
        return [file for entry in self.entries() for file in entry.files]

    def write_manifest(self, head: dict[str, Any] | None = None) -> None:
        """Publish the list of files; `head` is put in front, the old head is kept without it."""
        entries = self.entries()
        if head is None:
            head = self.manifest().get("about", {}) if self.manifest_file.exists() else {}
        write_json(
            self.manifest_file,
            {
                "format": FORMAT,
                "about": head,
                "rows": sum(entry.rows for entry in entries),
                "files": [file.path for entry in entries for file in entry.files],
                "batches": [asdict(entry) for entry in entries],
            },
        )

    def manifest(self) -> dict[str, Any]:
        """The published manifest; raises NotFound or JsctlError."""
        if not self.manifest_file.exists():
            raise NotFound(
                f"{self.root} has no {MANIFEST}",
                hints=("is this a directory of `pipeline export` or of a parquet sink?",),
            )
        return read_json(self.manifest_file)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep others from writing here. Raises Conflict when somebody does."""
        self.root.mkdir(parents=True, exist_ok=True)
        with hold_lock(self.root / LOCK, f"{self.root} is being written by"):
            yield

    def _place(self, batch: int) -> Path:
        return self.root / f"batch={batch}"

    def _swap(self) -> None:
        compacted = self.root / COMPACTED
        entry = self._entry(compacted)
        trash = self.root / TRASH
        trash.mkdir(exist_ok=True)
        for place in list(self.root.glob("batch=*")):
            if entry.first <= int(place.name.partition("=")[2]) <= entry.id:
                place.rename(trash / place.name)
        compacted.rename(self._place(entry.id))
        self._known.clear()
        _sync(self.root)

    def _entry(self, place: Path) -> BatchEntry:
        if place.name in self._known:
            return self._known[place.name]
        document = read_json(place / ENTRY)
        files = tuple(FileEntry(**one) for one in document.pop("files"))
        entry = self._relocated(BatchEntry(**document, files=files), place)
        self._known[place.name] = entry
        return entry

    def _relocated(self, entry: BatchEntry, place: Path) -> BatchEntry:
        """The entry with paths from the root; files inside know only their own directory."""
        files = tuple(
            FileEntry(f"{place.name}/{one.path}", one.rows, one.bytes, one.first_seq, one.last_seq)
            for one in entry.files
        )
        return BatchEntry(**{**_shallow(entry), "files": files})

    def _sealed(
        self, staged: Path, first: int, last: int, extra: dict[str, Any], hash: int
    ) -> BatchEntry:
        staged.mkdir(parents=True, exist_ok=True)
        files = tuple(_inspected(staged))
        known = [file for file in files if file.last_seq]
        entry = BatchEntry(
            id=last,
            first=first,
            rows=sum(file.rows for file in files),
            files=files,
            first_seq=min((file.first_seq for file in known), default=0),
            last_seq=max((file.last_seq for file in known), default=0),
            hash=hash,
            extra=extra,
        )
        write_json(staged / ENTRY, asdict(entry))
        for path in [*staged.rglob("*.parquet"), *_directories(staged)]:
            _sync(path)
        return entry


def _shallow(entry: BatchEntry) -> dict[str, Any]:
    names = ("id", "first", "rows", "files", "first_seq", "last_seq", "hash", "extra")
    return {name: getattr(entry, name) for name in names}


def _directories(top: Path) -> Iterable[Path]:
    yield top
    yield from (path for path in top.rglob("*") if path.is_dir())


def _inspected(staged: Path) -> Iterator[FileEntry]:
    """The files that Spark wrote, by their footers; what it left besides is removed."""
    import pyarrow.parquet as parquet

    for path in sorted(staged.rglob("*")):
        if path.is_dir():
            continue
        if path.suffix != ".parquet" or path.name.startswith((".", "_")):
            path.unlink()
            continue
        footer = parquet.read_metadata(path)
        first, last = _sequences(footer)
        yield FileEntry(
            path.relative_to(staged).as_posix(), footer.num_rows, path.stat().st_size, first, last
        )


def _sequences(footer: Any) -> tuple[int, int]:
    """First and last value of the column `seq`; zeros when a file has none or no statistics."""
    names = footer.schema.names
    if "seq" not in names or not footer.num_row_groups:
        return 0, 0
    column = names.index("seq")
    found = [footer.row_group(n).column(column).statistics for n in range(footer.num_row_groups)]
    if not all(one is not None and one.has_min_max for one in found):
        return 0, 0
    return min(one.min for one in found), max(one.max for one in found)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _remove(path: Path) -> None:
    if path.exists():
        shutil.rmtree(path)


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a file; raises JsctlError that names it."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise JsctlError(f"{path} cannot be read: {error}") from None
    if not isinstance(found, dict):
        raise JsctlError(f"{path} is not a JSON object")
    return found


def write_json(path: Path, document: object) -> None:
    """Replace a file by a document, whole or not at all."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.new")
    with draft.open("w", encoding="utf-8") as stream:
        json.dump(document, stream, indent=1)
        stream.flush()
        os.fsync(stream.fileno())
    draft.replace(path)


@contextmanager
def hold_lock(path: Path, what: str) -> Iterator[None]:
    """Hold a lock file as long as this process lives. Raises Conflict naming the holder."""
    with path.open("a+") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            stream.seek(0)
            holder = stream.read().strip() or "another process"
            raise Conflict(f"{what} {holder}") from None
        stream.seek(0)
        stream.truncate()
        stream.write(f"process {os.getpid()} on {os.uname().nodename}")
        stream.flush()
        yield


def paths_of(root: Path, files: Sequence[FileEntry]) -> list[str]:
    """Absolute paths, as Spark wants them."""
    return [str(root / file.path) for file in files]
