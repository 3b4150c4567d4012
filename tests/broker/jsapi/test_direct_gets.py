"""Direct gets: answered by every replica that is fresh, by no other one."""

import json

import pytest

from jsctl.broker.jsapi.direct_gets import FRESH_NS, LEADERLESS_NS
from jsctl.broker.options import SECOND_NS
from tests.broker.routing.routing_bench import interest_count
from tests.support.cluster_play import ClusterPlay, ServerPlay
from tests.support.stream_requests import stream


@pytest.fixture
def cluster() -> ClusterPlay:
    """Three servers with a stream S that allows direct gets."""
    play = ClusterPlay()
    play["n1"].request_all("$JS.API.STREAM.CREATE.S", 1, **stream(allow_direct=True))
    client = play["n1"].connect("a")
    for number in range(3):
        client.publish(f"s.{number}", b"m%d" % number, "ack")
    play.run(1)
    return play


def get(server: ServerPlay, subject: str = "$JS.API.DIRECT.GET.S.s.1") -> list[bytes]:
    """Answers that come at once."""
    return server.connect("a").request(subject)


def test_every_server_has_an_answer_without_asking_the_leader(cluster: ClusterPlay) -> None:
    cluster.leader(cluster.group_of("S")).disk_held = True
    for server in cluster:
        assert get(server) == [b"m1"]
        account = server.node.router.accounts.get("A")
        assert account is not None
        assert interest_count(account, b"$JS.API.DIRECT.GET.S.s.1") == 3


def test_a_get_that_comes_with_news_waits_until_they_are_applied(cluster: ClusterPlay) -> None:
    """What a client was told to be stored is found, also where that is known for a moment only."""
    leader = cluster.leader(cluster.group_of("S"))
    other = next(one for one in cluster if one is not leader)
    raft = other.engine.assets.streams["A", "S"].group.raft
    client, asking = leader.connect("a"), other.connect("a")
    asking.subscribe("got")
    other.disk_held = True
    client.publish("s.1", b"newer", "ack")
    cluster.wait(lambda: raft.applied < raft.commit, "it knows of more than it has")
    for _ in range(20):
        asking.publish("$JS.API.DIRECT.GET.S.s.1", b"", "got")
    assert not asking.messages, "all are asked here"
    other.release_disk()
    cluster.run(0.3)
    assert [payload for _, _, payload in asking.messages] == [b"newer"] * 20


def test_a_mirror_here_shares_gets_with_the_origin_elsewhere(cluster: ClusterPlay) -> None:
    """It may lack what its clients have just stored, so it is not asked first."""
    maker = cluster["n1"]
    maker.request_all("$JS.API.STREAM.CREATE.O", 1, **stream("O", 1, allow_direct=True))
    mirror = stream("M", 1, subjects=[], mirror={"name": "O"}, mirror_direct=True)
    maker.request_all("$JS.API.STREAM.CREATE.M", 1, **mirror)
    origin, copy = cluster.leader(cluster.group_of("O")), cluster.leader(cluster.group_of("M"))
    assert origin is not copy
    maker.connect("a").publish("o.1", b"x", "ack")
    cluster.run(1)
    told: dict[str, set[bytes]] = {}
    for server in (origin, copy):
        client = server.connect("a")
        for _ in range(40):
            assert client.request("$JS.API.DIRECT.GET.O.o.1") == [b"x"]
        told[server.name] = {head.split(b"\r\n")[1] for head in client.heads if head}
    assert told[origin.name] == {b"Nats-Stream: O"}
    assert told[copy.name] == {b"Nats-Stream: O", b"Nats-Stream: M"}


def test_a_stream_made_again_answers_by_itself(cluster: ClusterPlay) -> None:
    """Gets are shared by who listens for them: one that is gone would say that nobody does."""
    server = cluster["n1"]
    client = server.connect("a")
    client.subscribe("done")
    for number in range(5):
        client.publish("$JS.API.STREAM.DELETE.S", b"", "done")
        cluster.wait(lambda: len(client.heard("done")) == 1, "it is deleted")
        client.messages.clear()
        fields = stream(allow_direct=True)
        client.publish("$JS.API.STREAM.CREATE.S", json.dumps(fields).encode(), "done")
        cluster.wait(lambda: len(client.heard("done")) == 1, "it is made")
        client.messages.clear()
        client.heads.clear()
        for _ in range(20):
            client.publish("$JS.API.DIRECT.GET.S", b'{"seq": 1}', "done")
        cluster.wait(lambda: len(client.messages) == 20, "all are answered")
        assert all(b" 404" in head for head in client.heads), number
        client.messages.clear()


@pytest.mark.parametrize("votes_s", [0.2, 1.0, 3.0])
def test_a_get_waits_for_the_next_leader(cluster: ClusterPlay, votes_s: float) -> None:
    """While one is elected, nobody knows what is committed; later who asked gives up."""
    group = cluster.group_of("S")
    gone = cluster.leader(group)
    asked = [one for one in cluster if one is not gone]
    for one in asked:
        one.disk_held = True
    gone.halt()
    replicas = [one.engine.assets.streams["A", "S"].group for one in asked]
    cluster.wait(lambda: not any(one.leader for one in replicas), "nobody to lead")
    client = asked[0].connect("a")
    client.subscribe("got.*")
    for number in range(20):
        client.publish("$JS.API.DIRECT.GET.S.s.1", b"", f"got.{number}")
    assert not client.messages
    cluster.run(votes_s)
    for one in asked:
        one.release_disk()
    cluster.run(1)
    assert sorted(to for to, _, _ in client.messages) == sorted(f"got.{n}" for n in range(20))
    expected = b"" if votes_s > LEADERLESS_NS / SECOND_NS else b"m1"
    assert {payload for _, _, payload in client.messages} == {expected}
    assert all((b" 503" in head) is (not expected) for head in client.heads)


def test_a_mirror_is_read_with_all_that_has_come_to_it(cluster: ClusterPlay) -> None:
    """Who was told by the origin that a message is stored asks the mirror right behind it."""
    mirror = stream("M", 1, allow_direct=True, mirror={"name": "S"}, subjects=[])
    cluster["n1"].request_all("$JS.API.STREAM.CREATE.M", 1, **mirror)
    server = cluster.leader(cluster.group_of("M"))
    client = server.connect("a")
    client.subscribe("got")
    raft = server.engine.assets.streams["A", "M"].group.raft
    cluster.wait(lambda: get(server, "$JS.API.DIRECT.GET.M.s.1") == [b"m1"], "it is there")
    known = raft.last_index
    server.disk_held = True
    client.publish("s.1", b"newer", "ack")
    cluster.wait(lambda: raft.last_index > known, "it has come to the mirror")
    client.publish("$JS.API.DIRECT.GET.M.s.1", b"", "got")
    cluster.run(0.1)
    assert (raft.applied, client.messages) == (known, []), "and is not yet stored there"
    server.release_disk()
    cluster.wait(lambda: bool(client.messages), "the mirror answers")
    assert [payload for _, _, payload in client.messages] == [b"newer"]


def test_by_sequence_and_last_for_a_subject(cluster: ClusterPlay) -> None:
    client = cluster["n2"].connect("a")
    assert client.request("$JS.API.DIRECT.GET.S", b'{"seq":3}') == [b"m2"]
    assert client.request("$JS.API.DIRECT.GET.S", b'{"last_by_subj":"s.0"}') == [b"m0"]


def test_a_replica_that_is_cut_off_does_not_answer(cluster: ClusterPlay) -> None:
    leader = cluster.leader(cluster.group_of("S"))
    stale = next(one for one in cluster if one is not leader)
    cluster.isolate(stale.name)
    cluster.run(FRESH_NS / 1e9 + 0.5)
    assert get(stale) in ([], [b""]), "nobody else is reached: no answer, or no responders"
    answers = [get(leader) for _ in range(20)]
    assert answers == [[b"m1"]] * 20, "none of them goes to one who does not answer"
    cluster.cut.clear()
    cluster.run(3)
    assert get(stale) == [b"m1"]


def test_a_replica_in_doubt_does_not_answer(cluster: ClusterPlay) -> None:
    leader = cluster.leader(cluster.group_of("S"))
    wiped = next(one for one in cluster if one is not leader)
    wiped.halt()
    wiped.wipe()
    wiped.begin()
    for _ in range(40):
        cluster.run(0.05)
        unit = wiped.engine.assets.streams.get(("A", "S"))
        if unit is not None and unit.group.raft.standing.kind.name != "WHOLE":
            assert get(wiped) in ([b"m1"], [b""], []), "from another server, or not at all"
    assert get(wiped) == [b"m1"]


def test_desks_close_when_direct_gets_are_switched_off(cluster: ClusterPlay) -> None:
    cluster["n1"].request_all("$JS.API.STREAM.UPDATE.S", 1, **stream(allow_direct=False))
    cluster.run(1)
    for server in cluster:
        assert get(server) in ([], [b""])


def test_desks_close_with_their_stream(cluster: ClusterPlay) -> None:
    cluster["n1"].request_all("$JS.API.STREAM.DELETE.S", 1)
    cluster.run(1)
    assert get(cluster["n1"]) in ([], [b""])
