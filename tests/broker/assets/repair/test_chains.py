"""STREAM.VERIFY and STREAM.HEAD: what was done to the messages of a server is found and named."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from jsctl.broker.jetstream.chains import chain as chains
from jsctl.broker.jetstream.chains.chain import BLOCK_SEQS, Chain, leaf_of
from jsctl.broker.nkey import (
    KeyKind,
    decode,
    decode_signature,
    encode_signature,
    public_of,
    sign,
    verify,
)
from jsctl.broker.peers.items import AuditRequest
from jsctl.broker.store.frame import frame_of
from jsctl.broker.store.record import Record
from tests.broker.assets.repair.test_damaged_reads import ask, zero_all
from tests.broker.assets.repair.test_repairs import COUNT, filled, follower, segments
from tests.broker.assets.test_damaged_replica import fill, keep, store_of
from tests.support.cluster_play import ClusterPlay, ServerPlay
from tests.support.forging import Change, forged
from tests.support.stream_requests import stream

pytestmark = pytest.mark.slow

KEY = {"jsctl.chain": "sha256"}
VERIFY, HEAD = "$JS.API.STREAM.VERIFY.S", "$JS.API.STREAM.HEAD.S"


def chained(replicas: int = 3, **config: Any) -> ClusterPlay:
    return filled(metadata=KEY, num_replicas=replicas, **config)


def leader_of(cluster: ClusterPlay) -> ServerPlay:
    return cluster.leader(cluster.group_of("S"))


def verified(cluster: ClusterPlay) -> dict[str, Any]:
    """The replicas when it is done, by name."""
    server = leader_of(cluster)
    (answer,) = ask(cluster, server, VERIFY, 0.3, start=True)
    for _ in range(100):
        audit = json.loads(answer)["audit"]
        if audit["done"]:
            return {one["name"]: one for one in audit["replicas"]}
        (answer,) = ask(cluster, server, VERIFY, 0.3)
    raise AssertionError(audit)


def head(cluster: ClusterPlay, **body: Any) -> Any:
    (answer,) = ask(cluster, leader_of(cluster), HEAD, 0.3, **body)
    return json.loads(answer)


def link_of(server: ServerPlay) -> tuple[int, bytes]:
    chain = server.engine.assets.streams[("A", "S")].stream.chained.chain
    assert chain is not None
    return chain.seq, chain.link


def equal(cluster: ClusterPlay) -> None:
    assert len({link_of(one) for one in cluster if ("A", "S") in one.engine.assets.streams}) == 1


@pytest.mark.parametrize("storage", ["file", "memory"])
def test_replicas_have_one_chain_and_prove_it(storage: str) -> None:
    cluster = chained(storage=storage)
    equal(cluster)
    found = verified(cluster)
    assert {one["state"] for one in found.values()} == {"proved"}
    assert {one["messages"] for one in found.values()} == {COUNT}
    told = head(cluster)["chain"]
    assert (told["seq"], told["hash"]) == (COUNT, link_of(leader_of(cluster))[1].hex())
    assert "signature" not in told


@pytest.mark.slow
def test_through_restarts_leaders_kills_and_transfers_it_is_the_same() -> None:
    cluster = chained(max_msgs_per_subject=30)
    first = head(cluster)["chain"]
    victim = follower(cluster)
    victim.halt()
    for number in range(3):
        leader = leader_of(cluster)
        fill(cluster, leader, COUNT * (number + 1), COUNT)
        leader.request_all("$JS.API.STREAM.MSG.DELETE.S", 0.3, seq=COUNT * (number + 1) + 150)
        leader.request_all("$JS.API.STREAM.PURGE.S", 0.3, filter="s.3", keep=2)
        for one in cluster:
            if one.running:
                group = one.engine.groups.by_name[cluster.group_of("S")]
                one.engine.groups.checkpoints.soon(group)
        cluster.run(1)
        for one in cluster:
            if one.running:
                raft = one.engine.groups.by_name[cluster.group_of("S")].raft
                raft.compact(raft.applied)
        leader.request_all("$JS.API.STREAM.LEADER.STEPDOWN.S", 1)
        cluster.run(2)
    victim.begin()
    cluster.run(6)
    equal(cluster)
    assert {one["state"] for one in verified(cluster).values()} == {"proved"}
    assert head(cluster, seq=COUNT)["chain"]["hash"] == first["hash"]
    for one in cluster:
        one.halt()
    for one in cluster:
        one.begin()
    cluster.run(5)
    equal(cluster)
    assert {one["state"] for one in verified(cluster).values()} == {"proved"}
    assert head(cluster, seq=COUNT)["chain"]["hash"] == first["hash"]


def test_what_was_repaired_fits_again() -> None:
    cluster = chained()
    victim = follower(cluster)
    zero_all(victim.disk, segments(victim)[0])
    store_of(victim).close()
    assert verified(cluster)[victim.name]["state"] in ("damaged", "proved")
    ask(cluster, victim, "$JS.API.STREAM.CHECK.S", 5, start=True)
    assert {one["state"] for one in verified(cluster).values()} == {"proved"}


def flip(rows: list[Record]) -> list[Record]:
    return [
        one._replace(payload=bytes([one.payload[0] ^ 1]) + one.payload[1:])
        if one.seq == 77
        else one
        for one in rows
    ]


def swap(rows: list[Record]) -> list[Record]:
    """The first two of each frame, with the sequences and times that they had."""
    if len(rows) < 2 or rows[0].seq > 100:
        return rows
    one, two, *others = rows
    return [two._replace(seq=one.seq), one._replace(seq=two.seq), *others]


def rewrite_tail(rows: list[Record]) -> list[Record]:
    return [one._replace(payload=b"other") if one.seq > 150 else one for one in rows]


def attacked(server: ServerPlay, change: Change) -> None:
    """Every checksum is right afterwards; catalogue and index are gone."""
    server.halt()
    for path in segments(server):
        server.disk.overwrite(path, forged(server.disk.content(path), change))
    for path in server.disk.paths():
        if path.endswith(("/index", ".cat")):
            server.disk.remove(path)
    server.begin()


ATTACKS: dict[str, tuple[Change, Callable[[int], bool], str]] = {
    "flip": (flip, lambda seq: seq == 77, "the message was changed"),
    "swap": (swap, lambda seq: seq < 100, "the message was changed"),
    "tail": (rewrite_tail, lambda seq: seq == 151, "the message was changed"),
}


@pytest.mark.parametrize("name", ATTACKS)
@pytest.mark.parametrize("replicas", [1, 3])
def test_an_attack_on_a_disk_is_named(name: str, replicas: int) -> None:
    change, is_expected, reason = ATTACKS[name]
    cluster = chained(replicas)
    before = head(cluster)["chain"]
    victim = leader_of(cluster) if replicas == 1 else follower(cluster)
    attacked(victim, change)
    cluster.run(5)
    found = verified(cluster)
    told = found.pop(victim.name)
    assert told["state"] == "broken", told
    first = told["breaks"][0]
    assert is_expected(first["seq"]) and first["reason"] == reason
    assert {one["state"] for one in found.values()} <= {"proved"}
    assert head(cluster)["chain"]["hash"] == before["hash"], "what was stored is known all the same"


def forget(server: ServerPlay, gone: list[int]) -> None:
    """Take messages out as an operator of the disk would: the store itself says they are gone."""
    store = store_of(server)
    store.remove(gone, store.mark)
    store_job = store.checkpoint()
    if store_job is not None:
        store_job.run()
    server.halt()
    server.begin()


@pytest.mark.parametrize("gone", [[51], [1, 2], [COUNT]])
def test_messages_that_were_taken_out_are_missing(gone: list[int]) -> None:
    cluster = chained(1)
    forget(leader_of(cluster), gone)
    cluster.run(5)
    (told,) = verified(cluster).values()
    assert told["state"] == "broken"
    assert told["breaks"][0] == {"seq": gone[0], "reason": "the message is missing"}


def test_a_chain_that_was_rewritten_is_not_that_of_the_others() -> None:
    """Messages and chain of one replica fit together, but not to what the others have."""
    cluster = chained()
    victim = follower(cluster)
    attacked(victim, flip)
    cluster.run(5)
    found = victim.engine.assets.streams[("A", "S")].stream
    chain = found.chained.chain
    assert chain is not None
    other = type(chain)(0)
    seqs = found.store.live_seqs(1, COUNT, COUNT)
    for seq, raw in zip(seqs, found.store.read_raw(seqs), strict=True):
        other.add_leaf(seq, leaf_of(raw))
    found.chained.chain = other
    told = verified(cluster)[victim.name]
    assert told["state"] == "broken"
    assert told["breaks"][0]["reason"] == "the chain is not the leader's"


def chain_of(server: ServerPlay) -> Chain:
    chain = server.engine.assets.streams[("A", "S")].stream.chained.chain
    assert chain is not None
    return chain


def test_messages_whose_hashes_were_taken_out_as_well_are_missed() -> None:
    """The chain of one replica ends, or begins, where others go on."""
    cluster = chained()
    victim = follower(cluster)
    found, known = victim.engine.assets.streams[("A", "S")].stream, chain_of(victim)
    short = Chain(0)
    for seq in range(1, 151):
        short.add_leaf(seq, known.blocks[0].leaf(seq - 1))
    found.chained.chain = short
    found.store.remove(list(range(151, COUNT + 1)), found.store.mark)
    assert verified(cluster)[victim.name]["breaks"][0]["reason"] == "the chain is not the leader's"
    cluster = chained()
    victim = follower(cluster)
    late = Chain(0, COUNT, chain_of(victim).link, COUNT, chain_of(victim).link)
    victim.engine.assets.streams[("A", "S")].stream.chained.chain = late
    told = verified(cluster)[victim.name]
    assert told["breaks"] == [{"seq": 1, "reason": "the chain begins later than the leader's"}]


def test_what_the_chain_has_no_hashes_of_is_not_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chains, "LEAVES_MAX", BLOCK_SEQS)
    cluster = chained(storage="memory")
    fill(cluster, leader_of(cluster), COUNT, 2 * BLOCK_SEQS)
    told = chain_of(leader_of(cluster)).anchor_seq
    assert told >= BLOCK_SEQS - 1
    assert {one["state"] for one in verified(cluster).values()} == {"proved"}
    (answer,) = ask(cluster, leader_of(cluster), VERIFY, 0.3)
    assert json.loads(answer)["audit"]["first_seq"] == told + 1


def test_a_head_from_before_finds_what_all_servers_agree_upon() -> None:
    """The owner of all servers rewrites everything: only who kept a head can tell."""
    cluster = chained(1)
    before = head(cluster)["chain"]
    cluster["n1"].request_all("$JS.API.STREAM.DELETE.S", 1)
    cluster["n1"].request_all("$JS.API.STREAM.CREATE.S", 1, **stream(metadata=KEY, num_replicas=1))
    fill(cluster, leader_of(cluster), 1000, COUNT)
    assert {one["state"] for one in verified(cluster).values()} == {"proved"}
    now = head(cluster, seq=before["seq"])["chain"]
    assert now["hash"] != before["hash"]


def test_a_chain_that_is_too_short_for_a_head_says_so() -> None:
    cluster = chained(1)
    error = head(cluster, seq=COUNT + 1)["error"]
    assert error["err_code"] == 10051 and f"ends at sequence {COUNT}" in error["description"]


def test_heads_before_the_anchor_are_forgotten() -> None:
    cluster = chained(1)
    fill(cluster, leader_of(cluster), COUNT, 1500)
    leader_of(cluster).request_all("$JS.API.STREAM.PURGE.S", 1)
    keep(cluster)
    error = head(cluster, seq=5)["error"]
    assert error["err_code"] == 10051 and "not kept any more" in error["description"]
    assert {one["state"] for one in verified(cluster).values()} == {"proved"}


@pytest.mark.parametrize("subject", [VERIFY, HEAD])
def test_without_a_chain_there_is_nothing_to_verify(subject: str) -> None:
    cluster = filled()
    (answer,) = ask(cluster, cluster["n1"], subject, 0.3)
    assert json.loads(answer)["error"]["err_code"] == 10051
    (answer,) = ask(cluster, cluster["n1"], subject[:-1] + "NONE", 0.3)
    assert json.loads(answer)["error"]["err_code"] == 10059


def test_another_kind_of_chain_is_refused() -> None:
    cluster = filled()
    config = {"name": "T", "subjects": ["t"], "metadata": {"jsctl.chain": "md5"}}
    (answer,) = cluster["n1"].request_all("$JS.API.STREAM.CREATE.T", 1, **config)
    assert json.loads(json.dumps(answer))["error"]["err_code"] == 10052


def test_signatures_are_of_what_is_told() -> None:
    seed = "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY"
    text = b"jsctl chain 1\nA\nS\n0\n5\nab\nT"
    signature = decode_signature(encode_signature(sign(seed, text)))
    public = decode(public_of(seed), KeyKind.USER)
    assert signature is not None and public is not None
    assert verify(public, text, signature)
    assert not verify(public, text + b".", signature)


def test_a_replica_whose_messages_are_ahead_of_its_chain_is_waited_for() -> None:
    """As behind a transfer of state, until what came meanwhile is applied, too."""
    cluster = chained()
    victim = follower(cluster)
    replica = victim.engine.assets.streams[("A", "S")]
    entry = replica.standing_index + 1
    replica.store.append(frame_of([(COUNT + 1, 1, b"s.1", b"", b"x")]), entry)
    audits, key = victim.engine.upkeep.audits, replica.group.key
    audits.asked("other", AuditRequest(key, 7, entry, 1, COUNT + 1, True))
    audits.tick(cluster.now_ns)
    (answer,) = victim.engine.outbox.parcel("other").audited
    assert (answer.up_to, answer.breaks) == (0, [])
