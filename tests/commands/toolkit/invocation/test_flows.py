"""Whole conversations on a terminal: add, edit and rm of streams, consumers, contexts."""

import json
from collections.abc import Callable

import pytest

from jsctl.commands.toolkit.invocation.prompts import TRIES_MAX
from tests.commands.conftest import Result
from tests.commands.toolkit.invocation.conftest import CTRL_C, Talk

Run = Callable[..., Result]
DOWN = "\x1b[B"
STREAM_QUESTIONS = (
    "Subjects",
    "Storage",
    "Replication (1)",
    "Retention Policy",
    "Discard Policy",
    "Stream Messages Limit (-1)",
    "Per Subject Messages Limit (-1)",
    "Total Stream Size (-1)",
    "Message TTL (-1)",
    "Max Message Size (-1)",
    "Duplicate tracking time window (2m0s)",
    "Allow message Roll-ups (y/N)",
    "Allow message deletion (Y/n)",
    "Allow purging subjects or the entire stream (Y/n)",
)
PULL_QUESTIONS = (
    "Consumer name",
    "Delivery target (empty for Pull Consumers)",
    "Start policy (all, new, last, subject, 1h, msg sequence) (all)",
    "Acknowledgment policy",
    "Replay policy",
    "Filter Stream by subjects (blank for all)",
    "Maximum Allowed Deliveries (-1)",
    "Maximum Acknowledgments Pending (0)",
    "Deliver headers only without bodies (y/N)",
    "Add a Retry Backoff Policy (y/N)",
)


def asked(shown: str) -> list[str]:
    """The questions, in order."""
    plain = shown.replace(" [? for help]", "")
    return [line.removeprefix("? ") for line in plain.splitlines() if line.startswith("? ")]


def in_order(shown: str, questions: tuple[str, ...]) -> None:
    lines, at = asked(shown), 0
    for question in questions:
        while at < len(lines) and not lines[at].startswith(question):
            at += 1
        assert at < len(lines), (question, lines)


def info(run: Run, *words: str) -> dict[str, object]:
    found = json.loads(run(*words, "-j").out)["config"]
    assert isinstance(found, dict)
    return found


def test_a_stream_from_its_first_to_its_last_question(run: Run, talk: Talk) -> None:
    answers = ["s.>", f"{DOWN}", "1", "", "", "ten", "10", "", "", "1h", "", "", "", "n", ""]
    code, shown = talk(["stream", "add", "S"], answers)
    assert code == 0, shown
    in_order(shown, STREAM_QUESTIONS)
    made = info(run, "stream", "info", "S")
    assert (made["subjects"], made["storage"], made["max_msgs"]) == (["s.>"], "memory", 10)
    assert (made["max_age"], made["deny_delete"]) == (3_600_000_000_000, True)
    for answer, expected in (("n", 3_600_000_000_000), ("", 3_600_000_000_000), ("y", 0)):
        code, shown = talk(["stream", "edit", "S", "--max-age", "-1"], [answer])
        assert code == 0, shown
        assert "Really edit Stream S (y/N)" in shown
        assert info(run, "stream", "info", "S")["max_age"] == expected
    code, shown = talk(["stream", "purge", "S"], ["n"])
    assert (code, "Purged" in shown) == (0, False)
    code, shown = talk(["stream", "rm", "S"], [CTRL_C])
    assert (code, "S" in run("stream", "ls", "-n").out) == (1, True)
    assert "Traceback" not in shown
    code, shown = talk(["stream", "rm", "S"], ["y"])
    assert (code, run("stream", "ls", "-n").out) == (0, "")


def test_consumers_from_their_first_to_their_last_question(run: Run, talk: Talk) -> None:
    assert run("stream", "add", "S", "--subjects", "s.>", "--defaults").code == 0
    answers = ["C", "", "", "", "", "s.a", "seven", "7", "", "", ""]
    code, shown = talk(["consumer", "add", "S"], answers)
    assert code == 0, shown
    assert "expected a whole number, got 'seven'" in shown
    in_order(shown, PULL_QUESTIONS)
    made = info(run, "consumer", "info", "S", "C")
    assert (made["max_deliver"], made["filter_subject"]) == (7, "s.a")
    code, shown = talk(["consumer", "add", "S", "P", "--target", "out"], [""] * 9)
    assert code == 0, shown
    assert info(run, "consumer", "info", "S", "P")["deliver_subject"] == "out"
    for answer, expected in (("n", 7), ("y", 9)):
        code, shown = talk(["consumer", "edit", "S", "C", "--max-deliver", "9"], [answer])
        assert (code, "Really edit Consumer S > C (y/N)" in shown) == (0, True), shown
        assert info(run, "consumer", "info", "S", "C")["max_deliver"] == expected
    code, shown = talk(["consumer", "rm", "S"], [DOWN, "y"])
    assert (code, run("consumer", "ls", "S", "-n").out) == (0, "C\n"), shown
    code, shown = talk(["consumer", "rm"], ["", "", "n"])
    assert code == 0, shown
    assert asked(shown)[-1] == "Really delete Consumer S > C (y/N) n"


def test_names_that_were_meant_are_shown_below_the_error(
    run: Run, talk: Talk, monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert run("stream", "add", "ORDERS", "--subjects", "o", "--defaults").code == 0
    code, shown = talk(["stream", "purge", "ORDRES", "-f"], [])
    assert code == 1
    text = 'jsctl: error: stream "ORDRES": stream not found (10059)\n  did you mean ORDERS?\n'
    assert shown == text
    code, shown = talk(["kv", "get", "ORDERS", "x"], [])
    assert (code, shown) == (1, "jsctl: error: nats: bucket not found\n")


def test_too_many_wrong_answers_end_it(run: Run, talk: Talk) -> None:
    assert run("stream", "add", "S", "--subjects", "s.>", "--defaults").code == 0
    code, shown = talk(["stream", "add", "T"], ["t", "", *("none" for _ in range(TRIES_MAX))])
    assert code == 1
    assert shown.count("X Sorry, your reply was invalid") == TRIES_MAX
    assert "no usable answer" in shown
    assert run("stream", "ls", "-n").out == "S\n"


def test_contexts_are_picked_from_a_list(run: Run, talk: Talk) -> None:
    for name in ("one", "two"):
        assert run("context", "add", name, "--description", f"the {name}").code == 0
    code, shown = talk(["context", "select"], [DOWN])
    assert code == 0, shown
    assert "Select a Context" in shown
    assert "NATS Configuration Context" in shown and '"two"' in shown
    assert run("context", "show").out == run("context", "show", "two").out
    code, shown = talk(["context", "select"], [""])
    assert (code, '"one"' in shown) == (0, True)  # as with nats: the first one is marked
    assert run("context", "unselect").code == 0
    code, shown = talk(["context", "rm", "one"], ["n"])
    assert (code, asked(shown)[-1:]) == (0, ['Really delete context "one" (y/N) n'])
    assert "one" in run("context", "ls", "--names").out.split()
    assert talk(["context", "rm", "one"], ["y"])[0] == 0
    assert "one" not in run("context", "ls", "--names").out.split()


def test_buckets_are_picked_from_a_list(run: Run, talk: Talk) -> None:
    for kind, prefix in (("kv", "KV_"), ("object", "OBJ_")):
        code, shown = talk([kind, "info"], [])
        assert code == 1, shown
        assert "no " in shown and " buckets found" in shown
        for name in ("B1", "B2"):
            assert run(kind, "add", name).code == 0
        code, shown = talk([kind, "info"], [DOWN])
        assert code == 0, shown
        assert "Select a Bucket" in shown
        assert f"{prefix}B2" in shown
        code, shown = talk([kind, "rm", "B1"], ["n"])
        assert code in (0, 1), shown
        assert run(kind, "info", "B1").code == 0
        code, shown = talk([kind, "rm", "B1"], ["y"])
        assert code == 0, shown
        assert run(kind, "info", "B1").code == 1


def test_a_password_is_asked_for_until_it_is_long_enough_or_nobody_answers(talk: Talk) -> None:
    code, shown = talk(["server", "passwd"], ["short", "\x04"])
    assert (code, "Traceback" in shown) == (1, False), shown
    assert "too short" in shown and "interrupt" in shown
