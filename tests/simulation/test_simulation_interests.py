"""What the index of interests lets go is what a look at all consumers lets go."""

import pytest

from jsctl.api.words import Retention
from jsctl.broker.assets.replicas.consumed_messages import ConsumedMessages
from tests.simulation.plan import draw_changes, draw_kinds
from tests.simulation.run import failure

DECISIONS_MIN = 100


def _by_a_look_at_all(self: ConsumedMessages, seq: int) -> bool:
    subject = self.stream.store.subject_of(seq)
    if subject is None:
        return False
    watchers = list(self.interests.watchers.values())
    if self.stream.config.retention is Retention.WORK_QUEUE:
        if seq in self.finished.seqs:
            return True  # Another replica knows it, while the consumer's one here is behind.
        watchers = [watcher for watcher in watchers if watcher.interested(subject)]
        if not watchers:
            return False
    return not any(watcher.needs(seq, subject) for watcher in watchers)


def test_what_is_done_with_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    decide, decisions = ConsumedMessages._is_done_with, list[bool]()

    def compared(self: ConsumedMessages, seq: int) -> bool:
        decided = decide(self, seq)
        unknown = self.stream.store.subject_of(seq) is None
        assert unknown or decided == _by_a_look_at_all(self, seq), f"{seq}: {decided}"
        decisions.append(decided)
        return decided

    monkeypatch.setattr(ConsumedMessages, "_is_done_with", compared)
    for plan in (draw_kinds(1, 3), draw_kinds(2, 5), draw_changes(3, 3), draw_changes(4, 5)):
        assert failure(plan) == ""
    assert len(decisions) > DECISIONS_MIN
    assert {*decisions} == {True, False}
