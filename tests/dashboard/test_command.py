"""`jsctl dashboard` as people start it."""

import json
import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

from jsctl.cli import main
from jsctl.settings import Context, ContextStore
from jsctl.testing import SYSTEM_PASSWORD, SYSTEM_USER, Broker

SYSTEM = "accounts { $SYS { users: [ { user: sys, password: sys } ] } }\n"
AS_SYSTEM = ("--system-user", SYSTEM_USER, "--system-password", SYSTEM_PASSWORD)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker("-js", name="one", config=SYSTEM) as running:
        yield running


def once(broker: Broker, *words: str) -> int:
    """One look at the broker."""
    return main(["-s", broker.url, "dashboard", "--once", "--refresh", "200ms", *words])


def test_one_look_as_json(broker: Broker, capfd: pytest.CaptureFixture[str]) -> None:
    assert once(broker, "-o", "json", *AS_SYSTEM) == 0
    document = json.loads(capfd.readouterr().out)
    assert document["badge"] == "HEALTHY"
    assert [one["name"] for one in document["servers"]] == ["one"]
    assert document["servers"][0]["level"] == "ok"


def test_one_look_as_text(broker: Broker, capfd: pytest.CaptureFixture[str]) -> None:
    assert once(broker, "--size", "80x24", *AS_SYSTEM) == 0
    lines = capfd.readouterr().out.splitlines()
    assert len(lines) == 24 and all(len(line) <= 80 for line in lines)
    assert "HEALTHY" in lines[0]


def test_one_look_as_a_picture(broker: Broker, capfd: pytest.CaptureFixture[str]) -> None:
    assert once(broker, "-o", "svg", "--theme", "jsctl-light", *AS_SYSTEM) == 0
    picture = capfd.readouterr().out
    assert ElementTree.fromstring(picture).tag.endswith("svg")
    assert "@import" not in picture and "url(http" not in picture, "it needs no other host"


def test_rights_come_from_contexts_and_the_file(
    broker: Broker, capfd: pytest.CaptureFixture[str]
) -> None:
    store = ContextStore.default(os.environ)
    store.save("app", Context(url=broker.url, extra={"system_context": "sys"}))
    store.save("sys", Context(url=broker.url, user=SYSTEM_USER, password=SYSTEM_PASSWORD))
    words = ["dashboard", "--once", "-o", "json", "--refresh", "200ms"]
    assert main(["--context", "app", *words]) == 0
    document = json.loads(capfd.readouterr().out)
    assert document["system"] and document["context"] == "app"
    store.save("plain", Context(url=broker.url))
    assert main(["--context", "plain", *words]) == 0
    assert not json.loads(capfd.readouterr().out)["system"]
    (store.root / "dashboard.json").write_text('{"system_context": "sys"}')
    assert main(["--context", "plain", *words]) == 0
    assert json.loads(capfd.readouterr().out)["system"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--once", "--theme", "nope"), 'unknown theme "nope"'),
        (("--once", "--size", "big"), "--size must be like 120x40, got 'big'"),
        (("--once", "--size", "1x1"), "--size must be between"),
        (("--once", "-o", "pdf"), "--output must be one of text, json, svg"),
        (("--refresh", "1ms"), "--refresh must be between 200ms and 60s"),
        (("--once", "--system-context", "nobody"), 'context not found: "nobody"'),
    ],
)
def test_what_is_wrong_is_named(
    words: tuple[str, ...], told: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["dashboard", *words]) == 1
    assert told in capfd.readouterr().err


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "dashboard.json: "),
        ("[]", "is not a JSON object"),
        ('{"colour": 1}', 'unknown key "colour"'),
        ('{"keymap": {"purge": 7}}', "keymap must map"),
        ('{"read_only": "yes"}', "read_only must be a bool"),
        ('{"refresh": "1h"}', "refresh must be between"),
    ],
)
def test_a_broken_file_is_named(text: str, told: str, capfd: pytest.CaptureFixture[str]) -> None:
    root = ContextStore.default(os.environ).root
    root.mkdir(parents=True)
    (root / "dashboard.json").write_text(text)
    assert main(["dashboard", "--once"]) == 1
    error = capfd.readouterr().err
    assert told in error and "dashboard.json" in error


@pytest.mark.processes
def test_the_system_user_counts_more_than_a_url(capfd: pytest.CaptureFixture[str]) -> None:
    words = ["dashboard", "--once", "-o", "json", "--refresh", "200ms"]
    words += ["--system-user", "sys", "--system-password", "sys"]
    app = "A { jetstream: enabled, users: [ { user: app, password: p } ] }"
    config = f"accounts {{ {app}, $SYS {{ users: [ {{ user: sys, password: sys }} ] }} }}\n"
    with Broker("-js", name="one", config=config) as running:
        host = running.url.removeprefix("nats://")
        for url in (f"nats://app:p@{host}", f"app:p@{host}"):
            assert main(["-s", url, *words]) == 0
            told = capfd.readouterr().out
            (server,) = json.loads(told)["servers"]
            assert server["name"] == "one"
            assert json.loads(told)["context"] == host, "and nobody reads a password there"


def test_wrong_credentials_end_it(broker: Broker, capfd: pytest.CaptureFixture[str]) -> None:
    assert once(broker, "--system-user", "sys", "--system-password", "wrong") == 1
    assert "Authorization Violation" in capfd.readouterr().err


@pytest.mark.processes
def test_textual_is_imported_by_nothing_else() -> None:
    program = (
        "import sys; from jsctl.cli import main; main(['dashboard', '--help']); main(['--help']); "
        "print([name for name in sys.modules if name.startswith(('textual', 'nats'))])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_on_a_terminal(broker: Broker, tmp_path: Path) -> None:
    leader, follower = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "30"}
    command = [sys.executable, "-m", "jsctl", "-s", broker.url, "dashboard", *AS_SYSTEM]
    with subprocess.Popen(
        command, stdin=follower, stdout=follower, stderr=follower, env=environment
    ) as process:
        os.close(follower)
        seen = b""
        end = time.monotonic() + 20
        while b"HEALTHY" not in seen and time.monotonic() < end:
            if select.select([leader], [], [], 0.1)[0]:
                seen += os.read(leader, 65536)
        assert b"HEALTHY" in seen
        os.write(leader, b"q")
        while process.poll() is None and time.monotonic() < end:
            if select.select([leader], [], [], 0.1)[0]:
                try:
                    os.read(leader, 65536)
                except OSError:
                    break
        assert process.wait(10) == 0
    os.close(leader)
