"""A real process that may have few files open, and more connections or streams than that."""

import socket
import sys

import pytest

from jsctl.testing import Broker
from tests.support.waiting import wait_for
from tests.support.wire_client import WireClient

pytestmark = pytest.mark.processes
FILES_MAX = 120
LIMITED = (
    "import resource, runpy, sys;"
    f"resource.setrlimit(resource.RLIMIT_NOFILE, ({FILES_MAX}, {FILES_MAX}));"
    "sys.argv[0] = 'jsctl'; runpy.run_module('jsctl', run_name='__main__')"
)
STREAMS = 20
CONFIG = b'{"name":"%s","subjects":["%s"],"allow_direct":true}'


class FewFiles(Broker):
    """The broker under a limit."""

    program = (sys.executable, "-c", LIMITED, "broker")


def create_and_publish(client: WireClient, numbers: range) -> None:
    """Make streams, each of which has a file of its own once there is a message in it."""
    for number in numbers:
        name = b"S%d" % number
        made = client.request(b"$JS.API.STREAM.CREATE." + name, CONFIG % (name, name))
        assert b'"error"' not in made
        assert b'"seq":1' in client.request(name, b"one")


def is_turned_away(crowd: list[socket.socket]) -> bool:
    """Whether the last one that came was not greeted."""
    try:
        return crowd[-1].recv(1) == b""
    except ConnectionError:
        return True


def is_welcome(broker: Broker) -> bool:
    """Whether there is room for somebody."""
    try:
        WireClient(broker.url).close()
    except ConnectionError:
        return False
    return True


def test_the_store_has_files_left_whoever_connects() -> None:
    with FewFiles("-js") as broker:
        client = WireClient(broker.url)
        create_and_publish(client, range(STREAMS))
        address = ("127.0.0.1", broker.port)
        crowd = [socket.create_connection(address, timeout=30) for _ in range(FILES_MAX + 50)]
        try:
            assert is_turned_away(crowd)
            create_and_publish(client, range(STREAMS, 2 * STREAMS))
        finally:
            for one in crowd:
                one.close()
        wait_for(lambda: is_welcome(broker), "room for others")
        client.close()
        log = broker.logs
    assert "Turned away connections: 1; of the 120 files" in log
    assert "Traceback" not in log


def test_there_may_be_more_streams_than_files() -> None:
    with FewFiles("-js") as broker:
        client = WireClient(broker.url)
        create_and_publish(client, range(FILES_MAX + STREAMS))
        client.close()
        broker.restart(kill=True)
        client = WireClient(broker.url)
        for number in range(FILES_MAX + STREAMS):
            subject = b"$JS.API.DIRECT.GET.S%d" % number

            def stored(subject: bytes = subject) -> bool:
                return b"one" in client.request(subject, b'{"seq":1}')

            wait_for(stored, "the message")
        client.close()
