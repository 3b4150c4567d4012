"""What was acknowledged in a work queue is given to no other consumer, whoever fails meanwhile."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from jsctl.api.words import Retention
from jsctl.broker.assets.replicas import consumed_messages
from jsctl.broker.raft.types import Append, Heartbeat, Message
from jsctl.broker.replication.groups import Groups
from tests.support.cluster_play import ClusterPlay
from tests.support.stream_requests import consumer, stream

TRIES = 20
Patch = pytest.MonkeyPatch


class QueuePlay:
    """Work queue S with three messages; the first is delivered by C, to a client that confirms.
    The queue's leader leads neither C nor the meta group."""

    def __init__(self) -> None:
        self.cluster = ClusterPlay()
        self.meta = self.cluster.leader()
        self.leader = next(one for one in self.cluster if one is not self.meta)
        self._asked("STREAM.CREATE.S", **stream(retention="workqueue"))
        self._asked("CONSUMER.CREATE.S.C", **consumer())
        self.group = self.cluster.group_of("S", "C")
        for _ in range(TRIES):
            if self.cluster.leader(self.cluster.group_of("S")) is self.leader:
                break
            self.meta.request_all("$JS.API.STREAM.LEADER.STEPDOWN.S", 1)
        for _ in range(TRIES):
            if self.cluster.leader(self.group) is self.meta:
                break
            self.meta.request_all("$JS.API.CONSUMER.LEADER.STEPDOWN.S.C", 1)
        assert self.cluster.leader(self.cluster.group_of("S")) is self.leader
        assert self.cluster.leader(self.group) is self.meta
        self.client = self.meta.connect("a")
        for inbox in ("stored", "next", "confirmed", "answer"):
            self.client.subscribe(inbox)
        for _ in range(3):
            self.client.publish("s.x", b"m", "stored")
        self.cluster.run(0.3)
        (self.reply,) = self.pulled()

    def _asked(self, request: str, **body: object) -> None:
        (answer,) = self.meta.request_all(f"$JS.API.{request}", 1, **body)
        assert "error" not in answer, answer

    def pulled(self) -> list[str]:
        """Where the next message is acknowledged."""
        self.client.messages.clear()
        self.client.publish("$JS.API.CONSUMER.MSG.NEXT.S.C", b"1", "next")
        self.cluster.run(0.3)
        return [reply for _, reply, _ in self.client.messages if reply]

    def confirm(self) -> None:
        """The first message is acknowledged, and the client knows that this counts."""
        self.client.publish(self.reply, b"+ACK", "confirmed")
        self.cluster.run(0.05)
        assert [one for one, _, _ in self.client.messages if one == "confirmed"]

    def delete(self, seconds: float) -> bool:
        """Whether it is answered so soon that C is deleted."""
        self.client.publish("$JS.API.CONSUMER.DELETE.S.C", b"", "answer")
        self.cluster.run(seconds)
        return bool(self.client.heard("answer"))

    def anew(self) -> int:
        """The first message that another consumer of the same name has."""
        self._asked("CONSUMER.CREATE.S.C", **consumer())
        (reply,) = self.pulled()
        return int(reply.split(".")[5])


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
