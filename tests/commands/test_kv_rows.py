"""Revisions of keys as rows, which come one by one."""

import csv
import subprocess
import sys

import pytest

from jsctl.testing import Broker, BrokerFactory

pytestmark = pytest.mark.processes
BINARY = b"\xff\x00"


@pytest.fixture(scope="module")
def broker(jsctl_session_broker: BrokerFactory) -> Broker:
    return jsctl_session_broker("-js")


def jsctl(broker: Broker, *words: str, given: bytes = b"") -> None:
    command = [sys.executable, "-m", "jsctl", "-s", broker.url, *words]
    subprocess.run(command, input=given, check=True, timeout=60, capture_output=True)


def test_a_binary_value_behind_a_text_has_its_encoding_in_the_last_column(broker: Broker) -> None:
    jsctl(broker, "kv", "add", "B")
    jsctl(broker, "kv", "put", "B", "text", "hello")
    jsctl(broker, "kv", "put", "B", "bytes", given=BINARY)
    words = [sys.executable, "-m", "jsctl", "-s", broker.url, "kv", "watch", "B", "-o", "csv"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as watching:
        assert watching.stdout is not None
        try:
            lines = [watching.stdout.readline() for _ in range(3)]
        finally:
            watching.kill()
    first, second = csv.DictReader(lines)
    assert (first["value"], first["rest"]) == ("hello", "")
    assert (second["value"], second["rest"]) == ("/wA=", '{"encoding":"base64"}')
