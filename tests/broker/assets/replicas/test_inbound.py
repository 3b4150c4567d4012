"""Mirrors and sources on servers that run: what they have, and where they go on."""

import base64
from typing import Any

import pytest

from jsctl.broker.jetstream.sourcing import upstream
from jsctl.broker.jetstream.sourcing.names import read_source_header
from jsctl.broker.jetstream.streams.positions import SourcePosition
from jsctl.broker.jetstream.streams.publish_headers import STREAM_SOURCE
from jsctl.broker.protocol import headers as blocks
from jsctl.broker.raft.core import Raft
from tests.support.cluster_play import ClusterPlay, ServerPlay
from tests.support.node_play import NodePlay, PlayClient
from tests.support.stream_requests import stream


def create(client: PlayClient, name: str, **more: Any) -> None:
    """A stream that has no subjects unless it is told some."""
    answer = client.ask(f"$JS.API.STREAM.CREATE.{name}", **config(name, **more))
    assert "error" not in answer, answer


def config(name: str, **more: Any) -> dict[str, Any]:
    return stream(name, 1, **{"subjects": [], **more})


def publish(client: PlayClient, *subjects: str) -> None:
    """One message each, its subject as its payload."""
    for subject in subjects:
        client.request(subject, subject.encode())


def held(client: PlayClient, name: str) -> list[tuple[int, str, bytes]]:
    """Sequences, subjects and header blocks of all messages."""
    found: list[tuple[int, str, bytes]] = []
    seq = 0
    while True:
        answer = client.ask(f"$JS.API.STREAM.MSG.GET.{name}", seq=seq + 1, next_by_subj=">")
        if "error" in answer:
            return found
        message = answer["message"]
        seq = message["seq"]
        found.append((seq, message["subject"], base64.b64decode(message.get("hdrs", ""))))


def seqs(client: PlayClient, name: str) -> list[int]:
    return [seq for seq, _, _ in held(client, name)]


def info(client: PlayClient, name: str) -> Any:
    return client.ask(f"$JS.API.STREAM.INFO.{name}")


def test_a_mirror_has_sequences_times_and_gaps_of_its_origin(client: PlayClient) -> None:
    publish(client, *[f"o.{number}" for number in range(6)])
    client.ask("$JS.API.STREAM.MSG.DELETE.O", seq=3)
    create(client, "M", mirror={"name": "O"})
    assert seqs(client, "M") == [1, 2, 4, 5, 6]
    state = info(client, "M")["state"]
    assert (state["num_deleted"], state["last_seq"]) == (1, 6)
    publish(client, "o.7")
    for seq in (1, 7):
        asked = [client.ask(f"$JS.API.STREAM.MSG.GET.{one}", seq=seq) for one in ("O", "M")]
        assert asked[0]["message"] == asked[1]["message"]
    assert info(client, "M")["mirror"] == {"name": "O", "lag": 0, "active": 1}
    assert info(client, "O")["state"]["consumer_count"] == 0


def test_a_mirror_begins_where_its_origin_does(client: PlayClient) -> None:
    publish(client, *["o.x"] * 5)
    client.ask("$JS.API.STREAM.PURGE.O")
    create(client, "M", mirror={"name": "O"})
    state = info(client, "M")["state"]
    assert (state["messages"], state["first_seq"], state["last_seq"]) == (0, 6, 5)
    publish(client, "o.x")
    assert seqs(client, "M") == [6]


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"filter_subject": "o.1"}, [(2, "o.1")]),
        ({"opt_start_seq": 3}, [(3, "o.2"), (4, "o.3")]),
        (
            {"subject_transforms": [{"src": "o.1", "dest": "a"}, {"src": "o.3", "dest": "b"}]},
            [(2, "a"), (4, "b")],
        ),
    ],
    ids=["filter", "start", "transforms"],
)
def test_a_mirror_takes_what_it_asks_for(
    client: PlayClient, more: dict[str, Any], expected: list[tuple[int, str]]
) -> None:
    publish(client, *[f"o.{number}" for number in range(4)])
    create(client, "M", mirror={"name": "O", **more})
    assert [one[:2] for one in held(client, "M")] == expected


def test_sources_say_where_messages_are_from(play: NodePlay, client: PlayClient) -> None:
    play.run(0.1)
    create(client, "P", subjects=["p.>"])
    publish(client, "o.1", "o.2", "p.1")
    sources = [
        {"name": "O", "filter_subject": "o.2"},
        {"name": "O", "subject_transforms": [{"src": "o.1", "dest": "one"}]},
        {"name": "P"},
    ]
    create(client, "S", sources=sources, subjects=["s"])
    publish(client, "s", "p.2")
    identities = {one.rpartition(b" ")[2].strip() for _, _, one in held(client, "S") if one}
    told = {subject: one for _, subject, one in held(client, "S")}
    assert told["s"] == b""
    for subject, header in (
        ("o.2", b"O 2 o.2 > o.2"),
        ("one", b"O 1 o.1 one o.1"),
        ("p.1", b"P 1 > > p.1"),
        ("p.2", b"P 2 > > p.2"),
    ):
        assert b"\r\nNats-Stream-Source: " + header + b" " in told[subject]
    assert len(identities) == 2, "each origin has one"
    told_of = info(client, "S")["sources"]
    assert [one["name"] for one in told_of] == ["O", "O", "P"]
    assert told_of[1]["subject_transforms"] == [{"src": "o.1", "dest": "one"}]


def test_what_a_publish_was_judged_by_is_not_judged_again(client: PlayClient) -> None:
    create(client, "S", sources=[{"name": "O"}], duplicate_window=10**11)
    create(client, "M", mirror={"name": "O"})
    block = b"NATS/1.0\r\nNats-Msg-Id: 1\r\nNats-Expected-Last-Sequence: 0\r\nK: v\r\n\r\n"
    client.send(b"HPUB o.1 %d %d\r\n%b\r\n" % (len(block), len(block), block))
    (of_mirror,) = held(client, "M")
    (of_source,) = held(client, "S")
    assert of_mirror[2] == b"NATS/1.0\r\nNats-Msg-Id: 1\r\nK: v\r\n\r\n"
    assert of_source[2].startswith(of_mirror[2][:-2] + b"Nats-Stream-Source: O 1 > > o.1 ")


@pytest.mark.parametrize("to", ["s.{{partition(1, 1)}}", "s.{{ wildcard(1) }}"])
def test_destinations_may_have_spaces_within_functions(client: PlayClient, to: str) -> None:
    mapped = [{"src": "o.*", "dest": to}]
    create(client, "S", sources=[{"name": "O", "subject_transforms": mapped}])
    publish(client, "o.0")
    ((_, subject, headers),) = held(client, "S")
    assert subject == "s.0"
    told = blocks.get(headers, STREAM_SOURCE)
    assert told is not None
    name, position = read_source_header(told) or ("", None)
    assert name == f"O o.* {to.replace(' ', '')}" and position == SourcePosition(
        1, told[-8:].decode()
    )


def test_ids_that_are_known_are_passed_over_for_good(play: NodePlay, client: PlayClient) -> None:
    create(client, "S", sources=[{"name": "O"}], subjects=["s"], duplicate_window=10**9)
    block = b"NATS/1.0\r\nNats-Msg-Id: 1\r\n\r\n"
    for subject in (b"s", b"o.1"):
        client.send(b"HPUB %b %d %d\r\n%b\r\n" % (subject, len(block), len(block), block))
    assert len(held(client, "S")) == 1
    play.run(3)
    again = NodePlay(disk=play.disk)
    assert len(held(again.connect("a"), "S")) == 1, "its window is over, but it was taken"


def test_a_source_goes_on_where_it_was(play: NodePlay, client: PlayClient) -> None:
    create(client, "S", sources=[{"name": "O"}])
    publish(client, "o.1", "o.2")
    client.ask("$JS.API.STREAM.PURGE.S")
    again = NodePlay(disk=play.disk)
    client = again.connect("a")
    publish(client, "o.3")
    again.run(1)
    assert [one[:2] for one in held(client, "S")] == [(3, "o.3")]


def test_a_source_of_an_origin_that_was_made_anew_begins_again(
    play: NodePlay, client: PlayClient
) -> None:
    create(client, "S", sources=[{"name": "O"}])
    publish(client, "o.1", "o.2", "o.3")
    client.ask("$JS.API.STREAM.DELETE.O")
    play.run(0.1)
    create(client, "O", subjects=["o.>"])
    publish(client, "o.new")
    play.run(20)
    assert [one[1] for one in held(client, "S")] == ["o.1", "o.2", "o.3", "o.new"]


def test_an_origin_may_come_later(play: NodePlay, client: PlayClient) -> None:
    create(client, "M", mirror={"name": "LATE"})
    assert info(client, "M")["mirror"]["error"]["err_code"] == 10059
    assert info(client, "M")["mirror"]["active"] == -1
    create(client, "LATE", subjects=["late"])
    publish(client, "late")
    play.run(15)
    assert seqs(client, "M") == [1]
    assert "error" not in info(client, "M")["mirror"]


def test_a_mirror_becomes_a_stream(client: PlayClient) -> None:
    publish(client, "o.1", "o.2")
    create(client, "M", mirror={"name": "O"})
    changed = config("M", mirror={"name": "O", "filter_subject": "o.1"})
    assert client.ask("$JS.API.STREAM.UPDATE.M", **changed)["error"]["err_code"] == 10055
    promoted = config("M", subjects=["m"], mirror_direct=True)
    assert "error" not in client.ask("$JS.API.STREAM.UPDATE.M", **promoted)
    publish(client, "o.3", "m")
    assert [one[:2] for one in held(client, "M")] == [(1, "o.1"), (2, "o.2"), (3, "m")]
    assert "mirror" not in info(client, "M")


def test_sources_come_and_go(client: PlayClient) -> None:
    create(client, "P", subjects=["p"])
    publish(client, "o.1", "p")
    create(client, "S", sources=[{"name": "O"}], subjects=["s"])
    for names in (["O", "P"], ["P"], ["O"]):
        changed = config("S", subjects=["s"], sources=[{"name": one} for one in names])
        assert "error" not in client.ask("$JS.API.STREAM.UPDATE.S", **changed)
    publish(client, "o.2")
    assert [one[1] for one in held(client, "S")] == ["o.1", "p", "o.2"]


def test_a_stream_that_is_full_takes_the_rest_when_there_is_room(
    play: NodePlay, client: PlayClient
) -> None:
    create(client, "S", sources=[{"name": "O"}], max_msgs=2, discard="new")
    publish(client, "o.1", "o.2", "o.3", "o.4")
    assert [one[1] for one in held(client, "S")] == ["o.1", "o.2"]
    assert info(client, "S")["sources"][0]["error"]["description"] == "maximum messages exceeded"
    client.ask("$JS.API.STREAM.PURGE.S")
    play.run(1)
    assert [one[1] for one in held(client, "S")] == ["o.3", "o.4"]
    assert "error" not in info(client, "S")["sources"][0]


def test_what_waits_for_room_keeps_nobody_busy(
    play: NodePlay, client: PlayClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More came than is to be kept, and nothing of it can be stored."""
    monkeypatch.setattr(upstream, "QUEUE_BYTES_MAX", 1_000)
    create(client, "S", sources=[{"name": "O"}], max_msg_size=2)
    publish(client, *["o.1"] * 20)
    play.run(5)
    assert play.exit is None and seqs(client, "S") == []
    client.ask("$JS.API.STREAM.UPDATE.S", **config("S", sources=[{"name": "O"}]))
    play.run(10)
    assert len(seqs(client, "S")) == 20


def test_a_log_that_takes_nothing_keeps_nobody_busy(
    play: NodePlay, client: PlayClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long that goes on: origins are not heard meanwhile."""
    create(client, "S", sources=[{"name": "O"}])
    with monkeypatch.context() as patch:
        patch.setattr(Raft, "accepting", False)
        play.run(10)
    publish(client, "o.1")
    play.run(10)
    assert len(seqs(client, "S")) == 1


def test_a_mirror_answers_direct_gets_for_its_origin(play: NodePlay, client: PlayClient) -> None:
    create(client, "D", subjects=["d"], allow_direct=True)
    publish(client, "d")
    create(client, "M", mirror={"name": "D"})
    play.run(1)
    assert info(client, "M")["config"]["mirror_direct"]
    named = set()
    for _ in range(30):
        assert client.request("$JS.API.DIRECT.GET.D", b'{"seq":1}') == [b"d"]
        named.add(client.heads[-1].partition(b"Nats-Stream: ")[2].split()[0])
    assert named == {b"D", b"M"}


def test_a_work_queue_lets_go_of_what_its_source_has(play: NodePlay, client: PlayClient) -> None:
    create(client, "W", subjects=["w"], retention="workqueue")
    publish(client, "w", "w")
    create(client, "S", sources=[{"name": "W"}])
    play.run(3)
    assert len(held(client, "S")) == 2
    assert seqs(client, "W") == []
    (name,) = client.ask("$JS.API.CONSUMER.NAMES.W")["consumers"]
    assert name.startswith("JS_SRC_")
    again = NodePlay(disk=play.disk)
    client = again.connect("a")
    publish(client, "w")
    again.run(3)
    assert [len(held(client, "S")), len(held(client, "W"))] == [3, 0]


def test_a_stream_from_elsewhere_goes_on_behind_its_newest_header(client: PlayClient) -> None:
    publish(client, "o.1", "o.2", "o.3")
    create(client, "S", sources=[{"name": "O"}])
    replica = client.play.node.engine.assets.streams[("A", "S")]  # type: ignore[union-attr]
    replica.stream.positions.clear()
    client.ask("$JS.API.STREAM.UPDATE.S", **config("S", subjects=["s"]))
    update = config("S", sources=[{"name": "O"}])
    assert "error" not in client.ask("$JS.API.STREAM.UPDATE.S", **update)
    publish(client, "o.4")
    client.play.run(1)
    assert [one[1] for one in held(client, "S")] == ["o.1", "o.2", "o.3", "o.4"]


# Three servers


@pytest.fixture
def cluster() -> ClusterPlay:
    """An origin, its mirror and a stream that sources it, on three servers each."""
    made = ClusterPlay()
    listener = made["n1"].connect("a")
    bodies = {
        "O": stream("O", subjects=["o.>"]),
        "M": stream("M", subjects=[], mirror={"name": "O"}),
        "S": stream("S", subjects=[], sources=[{"name": "O"}]),
    }
    for name, body in bodies.items():
        (answer,) = made["n1"].request_all(f"$JS.API.STREAM.CREATE.{name}", 1, **body)
        assert "error" not in answer
    del listener
    return made


def load(cluster: ClusterPlay, count: int) -> None:
    client = cluster.leader(cluster.group_of("O")).connect("a")
    for _ in range(count):
        assert client.request("o.x", b"x")


def replicas(cluster: ClusterPlay, name: str) -> list[list[int]]:
    """Sequences at the origin, as each running replica has them."""
    found = []
    for one in cluster:
        if not one.running:
            continue
        store = one.engine.assets.streams[("A", name)].store
        rows = store.load_range(1, 10_000)
        blocks = [row[3].partition(b"Source: O ")[2].split(b" ")[0] for row in rows]
        found.append(
            [int(block) if block else row[0] for row, block in zip(rows, blocks, strict=True)]
        )
    return found


def wait_for(cluster: ClusterPlay, last: int) -> None:
    """Until all replicas of mirror and source have all, once and in order."""
    whole = [list(range(1, last + 1))] * sum(one.running for one in cluster)

    def there() -> bool:
        return all(replicas(cluster, name) == whole for name in ("M", "S"))

    cluster.wait(there, "mirror and source have everything once")


@pytest.mark.parametrize("name", ["O", "M", "S"])
def test_all_is_there_once_when_a_leader_dies(cluster: ClusterPlay, name: str) -> None:
    load(cluster, 10)
    dead = cluster.leader(cluster.group_of(name))
    load(cluster, 5)
    dead.halt()
    cluster.run(5)
    load(cluster, 5)
    wait_for(cluster, 20)
    dead.begin()
    cluster.run(5)
    load(cluster, 5)
    wait_for(cluster, 25)


def test_all_is_there_once_after_the_end_of_all_power(cluster: ClusterPlay) -> None:
    load(cluster, 20)
    for server in cluster:
        server.halt()
        server.disk.crash()
    for server in cluster:
        server.begin()
    cluster.run(3)
    load(cluster, 5)
    wait_for(cluster, 25)


def led(cluster: ClusterPlay, name: str) -> ServerPlay:
    return cluster.leader(cluster.group_of(name))


def test_who_leads_next_goes_on_behind_what_is_stored(cluster: ClusterPlay) -> None:
    load(cluster, 10)
    old = led(cluster, "S")
    group = old.engine.groups.by_name[cluster.group_of("S")]
    group.raft.transfer(None)
    old.engine.groups.touch(group)
    cluster.wait(lambda: led(cluster, "S") is not old, "another one leads")
    load(cluster, 5)
    wait_for(cluster, 15)


def test_what_is_never_to_expire_stays_in_streams_without_times_to_live() -> None:
    play = NodePlay()
    client = play.connect("a")
    age = {"max_age": 10_000_000_000}
    create(client, "O", subjects=["o.>"], allow_msg_ttl=True, **age)
    create(client, "M", mirror={"name": "O"}, **age)
    create(client, "S", sources=[{"name": "O"}], **age)
    for number, ttl in enumerate((b"never", b"60s", b"15s", b"Never", b"1s")):
        head = b"NATS/1.0\r\nNats-TTL: %b\r\n\r\n" % ttl
        client.send(b"HPUB o.%d %d %d\r\n%b\r\n" % (number, len(head), len(head), head))
    publish(client, "o.plain")
    play.run(5)
    assert [len(held(client, name)) for name in "OMS"] == [5, 6, 6]
    play.run(7)
    kept = ["o.0", "o.3"]
    for name in "OMS":
        assert [subject for _, subject, _ in held(client, name)] == kept, name
