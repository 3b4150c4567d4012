"""`python -m tests.simulation`: what it tells of its runs, whoever ends it."""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.simulation import __main__ as program
from tests.simulation.areas import OF_BUGS, OF_FILES, area_of
from tests.simulation.mutants import existing, listed
from tests.simulation.plan import Item, Plan

ROOT = Path(__file__).parents[2]
BREAKS = 2
"""The seed whose plan names a fault that there is not."""


def drawn(seed: int, servers: int) -> Plan:
    """A brief plan."""
    items = (Item(0, "unknown", 0, 0, 0),) if seed == BREAKS else ()
    return Plan(seed, servers, streams=((1, "memory", -1),), chaos_ms=700, items=items)


def ended(seed: int, servers: int) -> Plan:
    """Somebody ends the program while the last seed runs."""
    if seed > BREAKS:
        os.kill(os.getpid(), signal.SIGTERM)
    return drawn(seed, servers)


@pytest.fixture(autouse=True)
def _sigterm() -> Iterator[None]:
    """The program says what SIGTERM does."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


def run(patch: pytest.MonkeyPatch, *words: str) -> int:
    """Run the program with two drawings and three servers."""
    patch.setattr(program, "DRAWINGS", (drawn, ended))
    patch.setattr(program, "SERVERS", (3,))
    patch.setattr(sys, "argv", ["simulation", *words])
    return program.main()


def test_it_tells_of_its_runs_when_it_is_ended(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "--from", "1", "--keep-going", "--shrink", "0") == 1
    told = capsys.readouterr().out.splitlines()
    assert [line for line in told if "AttributeError" in line and "(2, 3)" in line]
    assert told[-2:] == [
        "ended from outside",
        "5 runs from seed 1 on, 2 failed; the longest row without a failure: 2, the last: 1",
    ]


def test_it_ends_with_the_first_that_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "--from", "1") == 1
    told = capsys.readouterr().out.splitlines()
    assert told[-1].startswith("3 runs from seed 1 on, 1 failed")


def test_none_failed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, "--from", "1", "--seeds", "1", "--drawing", "drawn") == 0
    told = capsys.readouterr().out.splitlines()
    assert told[-1] == (
        "1 runs from seed 1 on, none failed; the longest row without a failure: 1, the last: 1"
    )


def test_the_table_has_all_planted_bugs() -> None:
    assert listed((ROOT / "docs" / "planted-bugs.md").read_text()) == existing()


def test_every_area_has_a_planted_bug() -> None:
    rows = [
        line.removeprefix("| ").split(" | ")
        for line in (ROOT / "docs" / "planted-bugs.md").read_text().splitlines()
        if line.endswith("` |")
    ]
    assert all(area_of(bug, test.rstrip(" |").strip("`")) == area for area, bug, *_, test in rows)
    assert {area for area, *_ in rows} == {*OF_BUGS, *OF_FILES.values()}
