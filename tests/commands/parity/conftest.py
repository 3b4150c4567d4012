"""The same lines to the real `nats` tool and to this one, each in an account of its own.

Both begin with an empty account of one server, so that the same words mean the same; what differs
from one moment to the next is taken out of the answers before they are compared.
"""

import io
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path
from shutil import which

import pytest

from jsctl.cli import main
from jsctl.testing import Broker
from tests.commands.conftest import KINDS
from tests.support.command_line import FOREIGN, PATIENCE
from tests.support.kept import kept

NATS = which("nats")
RUN_S = 60
PASSWORD = "secret"
BOTH_KINDS = tuple(KINDS)
ACCOUNTS = ("theirs", "ours", "both")
CONFIG = """
accounts {
  SYS { users [ { user: sys, password: %(password)s } ] }
  %(accounts)s
}
system_account: SYS
"""
ACCOUNT = (
    """%(name)s { jetstream: enabled, users [ { user: %(name)s, password: %(password)s } ] }"""
)

PROGRAM = re.compile(r"^(usage: )?nats\b", re.MULTILINE)
DATE = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?(Z| \+0000 UTC)?")
CLOCK = re.compile(r"\b\d\d:\d\d:\d\d\b")
AGE = re.compile(r"\b(\d+(\.\d+)?(µs|ms|s|m|h))+\b")
HELP = re.compile(r"\n\s*Pass --help.*")
GAP = re.compile(r"─+|[ ]{2,}")


@dataclass(frozen=True, slots=True)
class Said:
    """What a line did, ready to be compared."""

    code: int
    out: str
    err: str

    def __str__(self) -> str:
        return f"exit status {self.code}\n{self.out}\n{self.err}"


Same = Callable[..., None]
"""Runs lines; `who` is the user of both, unless each has its own."""


def normal(text: str) -> str:
    """Without moments, lengths of time, and the width of columns, which follows from them.

    Documents are written alike: the order of their keys means nothing.
    """
    if text[:1] in ("{", "["):
        with suppress(ValueError):
            text = json.dumps(json.loads(text), indent=1, sort_keys=True)
    text = HELP.sub("", PROGRAM.sub(r"\1jsctl", text))
    for pattern, word in ((DATE, "DATE"), (CLOCK, "CLOCK"), (AGE, "AGE"), (GAP, " ")):
        text = pattern.sub(word, text)
    return text


def tidied(said: Said, tidy: Callable[[str], str]) -> Said:
    """What is left to be compared."""
    return Said(said.code, tidy(normal(said.out)), tidy(normal(said.err)))


def started(kind: str) -> AbstractContextManager[Broker]:
    """A server with an account for each tool and one for both."""
    accounts = "\n".join(ACCOUNT % {"name": name, "password": PASSWORD} for name in ACCOUNTS)
    config = CONFIG % {"password": PASSWORD, "accounts": accounts}
    return KINDS[kind](config=config, jetstream=True, name="n1")


@pytest.fixture(scope="session")
def servers() -> Iterator[Callable[[str], Broker]]:
    """One of each kind that is asked for."""
    yield from kept(started)


@pytest.fixture
def one_server(servers: Callable[[str], Broker], request: pytest.FixtureRequest) -> Broker:
    """A nats-server, unless a test asks for another kind."""
    if NATS is None:
        pytest.skip("the nats tool is not installed")
    return servers(getattr(request, "param", "nats-server"))


@dataclass(frozen=True, slots=True)
class Line:
    """Words and what is given to them; `<<` stands before the latter."""

    words: tuple[str, ...]
    given: bytes

    @classmethod
    def of(cls, text: str) -> "Line":
        """`kv put B k << value`."""
        words, _, given = text.partition(" << ")
        return cls(tuple(shlex.split(words)), given.encode())


@pytest.fixture
def same(
    one_server: Broker,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> Same:
    """Compares what both do with each line of a text; lines that begin with `#` are not run."""
    monkeypatch.chdir(tmp_path)

    def compare(text: str, *, who: str = "", tidy: Callable[[str], str] = str) -> None:
        different: list[str] = []
        for line in (one.strip() for one in text.splitlines()):
            if not line or line.startswith("#"):
                continue
            theirs = real(one_server, who or "theirs", Line.of(line))
            ours = own(one_server, who or "ours", Line.of(line), monkeypatch, capfd)
            them, we = tidied(theirs, tidy), tidied(ours, tidy)
            if them != we:
                both = (str(them).splitlines(), str(we).splitlines())
                lines = unified_diff(*both, "nats", "jsctl", n=1, lineterm="")
                different.append("\n".join((f"# {line}", *lines)))
        assert not different, "\n".join(different)

    return compare


def environment(server: Broker, who: str) -> dict[str, str]:
    """Of either tool."""
    return {
        "NATS_URL": server.url,
        "NATS_USER": who,
        "NATS_PASSWORD": PASSWORD,
        "NATS_TIMEOUT": PATIENCE,
    }


def real(server: Broker, who: str, line: Line) -> Said:
    """The `nats` tool."""
    assert NATS is not None
    kept = {key: value for key, value in os.environ.items() if not key.startswith(FOREIGN)}
    done = subprocess.run(
        [NATS, *line.words],
        input=line.given,
        capture_output=True,
        timeout=RUN_S,
        check=False,
        env={**kept, **environment(server, who)},
    )
    out, err = (part.decode("utf-8", "replace") for part in (done.stdout, done.stderr))
    return Said(done.returncode, out, err)


def own(
    server: Broker,
    who: str,
    line: Line,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> Said:
    """This tool, in this process."""
    for key, value in environment(server, who).items():
        monkeypatch.setenv(key, value)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(line.given)))
    capfd.readouterr()
    code = main(line.words)
    captured = capfd.readouterr()
    return Said(code, captured.out, captured.err)
