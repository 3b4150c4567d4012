"""`top`: snapshots of a server's connections."""

import re
from pathlib import Path

import pytest

from jsctl.testing import Broker
from tests.commands.parity.conftest import Line, Same, normal, own, real

SNAPSHOTS = (
    "",
    "--sort msgs_to",
    "--subs",
    "--delimiter ,",
    "--delimiter ';' --subs -b",
)
REFUSALS = """
top n1 -o file.txt
top n1 -o none/file.txt
top nope -o file.txt --timeout 500ms
top
top n1 --sort nobody
"""
NUMBER = r"127\.0\.0\.1:\d+|\b\d[\d.]*[KMBG]?%?|\+N UTC"
NAMES = r"_INBOX\S+|NATS CLI Version v[0-9.]+|jsctl|\bgo\b|python3"
PASSING = re.compile(f"{NUMBER}|{NAMES}")


def tidy(text: str) -> str:
    """Without what the one connection that is there is, and does."""
    return re.sub(r"[ \t]+", " ", PASSING.sub("N", text)).replace("N ;", "N;")


@pytest.mark.parametrize("flags", SNAPSHOTS)
def test_snapshots(
    one_server: Broker,
    flags: str,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    def line(name: str) -> Line:
        return Line.of(f"top n1 -o {tmp_path / name} {flags}")

    assert real(one_server, "sys", line("theirs")).code == 0
    assert own(one_server, "sys", line("ours"), monkeypatch, capfd).code == 0
    theirs, ours = ((tmp_path / name).read_text() for name in ("theirs", "ours"))
    assert tidy(normal(ours)) == tidy(normal(theirs))
    assert (tmp_path / "ours").stat().st_mode & 0o777 == 0o600


def test_refusals(same: Same) -> None:
    same(REFUSALS, who="sys", tidy=tidy)
    same("top n1 -o file.txt --timeout 1s", who="ours")
