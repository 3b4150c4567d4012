"""The archive of Spark's classes: made at the second start, used from the one after its end on."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.find_spark_home import _find_spark_home

from jsctl.spark.java.class_archive import SWITCH, ClassArchive, class_archive
from jsctl.spark.java.find import Java, find_java

DAY_S = 86_400
PROGRAM = "scala.util.Properties"
"""Something quick among Spark's jars that has a `main`."""


@pytest.fixture
def java(tmp_path: Path) -> Java:
    """Something that looks like a runtime that can do it."""
    home = tmp_path / "java"
    for name in ("bin/java", "lib/server/classes.jsa"):
        (home / name).parent.mkdir(parents=True)
        (home / name).touch()
    return Java(home, 17, "PATH")


@pytest.fixture
def spark_home(tmp_path: Path) -> Path:
    """Something that looks like Spark."""
    (tmp_path / "spark" / "jars").mkdir(parents=True)
    (tmp_path / "spark" / "jars" / "one.jar").write_bytes(b"1")
    return tmp_path / "spark"


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """The user's cache."""
    return tmp_path / "cache"


class Starts:
    """Asks as a start of Spark does."""

    def __init__(self, java: Java, spark_home: Path, cache: Path) -> None:
        self.java, self.spark_home, self.cache = java, spark_home, cache

    def __call__(self, **more: str) -> ClassArchive:
        environ = {"XDG_CACHE_HOME": str(self.cache), **more}
        return class_archive(self.java, self.spark_home, environ)

    def written(self, archive: ClassArchive, content: bytes) -> None:
        """Java ends, and has written this."""
        flag = archive.flags[0]
        Path(flag.partition("=")[2]).write_bytes(content)
        archive.close()


@pytest.fixture
def start(java: Java, spark_home: Path, cache: Path) -> Iterator[Starts]:
    """Starts of one Java and one Spark."""
    yield Starts(java, spark_home, cache)


def used(archive: ClassArchive) -> str:
    """The file that a start maps, or nothing."""
    found = [flag for flag in archive.flags if flag.startswith("-XX:SharedArchiveFile=")]
    return found[0].partition("=")[2] if found else ""


def test_made_at_the_second_start_and_used_at_the_third(start: Starts) -> None:
    assert start() == ClassArchive()
    second = start()
    assert second.making
    assert second.flags[0].startswith("-XX:ArchiveClassesAtExit=")
    meanwhile = start()
    assert not meanwhile.making, "two wrote it at the same time"
    assert not meanwhile.flags
    start.written(second, b"\xa8\xab\x0b\xf0 and so on")
    third = start()
    assert not third.making
    assert Path(used(third)).read_bytes().endswith(b"and so on")


def test_what_was_broken_off_is_made_again(start: Starts) -> None:
    start()
    start.written(start(), b"\0\0\0\0 no header yet")
    again = start()
    assert again.making
    start.written(again, b"\xa8\xab\x0b\xf0")
    assert used(start())


def test_another_spark_has_another_archive(start: Starts, spark_home: Path) -> None:
    start()
    start.written(start(), b"\xa8\xab\x0b\xf0")
    assert used(start())
    (spark_home / "jars" / "one.jar").write_bytes(b"22")
    assert start() == ClassArchive(), "the first start of the new one"


def test_archives_that_nobody_uses_go(start: Starts, cache: Path) -> None:
    start()
    making = start()
    old, new = cache / "jsctl" / "spark-1.jsa", cache / "jsctl" / "spark-2.jsa"
    for path, days in ((old, 91), (new, 89)):
        path.touch()
        stamp = path.stat().st_mtime - days * DAY_S
        os.utime(path, (stamp, stamp))
    start.written(making, b"\xa8\xab\x0b\xf0")
    assert used(start())
    assert (old.exists(), new.exists()) == (False, True)


def test_where_it_cannot_be_there_is_none(start: Starts, java: Java, cache: Path) -> None:
    start()
    assert start(**{SWITCH: "off"}) == ClassArchive()
    cache.with_name("file").touch()
    assert start(XDG_CACHE_HOME=str(cache.with_name("file"))) == ClassArchive()
    (java.home / "lib/server/classes.jsa").unlink()
    assert start() == ClassArchive()


@pytest.mark.processes
def test_a_real_java_writes_and_takes_it(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JDK_JAVA_OPTIONS")  # An archive has only classes that were looked through
    java, home = find_java(os.environ), Path(_find_spark_home())
    if not (java.home / "lib/server/classes.jsa").exists():
        pytest.skip(f"{java.home} has no archive of its own classes to build on")
    start = Starts(java, home, cache)

    def run(archive: ClassArchive, *flags: str) -> str:
        classes = str(home / "jars" / "*")
        words = [str(java.executable), *archive.flags, *flags, "-cp", classes, PROGRAM]
        kept = () if archive.lock is None else (archive.lock,)
        done = subprocess.run(words, capture_output=True, text=True, check=True, pass_fds=kept)
        archive.close()
        return done.stdout

    start()
    making = start()
    assert making.making
    run(making)
    taken = start()
    assert used(taken)
    assert f"{PROGRAM} source: shared objects file (top)" in run(taken, "-Xlog:class+load")
