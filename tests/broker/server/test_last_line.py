"""Bugs in a real process: one that a connection met costs the connection, one in the server's own
work stops it with a reason, and nothing that was acknowledged is lost."""

import json
import sys
import urllib.request

import pytest

from jsctl.testing import Broker
from tests.support.waiting import wait_for
from tests.support.wire_client import WireClient

MAPPINGS = "mappings: { m: [{destination: one, weight: 50%}, {destination: two, weight: 50%}] }"
pytestmark = pytest.mark.processes
STREAM = b'{"name":"S","subjects":["s"]}'


def set_off(broker: Broker, bug: str) -> None:
    """From now on the bug is there."""
    (broker.directory / bug).touch()


class FaultyBroker(Broker):
    """The broker with bugs that files set off."""

    program = (sys.executable, "-m", "tests.support.faulty_broker")


def internal_errors(broker: Broker) -> int:
    """What /varz counts."""
    with urllib.request.urlopen(f"{broker.monitor_url}/varz", timeout=30) as answer:
        return int(json.load(answer)["jsctl_internal_errors"])


def last_seq(broker: Broker) -> int:
    client = WireClient(broker.url)
    answer = client.request(b"$JS.API.STREAM.INFO.S", b"")
    client.close()
    return int(json.loads(answer)["state"]["last_seq"])


def test_a_bug_that_a_connection_met() -> None:
    with FaultyBroker("-js", config=MAPPINGS) as broker:
        innocent, victim = WireClient(broker.url), WireClient(broker.url)
        set_off(broker, "session")
        victim.send(b"PUB m 1\r\nx\r\n")
        assert victim.rest() == b"-ERR 'Internal Server Error'\r\n"
        victim.close()
        innocent.flush()
        innocent.close()
        assert internal_errors(broker) == 1
        broker.wait_log("Internal error in connection")
        assert "Traceback (most recent call last):" in broker.logs
        assert "InjectedBug: in a session" in broker.logs
        assert broker.stop() == 0


def test_a_bug_where_state_may_be_torn() -> None:
    with FaultyBroker("-js", config=MAPPINGS) as broker:
        client = WireClient(broker.url)
        client.request(b"$JS.API.STREAM.CREATE.S", STREAM)
        acknowledged = 0
        for number in range(200):
            if number == 100:
                set_off(broker, "store-bug")
            try:
                answer = client.request(b"s", b"%d" % number)
            except (AssertionError, OSError):
                break
            acknowledged = json.loads(answer)["seq"]
        client.close()
        wait_for(lambda: not broker.running, "the server has stopped")
        assert broker.stop() == 1
        assert "[FTL] Internal error, the server stops" in broker.logs
        assert "InjectedBug: in the store" in broker.logs
        (broker.directory / "store-bug").unlink()
        broker.start()
        assert 100 <= acknowledged <= last_seq(broker)
