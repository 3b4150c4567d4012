"""What Java keeps of Spark's classes between two starts, so that a start takes half the time.

Java can write down the classes it has loaded when it ends, and map that file when it starts. The
file has 180 MB and takes ten seconds to write, so it is made only for a machine that starts Spark
a second time, and nobody waits for it: whoever starts next looks whether it is complete.

It lies in the cache directory of the user, one for each pair of Java and Spark, and can be deleted
at any time. JSCTL_CLASS_ARCHIVE=off does without.
"""

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from jsctl.spark.java.find import Java

SWITCH = "JSCTL_CLASS_ARCHIVE"
KEPT_DAYS = 90
_MAGIC = (0xF00BABA8).to_bytes(4, "little")
"""How a complete archive begins: Java writes its header last."""
_QUIET = "-Xlog:cds*=error"


@dataclass(slots=True)
class ClassArchive:
    """One start's part in it. `flags` are for Java."""

    flags: tuple[str, ...] = ()
    lock: int | None = None
    """While Java writes the archive it holds this file locked, as long as it runs."""

    @property
    def making(self) -> bool:
        """Whether Java will write the archive when it ends."""
        return self.lock is not None

    def close(self) -> None:
        """Java has been started, or will not be."""
        if self.lock is not None:
            os.close(self.lock)


def class_archive(java: Java, spark_home: Path, environ: Mapping[str, str]) -> ClassArchive:
    """The archive for this start: used if there is one, else made if somebody has been here before.

    Without a place to keep it, or with a Java that cannot, there is none: never an error.
    """
    if environ.get(SWITCH, "") == "off" or not (java.home / "lib/server/classes.jsa").exists():
        return ClassArchive()
    if os.name != "posix":
        return ClassArchive()  # no file locks that a started process keeps
    try:
        return _look(_directory(environ), f"spark-{_digest(java, spark_home)}")
    except OSError:
        return ClassArchive()


def _directory(environ: Mapping[str, str]) -> Path:
    cache = environ.get("XDG_CACHE_HOME") or str(Path(environ.get("HOME", "~")) / ".cache")
    directory = Path(cache).expanduser() / "jsctl"
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    return directory


def _digest(java: Java, spark_home: Path) -> str:
    """Of all that Java compares before it takes an archive; it compares again itself."""
    parts = [str(java.home.resolve()), str(spark_home)]
    for path in (java.executable.resolve(), *sorted((spark_home / "jars").glob("*.jar"))):
        state = path.stat()
        parts.append(f"{path.name} {state.st_size} {state.st_mtime_ns}")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _look(directory: Path, name: str) -> ClassArchive:
    import fcntl

    archive, part = directory / f"{name}.jsa", directory / f"{name}.part"
    if archive.exists():
        os.utime(archive)
        return ClassArchive(_used(archive))
    known = directory / f"{name}.lock"
    first = not known.exists()
    lock = os.open(known, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)  # another Java is about to write it
        return ClassArchive()
    if part.exists() and _is_complete(part):
        part.replace(archive)
        _forget_old(archive)
        os.close(lock)
        return ClassArchive(_used(archive))
    part.unlink(missing_ok=True)
    if first:
        os.close(lock)
        return ClassArchive()
    return ClassArchive((f"-XX:ArchiveClassesAtExit={part}", _QUIET), lock)


def _forget_old(newest: Path) -> None:
    """Archives of a Java or Spark that nobody has started for long."""
    limit = newest.stat().st_mtime - KEPT_DAYS * 86_400
    for archive in newest.parent.glob("spark-*.jsa"):
        if archive.stat().st_mtime < limit:
            archive.unlink(missing_ok=True)


def _used(archive: Path) -> tuple[str, ...]:
    return f"-XX:SharedArchiveFile={archive}", _QUIET


def _is_complete(part: Path) -> bool:
    with part.open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC
