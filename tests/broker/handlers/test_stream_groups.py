"""Placement, scaling, moves and peers of streams in a cluster of one view."""

from dataclasses import replace
from typing import Any

import pytest

from jsctl.api.consumer import ConsumerConfig
from jsctl.broker.handlers.decisions import ProposeMeta, RemoveMetaPeer, StepDown
from jsctl.broker.jetstream.meta.assignments import ConsumerAssignment, StreamAssignment
from jsctl.broker.jetstream.meta.entries import (
    MetaServer,
    add_server,
    assign_consumer,
    settle_group,
)
from jsctl.broker.jetstream.meta.placement import ServerFacts
from tests.support.jetstream_rig import Rig


def _stream(rig: Rig, name: str = "S") -> StreamAssignment:
    found = rig.meta.stream("A", name)
    assert found is not None
    return found


def _create(rig: Rig, **config: Any) -> Any:
    config = {"name": "S", "subjects": ["s.>"], "num_replicas": 3, **config}
    return rig.ask(f"STREAM.CREATE.{config['name']}", config)


def _update(rig: Rig, **config: Any) -> Any:
    base = {"name": "S", "subjects": ["s.>"], "num_replicas": 3}
    return rig.ask("STREAM.UPDATE.S", {**base, **config})


def _settle(rig: Rig) -> None:
    made = settle_group(_stream(rig))
    rig.meta.apply(99, made)
    rig.meta.take_changes()


def _consumer(rig: Rig, name: str, replicas: int, peers: tuple[str, ...]) -> None:
    stream = _stream(rig)
    made = ConsumerAssignment(
        account="A",
        stream="S",
        name=name,
        config=ConsumerConfig(name=name, durable_name=name, num_replicas=replicas),
        group=replace(stream.group, name=f"C-{name}", peers=peers),
        created_ns=1,
        client=stream.client,
        request=None,
    )
    rig.meta.apply(98, assign_consumer(made))
    rig.meta.take_changes()


def _error(answer: Any) -> tuple[int, str]:
    return answer["error"]["err_code"], answer["error"]["description"]


def test_a_replicated_stream_shows_its_group() -> None:
    rig = Rig(3)
    answer = _create(rig)
    cluster = answer["cluster"]
    assert cluster["name"] == "C1" and cluster["leader"] == "n0"
    assert cluster["raft_group"].startswith("S-R3F-")
    assert cluster["traffic_account"] == "$SYS" and cluster["system_account"] is True
    assert [one["name"] for one in cluster["replicas"]] == ["n1", "n2"]
    assert answer["did_create"] is True
    assert sorted(_stream(rig).group.peers) == ["peer0", "peer1", "peer2"]


def test_one_replica_is_shown_without_peers() -> None:
    rig = Rig(3)
    assert _create(rig, num_replicas=1)["cluster"] == {"name": "C1", "leader": "n0"}


def test_too_few_servers_and_other_reasons() -> None:
    rig = Rig(3)
    assert _error(_create(rig, num_replicas=5)) == (10005, "no suitable peers for placement")
    answer = _create(rig, placement={"cluster": "C9"})
    assert _error(answer) == (10005, "no suitable peers for placement")
    answer = _create(rig, placement={"tags": ["ssd"]})
    assert _error(answer)[1] == "no suitable peers for placement, tags not matched ['ssd']"


def test_creates_of_one_turn_see_each_other() -> None:
    rig = Rig(3)
    body = b'{"name":"S","subjects":["x"]}'
    first = rig.decide("STREAM.CREATE.S", body)
    assert isinstance(first, ProposeMeta) and first.reply is None
    rig.meta.note_in_flight(first.entries)
    assert _error(rig.ask("STREAM.CREATE.T", {"name": "T", "subjects": ["x"]}))[0] == 10065
    assert _error(rig.ask("STREAM.CREATE.S", {"name": "S", "subjects": ["y"]}))[0] == 10058


def test_scaling_up_keeps_the_old_peer_and_its_consumers_follow() -> None:
    rig = Rig(3)
    _create(rig, num_replicas=1)
    (old,) = _stream(rig).group.peers
    _consumer(rig, "D", 0, (old,))
    _consumer(rig, "E", 1, (old,))
    answer = _update(rig)
    group = _stream(rig).group
    assert (group.peers[0], len(group.peers), group.former) == (old, 3, ())
    assert answer["config"]["num_replicas"] == 3
    assert answer["cluster"]["desired"]["origin"] == {"replicas": 1}
    assert answer["type"].endswith("stream_update_response")
    consumers = rig.meta.consumers("A", "S")
    assert consumers["D"].group.peers == group.peers
    assert consumers["E"].group.peers == (old,)
    assert not group.settled
    _settle(rig)
    assert _stream(rig).group.settled


def test_scaling_down_keeps_the_leader() -> None:
    rig = Rig(3)
    _create(rig)
    _consumer(rig, "E", 1, ("peer2",))
    _update(rig, num_replicas=1)
    group = _stream(rig).group
    assert group.peers == ("peer0",)
    assert sorted(group.former) == ["peer1", "peer2"]
    assert rig.meta.consumers("A", "S")["E"].group.peers == ("peer0",)


def test_moving_by_tags_and_cancelling() -> None:
    rig = Rig(6)
    rig.facts = [
        replace(server, tags=("new",) if at > 2 else ("old",))
        for at, server in enumerate(rig.facts)
    ]
    _create(rig, placement={"tags": ["old"]})
    old = _stream(rig).group.peers
    both = _update(rig, placement={"tags": ["new"]}, num_replicas=1)
    assert _error(both) == (10123, "can not move and scale a stream in a single update")
    _update(rig, placement={"tags": ["new"]})
    group = _stream(rig).group
    assert sorted(group.peers) == ["peer3", "peer4", "peer5"]
    assert group.former == old and group.moving
    assert _error(_update(rig, placement={"tags": ["old"]}))[0] == 10124
    answer = rig.ask("STREAM.CANCEL_MOVE.S")
    assert answer["type"].endswith("stream_cancel_move_response")
    assert answer["config"]["placement"] == {"tags": ["old"]}
    assert _stream(rig).group.peers == old
    _settle(rig)
    assert _error(rig.ask("STREAM.CANCEL_MOVE.S"))[0] == 10129


def test_operators_move_a_stream_off_a_server() -> None:
    rig = Rig(4)
    _create(rig)
    before = _stream(rig).group.peers
    name = f"n{before[0][-1]}"
    rig.ask("ACCOUNT.STREAM.MOVE.A.S", {"server": name}, system=True)
    group = _stream(rig).group
    assert before[0] not in group.peers and len(group.peers) == 3
    assert group.former == (before[0],)
    rig.ask("ACCOUNT.STREAM.CANCEL_MOVE.A.S", system=True)
    assert sorted(_stream(rig).group.peers) == sorted(before)
    assert rig.ask("ACCOUNT.STREAM.MOVE.A.S", {"server": name}) is None


@pytest.mark.parametrize("servers", [4, 5])
def test_a_cancelled_move_does_not_go_back_to_a_server_that_was_removed(servers: int) -> None:
    rig = Rig(servers)
    for at in range(servers):
        rig.meta.apply(at, add_server(MetaServer(f"peer{at}", f"n{at}", 1, "C1")))
    rig.meta.take_changes()
    _create(rig)
    gone = _stream(rig).group.peers[0]
    rig.ask("ACCOUNT.STREAM.MOVE.A.S", {"server": f"n{gone[-1]}"}, system=True)
    assert rig.ask("SERVER.REMOVE", {"peer": "", "peer_id": gone}, system=True)["success"]
    assert "error" not in rig.ask("STREAM.CANCEL_MOVE.S")
    peers = _stream(rig).group.peers
    assert gone not in peers and len(set(peers)) == 3


@pytest.mark.parametrize("request_name", ["REMOVE", "EVACUATE"])
def test_peers_are_replaced(request_name: str) -> None:
    rig = Rig(4)
    _create(rig)
    gone = _stream(rig).group.peers[1]
    subject = f"STREAM.PEER.{request_name}.S"
    assert _error(rig.ask(subject, {"peer": "nope"})) == (10040, "peer not a member")
    answer = rig.ask(subject, {"peer": f"n{gone[-1]}"})
    assert answer["success"] is True
    group = _stream(rig).group
    assert gone not in group.peers and len(group.peers) == 3
    assert group.former == (gone,)
    assert group.excluded == ((gone,) if request_name == "EVACUATE" else ())
    small = Rig(3)
    _create(small)
    assert _error(small.ask(subject, {"peer": "n1"})) == (10075, "peer remap failed")


def test_step_down_names_candidates() -> None:
    rig = Rig(3)
    _create(rig)
    decision = rig.decide("STREAM.LEADER.STEPDOWN.S", b'{"placement":{"preferred":"n2"}}')
    assert isinstance(decision, StepDown) and decision.candidates == ["peer2"]
    decision = rig.decide("STREAM.LEADER.STEPDOWN.S")
    assert isinstance(decision, StepDown) and sorted(decision.candidates) == ["peer1", "peer2"]
    body = {"placement": {"preferred": "n0"}}
    answer = rig.ask("STREAM.LEADER.STEPDOWN.S", body)
    assert _error(answer) == (10005, 'preferred server "n0" is already leader')
    answer = rig.ask("STREAM.LEADER.STEPDOWN.S", {"placement": {"preferred": "x"}})
    assert _error(answer) == (10005, 'preferred server "x" not known')
    rig.facts = [replace(one, online=one.peer == "peer0") for one in rig.facts]
    answer = rig.ask("STREAM.LEADER.STEPDOWN.S", {"placement": {"preferred": "n1"}})
    assert _error(answer) == (10005, "no replacement peer connected")
    alone = Rig(3)
    _create(alone, num_replicas=1)
    assert alone.ask("STREAM.LEADER.STEPDOWN.S")["success"] is True


def test_meta_step_down_is_for_the_system_account() -> None:
    rig = Rig(3)
    assert rig.ask("META.LEADER.STEPDOWN") is None
    decision = rig.decide("META.LEADER.STEPDOWN", system=True)
    assert isinstance(decision, StepDown)
    assert (decision.group, sorted(decision.candidates)) == ("_meta_", ["peer1", "peer2"])


def test_a_removed_server_leaves_all_groups() -> None:
    rig = Rig(4)
    for at in range(4):
        rig.meta.apply(at, add_server(MetaServer(f"peer{at}", f"n{at}", 1, "C1")))
    rig.meta.take_changes()
    _create(rig)
    gone = _stream(rig).group.peers[0]
    _consumer(rig, "E", 1, (gone,))
    answer = rig.ask("SERVER.REMOVE", {"peer": "nope"}, system=True)
    assert _error(answer) == (10044, "server is not a member of the cluster")
    decision = rig.decide("SERVER.REMOVE", f'{{"peer":"n{gone[-1]}"}}'.encode(), system=True)
    assert isinstance(decision, RemoveMetaPeer) and decision.peer == gone
    for entry in decision.entries[:-1]:
        rig.meta.apply(50, entry)  # A leader that dies has decided no more.
    rig.meta.take_changes()
    assert not rig.meta.servers[gone].removed, "it may be asked for again"
    assert rig.ask("SERVER.REMOVE", {"peer": "", "peer_id": gone}, system=True)["success"]
    group = _stream(rig).group
    assert gone not in group.peers and len(group.peers) == 3
    assert rig.meta.consumers("A", "S")["E"].group.peers[0] in group.peers
    assert rig.meta.servers[gone].removed
    rest = group.peers[0]
    rig.ask("SERVER.REMOVE", {"peer": "", "peer_id": rest}, system=True)
    assert len(_stream(rig).group.peers) == 2


def test_a_server_is_evacuated_if_all_finds_room() -> None:
    rig = Rig(4)
    _create(rig)
    name = f"n{_stream(rig).group.peers[0][-1]}"
    assert rig.ask("SERVER.EVACUATE", {"peer": name}, system=True)["success"] is True
    small = Rig(3)
    _create(small)
    assert _error(small.ask("SERVER.EVACUATE", {"peer": "n1"}, system=True))[0] == 10075


@pytest.mark.parametrize("what", ["EVACUATE", "REMOVE"])
def test_streams_of_a_server_find_room_beside_each_other(what: str) -> None:
    """Each of two servers has room for one of them."""
    rig = Rig(5)
    for at in range(5):
        rig.meta.apply(at, add_server(MetaServer(f"peer{at}", f"n{at}", 1, "C1")))
    rig.meta.take_changes()
    full, rig.facts = (
        rig.facts,
        [*rig.facts[:3], *(replace(one, jetstream=False) for one in rig.facts[3:])],
    )
    for name in "STU":
        _create(rig, name=name, subjects=[name], max_bytes=100)
    rig.facts = [*full[:3], *(replace(one, store_max=150) for one in full[3:])]
    answer = rig.ask(f"SERVER.{what}", {"peer": "n1"}, system=True)
    held = [peer for made in rig.meta.streams("A").values() for peer in made.group.peers]
    if what == "EVACUATE":
        assert _error(answer)[0] == 10075, "there is no room for the third"
    else:
        assert answer["success"] is True
        assert [held.count("peer3"), held.count("peer4")] == [1, 1]


def test_many_streams_are_spread() -> None:
    rig = Rig(5)
    for at in range(30):
        _create(rig, name=f"S{at}", subjects=[f"s{at}"])
    held = [peer for made in rig.meta.streams("A").values() for peer in made.group.peers]
    counts = [held.count(f"peer{at}") for at in range(5)]
    assert max(counts) - min(counts) <= 2
    assert isinstance(rig.facts[0], ServerFacts)
