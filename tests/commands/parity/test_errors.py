"""`errors`: what is known of each, and files of them."""

import json
from pathlib import Path

import pytest

from tests.commands.conftest import Result
from tests.commands.parity.conftest import Same

ERRORS = """
errors
errors ls stream.not
errors ls stream.not code -R
errors list 'consumer.*invalid' description
errors ls zzz
errors ls x nosort
errors lookup 10059
errors get 10094
errors show 10039
errors lookup 99
errors lookup x
errors lookup 70000
errors lookup
errors validate
errors validate nofile
errors validate bad.json
errors validate good.json
errors validate good.json more
errors ls --errors good.json
errors lookup 20001 --errors good.json
errors edit good.json 20000
errors edit nofile
"""
GOOD = [
    {"constant": "A", "code": 400, "error_code": 20000, "description": "hello"},
    {
        "constant": "AF",
        "code": 500,
        "error_code": 20001,
        "description": "x {err}",
        "help": "some help",
        "url": "http://x",
        "comment": "c",
    },
]


def test_errors(same: Same, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EDITOR", raising=False)
    bad = {"constant": "A", "code": 0, "error_code": 20, "description": "{err}"}
    Path("good.json").write_text(json.dumps(GOOD))
    Path("bad.json").write_text(json.dumps([bad]))
    same(ERRORS)


@pytest.mark.processes
def test_an_error_is_added_in_the_editor(
    cli: "object", monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert callable(cli)
    path, editor = tmp_path / "errors.json", tmp_path / "editor"
    path.write_text(json.dumps(GOOD))
    new = {"constant": "B", "code": 404, "error_code": 20002, "description": "gone"}
    editor.write_text(f"#!/bin/sh\ncat > $1 <<'END'\n{json.dumps(new)}\nEND\n")
    editor.chmod(0o755)
    monkeypatch.setenv("EDITOR", str(editor))
    done: Result = cli("errors", "edit", str(path))
    assert (done.code, done.out) == (0, "Validated 3 errors\n")
    assert [one["error_code"] for one in json.loads(path.read_text())] == [20000, 20001, 20002]
    editor.write_text("#!/bin/sh\necho '{}' > $1\n")
    done = cli("errors", "edit", str(path), "20002")
    assert (done.code, done.err) == (1, "jsctl: error: aborted\n")
    assert json.loads(path.read_text())[2]["constant"] == "B", "as it was"
    assert [one.name for one in tmp_path.iterdir() if ".part" in one.name] == []
