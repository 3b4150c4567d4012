"""What was acknowledged in a work queue is given to no other consumer, whoever fails meanwhile."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from jsctl.api.words import Retention
from jsctl.broker.assets.replicas import consumed_messages
from jsctl.broker.raft.types import Append, Heartbeat, Message, VoteRequest
from jsctl.broker.replication.groups import Groups
from tests.support.cluster_play import ClusterPlay
from tests.support.queue_play import QueuePlay, deaf_to_entries
from tests.support.stream_requests import stream

TRIES = 20
Patch = pytest.MonkeyPatch


@pytest.fixture
def play() -> QueuePlay:
    return QueuePlay()


def deaf_to_commits(play: QueuePlay, patch: Patch) -> None:
    """The queue's leader has entries of C, and is not told that they are committed."""
    step, groups = Groups.step, play.leader.engine.groups
    known = groups.by_name[play.group].raft.commit

    def heard(self: Groups, key: bytes, told: Sequence[Message]) -> bool:
        if self is groups and key == play.group.encode():
            told = [
                replace(one, commit=min(one.commit, known))
                if isinstance(one, Append | Heartbeat)
                else one
                for one in told
            ]
        return step(self, key, told)

    patch.setattr(Groups, "step", heard)


def test_who_is_behind_lets_go_of_it(play: QueuePlay, monkeypatch: Patch) -> None:
    deaf_to_commits(play, monkeypatch)
    play.confirm()
    assert play.delete(0.5)
    assert play.anew() == 2


def test_whoever_leads_next_lets_go_of_it(play: QueuePlay) -> None:
    play.leader.halt(noticed=False)
    play.confirm()
    play.delete(0.2)
    play.cluster.run(3)
    assert not play.meta.engine.assets.consumers
    assert play.anew() == 2


def test_it_is_deleted_when_the_queue_has_let_go(play: QueuePlay) -> None:
    play.leader.pause()
    play.confirm()
    assert not play.delete(0.05)
    play.leader.go_on()
    play.cluster.run(0.1)
    assert play.client.heard("answer")
    assert play.leader.engine.assets.streams["A", "S"].store.first_seq == 2


def test_what_is_gone_is_not_remembered(play: QueuePlay, monkeypatch: Patch) -> None:
    monkeypatch.setattr(consumed_messages, "LOOKED_THROUGH", 2)
    work = consumed_messages.FinishedWork(play.leader.engine.assets.streams["A", "S"].stored)
    work.add([1])
    work.add([9])
    assert work.seqs == {1, 9}, "others may have delivered what is not stored here"
    work.settle()
    assert work.seqs == {1}
    work.forget()
    assert not work.seqs


def test_streams_of_other_kinds_remember_nothing() -> None:
    cluster = ClusterPlay()
    cluster["n1"].request_all(
        "$JS.API.STREAM.CREATE.S", 1, **stream(retention=Retention.INTEREST.value)
    )
    work = consumed_messages.FinishedWork(cluster["n1"].engine.assets.streams["A", "S"].stored)
    work.add([1])
    assert not work.seqs


def test_who_never_heard_of_it_asks(play: QueuePlay, monkeypatch: Patch) -> None:
    deaf_to_entries(play, monkeypatch)
    play.confirm()
    assert play.delete(0.5)
    assert play.anew() == 2


def test_a_delete_that_nobody_answers_leaves_nothing(play: QueuePlay, monkeypatch: Patch) -> None:
    deaf_to_entries(play, monkeypatch)
    play.confirm()
    play.delete(0)
    play.client.publish("$JS.API.CONSUMER.DELETE.S.C", b"", "answer")
    assert play.anew() == 2


def test_who_leads_next_asks_what_it_never_heard(play: QueuePlay, monkeypatch: Patch) -> None:
    other = next(one for one in play.cluster if one not in (play.meta, play.leader))
    step, queue = Groups.step, play.cluster.group_of("S")

    def heard(self: Groups, key: bytes, told: Sequence[Message]) -> bool:
        lost: type | None = None
        if key == queue.encode() and play.leader.running:
            lost = Append
        elif self is other.engine.groups:
            lost = {queue.encode(): VoteRequest, play.group.encode(): Append}.get(key)
        return step(self, key, [one for one in told if type(one) is not lost])

    monkeypatch.setattr(Groups, "step", heard)
    play.confirm()
    play.delete(0.2)
    play.leader.halt()
    for _ in range(TRIES):
        play.cluster.run(0.3)
        if play.cluster.leader(queue) is other:
            break
    assert play.cluster.leader(queue) is other
    assert play.anew() == 2
