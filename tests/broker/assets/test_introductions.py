"""When a consumer of a stream with interest retention is there for whoever asked for it: not before
the stream's leader knows it, which lets go of what nobody needs that it knows."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from jsctl.broker.assets.meta.group_file import META_GROUP
from jsctl.broker.peers.items import Introduced, Introduction, PeerFrame
from jsctl.broker.raft.types import Message
from jsctl.broker.replication.groups import Groups
from tests.support.cluster_play import ClusterPlay
from tests.support.stream_requests import consumer, stream

TRIES = 20
Patch = pytest.MonkeyPatch


class InterestPlay:
    """Stream S with a message on s.a, and consumer OLD, which wants those on s.a. The stream's
    leader leads neither OLD nor the meta group."""

    def __init__(self) -> None:
        self.cluster = ClusterPlay()
        self.meta = self.cluster.leader()
        self.leader = next(one for one in self.cluster if one is not self.meta)
        self._settled("STREAM.CREATE.S", stream(retention="interest"))
        for _ in range(TRIES):
            if self.cluster.leader(self.cluster.group_of("S")) is self.leader:
                break
            self.meta.request_all("$JS.API.STREAM.LEADER.STEPDOWN.S", 1)
        self._settled("CONSUMER.CREATE.S.OLD", consumer("OLD", filter_subject="s.a"))
        group = self.cluster.group_of("S", "OLD")
        for _ in range(TRIES):
            if self.cluster.leader(group) is not self.leader:
                break
            self.meta.request_all("$JS.API.CONSUMER.LEADER.STEPDOWN.S.OLD", 1)
        assert self.cluster.leader(group) is not self.leader
        assert self.cluster.leader(self.cluster.group_of("S")) is self.leader
        self.client = self.meta.connect("a")
        self.client.subscribe("answer")
        self.publish("s.a")
        assert self.kept() == 1

    def _settled(self, request: str, body: dict[str, Any]) -> None:
        (answer,) = self.meta.request_all(f"$JS.API.{request}", 1, **body)
        assert "error" not in answer

    def publish(self, subject: str) -> None:
        self.client.publish(subject, b"x", "stored")
        self.cluster.run(0.3)

    def asked(self, request: str, body: dict[str, Any], seconds: float = 0.6) -> None:
        """Somebody asks for something, and it is decided, if that is up to the others."""
        self.client.publish(f"$JS.API.{request}", json.dumps(body).encode(), "answer")
        self.cluster.run(seconds)

    def pulled(self, name: str) -> list[str]:
        """Where messages are acknowledged that a consumer gives."""
        inbox = f"next.{name}"
        self.client.subscribe(inbox)
        self.client.publish(f"$JS.API.CONSUMER.MSG.NEXT.S.{name}", b"1", inbox)
        self.cluster.run(0.3)
        return [reply for _, reply, _ in self.client.messages if f".{name}." in reply]

    def kept(self) -> int:
        return self.leader.engine.assets.streams[("A", "S")].store.messages


@pytest.fixture
def play() -> InterestPlay:
    return InterestPlay()


def test_a_creation_is_answered_when_the_streams_leader_knows_it(play: InterestPlay) -> None:
    play.leader.disk_held = True
    play.asked("CONSUMER.CREATE.S.NEW", consumer("NEW"))
    knows = [("A", "S", "NEW") in one.engine.assets.consumers for one in play.cluster]
    assert knows.count(True) == 2 and not play.client.heard("answer")
    play.leader.release_disk()
    play.cluster.run(0.3)
    (answer,) = play.client.heard("answer")
    assert answer["num_pending"] == 1
    for reply in play.pulled("OLD"):
        play.client.publish(reply, b"+ACK")
    play.cluster.run(0.3)
    assert play.kept() == 1 and play.pulled("NEW")


def test_who_is_not_known_yet_has_no_claim(play: InterestPlay, monkeypatch: Patch) -> None:
    (reply,) = play.pulled("OLD")
    deaf, step = [play.leader.engine.groups], Groups.step

    def heard(groups: Groups, key: bytes, told: Sequence[Message]) -> bool:
        return (groups in deaf and key == META_GROUP.encode()) or step(groups, key, told)

    monkeypatch.setattr(Groups, "step", heard)
    play.asked("CONSUMER.CREATE.S.NEW", consumer("NEW"))
    play.client.publish(reply, b"+ACK")
    play.cluster.run(0.2)
    assert ("A", "S", "NEW") not in play.leader.engine.assets.consumers
    assert play.kept() == 0 and not play.client.heard("answer")
    deaf.clear()
    play.cluster.run(0.5)
    (answer,) = play.client.heard("answer")
    assert (answer["num_pending"], answer["delivered"]["stream_seq"]) == (0, 1)


def test_other_filters_are_answered_when_the_streams_leader_knows_them(play: InterestPlay) -> None:
    play.leader.disk_held = True
    play.asked("CONSUMER.CREATE.S.OLD", consumer("OLD", filter_subject="s.b"))
    assert not play.client.heard("answer")
    play.leader.release_disk()
    play.cluster.run(0.3)
    (answer,) = play.client.heard("answer")
    assert answer["config"]["filter_subject"] == "s.b"
    before = play.kept()
    play.publish("s.b")
    assert play.kept() == before + 1


def test_what_a_consumer_is_to_get_counts_before_its_log_says_so(play: InterestPlay) -> None:
    replica = play.leader.engine.assets.consumers[("A", "S", "OLD")]
    assert replica.interested(b"s.a") and not replica.interested(b"s.b")
    config = replace(replica.assignment.config, filter_subject="s.b")
    replica.assign(replace(replica.assignment, config=config))
    for subject in (b"s.a", b"s.b"):
        assert replica.interested(subject) and replica.needs(2, subject)
    assert replica.needs(1, b"s.a")


def test_questions_of_strangers_are_left(play: InterestPlay) -> None:
    known = play.leader.engine.introductions
    for key in (b"", b"_meta_", b"none", play.cluster.group_of("S", "OLD").encode()):
        frame = PeerFrame("x", items=[Introduction(key, 1, 0), Introduced(99)])
        known.receive(frame)
    play.cluster.run(0.2)
    assert known.next_due_ns() is None


def test_it_is_asked_again_when_another_one_leads(play: InterestPlay) -> None:
    play.leader.pause()
    play.asked("CONSUMER.CREATE.S.NEW", consumer("NEW"), 0.1)
    assert not play.client.heard("answer")
    play.cluster.run(3)
    (answer,) = [one for one in play.client.heard("answer") if one.get("name") == "NEW"]
    assert answer["num_pending"] == 1


def test_who_asks_again_waits_once(play: InterestPlay) -> None:
    introductions = play.leader.engine.introductions
    key, seen = play.cluster.group_of("S").encode(), play.leader.engine.context.meta_applied
    for _ in range(3):
        introductions.receive(PeerFrame("x", items=[Introduction(key, 7, seen + 1)]))
    assert len(introductions.early) == 1
    play.meta.request_all("$JS.API.STREAM.CREATE.T", 1, **stream("T"))
    assert not introductions.early
