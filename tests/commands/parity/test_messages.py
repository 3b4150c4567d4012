"""`publish`, `request`, `subscribe`: what is said of each message."""

import asyncio
import os
import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from jsctl.client.connection import connect
from jsctl.settings import Context, Settings
from jsctl.testing import Broker
from tests.commands.parity.conftest import NATS, PASSWORD, Same, environment
from tests.support.waiting import wait_for

OWN = re.compile(
    r"^Nats-(Stream|Subject|Sequence|Time-Stamp|Num-Pending|Last-Sequence): .*\n\n?", re.M
)
PUBLISHES = """
publish p.a hello
publish p.a 'a b {{Count}}' -H A:b
pub p.b --count 3 --jitter 1ms x
pub p.b << from stdin
pub p.b -q << from stdin
pub kept.a one -J
pub kept.b two -J -H A:1
pub kept.a three -J
pub nobody x -J --timeout 1s
request nobody x
request nobody x --raw
"""
READS = """
sub --stream KEPT --direct --all -T
sub kept.* --direct --start-sequence 2 -T
sub --stream KEPT --direct --last -T --raw
sub --stream KEPT --direct --all --count 1 --subjects-only
sub --stream KEPT --direct --durable D
sub --stream KEPT --match-replies --all
"""


def tidy(text: str) -> str:
    """Without the headers of answers that carry messages."""
    return OWN.sub("", text).replace("\n\n", "\n")


def test_messages(same: Same) -> None:
    same("stream add KEPT --subjects kept.* --defaults", tidy=lambda _: "")
    same(PUBLISHES)
    same(READS, tidy=tidy)


async def ask(server: Broker) -> None:
    context = Context(url=server.url, user="both", password=PASSWORD)
    async with connect(Settings(connection=context)) as client:

        async def answer(message: object) -> None:
            await client.publish(message.reply, b"an answer")  # type: ignore[attr-defined] # Msg

        await client.subscribe("asked.it", cb=answer)
        await client.flush()
        for number in range(2):
            await client.request("asked.it", b"question %d" % number, timeout=30)


def _said(log: Path, text: str) -> bool:
    return text in log.read_text()


@pytest.mark.processes
def test_replies_are_matched(one_server: Broker, tmp_path: Path) -> None:
    """Each tool sees the same two requests and their replies."""
    assert NATS is not None
    words = ["sub", "asked.>", "--match-replies", "--count", "2"]
    own = {**os.environ, **environment(one_server, "both"), "PYTHONUNBUFFERED": "1"}
    found: dict[str, str] = {}
    for name, program in (("nats", [NATS]), ("jsctl", [sys.executable, "-m", "jsctl"])):
        log = tmp_path / name
        with log.open("wb") as out:
            running = subprocess.Popen([*program, *words], stdout=out, stderr=out, env=own)
        try:
            wait_for(partial(_said, log, "Subscribing on"), "it listens")
            asyncio.run(ask(one_server))
            assert running.wait(60) == 0
        finally:
            running.kill()
            running.wait()
        text = re.sub(r'"_INBOX[^"]*"', "INBOX", log.read_text())
        found[name] = re.sub(r"\d\d:\d\d:\d\d ", "", text)
    assert found["jsctl"] == found["nats"]
    assert found["jsctl"].count("Matched reply on INBOX") == 2


HEADERS = """
stream add H --subjects h --defaults
pub h body -H A:1 -H A:2 -J
pub h body -H 'B:{{Count}}' -J
stream get H 1
stream get H 2
req nobody.there x -H A:1 -H A:2
pub h body -H A
"""


def test_a_header_has_several_values_and_words_in_braces(same: Same) -> None:
    same(HEADERS, tidy=lambda text: CREATED.sub("", text))


CREATED = re.compile(r"Stream H was created.*", re.DOTALL)
