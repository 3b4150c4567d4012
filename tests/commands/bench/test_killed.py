"""A benchmark that is killed: its clients in other processes end with it. And its server."""

import json
import signal

import pytest

from jsctl.testing import Broker
from tests.commands.messages.test_message_commands import Background
from tests.support.waiting import wait_for
from tests.support.wire_client import WireClient

pytestmark = pytest.mark.processes


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_no_client_is_left_behind(how: signal.Signals) -> None:
    words = ("bench", "service", "serve", "q", "--clients", "2", "--no-progress")
    with Broker() as server:
        serving = Background(server.url, words, "")
        wire = WireClient(server.url)

        def who() -> str:
            """What is in flight when a client ends is answered by nobody."""
            found = wire.answer(b"q", b"x", deadline_s=1.0)
            return "" if found is None else "nobody" if b"503" in found[3] else "a client"

        try:
            wait_for(lambda: who() == "a client", "the service answers")
            serving.signal(how)
            wait_for(lambda: who() == "nobody", "its clients have ended", 20.0)
            assert serving.result().code == -how
        finally:
            wire.close()
            serving.close()


def test_a_server_that_is_killed_ends_a_slow_benchmark_with_one_sentence() -> None:
    slow = ("--throughput", "500", "--batch", "5000", "--msgs", "5000", "--no-progress")
    with Broker("-js") as server:
        wire = WireClient(server.url)
        config = {"name": "K", "subjects": ["k"]}
        wire.request(b"$JS.API.STREAM.CREATE.K", json.dumps(config).encode())
        words = ("bench", "js", "pub", "async", "k", "--stream", "K", *slow)
        running = Background(server.url, words, "publishing")

        def stored() -> bool:
            info = json.loads(wire.request(b"$JS.API.STREAM.INFO.K", b""))
            return bool(info["state"]["messages"])

        try:
            wait_for(stored, "it has begun")
            server.kill()
            done = running.result()
        finally:
            wire.close()
            running.close()
    assert done.code == 1
    assert "jsctl: error: nats: " in done.err
    assert "socket.send" not in done.err
