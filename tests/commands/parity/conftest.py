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
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from difflib import unified_diff
from itertools import takewhile
from pathlib import Path
from typing import Protocol

import pytest

from jsctl.cli import main
from jsctl.testing import Broker
from tests.commands.conftest import KINDS
from tests.support import nats_tool
from tests.support.command_line import FOREIGN, PATIENCE
from tests.support.kept import kept

NATS = nats_tool.NATS
RUN_S = 60
PASSWORD = "secret"
BOTH_KINDS = tuple(KINDS)
ACCOUNTS = ("theirs", "ours", "both")
BUSY = "busy"
LINES = Path(__file__).parent / "lines"
CLUSTERED = "clusters"
LEAFS = "leafs"
SEVERAL = (CLUSTERED, LEAFS)
"""The folders of the tables for several servers; all others are for servers alone."""
STORIES = tuple(
    sorted(path.stem for path in LINES.glob("*/*.txt") if path.parent.name not in SEVERAL)
)
"""Tables of lines, each of which has an account for each tool; see `stories`."""
CONFIG = """
accounts {
  SYS { users [ { user: sys, password: %(password)s } ] }
  PLAIN { users [ { user: plain, password: %(password)s } ] }
  FEW { jetstream: enabled, users [ { user: few, password: %(password)s, permissions {
    publish: ["ok.>", "$JS.API.INFO"], subscribe: ["ok.>", "_INBOX.>"] } } ] }
  %(accounts)s
}
system_account: SYS
"""
ACCOUNT = (
    """%(name)s { jetstream: enabled, users [ { user: %(name)s, password: %(password)s } ] }"""
)

VARIABLE = re.compile(r"[A-Z_]+=")
PROGRAM = re.compile(r"^(usage: )?nats\b", re.MULTILINE)
DATE = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?(Z| \+0000 UTC)?")
CLOCK = re.compile(r"\b\d\d:\d\d:\d\d\b")
AGE = re.compile(r"\b(\d+(\.\d+)?(µs|ms|s|m|h))+\b")
WRONG_VALUE = re.compile(
    r"^jsctl: error: (?:could not create new configuration for \w+ \S+: )?"
    r"(?:(?:\w+: )?strconv\.\w+: parsing .*|(?:invalid [\w ]+ format: )?invalid duration(?:: .*)?"
    r"|invalid bytes specification .*|expected KEY=VALUE got .*"
    r"|(?:--)?[\w-]+: (?:expected (?:a|KEY:VALUE)|invalid duration|invalid bytes) .*)$",
    re.MULTILINE,
)
"""That a value does not fit is told in our own words, and with the place it was given in."""

DOCUMENT = re.compile(r"^[\[{].*", re.MULTILINE | re.DOTALL)
NOTE = re.compile(r"^(?:Stream|Consumer) \S+ was created\n\n?|^Purged \d+ messages? from .*\n\n?")
"""What `nats` prints above a document; here it is a note on standard error."""

UNSAID = ("null", "false", '"0001-01-01T00:00:00Z"', "[]", "{}", '""', '"none"')
VOLATILE = (
    (re.compile(r"\b[ACNOSUX][A-Z2-7]{55}\b"), "KEY"),
    (re.compile(r"\b127\.0\.0\.1:\d+"), "ADDRESS"),
    (re.compile(r"^( *Client ID: )\d+", re.MULTILINE), r"\1N"),
    (re.compile(r"NATS CLI Version [\w.]+"), "jsctl"),
    (re.compile(r"\bcid:\d+"), "cid:N"),
    (re.compile(r"_INBOX\.[\w.]+\*?"), "INBOX"),
    (re.compile(r"/tmp/\d+\.yaml"), "FILE"),
    (re.compile(r"^goroutine \d+ \[running\]:\n(?:.*\n)*", re.MULTILINE), "PANIC"),
    (re.compile(r"^\W*\[-+\] +\d+%\n?", re.MULTILINE), ""),
    (re.compile(r"^(.* batch ID: )\w+", re.MULTILINE), r"\1ID"),
    (re.compile(r"^( *Last Seen: )(?:never|AGE)$", re.MULTILINE), r"\1MOMENT"),
    (
        re.compile(r"^(│ .* │ (?:Mirror|Source) │.* │) (?:never|AGE) │", re.MULTILINE),
        r"\1 MOMENT │",
    ),
    (re.compile(r"[ ]+$", re.MULTILINE), ""),
)
"""Names of servers, keys and inboxes, what the server numbers, and where the real tool crashed. A
source that has just been made was seen already or not: nobody can say which."""

WORDING = (
    (re.compile(r"\b1 (\w+?)(?:ies|y|s)\b(?!:)"), r"1 \1"),
    (re.compile(r'"nats (\w+ \w+(?: \w+)?)"'), r'"jsctl \1"'),
    (re.compile(r"^WARNING: Shell environment .*\n?", re.MULTILINE), ""),
    (re.compile(r"^CLOCK (?:Starting restore of|Sent \d+ chunk).*\n?", re.MULTILINE), ""),
    (re.compile(r"^(Information for Stream) \S* ?(?=created)", re.MULTILINE), r"\1 "),
    (re.compile(r"^ done! .*\n\n?", re.MULTILINE), ""),
    (
        re.compile(r"^CLOCK >>> Unexpected NATS error: (.*)\n(?=jsctl: error: \1$)", re.MULTILINE),
        "",
    ),
    (re.compile(r"\b[\d.]+ [KMG]?i?B (?:compressed|uncompressed)"), "SIZE"),
    (
        re.compile(r"^((?:Reading|Validating|Editing) backup in .* with )\S+ \S+", re.MULTILINE),
        r"\1SIZE",
    ),
    (re.compile(r"\n+(?=OK: \d+ entr)"), "\n"),
    (re.compile(r"^(Editing backup in .*)\n{2,}", re.MULTILINE), r"\1\n"),
)
"""What docs/differences.md says of all commands: counts, notes, progress, sizes of backups. What a
server refuses `nats` says twice, if it does not end before."""

BROKEN = re.compile(
    r"(?:invalid input: |could not create new configuration for \w+ \w+: )?"
    r"(?:unexpected (?:end of JSON input|EOF)|invalid character '.*|json: cannot unmarshal .*)"
    r"|(?<!\S)(?!error: )\S+(?: is not JSON|: json): .*"
)
"""That a file is no document is told in the words of each tool's parser."""

OWN_ACCOUNT = re.compile(r"\b(?:theirs|ours)(?:-[a-z-]+)?\b")
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


def table_of(story: str) -> Path:
    """Where its lines are."""
    return next(LINES.glob(f"*/{story}.txt"))


def accounts_of(story: str) -> tuple[str, str]:
    """Of the two tools."""
    return f"theirs-{story}", f"ours-{story}"


def config_of(stories: Iterable[str]) -> str:
    """Of a server that has the accounts of stories, beside the others."""
    names = [*ACCOUNTS, BUSY, *(account for story in stories for account in accounts_of(story))]
    accounts = "\n".join(ACCOUNT % {"name": name, "password": PASSWORD} for name in names)
    return CONFIG % {"password": PASSWORD, "accounts": accounts}


def normal(text: str) -> str:
    """Without moments, lengths of time, and the width of columns, which follows from them.

    Documents are written alike: the order of their keys means nothing.
    """
    if found := DOCUMENT.search(text):
        with suppress(ValueError):
            document, end = json.JSONDecoder().raw_decode(found[0])
            shown = json.dumps(filled(document), indent=1, sort_keys=True)
            text = NOTE.sub("", text[: found.start()]) + shown + found[0][end:]
    text = OWN_ACCOUNT.sub("ACCOUNT", text)
    text = HELP.sub("", PROGRAM.sub(r"\1jsctl", text))
    text = BROKEN.sub("BROKEN", WRONG_VALUE.sub("jsctl: error: WRONG VALUE", text))
    for pattern, word in (
        (DATE, "DATE"),
        (CLOCK, "CLOCK"),
        (AGE, "AGE"),
        (GAP, " "),
        *VOLATILE,
        *WORDING,
    ):
        text = pattern.sub(word, text)
    return text


def filled(document: object) -> object:
    """Without what is empty or off: whether that is left out is no matter.

    Where a stream's several sources are is told in any order.
    """
    if isinstance(document, list):
        if all(isinstance(one, dict) and "lag" in one for one in document):
            document = sorted(document, key=lambda one: str(one.get("name")))
        return [filled(one) for one in document]
    if not isinstance(document, dict):
        return document
    found = {key: filled(value) for key, value in document.items()}
    return {key: value for key, value in found.items() if json.dumps(value) not in UNSAID}


def tidied(said: Said, tidy: Callable[[str], str]) -> Said:
    """What is left to be compared; empty lines at the end say nothing."""
    err = NOTE.sub("", said.err) if DOCUMENT.search(said.out) else said.err
    return Said(said.code, tidy(normal(said.out)).rstrip(), tidy(normal(err)).rstrip())


@contextmanager
def started(kind: str) -> Iterator[Broker]:
    """A server with an account for each tool, one for both, and one that has a stream.

    What reports of servers say of accounts and streams that are not there is another thing where
    there are none at all, and must not hang on what was tried before.
    """
    with KINDS[kind](config=config_of(STORIES), jetstream=True, name="n1") as server:
        keep_busy(server)
        yield server


def keep_busy(server: Broker) -> None:
    """Make a stream and a consumer in the account that has them from the beginning."""
    for words in (
        ("stream", "add", "BUSY", "--subjects", "busy", "--defaults"),
        ("consumer", "add", "BUSY", "C", "--pull", "--defaults"),
    ):
        done = real(server, BUSY, Line(words, b""))
        assert done.code == 0, done


@pytest.fixture(scope="package")
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
    """Words and what is given to them; variables stand before, `<<` and an input behind them."""

    words: tuple[str, ...]
    given: bytes
    variables: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, text: str) -> "Line":
        """`NATS_COLOR=red kv put B k << value`."""
        text, _, given = text.partition(" << ")
        words = shlex.split(text)
        named = [word for word in takewhile(VARIABLE.match, words)]
        variables = tuple((name, value) for name, _, value in (one.partition("=") for one in named))
        return cls(tuple(words[len(named) :]), given.encode(), variables)


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


class Place(Protocol):
    """A server, or a cluster, that clients connect to."""

    @property
    def url(self) -> str: ...

    @property
    def monitor_url(self) -> str:
        """Of the server at `url`."""


def environment(server: Place, who: str) -> dict[str, str]:
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
        env=nats_tool.quick({**kept, **environment(server, who)}),
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
    return Said(code, captured.out, nats_tool.without_hints(captured.err))
