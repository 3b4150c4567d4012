"""Archives with many consumers cost each of them once, not once for each other one."""

import pytest

from jsctl.broker.subject.patterns import PatternSet
from tests.support.archives import consumer, packed, restore
from tests.support.node_play import NodePlay
from tests.support.stream_requests import stream

MANY = 300


def own(number: int, filter_subject: str) -> bytes:
    """A consumer of an archive with a filter."""
    name = f"C{number}"
    config = {"name": name, "durable_name": name, "ack_policy": "explicit"}
    nothing = {"consumer_seq": 0, "stream_seq": 0}
    state = {"delivered": nothing, "ack_floor": nothing}
    return consumer(name, {**config, "filter_subject": filter_subject}, state)


def test_consumers_of_a_work_queue_are_compared_with_all_others_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else thousands of them, in one archive, kept the server from all others for minutes."""
    looks = 0
    insert = PatternSet.insert

    def counted(self: PatternSet, pattern: bytes, owner: str = "") -> bool:
        nonlocal looks
        looks += 1
        return insert(self, pattern, owner)

    monkeypatch.setattr(PatternSet, "insert", counted)
    play = NodePlay()
    data = packed(*(own(number, f"s.{number}") for number in range(MANY)), consumer_count=MANY)
    made = stream(replicas=1, retention="workqueue")
    answer = restore(play.connect("a"), made, data, lambda: play.run(0.1))
    assert answer["state"]["consumer_count"] == MANY
    assert looks < 10 * MANY


@pytest.mark.parametrize(("first", "second"), [("s.>", "s.1"), ("s.1", "s.*")])
def test_consumers_that_would_share_messages_of_a_work_queue_are_refused(
    first: str, second: str
) -> None:
    play = NodePlay()
    data = packed(own(1, first), own(2, second), consumer_count=2)
    made = stream(replicas=1, retention="workqueue")
    answer = restore(play.connect("a"), made, data, lambda: play.run(0.1))
    assert answer["error"]["err_code"] == 10100
