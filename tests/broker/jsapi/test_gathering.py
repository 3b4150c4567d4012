"""Infos that servers ask each other for."""

import pytest

from jsctl.broker.assets import introductions
from jsctl.broker.jsapi import gathering
from jsctl.broker.peers.items import GatherRequest, Introduction
from tests.support.cluster_play import ClusterPlay
from tests.support.stream_requests import consumer, stream


def test_answers_to_an_earlier_process_are_not_taken_for_ones_to_this(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The names may be the same, and the account another one."""
    tokens: list[int] = []

    def gather(token: int, account: str, assets: list[tuple[str, str]]) -> GatherRequest:
        tokens.append(token)
        return GatherRequest(token, account, assets)

    def introduce(key: bytes, token: int, seen: int) -> Introduction:
        tokens.append(token)
        return Introduction(key, token, seen)

    monkeypatch.setattr(gathering, "GatherRequest", gather)
    monkeypatch.setattr(introductions, "Introduction", introduce)
    cluster = ClusterPlay()
    cluster["n1"].request_all("$JS.API.STREAM.CREATE.S", 1, **stream(retention="interest"))
    for life in range(3):
        meta = cluster.leader()
        other = next(one for one in cluster if cluster.leader(cluster.group_of("S")) is not one)
        name = f"C{life}"
        meta.request_all(f"$JS.API.CONSUMER.CREATE.S.{name}", 1, **consumer(name))
        for server in (meta, other):
            (listed,) = server.request_all("$JS.API.STREAM.LIST", 1)
            assert [one["config"]["name"] for one in listed["streams"]] == ["S"]
        for server in cluster:
            server.halt()
        for server in cluster:
            server.begin()
        cluster.run(2)
    assert len(tokens) >= 3
    assert len(set(tokens)) == len(tokens)
