"""What both servers log when an operator sends a signal."""

import re
import signal

import pytest

from tests.contract.conftest import KINDS


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_reload_is_logged_with_its_signal_and_the_digest_of_the_file(kind: str) -> None:
    with KINDS[kind](config="max_payload: 1000") as broker:
        path = broker.directory / "broker.conf"
        before = re.search(r"Using configuration file: .* \((sha256:[0-9a-f]{64})\)", broker.logs)
        path.write_text("max_payload: 2000")
        broker.signal(signal.SIGHUP)
        broker.wait_log("Reloaded server configuration")
        after = re.search(r"Reloaded server configuration \((sha256:[0-9a-f]{64})\)", broker.logs)
        assert 'Trapped "hangup" signal' in broker.logs
        assert before and after
        assert before[1] != after[1]


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_reopen_without_a_log_file_says_so(kind: str) -> None:
    with KINDS[kind]() as broker:
        broker.signal(signal.SIGUSR1)
        broker.wait_log("File log re-open ignored, not a file logger")
        assert 'Trapped "user defined signal 1" signal' in broker.logs
