"""`pub --atomic`, of more messages than anybody takes at once."""

import io
import json
import sys
from urllib.request import urlopen

import pytest

from jsctl.cli import main
from jsctl.testing import Broker

pytestmark = pytest.mark.processes
WORDS = ("pub", "s", "--atomic", "--send-on", "newline", "-q")


def publish(server: Broker, monkeypatch: pytest.MonkeyPatch, given: bytes, *words: str) -> int:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given)))
    return main(("-s", server.url, *WORDS, *words))


def received(server: Broker) -> int:
    with urlopen(f"{server.monitor_url}/varz") as page:
        return int(json.load(page)["in_msgs"])


def test_batches_of_any_size(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """What is more than a server takes is refused while most of it has not been made yet."""
    with Broker(jetstream=True) as server:
        stream = ("stream", "add", "S", "--subjects", "s", "--defaults", "--allow-batch")
        assert main(("-s", server.url, *stream)) == 0
        # More than one portion, and each of the lines several times.
        assert publish(server, monkeypatch, b"%b\nend\n" % (b"x" * 4000), "--count", "400") == 0
        capfd.readouterr()
        assert main(("-s", server.url, "stream", "info", "S", "-j")) == 0
        assert json.loads(capfd.readouterr().out)["state"]["messages"] == 800
        before = received(server)
        assert publish(server, monkeypatch, b"x\n", "--count", "200000") == 1
        assert "batch is too large" in capfd.readouterr().err
        assert received(server) - before < 50_000


def test_a_batch_of_nothing_is_an_error(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    with Broker(jetstream=True) as server:
        assert publish(server, monkeypatch, b"") == 1
    assert "no messages to publish in atomic batch" in capfd.readouterr().err
