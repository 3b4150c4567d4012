"""`auth account mappings add --config`: what a file may say, and what it may not."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.commands.conftest import Result

Run = Callable[..., Result]
BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "\n".join(
    f"{one}: &{one} [{', '.join([f'*{before}'] * 9)}]"
    for before, one in zip("abcdefgh", "bcdefghi", strict=True)
)
"""Short, and a text of gigabytes if it is repeated."""


@pytest.fixture
def account(cli: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Adds the mappings of a file to an account."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert cli("auth", "operator", "add", "OP").code == 0
    assert cli("auth", "account", "add", "A", "--defaults").code == 0

    def add(text: str) -> Result:
        path = tmp_path / "config"
        path.write_text(text)
        return cli("auth", "account", "mappings", "add", "A", "--config", str(path))

    return add


def test_a_file_is_taken_as_a_whole(account: Run, cli: Run) -> None:
    text = "a:\n- subject: b\n  weight: 60\n- {Subject: 5, Cluster: east, weight: }\nc: []\n"
    assert account(text).code == 0
    shown = json.loads(cli("auth", "account", "mappings", "info", "A", "a", "-j").out)
    assert shown == {
        "a": [
            {"Subject": "b", "Weight": 60, "Cluster": ""},
            {"Subject": "5", "Weight": 0, "Cluster": "east"},
        ]
    }


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "is not a list of targets for each subject"),
        ("[]", "is not a list of targets for each subject"),
        ("a: b", "is not a list of targets for each subject"),
        ("a: null", "is not a list of targets for each subject"),
        ("a: [b]", "a target has to be a subject with a weight"),
        ("a: [{weight: 5}]", "subject cannot be empty"),
        ("a: [{subject: [b]}]", "a subject or a cluster is no text"),
        ("a: [{subject: b, cluster: {}}]", "a subject or a cluster is no text"),
        ("a: [{subject: b, weight: -1}]", "no percentage from 0 to 100"),
        ("a: [{subject: b, weight: 101}]", "no percentage from 0 to 100"),
        ("a: [{subject: b, weight: 1.5}]", "no percentage from 0 to 100"),
        ("a: [{subject: b, weight: true}]", "no percentage from 0 to 100"),
        ("a: [{subject: b, weight: '5'}]", "no percentage from 0 to 100"),
        ("a: [{subject: b}]\na: [{subject: c}]", "names a subject twice"),
        ("a: [{subject: b, weight: 60}, {subject: c, weight: 60}]", "exceeds 100%"),
        ("a: [", "not YAML"),
        ("a: []\n---\nb: []", "not YAML"),
        (BOMB, "a target has to be a subject with a weight"),
    ],
)
def test_anything_else_is_refused(account: Run, cli: Run, text: str, told: str) -> None:
    done = account(text)
    assert (done.code, told in done.err) == (1, True), done.err
    assert done.err.startswith("jsctl: error: ") and len(done.err) < 500
    assert cli("auth", "account", "mappings", "ls", "A").out == "No mappings defined\n"
