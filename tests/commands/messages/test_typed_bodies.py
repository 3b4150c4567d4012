"""Bodies that are typed on a terminal."""

import json
import sys
from base64 import b64decode
from pathlib import Path

import pytest

from jsctl.cli import main
from jsctl.testing import Broker
from tests.support.dialogues import talked

pytestmark = pytest.mark.processes
END = "\r\x04"
"""Ctrl-D on a line of its own."""


def test_a_body_that_is_not_given_is_typed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with Broker(jetstream=True) as server:
        at = ("-s", server.url)
        assert main((*at, "stream", "add", "S", "--subjects", "s.>", "--defaults")) == 0
        for words in ("pub s.a", "pub s.b --send-on newline", "request s.c"):
            steps = (("Reading payload from STDIN", f"hello{END}"),)
            program = [sys.executable, "-m", "jsctl", *at]
            assert talked(program, tmp_path, words, steps) == 0, words
        for sequence, body in enumerate((b"hello\n", b"hello", b"hello\n"), 1):
            capfd.readouterr()
            assert main((*at, "stream", "get", "S", str(sequence), "-o", "json")) == 0
            assert b64decode(json.loads(capfd.readouterr().out)["data"]) == body
