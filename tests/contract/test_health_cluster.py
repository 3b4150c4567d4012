"""What each server of a cluster says of the health of accounts and streams, its own and others'."""

import json
from collections.abc import Iterator
from functools import partial
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest

from jsctl.testing import Broker, Cluster
from tests.contract.conftest import KINDS
from tests.support.waiting import wait_for
from tests.support.wire_client import WireClient

CONFIG = """
accounts {
    A { jetstream: enabled, users: [{ user: a, password: a }] }
    B { jetstream: enabled, users: [{ user: b, password: b }] }
    SYS { users: [{ user: sys, password: sys }] }
}
system_account: SYS
"""
Told = tuple[int, Any]
OK: Told = (200, {"status": "ok"})


@pytest.fixture(scope="module", params=list(KINDS))
def servers(request: pytest.FixtureRequest) -> Iterator[tuple[Broker, list[Broker]]]:
    """The one that has the only stream, and the others, which know of it."""
    with Cluster(3, server=KINDS[str(request.param)], config=CONFIG) as cluster:
        client = WireClient(cluster.urls[0].replace("//", "//a:a@"))
        made = json.loads(client.request(b"$JS.API.STREAM.CREATE.S", b'{"name":"S"}'))
        client.close()
        host = made["cluster"]["leader"]
        others = [one for one in cluster if one.name != host]
        (own,) = [one for one in cluster if one.name == host]
        told = partial(map, partial(health, account="A"), cluster)
        wait_for(lambda: all(one == OK for one in told()), "all know of the account")
        yield own, others


def health(server: Broker, **asked: str) -> Told:
    """The status and the document."""
    try:
        with urlopen(f"{server.monitor_url}/healthz?{urlencode(asked)}") as answer:
            return answer.status, json.load(answer)
    except HTTPError as error:
        with error:
            return error.code, json.load(error)


def missing(text: str) -> Told:
    return 404, {"status": "unavailable", "error": f"JetStream {text}"}


def test_an_account_whose_streams_are_elsewhere_is_healthy(
    servers: tuple[Broker, list[Broker]],
) -> None:
    own, others = servers
    for one in (own, *others):
        assert health(one, account="A") == OK
        assert health(one, account="B") == missing('account "B" not found')


def test_a_stream_is_where_its_replicas_are(servers: tuple[Broker, list[Broker]]) -> None:
    own, others = servers
    assert health(own, account="A", stream="S") == OK
    for one in others:
        found = health(one, account="A", stream="S")
        assert found == missing('stream "S" not found on account "A"')
