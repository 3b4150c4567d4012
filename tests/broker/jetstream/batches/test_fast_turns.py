"""Turns in which fast batches only go on are taken as a whole, as message by message."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jsctl.broker.jetstream.batches.fast import FastBatches
from tests.support.admission_rig import AdmissionRig
from tests.support.fast_rig import APPEND, END, PING, START, heard, reply_of, send
from tests.support.quick import examples


@pytest.fixture
def rig() -> AdmissionRig:
    return AdmissionRig(allow_batched=True)


TURNS = st.lists(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.sampled_from(["next"] * 12 + ["skip", "ping", "end"])),
        min_size=1,
        max_size=12,
    ),
    max_size=12,
)


@settings(max_examples=examples(150))
@given(TURNS, st.sampled_from(["fail", "ok"]), st.integers(1, 9), st.booleans())
def test_turns_that_only_go_on_are_as_messages_one_by_one(
    turns: list[list[tuple[str, str]]], gaps: str, flow: int, waits: bool
) -> None:
    rigs = [AdmissionRig(allow_batched=True) for _ in range(2)]
    said = []
    for rig, whole in zip(rigs, (True, False), strict=True):
        seqs = dict.fromkeys("abc", 0)
        with pytest.MonkeyPatch.context() as patch:
            if not whole:
                patch.setattr(FastBatches, "take_run", lambda *words: None)
            for turn in turns:
                made = []
                for name, how in turn:
                    if how != "ping":
                        seqs[name] += 2 if how == "skip" else 1
                    seq = max(seqs[name], 1)
                    operation = {"ping": PING, "end": END}.get(how, APPEND if seq > 1 else START)
                    reply = reply_of(seq, operation, name, flow, gaps)
                    made.append((f"s.{name}.{seq}".encode(), reply))
                rig.publish(*made)
                if not waits:
                    rig.settle()
            rig.settle()
        said.append(rig.said)
    assert said[0] == said[1]
    one, other = (rig.stream for rig in rigs)
    assert one.snapshot() == other.snapshot()
    assert one.store.digest() == other.store.digest()


def test_long_turns_are_taken_as_a_whole(rig: AdmissionRig) -> None:
    send(rig, (1, START), flow=600)
    send(rig, (1, START), flow=5, name="c", gaps="ok")
    rig.settle()
    heard(rig)
    messages = [(b"s.a", reply_of(seq, APPEND, flow=600)) for seq in range(2, 700)]
    messages += [(b"s.a", reply_of(seq, APPEND, "c", 5, "ok")) for seq in range(2, 12)]
    made = rig.admit(*messages)
    assert len(made.entries) == 1 and not made.rejects
    rig.propose(made)
    rig.settle()
    assert heard(rig) == [("flow", 500, 250), ("flow", 3, 4), ("flow", 7, 5)]
    assert {name: mark.seq for name, mark in rig.stream.batches.items()} == {b"b": 699, b"c": 11}
    rig.payload = bytes(1 << 20)
    made = rig.admit(*[(b"s.a", reply_of(seq, APPEND, flow=600)) for seq in range(700, 709)])
    assert len(made.entries) > 1, "what is too large for one entry goes message by message"
    rig.propose(made)
    rig.payload = b""
    send(rig, (709, APPEND), (711, APPEND), flow=600)
    rig.settle()
    assert heard(rig) == [("gap", 710, 711), ("done", 720, 709)]
