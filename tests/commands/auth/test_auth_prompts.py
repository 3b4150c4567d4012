"""Questions of `auth` on a terminal: those of `nats`, in their order, with the same end."""

import sys
from pathlib import Path

import pytest

from tests.support.dialogues import Step, talked
from tests.support.nats_tool import NATS, needed

pytestmark = [needed, pytest.mark.processes]

STORE = (
    "auth operator add OP",
    "auth operator add OTHER",
    "auth account add A --operator OP --defaults",
    "auth account add B --operator OP --defaults",
    "auth user add U A --operator OP --defaults",
    "auth account exports add ex a.b A --operator OP",
)
"""What is there before anything is asked, of each tool."""
ACCOUNT: Step = ("Select an Account", "")
DIALOGUES: tuple[tuple[str, tuple[Step, ...], int], ...] = (
    ("auth operator add", (("Operator Name", "NEW"),), 0),
    ("auth operator info", (("Select an Operator", ""),), 0),
    ("auth operator select", (("Select an Operator", ""),), 0),
    (
        "auth account add",
        (("Account Name", "C"), ("Maximum Connections", ""), ("Maximum Subscriptions", "")),
        0,
    ),
    ("auth account info", (ACCOUNT,), 0),
    ("auth user add V A", (("Maximum Payload", ""), ("Maximum Subscriptions", "")), 0),
    ("auth user info", (ACCOUNT, ("Select a User", "")), 0),
    ("auth user edit", (ACCOUNT, ("Select a User", "")), 0),
    ("auth user rm", (ACCOUNT, ("Select a User", ""), ("Really remove", "n")), 0),
    ("auth user credential x.creds", (ACCOUNT, ("Select a User", "")), 0),
    ("auth account keys add", (ACCOUNT, ("Role Name", "role")), 0),
    ("auth account keys info", (ACCOUNT, ("Select Signing Key", "")), 0),
    ("auth account keys rm", (ACCOUNT, ("Select Signing Key", ""), ("Really remove", "y")), 0),
    (
        "auth account mappings add",
        (ACCOUNT, ("Source subject", "m.a"), ("Target subject", "m.b")),
        0,
    ),
    ("auth account mappings info", (ACCOUNT, ("Select a mapping to inspect", "")), 0),
    ("auth account mappings rm", (ACCOUNT, ("Select a mapping to delete", "")), 0),
    ("auth account exports info", (ACCOUNT, ("Select an Export", "")), 0),
    ("auth account imports info", (ACCOUNT,), 1),
)
"""Words, questions with their answers, and the exit status; each goes on from the one before."""


@pytest.mark.parametrize("tool", ["nats", "jsctl"])
def test_dialogues_are_those_of_nats(tool: str, tmp_path: Path) -> None:
    assert NATS is not None
    program = [NATS] if tool == "nats" else [sys.executable, "-m", "jsctl"]
    for words in STORE:
        assert talked(program, tmp_path, words, ()) == 0
    for words, steps, status in DIALOGUES:
        of = "" if "operator" in words else " --operator OP"
        assert talked(program, tmp_path, words + of, steps) == status, words


ODD: tuple[tuple[str, tuple[Step, ...], int], ...] = (
    ("auth operator add", (("Operator Name", ""), ("Operator Name", "NEW")), 0),
    (
        "auth account add E --operator OP --connections 5 --jetstream --js-disk 1G",
        (("Maximum Subscriptions", "3"), ("Maximum JetStream Memory", "")),
        0,
    ),
    ("auth user rm U A --operator OP", (("Really remove", ""),), 0),
    ("auth account keys add B --operator OP", (("Role Name", ""),), 0),
    (
        "auth account mappings add B --operator OP",
        (("Source subject", ""), ("Source subject", "a b"), ("Target subject", "t")),
        1,
    ),
    ("auth account exports rm x A --operator OP", (), 1),
)


@pytest.mark.parametrize("tool", ["nats", "jsctl"])
def test_odd_answers_are_those_of_nats(tool: str, tmp_path: Path) -> None:
    assert NATS is not None
    program = [NATS] if tool == "nats" else [sys.executable, "-m", "jsctl"]
    for words in STORE:
        assert talked(program, tmp_path, words, ()) == 0
    for words, steps, status in ODD:
        assert talked(program, tmp_path, words, steps) == status, words


def test_a_number_that_claims_cannot_hold_is_asked_for_again(tmp_path: Path) -> None:
    program = [sys.executable, "-m", "jsctl"]
    assert talked(program, tmp_path, STORE[0], ()) == 0
    question = "Maximum Connections"
    steps = [(question, answer) for answer in ("x", str(2**63), "5")]
    steps.append(("Maximum Subscriptions", ""))
    assert talked(program, tmp_path, "auth account add C", tuple(steps)) == 0
