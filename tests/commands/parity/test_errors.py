"""`errors`: what is known of each, and files of them."""

import json
from collections.abc import Callable
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
errors --errors good.json lookup 20001
errors --errors=good.json ls hello
errors --errors
errors --errors nofile ls
errors ls --errors empty.json
errors ls zzz --errors empty.json
errors validate --errors good.json
errors validate cased.json
errors lookup 20001 --errors cased.json
errors lookup 0x272b
errors lookup 10_059
errors lookup +10059
errors lookup -- -1
errors lookup 99999999999999999999
errors lookup 65536
errors ls '[[:upper:]]' --errors good.json
errors ls '[[:digit:]]{5}' --errors good.json
errors ls '(?<word>hel+)o' --errors good.json
errors ls 'a{,5}'
errors ls '(?-i)hello' --errors good.json
errors ls '\\p{L}ello' --errors good.json
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
    Path("empty.json").write_text("[]")
    Path("cased.json").write_text(json.dumps([{key.title(): GOOD[1][key] for key in GOOD[1]}]))
    same(ERRORS)


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("code", True, "code of an error is a number, not true"),
        ("code", "400", 'code of an error is a number, not "400"'),
        ("error_code", 70_000, "error_code of an error is a code, not 70000"),
        ("error_code", -1, "error_code of an error is a code, not -1"),
        ("comment", False, "comment of an error is a text, not false"),
    ],
)
@pytest.mark.parametrize("words", ["validate bad.json", "ls --errors bad.json"])
def test_a_field_of_another_type_is_named(
    field: str,
    value: object,
    said: str,
    words: str,
    cli: Callable[..., Result],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bad.json").write_text(json.dumps([{**GOOD[0], field: value}]))
    done = cli("errors", *words.split(" "))
    assert (done.code, done.err) == (1, f"jsctl: error: bad.json: {said}\n")


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
