"""Advisories: subjects and bodies."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from jsctl.api.cluster import PeerInfo
from jsctl.broker.jetstream.advisories import Advisories, Message
from jsctl.broker.jetstream.requests import ApiRequest, ClientInfo

CLIENT = ClientInfo("A", "u", "n1", "C1", 7, "127.0.0.1", "cli", "go", "1.2", 10**9)
REQUEST = ApiRequest("A", b"$JS.API.INFO", b"r", b"", b"{}", CLIENT, "p1")
PEERS = (PeerInfo(name="n2", current=True, peer="p2"),)
NOW = 1_700_000_000 * 10**9


@pytest.mark.parametrize(
    ("build", "subject", "kind", "fields"),
    [
        (
            lambda a: a.stream_action("S", "create"),
            "STREAM.CREATED.S",
            "stream_action",
            {"stream": "S", "action": "create"},
        ),
        (
            lambda a: a.stream_action("S", "modify"),
            "STREAM.UPDATED.S",
            "stream_action",
            {"stream": "S", "action": "modify"},
        ),
        (
            lambda a: a.consumer_action("S", "C", "delete"),
            "CONSUMER.DELETED.S.C",
            "consumer_action",
            {"stream": "S", "consumer": "C", "action": "delete"},
        ),
        (
            lambda a: a.consumer_pause("S", "C", True, NOW),
            "CONSUMER.PAUSE.S.C",
            "consumer_pause",
            {
                "stream": "S",
                "consumer": "C",
                "paused": True,
                "pause_until": "2023-11-14T22:13:20Z",
            },
        ),
        (
            lambda a: a.stream_leader("A", "S", "n1", PEERS),
            "STREAM.LEADER_ELECTED.S",
            "stream_leader_elected",
            {
                "account": "A",
                "stream": "S",
                "leader": "n1",
                "replicas": [{"name": "n2", "current": True, "active": 0, "peer": "p2"}],
            },
        ),
        (
            lambda a: a.stream_quorum_lost("A", "S", ()),
            "STREAM.QUORUM_LOST.S",
            "stream_quorum_lost",
            {"account": "A", "stream": "S", "replicas": []},
        ),
        (
            lambda a: a.consumer_leader("A", "S", "C", "n1", ()),
            "CONSUMER.LEADER_ELECTED.S.C",
            "consumer_leader_elected",
            {"account": "A", "stream": "S", "consumer": "C", "leader": "n1", "replicas": []},
        ),
        (
            lambda a: a.consumer_quorum_lost("A", "S", "C", ()),
            "CONSUMER.QUORUM_LOST.S.C",
            "consumer_quorum_lost",
            {"account": "A", "stream": "S", "consumer": "C", "replicas": []},
        ),
        (
            lambda a: a.domain_leader("n1", "C1", ()),
            "DOMAIN.LEADER_ELECTED",
            "domain_leader_elected",
            {"leader": "n1", "replicas": [], "cluster": "C1"},
        ),
        (
            lambda a: a.out_of_storage("n1", "ID", "C1"),
            "SERVER.OUT_OF_STORAGE",
            "server_out_of_space",
            {"server": "n1", "server_id": "ID", "cluster": "C1"},
        ),
        (
            lambda a: a.server_removed("n1", "ID", "C1"),
            "SERVER.REMOVED",
            "server_removed",
            {"server": "n1", "server_id": "ID", "cluster": "C1"},
        ),
        (
            lambda a: a.api_limit_reached("n1", 5),
            "API.LIMIT_REACHED",
            "api_limit_reached",
            {"server": "n1", "dropped": 5},
        ),
    ],
)
def test_advisories(
    build: Callable[[Advisories], Message], subject: str, kind: str, fields: dict[str, Any]
) -> None:
    made, payload = build(Advisories("id", NOW))
    assert made.decode() == f"$JS.EVENT.ADVISORY.{subject}"
    head = {
        "type": f"io.nats.jetstream.advisory.v1.{kind}",
        "id": "id",
        "timestamp": "2023-11-14T22:13:20Z",
    }
    assert json.loads(payload) == {**head, **fields}


def test_an_audit_names_the_client() -> None:
    _, payload = Advisories("id", NOW, "hub").api_audit("n1", REQUEST, b"{}")
    body = json.loads(payload)
    assert body["domain"] == "hub"
    assert body["client"]["acc"] == "A"
    assert body["client"]["start"] == "1970-01-01T00:00:01Z"
