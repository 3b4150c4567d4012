"""Fast batches at a stream's leader: what is told is so, whatever the log takes and who leads."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jsctl.broker.jetstream.batches.fast_replies import FastOperation
from jsctl.broker.jetstream.streams.batch_marks import BatchMark, decode_marks, encode_marks
from jsctl.broker.jetstream.streams.publish_room import PublishLimits, PublishRoom
from jsctl.broker.jetstream.streams.stream import Stream
from jsctl.broker.store.memory_store import MemoryStore
from tests.support.admission_rig import SECOND, AdmissionRig
from tests.support.fast_rig import (
    APPEND,
    COMMIT,
    END,
    PING,
    START,
    brief,
    heard,
    reply_of,
    send,
)
from tests.support.quick import examples


@pytest.fixture
def rig() -> AdmissionRig:
    return AdmissionRig(allow_batched=True, num_replicas=3)


# Marks

MARKS = st.dictionaries(
    st.binary(max_size=64),
    st.none()
    | st.builds(
        BatchMark,
        st.integers(0, (1 << 64) - 2),
        st.integers(0, 1 << 40),
        st.integers(-(1 << 60), 1 << 60),
        st.integers(0, 65535),
        st.booleans(),
        st.binary(max_size=300),
    ),
    max_size=5,
)


@given(MARKS, st.binary(max_size=9))
def test_marks_are_read_as_they_were_written(
    marks: dict[bytes, BatchMark | None], before: bytes
) -> None:
    data = before + encode_marks(marks) + b"behind"
    found, end = decode_marks(data, len(before))
    assert (found, data[end:]) == (marks, b"behind")


def test_states_of_older_versions_are_taken(rig: AdmissionRig) -> None:
    send(rig, (1, START))
    rig.settle()
    assert set(rig.stream.batches) == {b"b"}
    data = bytearray(rig.stream.snapshot()[:-12])
    end = len(encode_marks(rig.stream.batches))
    data[0] = 3
    older = Stream("A", rig.stream.config, 5, MemoryStore())
    older.restore(bytes(data))
    assert older.batches == rig.stream.batches and older.schedules is None
    data[0] = 2
    older.restore(bytes(data[:-end]))
    assert older.batches == {} and older.applied == rig.stream.applied
    data[0] = 1
    older.restore(bytes(data[: -end - 4]))
    assert older.positions == {} and older.batches == {}


# One batch


def test_what_is_stored_is_told_when_it_is(rig: AdmissionRig) -> None:
    send(rig, (1, START), *[(seq, APPEND) for seq in range(2, 25)])
    assert heard(rig) == [("flow", 0, 10)]
    rig.settle()
    assert heard(rig) == [("flow", 10, 10), ("flow", 20, 10)]
    send(rig, (25, COMMIT))
    assert heard(rig) == []
    rig.settle()
    assert heard(rig) == [("done", 25, 25)] and rig.stream.batches == {}
    send(rig, (26, APPEND))
    assert heard(rig) == [("refused", 10208)]
    assert rig.room.fast == 0


def test_an_end_waits_for_what_is_in_flight(rig: AdmissionRig) -> None:
    send(rig, (1, START), flow=1)
    send(rig, (2, APPEND), flow=1)
    send(rig, (3, END), flow=1)
    assert heard(rig) == [("flow", 0, 1)]
    send(rig, (4, APPEND), (4, PING), flow=1)
    assert heard(rig) == [("flow", 0, 1)], "nothing is taken; pings tell what is certain"
    rig.settle()
    assert heard(rig) == [("flow", 1, 1), ("flow", 2, 1), ("done", 2, 2)]
    assert set(rig.stream.batches) == {b"b"}, "its end is in no entry"
    send(rig, (1, COMMIT), name="c")
    rig.settle()
    assert rig.stream.batches == {}


@pytest.mark.parametrize("end", [COMMIT, END])
@pytest.mark.parametrize("behind", [(5, APPEND), (4, APPEND), (5, PING), (5, COMMIT), (1, START)])
def test_one_replica_refuses_what_is_right_behind_the_end(
    end: FastOperation, behind: tuple[int, FastOperation]
) -> None:
    rig = AdmissionRig(allow_batched=True)
    send(rig, (1, START), (2, APPEND), (3, APPEND), (4, end), behind)
    rig.settle()
    assert [one[0] for one in heard(rig)[-2:]] == ["done", "refused"]
    assert rig.stream.store.messages == 4 - (end is END)


def test_gaps_end_a_batch_or_not(rig: AdmissionRig) -> None:
    send(rig, (1, START), (3, APPEND), (4, APPEND))
    assert heard(rig) == [("flow", 0, 10), ("gap", 2, 3)]
    rig.settle()
    assert heard(rig) == [("done", 1, 1)]
    send(rig, (1, START), (3, APPEND), (9, END), name="c", gaps="ok")
    rig.settle()
    assert heard(rig) == [("flow", 0, 10), ("gap", 2, 3), ("gap", 4, 9), ("done", 3, 8)]


def test_errors_end_a_batch_or_not(rig: AdmissionRig) -> None:
    wrong = {"Nats-Expected-Stream": "X"}
    send(rig, (1, START))
    send(rig, (2, APPEND), (3, APPEND), fields=wrong)
    rig.settle()
    assert heard(rig) == [("flow", 0, 10), ("err", 2, 10060), ("done", 1, 1)]
    send(rig, (1, START), (2, APPEND), (3, COMMIT), gaps="ok", name="c", fields=wrong)
    assert heard(rig) == [
        ("flow", 0, 10),
        *[("err", seq, 10060) for seq in (1, 2, 3)],
        ("done", 0, 2),
    ]
    send(rig, (1, START), (2, APPEND), gaps="ok", flow=2, name="e", fields=wrong)
    assert heard(rig) == [("flow", 0, 2), ("err", 1, 10060), ("err", 2, 10060), ("flow", 2, 2)]
    send(rig, (3, END), gaps="ok", flow=2, name="e")
    heard(rig)
    send(rig, (1, START), name="d", fields=wrong)
    assert heard(rig) == [("flow", 0, 10), ("refused", 10060)]
    assert rig.room.fast == 0


def test_known_messages_are_counted_and_not_stored(rig: AdmissionRig) -> None:
    known = {"Nats-Msg-Id": "i"}
    send(rig, (1, START), *[(seq, APPEND) for seq in (2, 3, 4)], flow=2, fields=known)
    assert heard(rig) == [("flow", 0, 2)]
    rig.settle()
    assert heard(rig) == [("flow", 2, 2), ("flow", 4, 2)]
    send(rig, (5, APPEND), (6, APPEND), flow=2, fields=known)
    assert heard(rig) == [("flow", 6, 2)]
    send(rig, (7, COMMIT), flow=2, fields=known)
    assert heard(rig) == [("done", 1, 7)]
    send(rig, (1, COMMIT), name="c", fields=known)
    assert rig.said[-1][1] == {
        "stream": "S",
        "seq": 1,
        "duplicate": True,
        "batch": "c",
        "count": 1,
    }
    heard(rig)
    rig.publish((b"s.a", "", {"Nats-Msg-Id": "j"}))
    send(rig, (1, COMMIT), name="d", fields={"Nats-Msg-Id": "j"})
    assert heard(rig) == []
    rig.settle()
    assert heard(rig) == [("done", 2, 1)], "told with the first one"


def test_a_ping_of_what_is_in_flight(rig: AdmissionRig) -> None:
    send(rig, (1, START), flow=1, gaps="ok")
    rig.settle()
    send(rig, (2, APPEND), flow=1, gaps="ok")
    heard(rig)
    send(rig, (9, PING), flow=1, gaps="ok")
    assert heard(rig) == [("gap", 3, 10), ("flow", 1, 1)], "the second one is not certain"
    rig.settle()
    assert heard(rig) == [("flow", 2, 1)]
    send(rig, (10, APPEND), (11, END), flow=1, gaps="ok")
    rig.settle()
    assert heard(rig) == [("flow", 10, 1), ("done", 3, 10)]
    send(rig, (1, START), flow=1, name="c")
    send(rig, (2, PING), flow=1, name="c")
    assert heard(rig) == [("flow", 0, 1), ("gap", 2, 3), ("flow", 0, 1)]
    rig.settle()
    assert heard(rig) == [("flow", 1, 1), ("done", 4, 1)]


def test_what_the_log_does_not_take_is_missing(rig: AdmissionRig) -> None:
    send(rig, (1, START), (2, APPEND), flow=2)
    for last in (APPEND, COMMIT):
        replies = reply_of(3, APPEND, flow=2), reply_of(4, last, flow=2)
        rig.lose(rig.admit(*[(b"s.a", reply) for reply in replies]))
    heard(rig)
    send(rig, (4, PING), flow=2)
    rig.settle()
    assert heard(rig) == [("gap", 3, 5), ("flow", 0, 2), ("flow", 2, 2), ("done", 2, 2)]
    rig.lose(rig.admit((b"s.a", reply_of(1, COMMIT))))
    assert heard(rig) == []
    send(rig, (1, COMMIT))
    rig.settle()
    assert heard(rig) == [("done", 3, 1)]


def test_large_entries_are_split(rig: AdmissionRig) -> None:
    rig.payload = bytes(3 << 20)
    replies = [reply_of(seq, START if seq == 1 else APPEND, flow=3) for seq in range(1, 6)]
    made = rig.admit(*[(b"s.a", reply) for reply in replies])
    assert len(made.entries) == 3
    rig.propose(made)
    rig.settle()
    assert heard(rig) == [("flow", 0, 3), ("flow", 3, 3)]
    assert rig.stream.batches[b"b"].seq == 5


def test_several_share_the_flow(rig: AdmissionRig) -> None:
    send(rig, (1, START), flow=600)
    assert heard(rig) == [("flow", 0, 500)]
    for number in range(1, 250):
        send(rig, (1, START), name=f"n{number}")
    rig.settle()
    heard(rig)
    send(rig, *[(seq, APPEND) for seq in range(2, 502)], flow=600)
    rig.settle()
    assert heard(rig) == [("flow", 500, 250)]
    send(rig, *[(seq, APPEND) for seq in range(502, 760)], flow=600)
    rig.settle()
    assert heard(rig) == [("flow", 750, 125)]


def test_limits_and_silence() -> None:
    rig = AdmissionRig(allow_batched=True)
    rig.room.limits = PublishLimits(per_stream_max=2, total_max=3, wait_ns=SECOND)
    for name in "abc":
        send(rig, (1, START), name=name)
    assert heard(rig)[-1] == ("refused", 10211)
    rig.settle()
    assert rig.leader.next_due_ns() == rig.now + SECOND
    rig.now += SECOND // 2
    send(rig, (2, APPEND), name="a")
    rig.now += SECOND // 2
    rig.propose(rig.leader.expire(rig.now))
    assert rig.room.fast == 1
    heard(rig)
    send(rig, (2, APPEND), name="b")
    send(rig, (3, APPEND), name="a")
    assert heard(rig) == [("refused", 10208)]
    rig.settle()
    assert set(rig.stream.batches) == {b"a"}
    rig.now += 2 * SECOND
    rig.propose(rig.leader.expire(rig.now))
    assert rig.room.fast == 0
    room = PublishRoom(PublishLimits(total_max=3), fast=3)
    assert not room.has_fast(0)


def test_one_that_ends_and_is_not_stored_for_long(rig: AdmissionRig) -> None:
    send(rig, (1, START))
    send(rig, (2, END))
    rig.now += 10 * SECOND
    rig.propose(rig.leader.expire(rig.now))
    assert rig.room.fast == 0
    rig.settle()
    assert heard(rig) == [("flow", 0, 10), ("done", 1, 1)]
    send(rig, (1, COMMIT), name="c")
    rig.settle()
    assert rig.stream.batches == {}


def test_levels_and_batches_of_the_other_kind(rig: AdmissionRig) -> None:
    send(rig, (1, START), fields={"Nats-Required-Api-Level": "2", "Nats-Batch-Id": "x"})
    send(rig, (2, APPEND), fields={"Nats-Required-Api-Level": "200"})
    rig.settle()
    assert heard(rig) == [("flow", 0, 10), ("refused", 10185)]
    found = rig.stream.store.load(1)
    assert found is not None and found.headers == b"NATS/1.0\r\nNats-Batch-Id: x\r\n\r\n"


def test_too_long_names(rig: AdmissionRig) -> None:
    send(rig, (1, START), name="n" * 65)
    rig.publish((b"s.a", "what.$FI"))
    assert heard(rig) == [("refused", 10207), ("refused", 10206)]


def test_what_a_trace_would_be_told(rig: AdmissionRig) -> None:
    headers = b"NATS/1.0\r\nNats-Batch-Id: x\r\n\r\n"
    item = (b"s.a", reply_of(1, START).encode(), headers, b"", None)
    assert type(rig.leader.judge(item, rig.now)).__name__ == "Taken"


@pytest.mark.parametrize(
    ("config", "code"),
    [({"sealed": True}, 10109), ({"max_msg_size": 2}, 10054), ({"allow_batched": False}, 10205)],
)
def test_refused_whatever_they_say(config: dict[str, Any], code: int) -> None:
    rig = AdmissionRig(**{"allow_batched": True, **config})
    for reply in (reply_of(1, START), "x.$FI"):
        rig.publish((b"s.a", reply))
    assert heard(rig) == [("refused", code)] * 2
    rig = AdmissionRig(allow_batched=True, no_ack=True)
    send(rig, (2, APPEND), (1, START))
    rig.settle()
    assert heard(rig) == []


def test_a_config_that_switches_them_off_ends_them(rig: AdmissionRig) -> None:
    send(rig, (1, START))
    rig.settle()
    rig.leader.configured(2, replace(rig.stream.config, allow_batched=False))
    assert rig.room.fast == 0 and rig.leader.next_due_ns() is None
    heard(rig)
    send(rig, (2, APPEND))
    assert heard(rig) == [("refused", 10205)]


# Who leads next


def test_a_new_leader_goes_on(rig: AdmissionRig) -> None:
    send(rig, (1, START), (2, APPEND), (3, APPEND), flow=2, gaps="ok")
    send(rig, (1, START), name="c", flow=4)
    rig.settle()
    heard(rig)
    rig.now += 5 * SECOND
    rig.lead_anew()
    assert heard(rig) == [("flow", 3, 2), ("flow", 1, 1)]
    send(rig, (5, APPEND), (6, COMMIT), flow=2, gaps="ok")
    send(rig, (2, COMMIT), name="c", flow=4)
    rig.settle()
    assert heard(rig) == [("gap", 4, 5), ("flow", 5, 2), ("done", 6, 6), ("done", 7, 2)]
    assert rig.stream.batches == {}


def test_a_new_leader_forgets_what_is_old(rig: AdmissionRig) -> None:
    send(rig, (1, START))
    rig.settle()
    rig.now += 10 * SECOND
    heard(rig)
    rig.lead_anew()
    send(rig, (2, APPEND))
    assert heard(rig) == [("refused", 10208)]
    send(rig, (1, COMMIT), name="c")
    rig.settle()
    assert rig.stream.batches == {}
    send(rig, (1, START), name="d")
    rig.settle()
    rig.room.limits = PublishLimits(total_max=1)
    rig.room.fast += 1
    heard(rig)
    rig.lead_anew()
    send(rig, (2, APPEND), name="d")
    assert heard(rig) == [("refused", 10208)], "others have taken the room"


# Whatever comes

KINDS = ["next", "next", "next", "skip", "ping", "end", "commit", "twice"]
STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(KINDS), st.sampled_from("ab")),
        st.tuples(st.sampled_from(["settle", "lose", "lead", "plain"]), st.just("")),
    ),
    max_size=50,
)


class Publisher:
    """A client that counts; what it was told is compared with what is stored."""

    def __init__(self, rig: AdmissionRig, name: str, gaps: str) -> None:
        self.rig, self.name, self.gaps = rig, name, gaps
        self.round = 0
        self.seq = 0

    @property
    def id(self) -> str:
        return f"{self.name}{self.round}"

    def message(self, how: str) -> tuple[bytes, str]:
        """The next message; a batch begins where there is none."""
        if how == "ping":
            return b"s.ping", self.reply(max(self.seq, 1), PING)
        step = {"skip": 2, "twice": 0}.get(how, 1)
        self.seq = max(self.seq + step, 1)
        if self.seq == 1:
            operation = COMMIT if how == "commit" else START
        else:
            operation = {"end": END, "commit": COMMIT}.get(how, APPEND)
        return f"s.{self.id}.{self.seq}".encode(), self.reply(self.seq, operation)

    def reply(self, seq: int, operation: FastOperation) -> str:
        return reply_of(seq, operation, self.id, 2, self.gaps)


def stored(rig: AdmissionRig, name: str) -> list[int]:
    """The places of a batch's messages, in the stream's order."""
    subjects = [rig.stream.store.subject_of(seq) or b"" for seq in rig.seqs()]
    words = [one.decode().split(".") for one in subjects]
    return [int(one[2]) for one in words if one[1] == name]


def last_of(rig: AdmissionRig, name: str) -> int:
    """The stream's sequence of the last message of a batch."""
    start = f"s.{name}.".encode()
    return max(
        [seq for seq in rig.seqs() if (rig.stream.store.subject_of(seq) or b"").startswith(start)],
        default=0,
    )


@settings(max_examples=examples(200))
@given(STEPS, st.sampled_from(["fail", "ok"]))
def test_what_is_told_is_so(steps: Sequence[tuple[str, str]], gaps: str) -> None:
    rig = AdmissionRig(allow_batched=True)
    publishers = {name: Publisher(rig, name, gaps) for name in "ab"}
    lose = False
    for how, name in [*steps, ("settle", "")]:
        if how == "settle":
            rig.settle()
        elif how == "lead":
            rig.settle()
            rig.lead_anew()
        elif how == "lose":
            lose = True
        else:
            message = publishers[name].message(how) if name else (b"s.plain.1", "r")
            made = rig.admit(message)
            if lose and made.entries:
                rig.lose(made)
                lose = False
            else:
                rig.propose(made)
        hear(rig, publishers, gaps)
    marks = {name.decode(): mark for name, mark in rig.stream.batches.items()}
    for name, mark in marks.items():
        assert stored(rig, name)[-1] == mark.seq


def hear(rig: AdmissionRig, publishers: dict[str, Publisher], gaps: str) -> None:
    """Nothing is told that is not so; who is told of an end begins anew."""
    said, rig.said = rig.said, []
    for reply, document in said:
        if not reply.endswith("$FI"):
            continue
        told, name = brief(document), reply.split(".")[2]
        there = stored(rig, name)
        if gaps == "fail":
            assert there == list(range(1, len(there) + 1)), "in order, and without gaps"
        if told[0] == "flow" and gaps == "fail":
            assert told[1] <= len(there)
        if told[0] == "done":
            assert told[1] == last_of(rig, name)
            assert gaps == "ok" or told[2] == len(there)
        if told[0] in ("done", "refused"):
            owner = publishers[name[0]]
            if owner.id == name:
                owner.round += 1
                owner.seq = 0
