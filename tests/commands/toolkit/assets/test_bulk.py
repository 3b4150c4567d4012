"""`--match`: one operation on all whose names match, on both kinds of server."""

import json
from collections.abc import Callable

import pytest

from tests.commands.conftest import Result

Run = Callable[..., Result]
pytestmark = pytest.mark.parametrize(
    "server", ["nats-server", "jsctl"], indirect=True, scope="package"
)


def names(run: Run) -> list[str]:
    return run("stream", "ls", "-n").out.split()


def test_streams_that_match_are_removed(run: Run) -> None:
    for name in ("TMP_1", "TMP_2", "KEPT", "KV_TMP_3"):
        assert run("stream", "add", name, "--subjects", name, "--defaults").code == 0
    dry = run("stream", "rm", "--match", "TMP_*", "--dry-run")
    assert (dry.code, dry.out) == (0, "TMP_1\nTMP_2\n")
    asked = run("stream", "rm", "--match", "TMP_*")
    assert (asked.code, "without a terminal" in asked.err) == (1, True)
    assert len(names(run)) == 4
    done = run("stream", "rm", "--match", "TMP_*", "--force", "-o", "json")
    assert json.loads(done.out) == {"names": ["TMP_1", "TMP_2"], "failed": {}}
    assert names(run) == ["KEPT", "KV_TMP_3"]
    none = run("stream", "rm", "--match", "TMP_*", "-f")
    assert (none.code, none.err) == (1, 'jsctl: error: no stream matches "TMP_*"\n')
    assert run("stream", "rm", "--all", "--match", "*TMP*", "-f").out == "KV_TMP_3\n"
    both = run("stream", "rm", "KEPT", "--match", "K*", "-f")
    assert "cannot be given together" in both.err


def test_what_fails_is_told_and_the_rest_is_done(run: Run, publish: Callable[..., None]) -> None:
    for name, more in (("P1", ()), ("P2", ("--deny-purge",)), ("P3", ())):
        run("stream", "add", name, "--subjects", name, *more, "--defaults")
        publish(name, b"x")
    result = run("stream", "purge", "--match", "P?", "-f")
    assert (result.code, result.out) == (1, "P1\nP3\n")
    assert result.err.startswith("P2: ")
    held = [json.loads(run("stream", "info", one, "-j").out) for one in ("P1", "P2", "P3")]
    assert [one["state"]["messages"] for one in held] == [0, 1, 0]


def test_consumers_that_match_are_removed(run: Run) -> None:
    run("stream", "add", "S", "--subjects", "s", "--defaults")
    for name in ("test-1", "test-2", "real"):
        run("consumer", "add", "S", name, "--pull", "--defaults")
    assert run("consumer", "rm", "S", "--match", "test-*", "-f").out == "test-1\ntest-2\n"
    assert run("consumer", "ls", "S", "-n").out.split() == ["real"]


def test_a_dry_run_of_what_is_named_does_nothing(run: Run) -> None:
    run("stream", "add", "S", "--subjects", "s", "--defaults")
    run("consumer", "add", "S", "C", "--pull", "--defaults")
    for words in (("stream", "rm", "S"), ("stream", "purge", "S"), ("consumer", "rm", "S", "C")):
        refused = run(*words, "--dry-run", "-f")
        assert (refused.code, "give --match" in refused.err) == (1, True), words
    assert run("consumer", "ls", "S", "-n").out == "C\n"
