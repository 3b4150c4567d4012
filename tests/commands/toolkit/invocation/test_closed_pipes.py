"""Whoever reads what a command shows may have enough of it."""

import os
import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    "words", [["stream", "info", "-%"], ["no-such-command"], ["kv", "--bogus"]]
)
def test_the_page_below_an_error_may_be_left(words: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "jsctl", *words],
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writing)
    assert done.returncode == 1, done.stderr
    assert "error: " in done.stderr
    assert "Traceback" not in done.stderr and "ignored" not in done.stderr
