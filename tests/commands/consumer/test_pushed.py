"""`consumer sub`, as long as it goes on, and bodies that are no text."""

import subprocess
import sys

import pytest

from jsctl.cli import main
from jsctl.testing import Broker
from tests.support.wire_client import WireClient


@pytest.mark.processes
def test_a_heartbeat_is_no_question() -> None:
    """It wants no answer, and has no place for one."""
    with Broker(jetstream=True) as broker:
        for line in (
            "stream add S --subjects s --defaults",
            "consumer add S C --target pushed --heartbeat 100ms --defaults",
        ):
            assert main(["-s", broker.url, *line.split()]) == 0
        beside = WireClient(broker.url)
        words = [sys.executable, "-m", "jsctl", "-s", broker.url, "consumer", "sub", "S", "C", "-r"]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as listening:
            assert listening.stdout is not None
            beside.publish(b"s", b"first")
            assert listening.stdout.readline() == b"first\n"
            beside.send(b"SUB pushed beside\r\n")
            assert beside.await_messages(1, 30.0)
            assert b"Idle Heartbeat" in beside.messages[0][3]
            beside.publish(b"s", b"second")
            assert listening.stdout.readline() == b"second\n"
            listening.kill()
        beside.close()


@pytest.mark.processes
def test_bodies_are_shown_as_they_came() -> None:
    body = b"\xff\xfe\x00"
    with Broker(jetstream=True) as broker:
        server = ("-s", broker.url)
        assert main([*server, "stream", "add", "S", "--subjects", "s", "--defaults"]) == 0
        assert main([*server, "consumer", "add", "S", "C", "--pull", "--defaults"]) == 0
        client = WireClient(broker.url)
        for _ in range(2):
            assert b'"seq"' in client.request(b"s", body)
        client.close()
        lines = ("consumer next S C --raw", "consumer next S C", "stream get S 1")
        ends = (body + b"\n", b"\n\n" + body + b"\n\nAcknowledged message\n\n", body + b"\n\n\n")
        for line, end in zip(lines, ends, strict=True):
            words = [sys.executable, "-m", "jsctl", *server, *line.split()]
            done = subprocess.run(words, capture_output=True, check=True)
            assert done.stdout.endswith(end), (line, done.stdout)
