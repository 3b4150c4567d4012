"""`latency`, where messages do not arrive."""

import pytest

from jsctl.cli import main
from jsctl.testing import Broker

CONFIG = 'mappings { "_INBOX.*": lost }'


@pytest.mark.processes
def test_latency_does_not_wait_for_what_is_lost(capfd: pytest.CaptureFixture[str]) -> None:
    """The account leads them to another subject."""
    with Broker(config=CONFIG) as server:
        words = ("latency", "--server-b", server.url, "--duration", "10ms", "--rate", "200")
        assert main(("-s", server.url, "--timeout", "1s", *words)) == 1
    assert "2 of 2 messages did not arrive" in capfd.readouterr().err
