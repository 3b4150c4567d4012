"""Questions, asked on a real terminal."""

from collections.abc import Callable

import pytest

from jsctl.commands.toolkit.invocation.prompts import Prompts
from jsctl.errors import NeedsConfirmation
from tests.commands.conftest import Result
from tests.commands.toolkit.invocation.conftest import CTRL_C, Talk

DOWN = "\x1b[B"


def test_a_name_is_picked_and_removal_confirmed(run: Callable[..., Result], talk: Talk) -> None:
    for name in ("AA", "BB", "CC"):
        run("stream", "add", name, "--subjects", name, "--defaults")
    code, shown = talk(["stream", "rm"], [DOWN, "n"])
    assert code == 0
    assert "? Really delete Stream BB (y/N) n\n" in shown
    code, shown = talk(["stream", "rm"], ["", "what", "n"])
    assert code == 0
    assert 'X Sorry, your reply was invalid: "what" is not a valid answer' in shown
    assert "? Really delete Stream AA (y/N) n\n" in shown
    code, shown = talk(["stream", "rm"], ["B", "y"])
    assert (code, run("stream", "ls", "-n").out) == (0, "AA\nCC\n")
    code, shown = talk(["stream", "rm"], [CTRL_C])
    assert code == 1
    assert "jsctl: error: interrupt\n" in shown
    code, shown = talk(["stream", "rm"], ["2", "n"], "dumb")
    assert code == 0
    assert "  1) AA\n  2) CC\n? Select a Stream (AA) 2\n" in shown
    assert "? Really delete Stream CC (y/N) n\n" in shown


def test_what_no_name_contains_picks_none(run: Callable[..., Result], talk: Talk) -> None:
    for name in ("AA", "BB"):
        run("stream", "add", name, "--subjects", name, "--defaults")
    enter, backspace = "\r", "\x7f"
    code, shown = talk(["stream", "rm"], ["bx" + enter + backspace, "n"])
    assert code == 0
    assert "? Really delete Stream BB (y/N) n\n" in shown
    code, shown = talk(["stream", "rm"], ["x" + enter + CTRL_C])
    assert (code, "Really delete" in shown) == (1, False)
    assert "jsctl: error: interrupt\n" in shown


def test_who_has_seen_enough_leaves_a_view(run: Callable[..., Result], talk: Talk) -> None:
    run("stream", "add", "PAGES", "--subjects", "pages", "--defaults")
    run("pub", "-J", "-q", "pages", "x", "--count", "3")
    for answers in (["n"], ["", CTRL_C]):
        code, shown = talk(["stream", "view", "PAGES", "1"], answers)
        assert code == 0, shown
        assert "error" not in shown
        assert shown.count("Next Page?") == len(answers)


def test_missing_answers_of_add_are_asked_for(run: Callable[..., Result], talk: Talk) -> None:
    given = ["--storage", "file", "--replicas", "1", "--retention", "limits", "--discard", "old"]
    given += ["--max-msgs-per-subject", "-1", "--max-bytes", "-1", "--max-age", "-1"]
    given += [
        "--max-msg-size",
        "-1",
        "--dupe-window",
        "1m",
        "--no-allow-rollup",
        "--no-deny-delete",
    ]
    code, shown = talk(["stream", "add", "Q", *given], ["q.>", "many", "5", "n"])
    assert code == 0, shown
    assert "? Subjects [? for help] q.>\n" in shown
    assert "X Sorry, your reply was invalid: expected a whole number, got 'many'\n" in shown
    assert "? Stream Messages Limit [? for help] (-1) 5\n" in shown
    assert "? Allow purging subjects or the entire stream (Y/n) n\n" in shown
    assert "Maximum Messages: 5\n" in shown
    assert "Allows Purge: false\n" in shown


def test_the_context_is_named_and_questions_can_be_forbidden() -> None:
    assert Prompts("prod").mark == "[prod] ?"
    forbidden = Prompts(forbidden=True)
    assert not forbidden.possible
    with pytest.raises(NeedsConfirmation):
        forbidden.choose("Select a Stream", ["a"])
