"""Requests to `reply --command` that no command can be made of, and others behind them."""

import sys
from subprocess import PIPE, run

import pytest

from jsctl.testing import Broker
from tests.commands.messages.test_message_commands import Background

ODD = (b"it's", b"a\0b")


@pytest.mark.processes
@pytest.mark.parametrize("command", ["echo {{Request}}", "cat"])
def test_no_request_ends_who_answers(command: str) -> None:
    with Broker() as server:
        words = ("reply", "q", "--command", command, "--count", str(len(ODD) + 1))
        answering = Background(server.url, words, "Listening")
        try:
            for body in (*ODD, b"fine"):
                asked = [sys.executable, "-m", "jsctl", "-s", server.url, "request", "q", "--raw"]
                answer = run(asked, input=body, stdout=PIPE, timeout=60, check=True).stdout
                assert answer.strip(), body
            assert answer.strip() == b"fine"
            done = answering.result()
        finally:
            answering.close()
    assert done.code == 0
    assert "Traceback" not in done.err
