"""Archives with many consumers cost each of them once, not once for each other one."""

import sys
from collections import Counter
from functools import cache
from types import FrameType

import pytest

from tests.support.archives import consumer, packed, restore
from tests.support.node_play import NodePlay
from tests.support.stream_requests import stream

MANY = 100


def own(number: int, filter_subject: str) -> bytes:
    """A consumer of an archive with a filter."""
    name = f"C{number}"
    config = {"name": name, "durable_name": name, "ack_policy": "explicit"}
    nothing = {"consumer_seq": 0, "stream_seq": 0}
    state = {"delivered": nothing, "ack_floor": nothing}
    return consumer(name, {**config, "filter_subject": filter_subject}, state)


@cache
def restored(count: int) -> Counter[str]:
    """How many calls of each module's functions the restore of so many consumers takes."""
    play, calls = NodePlay(), Counter[str]()
    client = play.connect("a")
    data = packed(*(own(number, f"s.{number}") for number in range(count)), consumer_count=count)

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            calls[frame.f_code.co_filename] += 1

    made = stream(replicas=1, retention="workqueue")
    before = sys.getprofile()
    sys.setprofile(note)
    try:
        answer = restore(client, made, data, lambda: play.run(0.1))
    finally:
        sys.setprofile(before)
    assert answer["state"]["consumer_count"] == count
    return calls


def calls_of(count: int, module: str) -> int:
    """Those of one module."""
    return sum(n for name, n in restored(count).items() if name.endswith(module))


@pytest.mark.parametrize("module", ["subject/patterns.py", "archives/building.py"])
def test_twice_as_many_consumers_cost_about_twice_as_much(module: str) -> None:
    """Else thousands of them, in one archive, kept the server from all others for minutes."""
    assert 0 < calls_of(2 * MANY, module) < 2.5 * calls_of(MANY, module)


@pytest.mark.parametrize(("first", "second"), [("s.>", "s.1"), ("s.1", "s.*")])
def test_consumers_that_would_share_messages_of_a_work_queue_are_refused(
    first: str, second: str
) -> None:
    play = NodePlay()
    data = packed(own(1, first), own(2, second), consumer_count=2)
    made = stream(replicas=1, retention="workqueue")
    answer = restore(play.connect("a"), made, data, lambda: play.run(0.1))
    assert answer["error"]["err_code"] == 10100
