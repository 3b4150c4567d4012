"""A work queue in a cluster, whose consumer is deleted and made anew."""

from collections.abc import Sequence

import pytest

from jsctl.broker.raft.types import Append, Message
from jsctl.broker.replication.groups import Groups
from tests.support.cluster_play import ClusterPlay
from tests.support.stream_requests import consumer, stream

TRIES = 20


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


def deaf_to_entries(play: QueuePlay, patch: pytest.MonkeyPatch) -> None:
    """The queue's leader does not hear what C's log has."""
    step, groups = Groups.step, play.leader.engine.groups

    def heard(self: Groups, key: bytes, told: Sequence[Message]) -> bool:
        if self is groups and key == play.group.encode():
            told = [one for one in told if not isinstance(one, Append)]
        return step(self, key, told)

    patch.setattr(Groups, "step", heard)
