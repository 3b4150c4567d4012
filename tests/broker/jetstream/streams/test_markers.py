"""Markers in the place of what time removes: what they need is read a little at a time."""

import pytest

from jsctl.broker.jetstream.streams import timers
from jsctl.broker.store.record import Record
from tests.support.admission_rig import SECOND, AdmissionRig

SIZE = 1 << 20
COUNT = 24


@pytest.mark.parametrize("by_age", [True, False])
def test_large_messages_that_are_over_are_not_all_read_at_once(
    by_age: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    age = 10 * SECOND if by_age else 0
    rig = AdmissionRig(max_age=age, allow_msg_ttl=True, subject_delete_marker_ttl=60 * SECOND)
    rig.payload = bytes(SIZE)
    for number in range(COUNT):
        rig.ask(b"s.%d" % number, **({} if by_age else {"TTL": "60s"}))
    load, seen = rig.stream.store.load, list[int]()

    def noted(seq: int) -> Record | None:
        seen.append(seq)
        return load(seq)

    rig.now += 70 * SECOND
    monkeypatch.setattr(rig.stream.store, "load", noted)
    for _ in range(COUNT):
        before = len(seen)
        rig.propose(rig.leader.expire(rig.now))
        rig.settle()
        assert len(seen) - before <= timers.ROUND_BYTES_AIMED // SIZE
    assert rig.seqs() == list(range(COUNT + 1, 2 * COUNT + 1)), "markers alone"
