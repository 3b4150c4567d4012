"""The real `nats` command: one on PATH, or the one that `make nats-tool` built."""

import difflib
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from shutil import which
from typing import Protocol

import pytest

NATS = which("nats") or which("nats", path=str(Path(sys.executable).parent))
ANSWER_S = 30
QUICK_GO = {"GOGC": "off", "GOMEMLIMIT": "256MiB"}
"""For the environment of `nats`, which lives for one command: a fifth of its time would go into
looking for memory to use again, a few megabytes of it."""
HINTS = re.compile(r"(^(?:jsctl: )?error: .*\n(?:\n)?)(?:  \S.*\n)+\Z", re.MULTILINE)
PROGRAM = re.compile(r"^(usage: )?nats\b", re.MULTILINE)

needed = pytest.mark.skipif(
    NATS is None, reason="the nats tool is not installed; `make nats-tool` does it where Go is"
)


def nats(*words: str) -> subprocess.CompletedProcess[str]:
    """What the real tool says to these words."""
    assert NATS is not None
    return subprocess.run(
        [NATS, *words],
        capture_output=True,
        text=True,
        timeout=ANSWER_S,
        check=False,
        env=quick(os.environ),
    )


def quick(environment: Mapping[str, str]) -> dict[str, str]:
    """The same for the real tool."""
    return {**environment, **QUICK_GO}


Normal = Callable[[str], str]
Ours = Callable[..., "Answer"]


class Answer(Protocol):
    """What a command line of ours did."""

    @property
    def code(self) -> int: ...

    @property
    def out(self) -> str: ...

    @property
    def err(self) -> str: ...


def as_it_is(text: str) -> str:
    return text


def differences(
    run: Ours, lines: Iterable[str], *flags: str, url: str, normal: Normal = as_it_is
) -> list[str]:
    """Lines whose exit code, stdout or stderr is another one here, with what differs.

    JSON is compared as data, of help pages the first line, everything else after `normal`; the
    tools' own names are the same.
    """
    found: list[str] = []
    for line in lines:
        words = [*flags, *shlex.split(line)]
        theirs, ours = nats("-s", url, *words), run(*words)
        pairs = (
            (str(theirs.returncode), str(ours.code)),
            (_comparable(theirs.stdout, normal), _comparable(ours.out, normal)),
            (_comparable(theirs.stderr, normal), _comparable(without_hints(ours.err), normal)),
        )
        found += [f"{line}\n{_difference(them, we)}" for them, we in pairs if them != we]
    return found


def without_hints(text: str) -> str:
    """What this tool says below an error, and `nats` does not, left out."""
    return HINTS.sub(r"\1", text)


def _difference(theirs: str, ours: str) -> str:
    lines = difflib.unified_diff(theirs.splitlines(), ours.splitlines(), "nats", "jsctl", n=0)
    return "\n".join(line.rstrip("\n") for line in lines)


def _comparable(text: str, normal: Normal) -> str:
    text = PROGRAM.sub(r"\1jsctl", text)
    if text.startswith("usage: "):
        return text.partition("\n")[0]
    try:
        found = json.loads(text)
    except ValueError:
        return normal(text)
    return normal(json.dumps(found, sort_keys=True, indent=1))
