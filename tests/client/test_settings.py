"""Contexts, environment and flags: which wins, and what is written."""

import json
from pathlib import Path

import pytest

from jsctl.errors import NotFound, UsageError
from jsctl.settings import Context, ContextStore, load


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"XDG_CONFIG_HOME": str(tmp_path)}


def test_nothing_set_means_the_local_server(environ: dict[str, str]) -> None:
    settings = load({}, environ)
    assert settings.urls == ["nats://127.0.0.1:4222"]
    assert (settings.context_name, settings.timeout) == ("", 5.0)


def test_flags_beat_environment_beats_context(environ: dict[str, str]) -> None:
    store = ContextStore.default(environ)
    store.save("prod", Context(url="nats://ctx", user="u", password="p", description="d"))
    store.select("prod")
    assert load({}, environ).connection.url == "nats://ctx"
    environ |= {"NATS_URL": "nats://env", "NATS_TIMEOUT": "2s"}
    settings = load({}, environ)
    assert (settings.connection.url, settings.timeout) == ("nats://env", 2.0)
    assert (settings.connection.user, settings.context_name) == ("u", "prod")
    settings = load({"url": "a, b", "timeout": "1m"}, environ)
    assert (settings.urls, settings.timeout) == (["a", "b"], 60.0)
    assert load({"no_context": "true"}, environ).connection.user == ""


def test_contexts_are_files_of_the_nats_tool(environ: dict[str, str], tmp_path: Path) -> None:
    store = ContextStore.default(environ)
    store.save("a", Context(url="nats://x", extra={"windows_cert_store": "user"}))
    path = tmp_path / "nats" / "context" / "a.json"
    document = json.loads(path.read_text())
    assert document["url"] == "nats://x"
    assert document["windows_cert_store"] == "user"
    assert (document["creds"], document["tls_first"]) == ("", False)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert store.load("a").extra == {"windows_cert_store": "user"}
    assert load({"context": str(path)}, environ).connection.url == "nats://x"


def test_select_previous_and_remove(environ: dict[str, str]) -> None:
    store = ContextStore.default(environ)
    assert store.names() == []
    assert store.selected() == ""
    for name in ("a", "b"):
        store.save(name, Context())
        store.select(name)
    assert (store.selected(), store.previous(), store.names()) == ("b", "a", ["a", "b"])
    store.select("")
    assert store.selected() == ""
    store.remove("a")
    assert not store.exists("a")


def test_unknown_contexts(environ: dict[str, str]) -> None:
    store = ContextStore.default(environ)
    store.save("good", Context())
    store.select("good")
    with pytest.raises(NotFound, match="context not found"):
        load({"context": "typo"}, environ)
    assert store.selected() == "good", "a misspelt flag unselects nothing"
    store.path("good").unlink()
    with pytest.raises(NotFound, match="context not found"):
        load({}, environ)
    assert store.selected() == ""


@pytest.mark.parametrize("name", ["", "..", "a/b", "a\\b"])
def test_names_that_are_no_file_names(name: str, environ: dict[str, str]) -> None:
    with pytest.raises(UsageError):
        ContextStore.default(environ).save(name, Context())


def test_bad_values_and_files(environ: dict[str, str], tmp_path: Path) -> None:
    for text in ("x", "-1s", "0"):
        with pytest.raises(UsageError):
            load({"timeout": text}, environ)
    bad = tmp_path / "bad.json"
    bad.write_text("{")
    with pytest.raises(UsageError, match="not JSON"):
        load({"context": str(bad)}, environ)
    bad.write_text("[]")
    with pytest.raises(UsageError, match="not a JSON object"):
        load({"context": str(bad)}, environ)


def test_paths_and_odd_values(environ: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setenv("KEYS", "/keys")
    flags = {
        "creds": "~/u.creds",
        "nkey": "$KEYS/u.nk",
        "socks_proxy": "none",
        "tls_first": "false",
    }
    connection = load(flags, environ).connection
    assert (connection.creds, connection.nkey) == ("/home/me/u.creds", "/keys/u.nk")
    assert (connection.socks_proxy, connection.tls_first) == ("", False)
    assert load({"creds": "op://vault/x"}, environ).connection.creds == "op://vault/x"
    assert load({"monitor": "a,b"}, environ).monitor == ("a", "b")
