"""`--archive`: what was gathered is reported as the real tool reports it, and as it was."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jsctl.cli import main
from jsctl.testing import SYSTEM_PASSWORD, SYSTEM_USER
from tests.commands.conftest import Result, Server
from tests.support.nats_tool import needed
from tests.support.real_cli import Answer, differences, nats

Run = Callable[..., Result]
pytestmark = [needed, pytest.mark.processes]

GAUGES = ("server report mem --archive {archive}", "server report cpu --archive {archive}")
"""Servers with the same figure come in any order with `nats`."""
SAME = (
    "server list --archive {archive}",
    "server ls --sort name -R --archive {archive}",
    "server info n2 --archive {archive}",
    "server info nope --archive {archive}",
    "server account info NOPE --archive {archive}",
    "server account info $G --host nope --archive {archive}",
    "server report jetstream --sort name --archive {archive}",
    "server report jetstream --host n2 --archive {archive}",
    "server report jetstream --account X --archive {archive}",
    "server report jetstream --watch 2 --archive {archive}",
    "server report connections --account X --archive {archive}",
    "server report connections --state closed --archive {archive}",
    "server report gateways --archive {archive}",
    "server report leafnodes --archive {archive}",
    *GAUGES,
    "server report health --archive {archive}",
    "server report health --stream S --archive {archive}",
    "server report downgrade 0 --json --archive {archive}",
    "server request profile cpu /nope --archive {archive}",
)
DOCUMENTS = (
    "server request variables",
    "server request variables --name n2",
    "server request routes",
    "server request jetstream",
    "server request jetstream-health",
    "server request subscriptions",
    "server request leafnodes",
    "server request gateways",
    "server request accounts",
    "server request connections",
    "server request raft",
    "server request ipqueue",
)


@pytest.fixture(scope="module")
def archives(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Path]]:
    """Of one cluster, by each tool."""
    folder = tmp_path_factory.mktemp("archives")
    user = ("--user", SYSTEM_USER, "--password", SYSTEM_PASSWORD)
    assert main(["-s", server.url, "stream", "add", "A", "--subjects", "a", "--defaults"]) == 0
    made = {"nats": folder / "theirs.zip", "jsctl": folder / "ours.zip"}
    flags = ("--cpu-profile-duration", "1s", "--no-progress", "--output")
    assert nats("-s", server.url, *user, "audit", "gather", *flags, str(made["nats"])).code == 0
    words = ("-s", server.url, *user, "audit", "gather", *flags, str(made["jsctl"]))
    assert main(words) == 0
    yield made
    assert main(["-s", server.url, "stream", "rm", "A", "-f"]) == 0


@pytest.mark.parametrize("maker", ["nats", "jsctl"])
def test_reports_are_the_same(
    maker: str, cli: Run, archives: dict[str, Path], tmp_path: Path
) -> None:
    pairs: list[tuple[str, Answer, Answer]] = []
    places = {"archive": archives[maker]}
    for line in SAME:
        words = line.format(**places).split()
        ours = cli(*words)
        said = (nats(*words), Answer(ours.code, ours.out, ours.err))
        theirs, here = map(in_any_order, said) if line in GAUGES else said
        pairs.append((line, theirs, here))
    told = differences(pairs)
    assert not told, told


def in_any_order(answer: Answer) -> Answer:
    return Answer(answer.code, "\n".join(sorted(answer.out.splitlines())), answer.err)


@pytest.mark.parametrize("line", DOCUMENTS)
def test_documents_are_those_that_were_captured(
    line: str, cli: Run, archives: dict[str, Path]
) -> None:
    """Of every server the same names and keys; `nats` leaves out what it does not know."""
    words = (*line.split(), "--archive", str(archives["nats"]))
    theirs, ours = nats(*words), cli(*words)
    assert (theirs.code, ours.code) == (0, 0), ours.err
    them = [json.loads(one) for one in theirs.out.splitlines() if one]
    we = [json.loads(one) for one in ours.out.splitlines() if one]
    key = lambda one: (one["server"]["name"], sorted(one["data"]))  # noqa: E731
    assert sorted(map(key, we)) == sorted(map(key, them))


def test_a_captured_profile_is_written(cli: Run, archives: dict[str, Path], tmp_path: Path) -> None:
    flags = ("--level", "1", "--name", "n2", "--archive", str(archives["nats"]))
    done = cli("server", "request", "profile", "goroutine", str(tmp_path), *flags)
    assert (done.code, 'Server "n2" profile written' in done.out) == (0, True), done.err
    (written,) = tmp_path.glob("goroutine-*n2")
    assert b"goroutine profile" in written.read_bytes()


def test_connections_are_counted_as_they_were(cli: Run, archives: dict[str, Path]) -> None:
    words = ("server", "report", "connections", "-j", "--archive", str(archives["nats"]))
    done = cli(*words)
    (found,) = json.loads(done.out)
    assert (found["account"], found["subscriptions"]) == ("$SYS", 1)
    done = cli("server", "report", "accounts", "-j", "--archive", str(archives["nats"]))
    assert [one["connections"] for one in json.loads(done.out)] == [1]


def test_what_is_not_there_is_told(cli: Run, archives: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no archive")
    for place in ("/nope.zip", str(tmp_path / "text")):
        done = cli("server", "report", "cpu", "--archive", place)
        assert (done.code, done.err.startswith("jsctl: error: failed to open archive")) == (1, True)
    words = ("server", "request", "profile", "heap", str(tmp_path), "--level", "9")
    done = cli(*words, "--archive", str(archives["nats"]))
    assert (done.code, 'no captured profiles matched "heap" at level 9' in done.err) == (1, True)
