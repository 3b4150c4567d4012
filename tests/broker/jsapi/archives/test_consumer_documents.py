"""Consumers in archives: what waits for a delay, and letters that are on their way."""

import json
from typing import Any

import pytest

from jsctl.api.consumer import ConsumerConfig
from jsctl.backups.s2 import BrokenStream
from jsctl.broker.jetstream.consumers.state import ConsumerState, Death
from jsctl.broker.jsapi.archives.consumer_documents import document_of, parsed

CONFIG = ConsumerConfig(durable_name="C", name="C")


def state() -> ConsumerState:
    made = ConsumerState(acks_needed=True)
    made.start(1, 0, ())
    made.deliver(range(1, 9), 1, 1000)
    made.delay([(2, 5000), (3, 6000)])
    made.ack((1, 3), 2000)
    made.bury(4, Death(3000, 2, False))
    made.bury(5, Death(3001, 1, True, "it is broken"))
    return made


def test_what_waits_and_what_is_dead_comes_back() -> None:
    before = state()
    _, after = parsed("C", document_of(CONFIG, before, 8))
    assert after.dead == before.dead
    assert list(after.delayed) == [2]
    assert after.pending == before.pending
    again = ConsumerState(acks_needed=True)
    again.decode(before.encode())
    assert again.facts() == before.facts()
    _, cut = parsed("C", document_of(CONFIG, before, 4))
    assert list(cut.dead) == [4]


@pytest.mark.parametrize(
    "dead",
    [
        "x",
        [1],
        [[4, 1, 1, True]],
        [[4, 1, 1, 1, ""]],
        [[4, 1, 1, True, 5]],
        [[99, 1, 1, True, ""]],
        [[-4, 1, 1, True, ""]],
        [[6, 1, 1, True, ""]],
    ],
)
def test_what_cannot_be_dead_is_refused(dead: object) -> None:
    document: dict[str, Any] = json.loads(document_of(CONFIG, state(), 8))
    document["state"]["jsctl_dead"] = dead
    with pytest.raises(BrokenStream):
        parsed("C", json.dumps(document).encode())
