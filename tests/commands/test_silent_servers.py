"""Servers that stand still once somebody is connected."""

import asyncio
import json
from time import monotonic

import pytest

from jsctl.cli import main
from tests.support.relay import served

INFO = b"INFO " + json.dumps({"server_id": "N", "max_payload": 1024}).encode() + b"\r\n"
LIBRARYS_OWN_S = 10
"""How long the client library waits for an answer to a ping."""


async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Says that whoever comes is connected, and nothing else."""
    writer.write(INFO)
    while line := await reader.readline():
        if line == b"PING\r\n":
            writer.write(b"PONG\r\n")
            break
    while await reader.read(65536):
        pass
    writer.close()


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        ("account info", 1, "context deadline exceeded\n  no answer from 127.0.0.1:"),
        ("server check connection", 2, "CRITICAL Connection Crit:rtt failed: nats: timeout"),
    ],
)
def test_no_answer_is_waited_for_longer_than_was_said(
    words: str, code: int, told: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with served(greet) as port:
        before = monotonic()
        assert main(("-s", f"127.0.0.1:{port}", "--timeout", "0.2s", *words.split())) == code
        assert monotonic() - before < LIBRARYS_OWN_S
    assert told in "".join(capfd.readouterr())
