"""The monitoring pages of a broker have the keys of those of a nats-server."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from jsctl.testing import Broker, RealServer
from tests.support.pages import keys, page
from tests.support.wire_client import WireClient

pytestmark = pytest.mark.processes

CONFIG = """
accounts {
  A { jetstream: enabled, users: [ { user: a, password: a } ]
    mappings: { m: n, "o.*": [ { dest: "p.$1", weight: 100% } ] }
    exports: [ { service: s.x, response_type: stream, accounts: [B] }, { stream: "t.>" }
      { service: "s.*.y", account_token_position: 2 } ] }
  B { users: [ { user: b, password: b } ]
    imports: [ { service: { account: A, subject: s.x }, to: u, share: true }
      { service: { account: A, subject: s.B.y } }
      { stream: { account: A, subject: t.a }, prefix: v }
      { stream: { account: A, subject: "t.b.*" }, to: "w.*" } ] }
  $SYS { users: [ { user: sys, password: sys } ] }
}
no_auth_user: a
server_tags: ["AZ:1"]
"""
STREAM = {"name": "S", "subjects": ["s.>"], "num_replicas": 1, "storage": "file"}
CONSUMER = {"stream_name": "S", "config": {"durable_name": "C", "ack_policy": "explicit"}}
OURS = {
    "jsctl_version",
    "jsctl_internal_errors",
    "jsctl_lane",
    "jsctl_scrub",
    "jsctl_scrub.*",
    "jetstream.config.sync_always",
    "config.sync_always",
}
"""A broker names its product, and syncs before it acknowledges."""
THEIRS = {
    "git_commit",
    "feature_flags",
    "feature_flags.*",
    "http_req_stats.*",
    "account_detail.responses",
    "account_detail.responses.*",
}
"""A build of Go, flags of another program, replies under way."""
PAGES = [
    "/varz",
    "/jsz",
    "/jsz?streams=1&consumers=1&config=1",
    "/jsz?accounts=1&raft=1",
    "/connz?auth=1&subs=1",
    "/connz?subs=detail",
    "/connz?state=closed",
    "/subsz",
    "/subsz?subs=1&acc=A",
    "/accountz",
    "/accountz?acc=A",
    "/accountz?acc=B",
    "/accstatz",
    "/healthz",
    "/healthz?account=A&stream=NOPE",
    "/healthz?account=A&stream=S&consumer=C",
    "/healthz?stream=S",
    "/routez",
    "/raftz",
    "/gatewayz",
    "/leafz",
    "/connz?sort=bogus",
    "/nope",
]
Pages = dict[str, tuple[int, Any]]


def without(found: set[str], left_out: set[str]) -> set[str]:
    """Without keys that may differ; `x.*` stands for all below x."""
    heads = tuple(one[:-1] for one in left_out if one.endswith("*"))
    return {key for key in found if key not in left_out and not key.startswith(heads)}


def pages(server: Broker) -> Pages:
    """All pages of a server with a stream, a consumer and a client."""
    gone, client = WireClient(server.url), WireClient(server.url)
    gone.close()
    client.send(b"SUB keep.me 9\r\n")
    for subject, body in (
        (b"$JS.API.STREAM.CREATE.S", STREAM),
        (b"$JS.API.CONSUMER.CREATE.S.C", CONSUMER),
    ):
        assert client.request(subject, json.dumps(body).encode()), subject
    client.publish(b"s.1", b"hello")
    client.flush()
    found = {path: page(server, path) for path in PAGES}
    client.close()
    return found


@pytest.fixture(scope="module")
def both() -> Iterator[tuple[Pages, Pages]]:
    """(broker's, nats-server's) pages."""
    with ExitStack() as stack:
        servers = [
            stack.enter_context(kind("-js", config=CONFIG, name="n1"))
            for kind in (Broker, RealServer)
        ]
        yield pages(servers[0]), pages(servers[1])


@pytest.mark.parametrize("path", PAGES)
def test_same_keys(both: tuple[Pages, Pages], path: str) -> None:
    (status, ours), (real_status, theirs) = both[0][path], both[1][path]
    assert status == real_status
    if isinstance(theirs, str):
        assert ours == theirs
    else:
        assert without(keys(ours), OURS | THEIRS) == without(keys(theirs), OURS | THEIRS)


@pytest.mark.parametrize("name", "AB")
def test_what_an_account_gives_and_takes(both: tuple[Pages, Pages], name: str) -> None:
    ours, theirs = (pages[f"/accountz?acc={name}"][1]["account_detail"] for pages in both)
    assert ours.get("mappings") == theirs.get("mappings")
    for rows in ("exports", "imports"):
        told = [sorted(map(json.dumps, one.get(rows, ()))) for one in (ours, theirs)]
        assert told[0] == told[1]
