"""What requests cost beyond being taken keeps nobody else waiting, wherever they come in."""

import json
from collections import Counter
from typing import Any

import pytest

from jsctl.broker.assets.replicas.run_queue import SEARCHED_MAX
from jsctl.broker.jetstream.streams import admission
from jsctl.broker.jsapi.gathering import Gathering
from jsctl.broker.peers.items import GatherReply
from jsctl.broker.store.views.newest import KNOWN
from jsctl.broker.turn import Query, TurnInputs
from tests.support.cluster_play import ClusterPlay, ServerPlay
from tests.support.node_play import NodePlay, PlayClient
from tests.support.stream_requests import consumer

UNITS = 256
"""Of a turn."""
REQUESTS = UNITS // 16 + 1
"""That a turn decides on at most."""


def requests(count: int, subject: str, body: bytes = b"") -> bytes:
    line = b"PUB %b in.%d %d\r\n%b\r\n"
    return b"".join(line % (subject.encode(), n, len(body), body) for n in range(count))


def answers(client: PlayClient) -> list[bytes]:
    return [body for to, _, body in client.messages if to.startswith("in.")]


def answered_by_turns(
    play: NodePlay, client: PlayClient, other: PlayClient, sent: bytes
) -> list[int]:
    """How many answers each turn gives; somebody else is heard in each."""
    client.subscribe("in.>")
    client.messages.clear()
    found = list[int]()
    while not found or sum(found) < sent.count(b"PUB "):
        other.lines.clear()
        before = len(answers(client))
        chunks = [(client.conn, b"" if found else sent), (other.conn, b"PING\r\n")]
        play._once(TurnInputs(chunks=chunks))
        assert other.lines == [b"PONG"]
        found.append(len(answers(client)) - before)
        assert len(found) < 1000
    return found


def test_lists_are_made_in_portions_one_after_the_other() -> None:
    play = NodePlay()
    client, other = play.connect("a"), play.connect("b")
    for number in range(100):
        client.ask(f"$JS.API.STREAM.CREATE.S{number:02}", name=f"S{number:02}", storage="memory")
    turns = answered_by_turns(play, client, other, requests(10, "$JS.API.STREAM.LIST"))
    assert max(turns) == 1
    assert len(turns) > 10, "none is made in one turn"
    lists = [json.loads(body) for body in answers(client)]
    assert [to for to, _, _ in client.messages] == [f"in.{number}" for number in range(10)]
    for found in lists:
        assert [one["config"]["name"] for one in found["streams"]] == sorted(
            f"S{number:02}" for number in range(100)
        )
        assert not found.get("missing")


@pytest.mark.parametrize(
    ("subject", "body"),
    [
        ("$JS.API.STREAM.MSG.GET.S", rb'{"last_by_subj":"s.*"}'),
        ("$JS.API.STREAM.MSG.GET.S", rb'{"seq":1,"next_by_subj":"*.b19999"}'),
        ("$JS.API.STREAM.PURGE.S", rb'{"filter":"s.b1.*"}'),
        ("$JS.API.STREAM.INFO.S", rb'{"subjects_filter":"s.*1"}'),
        ("$JS.API.STREAM.INFO.S", rb'{"subjects_filter":"s.\u003e"}'),
        ("$JS.API.STREAM.INFO.S", rb'{"subjects_filte\u0072":"s.>"}'),
        ("$JS.API.DIRECT.GET.S", rb'{"last_by_subj":"s.*"}'),
        ("$JS.API.DIRECT.GET.S", rb'{"last_by_subj":"s.\u002a"}'),
        ("$JS.API.DIRECT.GET.S", rb'{"seq":1,"next_by_subj":"*.b19999"}'),
        ("$JS.API.DIRECT.GET.S.s.*", b""),
    ],
)
def test_looks_through_many_subjects_are_few_a_turn(subject: str, body: bytes) -> None:
    play = NodePlay()
    client, other = play.connect("a"), play.connect("b")
    client.ask("$JS.API.STREAM.CREATE.S", name="S", subjects=["s.>"], allow_direct=True)
    client.send(b"".join(b"PUB s.b%d 1\r\nx\r\n" % n for n in range(20_000)))
    turns = answered_by_turns(play, client, other, requests(16, subject, body))
    assert max(turns) <= 2
    assert all(b'"error"' not in one and one != b"NATS/1.0 404" for one in answers(client))


def test_pages_of_the_system_account_are_made_in_portions() -> None:
    play = NodePlay()
    client, other = play.connect("a"), play.connect("b")
    for number in range(60):
        client.ask(f"$JS.API.STREAM.CREATE.S{number}", name=f"S{number}", storage="memory")
    operator = play.connect("sys")
    body = b'{"accounts":true,"streams":true,"config":true}'
    sent = requests(20, "$SYS.REQ.SERVER.PING.JSZ", body)
    assert max(answered_by_turns(play, operator, other, sent)) == 1


def test_pages_over_http_are_made_in_portions() -> None:
    play = NodePlay()
    client, other = play.connect("a"), play.connect("b")
    for number in range(60):
        client.ask(f"$JS.API.STREAM.CREATE.S{number}", name=f"S{number}", storage="memory")
    asked = {"accounts": "1", "streams": "1", "config": "1"}
    queries = [Query(number, "/jsz", asked) for number in range(12)]
    play.answers.clear()
    turns = 0
    while len(play.answers) < 12:
        other.lines.clear()
        chunks = [(other.conn, b"PING\r\n")]
        play._once(TurnInputs(chunks=chunks, queries=[] if turns else queries))
        turns += 1
        assert other.lines == [b"PONG"]
        assert len(play.answers) == turns
    assert [one.token for one in play.answers] == list(range(12))
    assert all(len(json.loads(one.body)["account_details"]) for one in play.answers)


def test_no_kind_of_requests_keeps_another_waiting() -> None:
    play = NodePlay()
    client, operator, third = play.connect("a"), play.connect("sys"), play.connect("a")
    for number in range(100):
        client.ask(f"$JS.API.STREAM.CREATE.S{number}", name=f"S{number}", storage="memory")
    client.subscribe("in.>")
    operator.subscribe("in.>")
    third.subscribe("in.>")
    client.messages.clear()
    play.answers.clear()
    flood = requests(400, "$JS.API.STREAM.LIST")
    play._once(TurnInputs(chunks=[(client.conn, flood)]))
    asked = requests(1, "$SYS.REQ.SERVER.PING.VARZ")
    health = Query(7, "/healthz", {})
    play._once(TurnInputs(chunks=[(operator.conn, asked)], queries=[health]))
    for _ in range(30):
        play._once(TurnInputs())
    assert [one.token for one in play.answers] == [7]
    assert len(answers(operator)) == 1
    assert 0 < len(answers(client)) < 100, "the flood goes on"


def decided(server: ServerPlay) -> int:
    """Requests of the API that a server has answered."""
    jetstream = server.node.jetstream
    assert jetstream is not None
    return sum(counts.total for counts in jetstream.view.usage.counts.values())


def steps_of(cluster: ClusterPlay, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int, int]]:
    """What each turn of each server does from now on: answers of the API, and infos made."""
    found: list[tuple[str, int, int]] = []
    infos = {"count": 0}
    real_step, real_info = ServerPlay.step, Gathering.info

    def info(self: Gathering, account: str, asset: tuple[str, str]) -> object:
        infos["count"] += 1
        return real_info(self, account, asset)

    def step(self: ServerPlay) -> None:
        before = decided(self)
        infos["count"] = 0
        real_step(self)
        found.append((self.name, decided(self) - before, infos["count"]))

    monkeypatch.setattr(Gathering, "info", info)
    monkeypatch.setattr(ServerPlay, "step", step)
    return found


@pytest.mark.parametrize("at", ["n1", "n2", "n3"])
def test_what_others_pass_on_is_decided_on_in_portions(
    at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = ClusterPlay()
    client = cluster[at].connect("a")
    client.subscribe("in.>")
    steps = steps_of(cluster, monkeypatch)
    client.send(requests(300, "$JS.API.STREAM.NAMES"))
    cluster.wait(lambda: len(answers(client)) == 300, "all answers")
    assert max(count for _, count, _ in steps) <= REQUESTS


def a_host_that_is_asked_through_another(
    cluster: ClusterPlay, subjects: int
) -> tuple[ServerPlay, PlayClient]:
    """Who has a stream of so many subjects, and a client at the meta leader, which it is not."""
    made = cluster["n1"].connect("a").ask("$JS.API.STREAM.CREATE.S", name="S", subjects=["s.>"])
    host = cluster[made["cluster"]["leader"]]
    if cluster.leader() is host:
        host.connect("sys").ask("$JS.API.META.LEADER.STEPDOWN")
        cluster.wait(lambda: cluster.maybe_leader("_meta_") not in (None, host), "another decides")
    client = cluster.leader().connect("a")
    client.send(b"".join(b"PUB s.%d.b%d 1\r\nx\r\n" % (n % 10, n) for n in range(subjects)))
    client.subscribe("in.>")
    store = host.engine.assets.streams[("A", "S")].store
    cluster.wait(lambda: store.last_seq == subjects, "it is filled")
    return host, client


Fields = dict[str, Any]


def create_consumers(cluster: ClusterPlay, client: PlayClient, asked: list[Fields]) -> None:
    """Ask for all of them, and wait until that is decided."""
    for number, fields in enumerate(asked):
        sent = json.dumps(consumer(f"C{number}", **fields)).encode()
        line = b"PUB $JS.API.CONSUMER.DURABLE.CREATE.S.C%d in.%d %d\r\n%b\r\n"
        client.send(line % (number, number, len(sent), sent))
    known = cluster.leader().engine.meta.state
    cluster.wait(lambda: len(known.consumers("A", "S")) == len(asked), "all are decided on")


def test_consumers_that_begin_together_are_told_of_in_portions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = ClusterPlay()
    host, client = a_host_that_is_asked_through_another(cluster, 20_000)
    host.disk_held = True
    many: Fields = {"filter_subjects": ["s.0.*", "s.1.*"]}
    create_consumers(cluster, client, [many] * 40)
    steps = steps_of(cluster, monkeypatch)
    host.release_disk()
    cluster.wait(lambda: len(answers(client)) == 40, "all answers")
    assert [json.loads(body)["num_pending"] for body in answers(client)] == [4000] * 40
    assert max(count for _, count, _ in steps) <= 2


@pytest.mark.parametrize("policy", ["all", "last", "last_per_subject"])
def test_consumers_look_at_the_few_subjects_that_have_what_their_patterns_do(policy: str) -> None:
    cluster = ClusterPlay()
    host, client = a_host_that_is_asked_through_another(cluster, 20_000)
    store = host.engine.assets.streams[("A", "S")].store
    asked: list[Fields] = [
        {"deliver_policy": policy, "filter_subject": f"*.*.b{n}"} for n in range(40)
    ]
    before = store.subjects_searched
    create_consumers(cluster, client, asked)
    cluster.wait(lambda: len(answers(client)) == 40, "all answers")
    assert [json.loads(body)["num_pending"] for body in answers(client)] == [1] * 40
    assert store.subjects_searched - before < 70_000, "some until the order is made"


def test_consumers_that_begin_with_the_same_messages_look_for_them_once() -> None:
    cluster = ClusterPlay()
    host, client = a_host_that_is_asked_through_another(cluster, 20_000)
    store = host.engine.assets.streams[("A", "S")].store
    before = store.subjects_searched
    asked: Fields = {"deliver_policy": "last_per_subject", "filter_subject": "s.>"}
    create_consumers(cluster, client, [asked] * 40)
    cluster.wait(lambda: len(answers(client)) == 40, "all answers")
    assert [json.loads(body)["num_pending"] for body in answers(client)] == [20_000] * 40
    assert store.subjects_searched - before <= 3 * 20_000 + 38 * 20_000 // KNOWN
    replicas = list(host.engine.assets.consumers.values())
    leads = [one.leader for one in replicas]
    shared = {id(one.state.last_seqs._seqs) for one in leads if one is not None}
    shared |= {id(one.consumer.state.last_seqs._seqs) for one in replicas}
    assert len(leads) == 40 and len(shared) <= 2


@pytest.mark.parametrize(("policy", "pending"), [("last", 1), ("last_per_subject", 4000)])
def test_consumers_that_look_for_their_start_together_do_so_in_portions(
    policy: str, pending: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = ClusterPlay()
    host, client = a_host_that_is_asked_through_another(cluster, 20_000)
    host.disk_held = True
    asked: Fields = {"deliver_policy": policy, "filter_subjects": ["s.0.*", "s.1.*"]}
    # Each beside another pattern, so that none has been looked for.
    others = [{**asked, "filter_subjects": ["s.0.*", "s.1.*", f"no.{n}"]} for n in range(40)]
    create_consumers(cluster, client, others)
    searched, real_step = list[int](), ServerPlay.step

    def step(self: ServerPlay) -> None:
        before = searches(self)
        real_step(self)
        searched.append(searches(self) - before)

    monkeypatch.setattr(ServerPlay, "step", step)
    host.release_disk()
    cluster.wait(lambda: len(answers(client)) == 40, "all answers")
    assert [json.loads(body)["num_pending"] for body in answers(client)] == [pending] * 40
    assert sum(searched) >= 40 * 4000
    assert max(searched) <= 3 * SEARCHED_MAX, "those who look for their start, and two answers"


LISTED = [f"S{number:03}" for number in range(240)]


@pytest.fixture(scope="module")
def full() -> ClusterPlay:
    """Servers with many streams. Who asks for lists of them changes nothing."""
    cluster = ClusterPlay()
    client = cluster["n1"].connect("a")
    for name in LISTED:
        made = client.ask(f"$JS.API.STREAM.CREATE.{name}", name=name, storage="memory")
        assert "error" not in made
    return cluster


@pytest.mark.parametrize("at", ["n1", "n2", "n3"])
def test_a_list_over_several_servers_is_whole(
    full: ClusterPlay, at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, client = full, full[at].connect("a")
    steps = steps_of(cluster, monkeypatch)
    told = Counter[int]()
    real_told = Gathering.told

    def count_told(self: Gathering, reply: GatherReply) -> None:
        told[reply.token] += 1
        real_told(self, reply)

    monkeypatch.setattr(Gathering, "told", count_told)
    client.subscribe("in.>")
    client.send(requests(6, "$JS.API.STREAM.LIST"))
    cluster.wait(lambda: len(answers(client)) == 6, "all lists")
    for body in answers(client):
        found = json.loads(body)
        assert [one["config"]["name"] for one in found["streams"]] == LISTED
        assert not found.get("missing")
    assert len(told) == 6
    assert set(told.values()) <= {1, 2}, "each server tells all it has at once"
    assert sum(count for _, _, count in steps) == 6 * 240
    assert max(count for _, _, count in steps) <= UNITS // 4 + 1


def test_requests_that_wait_go_to_the_next_leader() -> None:
    cluster = ClusterPlay()
    leader = cluster.leader()
    client, operator = leader.connect("a"), leader.connect("sys")
    client.subscribe("in.>")
    operator.subscribe("in.>")
    step_down = b"PUB $JS.API.META.LEADER.STEPDOWN in.0 0\r\n\r\n"
    leader.turn(
        chunks=[
            (client.conn, requests(5, "$JS.API.STREAM.NAMES")),
            (operator.conn, step_down),
            (client.conn, requests(200, "$JS.API.STREAM.NAMES")),
        ]
    )
    cluster.wait(lambda: len(answers(client)) == 205, "all answers")
    assert all("error" not in json.loads(body) for body in answers(client))
    assert json.loads(answers(operator)[0])["success"]
    assert cluster.leader() is not leader


EXPECTING = (
    b"NATS/1.0\r\nNats-Expected-Last-Subject-Sequence: %d\r\n"
    b"Nats-Expected-Last-Subject-Sequence-Subject: %b\r\n\r\n"
)


def expecting(number: int, subject: bytes, pattern: bytes, wanted: int) -> bytes:
    head = EXPECTING % (wanted, pattern)
    return b"HPUB %b in.%d %d %d\r\n%b\r\n" % (subject, number, len(head), len(head), head)


def passing_most(number: int) -> bytes:
    """One of 64 patterns."""
    tokens = [bytes((token,)) if number >> bit & 1 else b"*" for bit, token in enumerate(b"abcde")]
    return b".".join((b"s" if number & 32 else b"*", b"*", *tokens))


@pytest.mark.parametrize("replicas", [1, 3])
def test_what_publishes_expect_of_patterns_is_looked_up_in_portions(
    replicas: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admission, "SEARCHED_MAX", 10_000)
    cluster = ClusterPlay()
    client = cluster["n1"].connect("a")
    made = client.ask("$JS.API.STREAM.CREATE.S", name="S", subjects=["s.>"], num_replicas=replicas)
    assert "error" not in made
    leader = cluster.leader(cluster.group_of("S"))
    client, other = leader.connect("a"), leader.connect("b")
    client.send(b"".join(b"PUB s.b%d.a.b.c.d.e 1\r\nx\r\n" % n for n in range(6_000)))
    client.send(b"".join(b"PUB s.e%d.y 1\r\nx\r\n" % n for n in range(10)))
    cluster.run(1)
    searched: list[int] = []
    real_step = ServerPlay.step

    def step(self: ServerPlay) -> None:
        before = searches(self)
        real_step(self)
        searched.append(searches(self) - before)

    monkeypatch.setattr(ServerPlay, "step", step)
    client.subscribe("in.>")
    client.messages.clear()
    # Each finds what the one before it stored; between them come others, which overtake none.
    sent = b"".join(
        expecting(2 * n, b"s.new.%d" % n, passing_most(n), 6000)
        + b"PUB s.more.%d in.%d 0\r\n\r\n" % (n, 2 * n + 1)
        for n in range(40)
    )
    client.send(sent + expecting(80, b"s.last", b"*.new.*", 6089))
    cluster.wait(lambda: len(answers(client)) == 81, "all answers")
    assert [to for to, _, _ in client.messages] == [f"in.{number}" for number in range(81)]
    seqs = [json.loads(body).get("seq") for body in answers(client)]
    assert seqs == list(range(6011, 6092))
    assert 12_000 < max(searched) < 25_000
    other.send(b"PING\r\n")
    assert other.lines[-1] == b"PONG"


def searches(server: ServerPlay) -> int:
    replicas = server.engine.assets.streams.values()
    return sum(replica.store.subjects_searched for replica in replicas)


def test_an_atomic_batch_looks_at_the_few_subjects_that_have_what_its_patterns_do() -> None:
    play = NodePlay()
    client = play.connect("a")
    client.ask("$JS.API.STREAM.CREATE.S", name="S", subjects=["s.>"], allow_atomic=True)
    client.send(b"".join(b"PUB s.%d.b%d.x 1\r\nx\r\n" % (n % 10, n) for n in range(6000)))
    assert play.node.jetstream is not None
    store = play.node.jetstream.engine.assets.streams[("A", "S")].store
    before = store.subjects_searched
    client.subscribe("in.>")
    client.messages.clear()
    for number in range(200):
        lines = [
            "NATS/1.0",
            "Nats-Batch-Id: B",
            f"Nats-Batch-Sequence: {number + 1}",
            f"Nats-Expected-Last-Subject-Sequence: {number + 1}",
            f"Nats-Expected-Last-Subject-Sequence-Subject: *.*.b{number}.*",
            *(["Nats-Batch-Commit: 1"] if number == 199 else []),
        ]
        head = "\r\n".join([*lines, "", ""]).encode()
        size = len(head)
        client.send(b"HPUB s.n.%d in.%d %d %d\r\n%b\r\n" % (number, number, size, size, head))
    assert json.loads(answers(client)[-1]) == {
        "stream": "S",
        "seq": 6200,
        "batch": "B",
        "count": 200,
    }
    assert store.subjects_searched - before < 4 * 6000, "some until the order is made"
