"""Accounts that may not have much: which streams still find room in what others reserve."""

import json
from collections.abc import Iterator

import pytest

from jsctl.testing import Broker
from tests.contract.conftest import KINDS
from tests.support.wire_client import WireClient

CONFIG = """
accounts {
    A { jetstream { max_mem: 1000, max_file: 1000 }, users: [{ user: a, password: a }] }
    B {
        jetstream {
            max_mem: 1000, max_file: 1000, max_streams: 0
            mem_max_stream_bytes: 500, disk_max_stream_bytes: 500
        }
        users: [{ user: b, password: b }]
    }
}
no_auth_user: a
jetstream: enabled
"""
NO_ROOM, NO_STORAGE, TOO_LARGE = 10028, 10047, 10122


@pytest.fixture(scope="module", params=list(KINDS))
def server(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """One of each kind."""
    with KINDS[str(request.param)](config=CONFIG) as running:
        yield running


@pytest.fixture(scope="module")
def client(server: Broker) -> Iterator[WireClient]:
    """Of account A."""
    found = WireClient(server.url)
    yield found
    found.close()


@pytest.fixture(scope="module")
def other(server: Broker) -> Iterator[WireClient]:
    """Of account B."""
    found = WireClient(server.url.replace("//", "//b:b@"))
    yield found
    found.close()


def created(client: WireClient, name: str, **more: object) -> int:
    """The error that a stream in memory is refused with; 0 if it is taken."""
    config = {"name": name, "subjects": [name], "storage": "memory", **more}
    body = json.dumps({key: item for key, item in config.items() if item}).encode()
    answer = json.loads(client.request(b"$JS.API.STREAM.CREATE." + name.encode(), body))
    code: int = answer.get("error", {}).get("err_code", 0)
    return code


def test_a_stream_without_a_maximum_needs_room_too(client: WireClient) -> None:
    assert created(client, "ALL", max_bytes=1000) == 0
    assert created(client, "OPEN") == NO_ROOM
    client.request(b"$JS.API.STREAM.DELETE.ALL", b"")
    assert created(client, "NEARLY", max_bytes=999) == 0
    assert created(client, "OPEN") == 0


def test_room_is_looked_for_before_what_is_there(client: WireClient) -> None:
    assert created(client, "FILED", storage="file") == 0
    assert created(client, "FILED", max_bytes=5000) == NO_ROOM


def test_no_number_of_streams_is_any_number(other: WireClient) -> None:
    assert created(other, "ONE") == created(other, "TWO") == 0
    for name in (b"ONE", b"TWO"):
        other.request(b"$JS.API.STREAM.DELETE." + name, b"")


def test_how_much_there_is_goes_before_how_large_one_may_be(other: WireClient) -> None:
    """Where the request says where messages are stored."""
    assert created(other, "S", max_bytes=501) == TOO_LARGE
    assert created(other, "S", max_bytes=1001) == NO_ROOM
    assert created(other, "S", max_bytes=1001, storage="file") == NO_STORAGE
    assert created(other, "S", max_bytes=1001, storage=None) == TOO_LARGE
