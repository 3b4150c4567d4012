"""A real process that syncs in its loop: killed at any moment, and with a disk that fails."""

import base64
import json
import sys

import pytest

from jsctl.testing import Broker
from tests.support.waiting import wait_for
from tests.support.wire_client import WireClient

pytestmark = pytest.mark.processes
STREAM = b'{"name":"S","subjects":["s"]}'
LIVES = 3
PUBLISHED = 25


class LoopSyncing(Broker):
    """The broker that syncs in its loop whatever that takes."""

    program = (sys.executable, "-m", "tests.support.loop_syncing")


def places(broker: Broker) -> str:
    """Where the log was synced, in order."""
    return (broker.directory / "synced").read_text()


def stored(broker: Broker) -> list[bytes]:
    """What the stream holds, by sequence."""
    client = WireClient(broker.url)
    last = json.loads(client.request(b"$JS.API.STREAM.INFO.S", b""))["state"]["last_seq"]
    found = [
        json.loads(client.request(b"$JS.API.STREAM.MSG.GET.S", b'{"seq":%d}' % seq))
        for seq in range(1, last + 1)
    ]
    client.close()
    return [base64.b64decode(one["message"]["data"]) for one in found]


def publish(client: WireClient, number: int) -> int:
    """The sequence that is acknowledged; right behind a start nobody may lead the stream yet."""
    answer = wait_for(lambda: client.request(b"s", b"%d" % number), "an acknowledgement")
    return int(json.loads(answer)["seq"])


def test_what_was_acknowledged_outlives_kills() -> None:
    with LoopSyncing("-js") as broker:
        client = WireClient(broker.url)
        client.request(b"$JS.API.STREAM.CREATE.S", STREAM)
        number = 0
        acknowledged: dict[int, int] = {}
        for _ in range(LIVES):
            for _ in range(PUBLISHED):
                number += 1
                acknowledged[publish(client, number)] = number
            # The last one is on its way through the turn, the sync or back when the end comes.
            number += 1
            client.publish(b"s", b"%d" % number)
            client.close()
            broker.restart(kill=True)
            client = WireClient(broker.url)
        kept = stored(broker)
        client.close()
        in_loop = places(broker).count("m")
        assert in_loop > LIVES * PUBLISHED // 2, places(broker)
    assert len(acknowledged) == LIVES * PUBLISHED and len(kept) <= number
    assert {seq: int(kept[seq - 1]) for seq in acknowledged} == acknowledged


def test_a_sync_that_fails_in_the_loop_stops_the_server_and_promises_nothing() -> None:
    with LoopSyncing("-js") as broker:
        client = WireClient(broker.url)
        client.request(b"$JS.API.STREAM.CREATE.S", STREAM)
        last = [publish(client, number) for number in range(PUBLISHED)][-1]
        assert places(broker).endswith("m")
        (broker.directory / "fail-sync").touch()
        client.send(b"SUB answer 1\r\n")
        client.publish(b"s", b"never acknowledged", b"answer")
        assert b"seq" not in client.rest()
        client.close()
        wait_for(lambda: not broker.running, "the server has stopped")
        broker.stop()
        assert "cannot sync: I/O error; nothing unsynced was acknowledged" in broker.logs
        (broker.directory / "fail-sync").unlink()
        broker.start()
        assert last <= len(stored(broker)) <= last + 1
