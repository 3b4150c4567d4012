"""Signals to a pipeline that runs: the first lets its batch finish, nothing shows a trace."""

import logging
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from jsctl.commands.pipeline.session import quiet_interrupts
from jsctl.testing import Broker
from tests.spark.pipeline.conftest import make_stream, orders, publish, quick_java, write_spec
from tests.support.moving_files import files
from tests.support.waiting import wait_for

START_S = 240.0
ROWS = 50
SPEC = """\
name: NAME
source: {stream: NAME}
sink: {type: parquet, path: out}
trigger: {every: 200ms}
checkpoint: ckpt
"""
TROUBLE = ("Traceback", "KeyboardInterrupt", "Py4J")


@pytest.mark.processes
@pytest.mark.timeout(600)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_lets_it_finish(
    broker: Broker, fresh: str, number: signal.Signals, tmp_path: Path
) -> None:
    """PySpark, which would cancel the batch, hears of none."""
    make_stream(broker, fresh)
    publish(broker, orders(fresh, ROWS))
    spec = write_spec(tmp_path, SPEC.replace("NAME", fresh))
    words = ["pipeline", "run", str(spec), "--server", broker.url, "--master", "local[1]"]
    log = tmp_path / "log"
    with (
        log.open("wb") as said,
        subprocess.Popen(
            [sys.executable, "-m", "jsctl", *words],
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            start_new_session=True,
            env=quick_java(),
        ) as process,
    ):
        try:
            wait_for(
                lambda: files(tmp_path / "out", "batch=*") or process.poll() is not None,
                "a batch is written",
                START_S,
            )
            process.send_signal(number)
            assert process.wait(START_S) == 0, log.read_text()
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    text = log.read_text()
    assert f"{fresh}: {ROWS} rows in 1 batch; stopped on request\n" in text
    assert not [word for word in TROUBLE if word in text], text


def test_where_the_second_one_found_the_way_to_java_is_not_shown(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from py4j.java_gateway import GatewayClient  # type: ignore[import-untyped]  # py4j has no types

    class Connection:
        """To a Java that is asked something just now."""

        socket = None

        def send_command(self, _command: str) -> str:
            raise KeyboardInterrupt

    monkeypatch.setattr(GatewayClient, "_get_connection", lambda _client: Connection())
    client = GatewayClient()
    with pytest.raises(KeyboardInterrupt):
        client.send_command("x")
    assert "while sending command" in caplog.text
    caplog.clear()
    with quiet_interrupts():
        with pytest.raises(KeyboardInterrupt):
            client.send_command("x")
        assert caplog.text == ""
        logging.getLogger().error("anything else")
    assert "anything else" in caplog.text
