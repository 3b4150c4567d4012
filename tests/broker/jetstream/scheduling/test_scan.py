"""Schedules that were stored where nobody looked at them: they are sought a little at a time."""

import pytest

from jsctl.broker.errors import Damaged
from jsctl.broker.jetstream.scheduling.firing import ROUND_BYTES_AIMED
from jsctl.broker.store.record import Record
from tests.broker.jetstream.scheduling.test_firing import begin_schedules, fire, held, once
from tests.support.admission_rig import AdmissionRig

SIZE = 1 << 20
COUNT = 12


def begun() -> AdmissionRig:
    """Large messages, each of which is a schedule; the stream begins to have them."""
    rig = AdmissionRig(allow_rollup_hdrs=True)
    headers = b"NATS/1.0\r\nNats-Schedule: %b\r\nNats-Schedule-Target: s.out\r\n\r\n"
    plan = headers % once(rig, 50).encode()
    for seq in range(1, COUNT + 1):
        arrived = [(seq, rig.now, b"s.%d" % seq, plan, bytes(SIZE), "id", False)]
        made, _, error = rig.leader.admit_sourced("O", arrived, rig.now)
        assert error is None
        rig.propose(made)
        rig.settle()
    begin_schedules(rig)
    return rig


def test_large_messages_are_not_all_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    rig, seen = begun(), list[int]()
    load = rig.stream.store.load

    def noted(seq: int) -> Record | None:
        seen.append(seq)
        return load(seq)

    monkeypatch.setattr(rig.stream.store, "load", noted)
    while rig.stream.schedules is not None and rig.stream.schedules.scan:
        before = len(seen)
        assert fire(rig) == 1
        assert len(seen) - before <= ROUND_BYTES_AIMED // SIZE + 1
    assert seen == list(range(1, COUNT + 1))


def test_one_that_is_damaged_here_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = begun()
    load, lost = rig.stream.store.load, [2]

    def damaged(seq: int) -> Record | None:
        if seq in lost:
            raise Damaged("a message", path="x", first_seq=seq, last_seq=seq)
        return load(seq)

    monkeypatch.setattr(rig.stream.store, "load", damaged)
    waits = rig.leader._due_schedules()
    monkeypatch.setattr(waits, "_needs", lambda seq: True)
    for _ in range(20):
        fire(rig)
    lost.clear()
    for _ in range(20):
        fire(rig, 3)
    assert len(held(rig)["s.out"]) == COUNT
