"""Commands that other programs have."""

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from jsctl.completion.words import complete
from tests.commands.conftest import Result
from tests.support import nats_tool

pytestmark = pytest.mark.processes

Run = Callable[..., Result]

MODEL = {
    "name": "shop",
    "help": "Looks after the shop",
    "flags": [
        {"name": "region", "help": "Where", "short": 114, "boolean": False},
        {"name": "server", "help": "URL", "boolean": False},
    ],
    "commands": [
        {
            "name": "orders",
            "aliases": ["o"],
            "help": "Lists orders",
            "args": [
                {"name": "day", "help": "Of which day", "required": True},
                {"name": "ids", "help": "Only these", "cumulative": True},
            ],
            "flags": [{"name": "open", "help": "Open ones", "boolean": True, "negatable": True}],
        }
    ],
}
PROGRAM = """#!/bin/sh
if [ "$1" = --fisk-introspect ]; then cat <<'END'
%s
END
exit 0; fi
printf '%%s\\n' "$@" > "$SAID"
exit "${STATUS:-0}"
"""


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program with commands; what it is told is written to the file `said`."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    monkeypatch.setenv("SAID", str(tmp_path / "said"))
    return program(tmp_path / "shop-tools", json.dumps(MODEL))


def program(path: Path, model: str) -> Path:
    path.write_text(PROGRAM % model)
    path.chmod(0o755)
    return path


def test_its_commands_are_run_with_the_words_as_they_were_given(
    shop: Path, cli: Run, tmp_path: Path
) -> None:
    assert cli("plugins", "register", "shop", str(shop)).code == 0
    kept = tmp_path / "share" / "nats" / "cli" / "plugins" / "shop.json"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert json.loads(kept.read_text()) == {"cmd": str(shop), "def": MODEL}
    done = cli("shop", "o", "monday", "-r", "eu", "7", "8", "--no-open", "-s", "nats://x:1", "-j")
    assert (done.code, (tmp_path / "said").exists()) == (1, False)  # -j is none of its flags
    done = cli("shop", "o", "monday", "-r", "eu", "7", "8", "--no-open", "-s", "nats://x:1")
    assert (done.code, done.err) == (0, "")
    told = (tmp_path / "said").read_text().split()
    assert told == ["orders", "--server=nats://x:1", *["monday", "-r", "eu", "7", "8", "--no-open"]]
    assert "required argument 'day' not provided" in cli("shop", "orders").err


def test_its_status_is_told(shop: Path, cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    cli("plugins", "register", "shop", str(shop))
    monkeypatch.setenv("STATUS", "3")
    done = cli("shop", "orders", "monday")
    assert (done.code, done.err) == (1, "jsctl: error: exit status 3\n")
    shop.unlink()
    assert "no such file" in cli("shop", "orders", "monday").err


def test_they_are_in_the_help(shop: Path, cli: Run) -> None:
    assert "shop" not in cli("--help").out
    cli("plugins", "register", "shop", str(shop))
    assert "Looks after the shop" in cli("--help").out
    assert "Of which day" in cli("shop", "orders", "--help").out


def test_they_are_offered_on_the_command_line(shop: Path, cli: Run, tmp_path: Path) -> None:
    cli("plugins", "register", "shop", str(shop))
    (tmp_path / "share" / "nats" / "cli" / "plugins" / "shod.json").write_bytes(b"{")
    found = [complete(words, os.environ).candidates for words in (["sho"], ["shop", ""])]
    assert found[0] == (("shop", "Looks after the shop"),)
    assert "orders" in dict(found[1])
    assert "shop" not in dict(complete(["stream", "sh"], os.environ).candidates)


@pytest.mark.parametrize(
    "model",
    ["", "{}", "[]", '{"name": "x"}', '{"name":"x","help":"y","commands":[{"name":"a"}]}',
     '{"name":"x","help":"y","flags":[{"name":1}]}', '{"name":"x","help":"y","args":7}'],
)  # fmt: skip
def test_a_program_that_describes_nothing_is_refused(
    model: str, shop: Path, cli: Run, tmp_path: Path
) -> None:
    odd = program(tmp_path / "odd", model)
    done = cli("plugins", "register", "odd", str(odd))
    assert (done.code, "does not say what its commands are" in done.err) == (1, True)
    assert not list((tmp_path / "share").rglob("*.json"))


def test_names_are_those_of_no_other_command(shop: Path, cli: Run) -> None:
    for name in ("stream", "st", "Shop", "a-b", "../x"):
        assert cli("plugins", "register", name, str(shop)).code == 1
    assert cli("plugins", "register", "shop", str(shop)).code == 0
    assert "use --force" in cli("plugins", "register", "shop", str(shop)).err
    assert cli("plugins", "register", "shop", str(shop), "--force").code == 0


def test_a_broken_file_stops_nothing_else(shop: Path, cli: Run, tmp_path: Path) -> None:
    cli("plugins", "register", "shop", str(shop))
    for name, text in (("bad", b"{"), ("worse", b'{"cmd":7,"def":[]}'), ("st", b"{}")):
        (tmp_path / "share" / "nats" / "cli" / "plugins" / f"{name}.json").write_bytes(text)
    done = cli("--help")
    assert (done.code, "Looks after the shop" in done.out) == (0, True)
    assert "could not read plugin bad" in done.err
    assert "could not read plugin worse" in cli("worse").err


@nats_tool.needed
def test_both_tools_have_the_same(shop: Path, cli: Run, tmp_path: Path) -> None:
    assert nats_tool.nats("plugins", "register", "shop", str(shop)).returncode == 0
    assert cli("shop", "orders", "monday").code == 0
    assert (tmp_path / "said").read_text().split() == ["orders", "monday"]
    assert cli("plugins", "register", "mine", str(shop)).code == 0
    assert nats_tool.nats("mine", "o", "friday").returncode == 0
    assert (tmp_path / "said").read_text().split() == ["orders", "friday"]
