"""Names and flags that were meant; errors for programs; finer exit codes on request."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jsctl.cli import main
from jsctl.completion.near import near_hints
from jsctl.testing import Broker
from tests.commands.conftest import Result

Run = Callable[..., Result]
CODES = {"usage": 2, "not_found": 3, "unreachable": 5, "conflict": 6, "confirmation": 7}
HINTS = (
    ("stream info ORDER", 10059, "did you mean ORDERS?"),
    ("stream purge ORDER -f", 10059, "did you mean ORDERS?"),
    ("stream copy order X --subjects y", 10059, "did you mean ORDERS?"),
    ("backup stream ORDER /nope", 10059, "did you mean ORDERS?"),
    ("sub --stream ORDER --all", 10059, "did you mean ORDERS?"),
    ("consumer info ORDERS BILING", 10014, "did you mean BILLING?"),
    ("consumer info ORDER BILLING", 10059, "did you mean ORDERS?"),
    ("consumer next ORDERS BILING", 10014, "did you mean BILLING?"),
    ("consumer rm ORDERS BILING -f", 10014, "did you mean BILLING?"),
    ("kv get CONFG x", 0, "did you mean CONFIG?"),
    ("object ls FILE", 0, "did you mean FILES?"),
    ("context show prod-eats", 0, "did you mean prod-east? known: prod-east"),
    ("stream ls --context prod-eats", 0, "did you mean prod-east? known: prod-east"),
    ("kv get NOTHINGLIKEIT x", 0, ""),
)
KINDS = (
    ("stream inof", "usage", "did you mean info?"),
    ("stream info --jsn", "usage", "did you mean --json?"),
    ("stream info --contxt x", "usage", "did you mean --context, --no-context?"),
    ("stream info --zzz", "usage", ""),
    ("stream rm ORDERS", "confirmation", "--force skips the question"),
    ("stream add ORDERS --subjects other --defaults", "conflict", ""),
    ("consumer add ORDERS BILLING --pull --defaults --ack none", "error", ""),
    ("schema info stream_list_request", "not_found", "did you mean io.nats"),
)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(jetstream=True) as running:
        yield running


@pytest.fixture
def fails(
    broker: Broker,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> Callable[[str], tuple[int, dict[str, object]]]:
    """Runs a line that fails; the status and the document of the error."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("NATS_URL", broker.url)
    monkeypatch.setenv("JSCTL_EXIT", "detailed")
    for line in (
        "stream add ORDERS --subjects o.> --defaults",
        "consumer add ORDERS BILLING --pull --defaults",
        "kv add CONFIG",
        "object add FILES",
        "context add prod-east",
    ):
        main(line.split())

    def run(line: str) -> tuple[int, dict[str, object]]:
        capfd.readouterr()
        words = [*line.split(), "-o", "json"]
        code = main(words, lambda given: near_hints(given, os.environ))
        told = capfd.readouterr()
        assert told.out == ""
        (document,) = map(json.loads, told.err.splitlines())
        return code, document["error"]

    return run


@pytest.mark.parametrize(
    "line",
    [
        "stream add OTHERS --subjects o.a --defaults",
        "pub -J o.a x -H Nats-Expected-Last-Sequence:5",
        "kv add CONFIG --history 5",
    ],
)
def test_what_would_be_taken_in_another_state_is_a_conflict(
    fails: Callable[[str], tuple[int, dict[str, object]]], line: str
) -> None:
    """Servers call it a bad request."""
    code, told = fails(line)
    assert (code, told["class"]) == (6, "conflict")


Fails = Callable[[str], tuple[int, dict[str, object]]]


@pytest.mark.parametrize(("line", "number", "hint"), HINTS)
def test_a_name_that_was_meant_is_told(line: str, number: int, hint: str, fails: Fails) -> None:
    code, error = fails(line)
    assert (code, error["class"], error.get("code", 0)) == (3, "not_found", number)
    assert error["hint"] == hint


@pytest.mark.parametrize(("line", "kind", "hint"), KINDS)
def test_each_kind_of_error_has_a_status(line: str, kind: str, hint: str, fails: Fails) -> None:
    code, error = fails(line)
    assert (error["class"], code) == (kind, CODES.get(kind, 1))
    assert str(error["hint"]).startswith(hint) and bool(error["hint"]) == bool(hint)


def test_hints_are_below_the_error_wherever_it_goes(
    fails: Fails, capfd: pytest.CaptureFixture[str]
) -> None:
    assert fails("stream info ORDER")[1]["hint"]
    for words in (["stream", "purge", "ORDER", "-f", "-j"], ["stream", "info", "ORDER"]):
        assert main(words, lambda given: near_hints(given, os.environ)) == 3
        said = capfd.readouterr()
        error, hint = said.err.splitlines()
        assert error == 'jsctl: error: stream "ORDER": stream not found (10059)'
        assert (said.out, hint) == ("", "  did you mean ORDERS?")
