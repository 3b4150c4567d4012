"""What the leader of a work queue asks its other replicas, and how long it waits for them."""

import pytest

from jsctl.broker.assets import work_inquiries
from jsctl.broker.assets.meta.group_file import META_GROUP
from jsctl.broker.peers.items import PeerFrame
from jsctl.broker.peers.work_items import FinishedSeqs, WorkQuestion
from tests.support.queue_play import QueuePlay, deaf_to_entries


@pytest.fixture
def play() -> QueuePlay:
    return QueuePlay()


def test_who_does_not_answer_is_waited_for_a_while(
    play: QueuePlay, monkeypatch: pytest.MonkeyPatch
) -> None:
    deaf_to_entries(play, monkeypatch)
    monkeypatch.setattr(work_inquiries.WorkInquiries, "_hear", lambda *_: None)
    play.confirm()
    play.delete(0.5)
    play.client.publish("$JS.API.CONSUMER.CREATE.S.D", b'{"stream_name":"S"}', "answer")
    play.cluster.run(0.5)
    inquiries = play.leader.engine.inquiries
    assert inquiries.newest(play.cluster.group_of("S")) and inquiries.next_due_ns() is not None
    play.cluster.run(work_inquiries.WAIT_NS / 1e9)
    assert not inquiries.busy and inquiries.next_due_ns() is None


def test_who_cannot_be_reached_is_not_waited_for(play: QueuePlay) -> None:
    other = next(one for one in play.cluster if one not in (play.meta, play.leader))
    other.halt()
    assert play.delete(0.5)
    assert play.anew() == 1
    assert not play.leader.engine.inquiries.busy


def test_an_answer_waits_for_what_the_asker_has_seen(play: QueuePlay) -> None:
    inquiries = play.leader.engine.inquiries
    index = play.leader.engine.groups.by_name[META_GROUP].raft.applied
    queue = play.cluster.group_of("S").encode()
    inquiries.receive(PeerFrame("x", items=[WorkQuestion(queue, 1, index + 1)]))
    told = play.leader.engine.outbox.parcel("x").finished_work
    inquiries.follow()
    assert inquiries.busy and not told
    play.meta.request_all("$JS.API.STREAM.CREATE.T", 1, name="T", subjects=["t"])
    inquiries.follow()
    assert not inquiries.busy


def test_questions_and_answers_of_strangers_are_left(play: QueuePlay) -> None:
    inquiries = play.leader.engine.inquiries
    asked = [WorkQuestion(key, 1, 0) for key in (b"", b"_meta_", b"none")]
    inquiries.receive(PeerFrame("x", items=[*asked, FinishedSeqs(99, [(1, 1 << 63)])]))
    told = play.leader.engine.outbox.parcel("x").finished_work
    assert told == [FinishedSeqs(1, [])] * 3
    assert play.leader.engine.assets.streams["A", "S"].store.messages == 3


def test_what_is_told_is_what_the_queue_has(play: QueuePlay) -> None:
    queue = play.leader.engine.assets.streams["A", "S"]
    queue.finished([(2, 1 << 63)])
    assert list(queue.finished_work()) == [2, 3]
    play.cluster.run(0.2)
    assert queue.store.messages == 1 and not queue.finished_work()


def test_no_inquiry_waits_for_those_that_follow(
    play: QueuePlay, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Consumers may go all the time, and others are to begin all the same."""
    monkeypatch.setattr(work_inquiries.WorkInquiries, "_hear", lambda *_: None)
    engine, name = play.leader.engine, play.cluster.group_of("S")
    inquiries, tokens = engine.inquiries, list[int]()
    for _ in range(3):
        engine.context.bereaved[name] = None
        tokens.append(inquiries.newest(name))
    first, second, third = tokens
    assert 0 < first < second == third and not inquiries.is_over(name, first)
    for one in play.cluster:
        inquiries.receive(PeerFrame(one.peer, items=[FinishedSeqs(first, [])]))
    inquiries.follow()
    assert inquiries.is_over(name, first) and not inquiries.is_over(name, second)
    play.leader.run(2 * work_inquiries.WAIT_NS / 1e9)
    assert inquiries.is_over(name, third) and not inquiries.busy
