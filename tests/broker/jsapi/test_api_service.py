"""API requests in a cluster: who decides, who answers, who waits."""

import pytest

from jsctl.broker.jetstream.requests import ApiRequest, ClientInfo
from jsctl.broker.jsapi.deciding.held import LEADERLESS_NS
from jsctl.broker.jsapi.service import HOPS_MAX
from jsctl.broker.options import JetStreamOptions
from tests.support.cluster_play import ClusterPlay
from tests.support.stream_requests import consumer, stream

JETSTREAM = JetStreamOptions(
    enabled=True, store_dir="/data", memory_bytes_max=1 << 20, store_bytes_max=1 << 30, domain="hub"
)


@pytest.fixture
def cluster() -> ClusterPlay:
    """Three servers of the domain `hub`."""
    return ClusterPlay(jetstream=JETSTREAM)


def test_every_server_answers_by_way_of_who_decides(cluster: ClusterPlay) -> None:
    for number, server in enumerate(cluster):
        name = f"S{number}"
        (answer,) = server.request_all(f"$JS.API.STREAM.CREATE.{name}", 1, **stream(name))
        assert answer["config"]["name"] == name
        for other in cluster:
            (info,) = other.request_all(f"$JS.API.STREAM.INFO.{name}", 0.5)
            assert info["cluster"]["leader"] == cluster.leader(cluster.group_of(name)).name


def test_the_domain_is_another_name_of_the_api(cluster: ClusterPlay) -> None:
    (made,) = cluster["n1"].request_all("$JS.hub.API.STREAM.CREATE.S", 1, **stream())
    (info,) = cluster["n2"].request_all("$JS.hub.API.INFO", 0.5)
    assert "error" not in made and info["domain"] == "hub" and info["streams"] == 1
    assert cluster["n3"].request_all("$JS.other.API.INFO", 0.5) == []


def test_lists_are_gathered_from_all_leaders(cluster: ClusterPlay) -> None:
    for number in range(4):
        name = f"S{number}"
        cluster["n1"].request_all(
            f"$JS.API.STREAM.CREATE.{name}", 1, **stream(name, number % 3 + 1)
        )
        body = consumer(stream_name=name)
        cluster["n1"].request_all(f"$JS.API.CONSUMER.CREATE.{name}.C", 1, **body)
    for server in cluster:
        (listed,) = server.request_all("$JS.API.STREAM.LIST", 1)
        assert [one["config"]["name"] for one in listed["streams"]] == ["S0", "S1", "S2", "S3"]
        (listed,) = server.request_all("$JS.API.CONSUMER.LIST.S3", 1)
        assert [one["name"] for one in listed["consumers"]] == ["C"]


def test_a_list_without_one_of_the_leaders_comes_late_and_says_so(cluster: ClusterPlay) -> None:
    cluster["n1"].request_all("$JS.API.STREAM.CREATE.S", 1, **stream(replicas=1))
    host = cluster.leader(cluster.group_of("S"))
    asked = next(one for one in cluster if one is not host)
    cluster.isolate(host.name)
    cluster.run(3)
    (listed,) = asked.request_all("$JS.API.STREAM.LIST", 7)
    assert not listed.get("streams") and listed["missing"] == ["S"]


def test_requests_wait_for_a_leader(cluster: ClusterPlay) -> None:
    old = cluster.leader()
    asked = next(one for one in cluster if one is not old)
    client = asked.connect("a")
    client.subscribe("answer")
    old.halt()
    client.publish("$JS.API.STREAM.NAMES", b"", "answer")
    assert client.heard("answer") == []
    cluster.run(LEADERLESS_NS / 1e9)
    (answer,) = client.heard("answer")
    assert "error" not in answer, "the next leader answers what waited"


def test_without_a_majority_it_is_said_that_nobody_leads(cluster: ClusterPlay) -> None:
    first, second, third = cluster
    for one in (second, third):
        one.halt()
    cluster.run(4)
    answers = first.request_all("$JS.API.STREAM.NAMES", LEADERLESS_NS / 1e9 + 1)
    assert [one["error"]["err_code"] for one in answers] == [10008]


CHANGES = ["STREAM.DELETE.S", "STREAM.PURGE.S"]
REQUESTS = ["STREAM.INFO.S", *CHANGES, "CONSUMER.INFO.S.C", "STREAM.NAMES", "INFO"]


@pytest.mark.parametrize("noticed", [True, False], ids=["killed", "paused"])
def test_what_went_to_a_server_that_is_gone_is_answered_soon(
    cluster: ClusterPlay, noticed: bool
) -> None:
    cluster["n1"].request_all("$JS.API.STREAM.CREATE.S", 1, **stream())
    cluster["n1"].request_all("$JS.API.CONSUMER.CREATE.S.C", 1, **consumer())
    gone = cluster["n1"]
    groups = [cluster.group_of("S"), cluster.group_of("S", "C"), "_meta_"]
    for group in groups:
        leader = cluster.leader(group)
        if leader is not gone:
            leader.engine.groups.by_name[group].raft.transfer(gone.peer)
            leader.engine.groups.touch(leader.engine.groups.by_name[group])
    cluster.wait(lambda: all(cluster.maybe_leader(one) is gone for one in groups), "it leads")
    cluster.run(1)
    client = cluster["n2"].connect("a")
    for number in range(len(REQUESTS)):
        client.subscribe(f"answer.{number}")
    gone.pause()
    for number, request in enumerate(REQUESTS):
        client.publish(f"$JS.API.{request}", b"", f"answer.{number}")
    cluster.run(0.2)
    if noticed:
        gone.halt()
    cluster.run(1.8)
    for number, request in enumerate(REQUESTS):
        (answer,) = client.heard(f"answer.{number}")
        code = answer.get("error", {}).get("code")
        assert code == (503 if request in CHANGES else None), "questions are asked again"
    if noticed:
        return
    gone.go_on()
    cluster.run(4)
    assert cluster.group_of("S"), "what was given up is not done later"
    for number, request in enumerate(REQUESTS):
        assert len(client.heard(f"answer.{number}")) <= 1, request


def test_an_answer_is_all_that_comes_when_the_one_who_gave_it_dies(cluster: ClusterPlay) -> None:
    leader = cluster.leader()
    client = next(one for one in cluster if one is not leader).connect("a")
    client.subscribe("answer")
    for _ in range(3):
        client.publish("$JS.API.STREAM.NAMES", b"", "answer")
    cluster.run(0.1)
    assert len(client.heard("answer")) == 3
    leader.halt()
    cluster.run(4)
    assert len(client.heard("answer")) == 3


def test_what_is_no_request_is_not_answered(cluster: ClusterPlay) -> None:
    assert cluster["n1"].request_all("$JS.API.STREAM.NOTHING.S", 0.5) == []
    assert cluster["n1"].request_all("$JS.API.META.LEADER.STEPDOWN", 0.5) == []


def test_a_step_down_is_answered_and_another_one_leads(cluster: ClusterPlay) -> None:
    cluster["n1"].request_all("$JS.API.STREAM.CREATE.S", 1, **stream())
    group = cluster.group_of("S")
    old = cluster.leader(group)
    asked = next(one for one in cluster if one is not old)
    (answer,) = asked.request_all("$JS.API.STREAM.LEADER.STEPDOWN.S", 1)
    assert answer["success"] is True
    cluster.wait(lambda: cluster.leader(group) is not old, "another one leads")


def test_who_asks_after_a_step_down_finds_the_next_leader(cluster: ClusterPlay) -> None:
    cluster["n1"].request_all("$JS.API.STREAM.CREATE.S", 1, **stream())
    cluster.run(1)
    old = cluster.leader(cluster.group_of("S"))
    others = [one for one in cluster if one is not old]
    client = old.connect("a")
    client.subscribe("answer")
    for other in others:
        other.disk_held = True  # it cannot vote
    client.publish("$JS.API.STREAM.LEADER.STEPDOWN.S", b"", "answer")
    assert client.heard("answer") == []
    for other in others:
        other.release_disk()
    cluster.wait(lambda: bool(client.heard("answer")), "the answer")
    (info,) = old.request_all("$JS.API.STREAM.INFO.S", 1)
    assert info["cluster"]["leader"] not in ("", old.name)


@pytest.mark.parametrize(("hops", "answered"), [(1, True), (HOPS_MAX, False)])
def test_a_request_sent_to_one_that_no_longer_leads_is_passed_on(
    cluster: ClusterPlay, hops: int, answered: bool
) -> None:
    cluster["n1"].request_all("$JS.API.STREAM.CREATE.S", 1, **stream())
    leader = cluster.leader(cluster.group_of("S"))
    asked, former = (one for one in cluster if one is not leader)
    client = asked.connect("a")
    client.subscribe("answer")
    assert asked.node.jetstream is not None and former.node.jetstream is not None
    service, asked_late = asked.node.jetstream.api, former.node.jetstream.api
    who = ClientInfo("A", conn=7)
    subject = b"$JS.API.STREAM.INFO.S"
    request = ApiRequest("A", subject, b"answer", b"", b"", who, service.view.me)
    now_ns = service.view.now_ns
    service.forwarded.sent(request, former.peer, now_ns, now_ns)
    asked_late.take(request, hops)
    cluster.run(LEADERLESS_NS / 1e9 / 2)
    heard = client.heard("answer")
    assert [one["config"]["name"] for one in heard] == (["S"] if answered else [])
