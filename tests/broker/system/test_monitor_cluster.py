"""A cluster of brokers on its monitoring pages: keys of real ones, and the truth about health."""

import json
from collections.abc import Iterator
from contextlib import ExitStack, closing
from typing import Any

import pytest

from jsctl.testing import Broker, Cluster, RealServer
from tests.support.pages import keys, page
from tests.support.waiting import wait_for
from tests.support.wire_client import WireClient

pytestmark = [pytest.mark.processes, pytest.mark.slow]

CONFIG = "no_auth_user: a, system_account: SYS"
USERS = "accounts { A { jetstream: enabled, users: [ { user: a, password: a } ] }, "
STREAM = {"name": "S", "subjects": ["s.>"], "num_replicas": 3, "storage": "file"}
CONSUMER = {"stream_name": "S", "config": {"durable_name": "C", "ack_policy": "explicit"}}
MAY_DIFFER = {
    "jsctl_version",
    "jsctl_internal_errors",
    "jsctl_lane",
    "jsctl_scrub",
    "git_commit",
    "feature_flags",
    "sync_always",
    "last_replicated_index",
    "lag",
    "offline",
    "catching_up",
    "in_msgs",
    "leader_since",
    "voted_for",
    "last_seen",
    "first_ts",
    "last_ts",
}
"""Names of keys that come and go with the moment, or belong to one of the two programs."""
PAGES = ("/varz", "/jsz?streams=1&consumers=1", "/raftz", "/raftz?acc=A", "/routez")


def cluster_of(kind: type[Broker]) -> Cluster:
    """Three servers with an account A that needs no password; the system account has a name."""
    cluster = Cluster(3, config=CONFIG, server=kind)
    for broker in cluster:
        broker.config = broker.config.replace("$SYS {", "SYS {").replace("accounts {", USERS)
    return cluster


def create(client: WireClient, subject: bytes, body: object) -> None:
    """Ask until it is done: a new meta leader may not hear the first, or know no other server."""
    text = json.dumps(body).encode()

    def done() -> bool:
        answer = client.request(subject, text, 2.0)
        return answer != b"" and "error" not in json.loads(answer)

    wait_for(done, f"{subject!r}")


def shown(document: Any) -> set[str]:
    """Keys without data in them: names of groups, peers and requests stand for any."""
    found = set()
    for key in keys(document):
        parts = key.split(".")
        if MAY_DIFFER.isdisjoint(parts) and "http_req_stats" not in parts[:-1]:
            found.add(".".join("*" if _is_name(part) else part for part in parts))
    return found


def _is_name(part: str) -> bool:
    return part.startswith(("S-R3F", "C-R3F")) or (len(part) == 8 and part != part.lower())


def wait_healthy(server: Broker) -> None:
    """Wait until a server says that it is well."""
    wait_for(lambda: page(server, "/healthz")[0] == 200, f"{server.name} is well")


def wait_told(listener: WireClient, what: bytes) -> None:
    """Wait for an advisory; others may come before it."""
    while listener.await_messages(1, 20.0):
        if what in listener.messages.popleft()[1]:
            return
    raise AssertionError(f"nothing was told of {what!r}")


def fill(cluster: Cluster) -> None:
    """A replicated stream and consumer."""
    with closing(WireClient(cluster["n1"].url)) as client:
        create(client, b"$JS.API.STREAM.CREATE.S", STREAM)
        create(client, b"$JS.API.CONSUMER.CREATE.S.C", CONSUMER)


@pytest.fixture(scope="module")
def clusters() -> Iterator[tuple[Cluster, Cluster]]:
    """(brokers, nats-servers)."""
    with ExitStack() as stack:
        found = [stack.enter_context(cluster_of(kind)) for kind in (Broker, RealServer)]
        for cluster in found:
            fill(cluster)
            for server in cluster:
                wait_healthy(server)
        yield found[0], found[1]


@pytest.mark.parametrize("leads", [True, False], ids=["leader", "follower"])
@pytest.mark.parametrize("path", PAGES)
def test_same_keys(clusters: tuple[Cluster, Cluster], path: str, leads: bool) -> None:
    """Of the meta group; who leads the stream is another matter."""
    found = []
    for cluster in clusters:
        leader = cluster.wait_meta_leader()
        name = leader if leads else next(one for one in cluster.names if one != leader)
        status, document = page(cluster[name], path)
        assert status == 200
        found.append(shown(document))
    assert (found[0] - found[1], found[1] - found[0]) == (set(), set())


def test_traffic_of_groups_is_in_the_system_account(clusters: tuple[Cluster, Cluster]) -> None:
    for cluster in clusters:
        server = cluster[cluster.wait_meta_leader()]
        groups = page(server, "/raftz")[1]["SYS"]
        assert {one["traffic_account"] for one in groups.values()} == {"SYS"}
        (account,) = page(server, "/jsz?acc=A&streams=1")[1]["account_details"]
        assert account["stream_detail"][0]["cluster"]["traffic_account"] == "SYS"


def test_subscribers_are_counted_on_all_servers(clusters: tuple[Cluster, Cluster]) -> None:
    clients = [WireClient(server.url) for server in clusters[0]]
    for client in clients:
        client.send(b"SUB count.* 5\r\n")
        client.flush()
    asker = clients[0]

    def counted() -> bool:
        return asker.request(b"$SYS.DEBUG.SUBSCRIBERS", b"count.me") == b"3"

    wait_for(counted, "all three are counted")
    for client in clients:
        client.close()


def test_health_of_who_is_left_alone(clusters: tuple[Cluster, Cluster]) -> None:
    ours = clusters[0]
    listener = WireClient(ours["n1"].url)
    listener.send(b"SUB $JS.EVENT.ADVISORY.STREAM.*.S 1\r\n")
    listener.flush()
    for name in ("n2", "n3"):
        ours.kill(name)

    def told() -> bool:
        status, document = page(ours["n1"], "/healthz")
        return status == 503 and "not established contact with a meta leader" in document["error"]

    wait_for(told, "the survivor says that nobody leads")
    wait_told(listener, b"QUORUM_LOST")
    for name in ("n2", "n3"):
        ours[name].start()
    wait_told(listener, b"LEADER_ELECTED")
    listener.close()
    for server in ours:
        wait_healthy(server)
    document = page(ours[ours.wait_meta_leader()], "/jsz")[1]
    meta = document["meta_cluster"]
    assert (meta["cluster_size"], meta["quorum_needed"], len(meta["replicas"])) == (3, 2, 2)
