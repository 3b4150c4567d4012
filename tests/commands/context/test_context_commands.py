"""`jsctl context`: files shared with the nats tool."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from jsctl.settings import ContextStore
from tests.commands.conftest import Result

Run = Callable[..., Result]


def folder() -> Path:
    return Path(os.environ["XDG_CONFIG_HOME"]) / "nats"


@pytest.fixture
def two(cli: Run) -> None:
    flags = ("--server", "nats://x:1", "--user", "u", "--password", "pw", "--description", "First")
    assert cli("context", "add", "a", *flags).code == 0
    assert cli("ctx", "save", "b", "-s", "nats://127.0.0.1:1", "--timeout", "200ms").code == 0
    assert cli("ctx", "select", "b").code == 0


def test_add_writes_every_key_and_shows_it(cli: Run) -> None:
    result = cli("context", "add", "a", "--server", "nats://x:1", "--user", "u", "--password", "p")
    assert result.out == (
        'NATS Configuration Context "a"\n\n'
        "  Server URLs: nats://x:1\n"
        "     Username: u\n"
        "     Password: *\n"
        f"         Path: {folder()}/context/a.json\n\n"
    )
    path = folder() / "context" / "a.json"
    assert path.stat().st_mode & 0o777 == 0o600
    document = json.loads(path.read_text())
    assert (document["url"], document["creds"], document["tls_first"]) == ("nats://x:1", "", False)
    assert cli("ctx", "save", "a", "--description", "D").code == 0
    assert json.loads(path.read_text()) == {**document, "description": "D"}
    assert cli("ctx", "add", "new").code == 0
    assert json.loads(path.with_name("new.json").read_text())["url"] == "nats://127.0.0.1:4222"
    assert cli("ctx", "add", "x/y").code == 1


@pytest.mark.usefixtures("two")
def test_ls_and_info(cli: Run) -> None:
    assert "│   Known Contexts   │" in cli("context", "ls").out
    assert "│ b*   │             │" in cli("context", "ls").out
    assert cli("ctx", "list", "--names").out == "a\nb\n"
    assert [one["name"] for one in json.loads(cli("ctx", "ls", "-j").out)] == ["a", "b"]
    assert "Server URLs: nats://127.0.0.1:1\n" in cli("ctx", "info").out
    assert json.loads(cli("ctx", "show", "a", "-j").out)["description"] == "First"
    assert cli("ctx", "info", "nope").err.startswith('jsctl: error: context not found: "nope"\n')


def test_nothing_stored_nothing_selected(cli: Run) -> None:
    assert cli("ctx", "ls").out == "No known contexts\n"
    assert cli("ctx", "info").err == "jsctl: error: no default context and no name supplied\n"
    assert cli("ctx", "previous").code == 1
    assert cli("ctx", "select", "x").err == "jsctl: error: no context defined\n"


@pytest.mark.usefixtures("two")
def test_select_previous_and_unselect(cli: Run) -> None:
    assert cli("ctx", "switch", "a").code == 0
    assert (folder() / "context.txt").read_text() == "a"
    assert 'Context "b"' in cli("ctx", "previous").out
    assert cli("ctx", "unselect").out == 'Unselected the "b" context\n'
    assert cli("ctx", "select").code == 1


@pytest.mark.usefixtures("two")
def test_copy_and_remove(cli: Run) -> None:
    assert "Description: Other\n" in cli("ctx", "cp", "a", "c", "--description", "Other").out
    assert cli("ctx", "copy", "a", "c").err == 'jsctl: error: context "c" already exist\n'
    assert "could not obtain confirmation" in cli("ctx", "rm", "c").err
    assert cli("ctx", "rm", "c", "-f").code == 0
    assert "cannot remove the selected context" in cli("ctx", "rm", "b").err
    assert cli("ctx", "rm", "b", "-f").code == 0
    assert cli("ctx", "ls", "--names").out == "a\n"


@pytest.mark.usefixtures("two")
def test_validate_finds_missing_files_and_dead_servers(cli: Run) -> None:
    assert cli("ctx", "validate").code == 0
    dead = cli("ctx", "validate", "b", "--connect", "--timeout", "200ms")
    assert (dead.code, dead.err) == (1, "jsctl: error: validation failed\n")
    assert "Connection: nats: no servers available for connection\n" in dead.out
    assert cli("ctx", "add", "f", "--creds", "/nowhere/x.creds").code == 0
    broken = cli("ctx", "validate", "f")
    assert broken.code == 1
    assert "Credentials: /nowhere/x.creds (ERROR)\n" in broken.out


@pytest.mark.usefixtures("two")
@pytest.mark.processes
def test_edit_runs_the_editor(cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "set EDITOR environment variable" in cli("ctx", "edit", "a").err
    monkeypatch.setenv("EDITOR", "sed -i s/First/Second/")
    assert "Description: Second\n" in cli("ctx", "edit", "a").out
    assert json.loads((folder() / "context" / "a.json").read_text())["password"] == "pw"
    monkeypatch.setenv("EDITOR", "sed -i s/description/unknown_key/")
    assert "unknown keys in the context: unknown_key" in cli("ctx", "edit", "a").err


@pytest.mark.usefixtures("two")
def test_the_environment_is_told_when_it_shadows(cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NATS_URL", "nats://z:1")
    shown = cli("ctx", "info", "a")
    assert "Server URLs: nats://x:1\n" in shown.out
    assert shown.err == "WARNING: Shell environment overrides in place using NATS_URL\n"


def test_embed_keeps_the_contents(cli: Run, tmp_path: Path) -> None:
    creds = tmp_path / "u.creds"
    creds.write_text("secret")
    shown = cli("ctx", "add", "e", "--creds", str(creds), "--embed")
    assert "Credentials: embedded data\n" in shown.out
    stored = json.loads((folder() / "context" / "e.json").read_text())
    assert stored["creds"] == "data:;base64,c2VjcmV0"
    twice = cli("ctx", "add", "t", "--creds", str(creds), "--nkey", "/tmp/n")
    assert twice.err.startswith("jsctl: error: too many types of credentials")


@pytest.mark.processes
def test_edit_takes_texts_as_they_are_written(cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A number, a word or a date of YAML would be another password."""
    cli("ctx", "add", "a", "--password", "x", "--user", "u", "--tlsfirst")
    store = ContextStore.default(os.environ)
    texts = {"password": "0123", "description": "2026-01-01", "user": "yes", "token": "null"}
    lines = "\n".join(f"{key}: {text}" for key, text in texts.items())
    monkeypatch.setenv("EDITOR", f"sh -c 'printf \"{lines}\\ntls_first: false\\n\" > $0'")
    assert cli("ctx", "edit", "a").code == 0
    kept = store.load("a")
    found = {key: getattr(kept, key) for key in texts}
    assert found == {**texts, "token": ""}
    assert not kept.tls_first
    for wrong in ("url: [a]", "tls_first: perhaps"):
        monkeypatch.setenv("EDITOR", f"sh -c 'echo \"{wrong}\" > $0'")
        assert cli("ctx", "edit", "a").code == 1
    assert store.load("a") == kept


def test_a_selection_that_is_no_text_is_one_line(cli: Run) -> None:
    store = ContextStore.default(os.environ)
    cli("ctx", "add", "a", "--select")
    (store.root / "context.txt").write_bytes(b"\xff")
    found = cli("stream", "ls")
    assert (found.code, found.err.count("\n")) == (1, 1)
    assert "does not hold the name of a context" in found.err


def test_another_login_takes_the_place_of_the_old_one(cli: Run) -> None:
    store = ContextStore.default(os.environ)

    def login(*words: str) -> tuple[str, str, str]:
        assert cli("ctx", "add", "a", *words).code == 0
        kept = store.load("a")
        return kept.user, kept.password, kept.token

    assert login("--user", "alone") == ("", "", "alone")  # and so `nats` reads it
    assert login("--user", "u", "--password", "p") == ("u", "p", "")
    assert login("--user", "v") == ("v", "p", "")
    assert login("--token", "t") == ("", "", "t")
    assert login("--description", "d") == ("", "", "t")
