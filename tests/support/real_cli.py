"""The real `nats` tool beside ours: the same words, and what is left when chance is taken out."""

import json
import os
import re
import shlex
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.nats_tool import NATS, quick, without_hints
from tests.support.nats_tool import needed as needs_nats

if TYPE_CHECKING:
    from tests.commands.conftest import Result

PATIENCE_S = 60
_PROGRAM = re.compile(r"^(usage: )?nats\b", re.MULTILINE)
_KEY = re.compile(r"\b(?:S[OAUNCX]|[OAUNCX])[A-Z2-7]{55,56}\b")
_TOKEN = re.compile(r"eyJ[\w-]+\.[\w-]+\.[\w-]+")
_RULE = re.compile(r"─+|[ ]{2,}")


class Answer:
    """What a program did with a command line."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code = code
        self.out = out
        self.err = err

    def normal(self) -> tuple[int, str, str]:
        """Without the program's name and hints, and with keys numbered as they appear."""
        seen: dict[str, str] = {}
        err = without_hints(self.err)
        return self.code, _without_chance(self.out, seen), _without_chance(err, seen)


def _without_chance(text: str, seen: dict[str, str]) -> str:
    def named(found: re.Match[str]) -> str:
        key = found.group()
        return seen.setdefault(key, f"<{key[:2] if key[0] == 'S' else key[0]}{len(seen)}>")

    if text.startswith("usage: "):  # of help pages the first line counts
        text = text.partition("\n")[0]
    else:
        text = _as_data(text)
    text = _KEY.sub(named, _TOKEN.sub("<JWT>", text))
    return _RULE.sub(" ", _PROGRAM.sub(r"\1jsctl", text))


def nats(*words: str, stdin: bytes = b"") -> Answer:
    """Runs the real tool in this process's environment."""
    assert NATS is not None
    done = subprocess.run(
        [NATS, *words],
        input=stdin,
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
        env=quick(os.environ),
    )
    out, err = (part.decode("utf-8", "replace") for part in (done.stdout, done.stderr))
    return Answer(done.returncode, out, err)


def differences(pairs: "list[tuple[str, Answer, Answer]]") -> str:
    """Where the two answers to a line are not the same, to be read."""
    told: list[str] = []
    for line, theirs, ours in pairs:
        if theirs.normal() == ours.normal():
            continue
        told.append(f"$ {line}")
        for them, we in zip(theirs.normal(), ours.normal(), strict=True):
            if them != we:
                told.append(f"--- nats\n{them}\n+++ jsctl\n{we}")
    return "\n".join(told)


def _as_data(text: str) -> str:
    """JSON with its keys sorted; any other text as it is."""
    try:
        return json.dumps(json.loads(text), sort_keys=True, indent=1)
    except ValueError:
        return text


def as_answer(result: "Result | Answer", home: Path) -> Answer:
    """Without the names of folders that only one of the programs has."""
    out, err = (text.replace(str(home), "HOME") for text in (result.out, result.err))
    return Answer(result.code, out, err)


def beside(
    lines: Sequence[str],
    cli: Callable[..., "Result"],
    tmp_path: Path,
    patch: pytest.MonkeyPatch,
    prepare: Callable[[Path], None] = lambda _files: None,
) -> list[tuple[str, Answer, Answer]]:
    """Each line to each of the programs, which have homes and files of their own.

    `{files}` in a line is a folder of the program's own, into which `prepare` puts files before.
    """
    pairs: list[tuple[str, Answer, Answer]] = []
    homes = {name: tmp_path / name for name in ("nats", "jsctl")}
    for home in homes.values():
        (home / "files").mkdir(parents=True)
        prepare(home / "files")
    for line in lines:
        answers: list[Answer] = []
        for name, home in homes.items():
            patch.setenv("XDG_DATA_HOME", str(home / "data"))
            patch.setenv("XDG_CONFIG_HOME", str(home / "config"))
            words = shlex.split(line.replace("{files}", str(home / "files")))
            done: Answer | Result = nats(*words) if name == "nats" else cli(*words)
            answers.append(as_answer(done, home))
        pairs.append((line, answers[0], answers[1]))
    return pairs


__all__ = ["Answer", "beside", "differences", "nats", "needs_nats"]
