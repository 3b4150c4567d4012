"""Atomic batches at a stream's leader: all of a batch is stored, or nothing of it is."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jsctl.api.words import Discard, Retention
from jsctl.broker.jetstream.batches import atomic
from jsctl.broker.jetstream.batches.atomic import AtomicBatches, Member
from jsctl.broker.jetstream.batches.words import Abandoned, BatchEnd
from jsctl.broker.jetstream.streams.checks import Part
from jsctl.broker.jetstream.streams.publish_room import PublishLimits, PublishRoom
from jsctl.broker.jetstream.streams.sequencer import Admitted
from tests.support.admission_rig import SECOND, AdmissionRig, Fields
from tests.support.quick import examples

Patch = pytest.MonkeyPatch


def part(name: str, seq: int, commit: str = "", **more: str) -> Fields:
    """The headers of a batch's message."""
    made = {"Nats-Batch-Id": name, "Nats-Batch-Sequence": str(seq)}
    if commit:
        made["Nats-Batch-Commit"] = commit
    return made | {f"Nats-{key.replace('_', '-')}": value for key, value in more.items()}


@pytest.fixture
def rig() -> AdmissionRig:
    return AdmissionRig(allow_atomic=True, allow_rollup_hdrs=True)


def send(rig: AdmissionRig, *members: tuple[bytes, dict[str, str]], name: str = "b") -> Any:
    """A batch in one turn; the answer to its commit."""
    last = len(members)
    rig.publish(
        *[
            (subject, str(seq), part(name, seq, "1" if seq == last else "", **more))
            for seq, (subject, more) in enumerate(members, 1)
        ]
    )
    rig.settle()
    return rig.answers.pop(str(last))


def code(answer: dict[str, Any]) -> int:
    found: int = answer["error"]["err_code"]
    return found


def test_a_batch_is_one_entry_with_one_acknowledgement(rig: AdmissionRig) -> None:
    made = rig.admit((b"s.a", "1", part("b", 1)), (b"s.p", "p"), (b"s.b", "2", part("b", 2)))
    assert len(made.entries) == 1 and made.rejects == [(b"1", b""), (b"2", b"")]
    rig.propose(made)
    made = rig.admit((b"s.q", ""), (b"s.c", "3", part("b", 3, "1")), (b"s.r", "r"))
    assert [len([*acks]) for acks in made.acks] == [0, 1, 1]
    assert [*made.acks[1]] == [(b"3", b'{"stream":"S","seq":5,"batch":"b","count":3}')]
    rig.propose(made)
    rig.settle()
    subjects = [rig.stream.store.subject_of(seq) for seq in rig.seqs()]
    assert subjects == [b"s.p", b"s.q", b"s.a", b"s.b", b"s.c", b"s.r"]
    assert (rig.room.atomic, rig.room.staged_bytes) == (0, 0)


def test_an_end_is_not_stored_and_marks_the_last(rig: AdmissionRig) -> None:
    rig.publish((b"s.a", "", part("b", 1)), (b"s.b", "", part("b", 2)))
    rig.publish((b"s.c", "3", part("b", 3, "eob")))
    rig.settle()
    assert rig.answers["3"] == {"stream": "S", "seq": 2, "batch": "b", "count": 2}
    first, last = rig.stream.store.load(1), rig.stream.store.load(2)
    assert first is not None and b"Commit" not in first.headers
    assert last is not None and last.headers.endswith(b"Nats-Batch-Commit: 1\r\n\r\n")


def test_what_is_refused_leaves_no_trace(rig: AdmissionRig) -> None:
    rig.publish((b"s.a", "", {"Nats-Msg-Id": "first"}))
    rig.settle()
    answer = send(rig, (b"s.a", {"Msg_Id": "x"}), (b"s.a", {"Msg_Id": "x"}))
    assert code(answer) == 10201
    assert rig.leader.next_seq == 2 and not rig.leader.in_flight.ids
    assert rig.ask(Expected_Last_Msg_Id="first", Msg_Id="x") == {"stream": "S", "seq": 2}


def test_an_id_that_is_in_flight_is_a_conflict(rig: AdmissionRig) -> None:
    """Whether the first one is stored is not known yet, so that it is no duplicate."""
    rig.publish((b"s.a", "0", {"Nats-Msg-Id": "x"}), (b"s.a", "1", part("b", 1, "1", Msg_Id="x")))
    assert code(rig.answers["1"]) == 10158
    rig.settle()
    assert code(send(rig, (b"s.a", {"Msg_Id": "x"}))) == 10201
    rig.publish((b"s.a", "1", part("b", 1, "1", Msg_Id="y")), (b"s.a", "2", {"Nats-Msg-Id": "y"}))
    rig.settle()
    assert rig.answers["2"] == {"stream": "S", "seq": 2, "duplicate": True}


def test_without_a_window_ids_are_told_apart_within_a_batch_only() -> None:
    rig = AdmissionRig(allow_atomic=True, duplicate_window=0)
    assert send(rig, (b"s.a", {"Msg_Id": "x"}), (b"s.a", {"Msg_Id": "y"}))["seq"] == 2
    assert send(rig, (b"s.a", {"Msg_Id": "x"}))["seq"] == 3
    assert code(send(rig, (b"s.a", {"Msg_Id": "x"}), (b"s.a", {"Msg_Id": "x"}))) == 10201


def test_what_is_in_flight_counts_as_before(rig: AdmissionRig) -> None:
    rig.publish((b"s.a", ""))
    rig.publish((b"s.b", "1", part("b", 1, "1", Expected_Last_Subject_Sequence="0")))
    rig.publish((b"s.a", "2", part("c", 1, "1", Expected_Last_Subject_Sequence="0")))
    rig.publish((b"s.a", "3", part("d", 1, "1", Expected_Last_Subject_Sequence="1")))
    rig.publish((b"s.a", "4", part("e", 1, "1", Expected_Last_Subject_Sequence="x")))
    rig.settle()
    assert [rig.answers[key]["seq"] for key in "123"] == [2, 0, 3]
    assert code(rig.answers["4"]) == 10071, "what is no number is never what is there"


def test_headers_too_long_for_a_record(rig: AdmissionRig) -> None:
    assert code(send(rig, (b"s.a", {"X": "x" * 70_000}))) == 10097


def test_a_full_stream_takes_no_part_of_a_batch() -> None:
    rig = AdmissionRig(allow_atomic=True, discard=Discard.NEW, max_msgs=3)
    rig.publish((b"s.a", ""), (b"s.a", ""))
    answer = send(rig, (b"s.b", {}), (b"s.c", {}))
    assert answer["error"]["description"] == "maximum messages exceeded"
    assert send(rig, (b"s.b", {}))["seq"] == 3


def test_without_interest_sequences_are_used_up() -> None:
    rig = AdmissionRig(
        lambda subject: subject == b"s.a", allow_atomic=True, retention=Retention.INTEREST
    )
    assert send(rig, (b"s.a", {}), (b"s.b", {}), (b"s.a", {}))["seq"] == 3
    assert rig.seqs() == [1, 3]


def test_a_log_that_takes_nothing_has_the_batch_refused(rig: AdmissionRig) -> None:
    rig.publish((b"s.a", "", part("b", 1)))
    rig.lose(rig.admit((b"s.a", "2", part("b", 2, "1", Msg_Id="x"))))
    assert code(rig.answers["2"]) == 10008
    assert rig.leader.next_seq == 1 and not rig.leader.in_flight.ids
    assert code(rig.ask(b"s.a", **_words(part("b", 3, "1")))) == 10176


def _words(fields: Fields) -> dict[str, str]:
    return {key.removeprefix("Nats-").replace("-", "_"): one for key, one in fields.items()}


def test_a_batch_of_which_nothing_comes_is_given_up(rig: AdmissionRig) -> None:
    for name, wait in (("a", 0), ("b", 4), ("c", 3)):
        rig.now += wait * SECOND
        rig.publish((b"s.a", "", part(name, 1)))
    rig.publish((b"s.a", "", part("a", 2)))
    assert rig.leader.next_due_ns() == rig.now + 7 * SECOND
    rig.now += 7 * SECOND
    assert rig.leader.expire(rig.now) == Admitted()
    assert rig.leader.abandoned == [BatchEnd(b"b", Abandoned.TIMEOUT)]
    rig.now += 3 * SECOND - 1
    rig.publish((b"s.a", "c", part("c", 2, "1")), (b"s.a", "b", part("b", 2, "1")))
    assert code(rig.answers["b"]) == 10176
    rig.settle()
    assert rig.answers["c"]["count"] == 2
    rig.now += 1
    rig.publish((b"s.a", "a", part("a", 3, "1")))
    assert code(rig.answers["a"]) == 10176, "late by itself, though nobody looked"
    assert (rig.leader.next_due_ns(), rig.room.atomic) == (None, 0)


def test_another_leader_knows_nothing_of_them(rig: AdmissionRig) -> None:
    rig.lead_anew()
    rig.publish((b"s.a", "", part("b", 1)))
    assert rig.room.atomic == 1 and rig.room.staged_bytes > 0
    rig.leader.end()
    assert rig.room == PublishRoom() and rig.leader.abandoned == []


def test_a_config_that_switches_them_off_ends_them(rig: AdmissionRig) -> None:
    rig.publish((b"s.a", "", part("b", 1)))
    config = replace(rig.stream.config, allow_atomic=False)
    rig.leader.configured(2, config)
    assert rig.room == PublishRoom()
    assert code(rig.ask(b"s.a", **_words(part("b", 2, "1")))) == 10174


def test_what_a_trace_would_be_told(rig: AdmissionRig) -> None:
    headers = b"NATS/1.0\r\nNats-Batch-Id: b\r\nNats-Batch-Sequence: 1\r\n\r\n"
    found = rig.leader.judge((b"s.a", b"", headers, b"", None), rig.now)
    assert isinstance(found, Part) and (found.subject, found.skipped) == (b"s.a", False)
    assert rig.room.atomic == 0


REFUSED: dict[int, list[dict[str, str]]] = {
    10060: [{"Expected_Stream": "X"}],
    10071: [{"Expected_Last_Sequence": "9"}],
    10111: [{}, {"Rollup": "all"}],
    10164: [{}, {"Expected_Last_Sequence": "1"}],
    10165: [{"TTL": "x"}],
    10168: [{"Incr": "1"}],
    10177: [{"Expected_Last_Msg_Id": "x"}],
    10188: [{"Schedule": "@daily"}],
    10193: [{"Expected_Last_Subject_Sequence_Subject": "s.a"}],
    10227: [{"Stream_Source": "S"}],
}


@pytest.mark.parametrize("refusal", REFUSED)
def test_one_message_refuses_all(refusal: int) -> None:
    rig = AdmissionRig(allow_atomic=True, allow_rollup_hdrs=True, allow_msg_ttl=True)
    batch = [(b"s.a", fields) for fields in REFUSED[refusal]]
    assert code(send(rig, *batch)) == refusal
    assert send(rig, (b"s.x", {"TTL": "1h", "Rollup": "sub"}))["seq"] == 1
    assert rig.leader.next_seq == 2


def test_rollups_within_a_batch_and_times_to_live_where_there_are_none(rig: AdmissionRig) -> None:
    again = send(rig, (b"s.a", {}), (b"s.a", {"Rollup": "sub"}))
    assert again["error"]["description"] == "batch rollup sub invalid"
    assert code(send(rig, (b"s.a", {"TTL": "1s"}))) == 10166
    wrong = send(rig, (b"s.a", {}), (b"s.b", {"Expected_Last_Subject_Sequence": "4"}))
    assert wrong["error"]["description"] == "wrong last sequence: 0"
    same = send(rig, (b"s.b", {}), (b"s.b", {"Expected_Last_Subject_Sequence": "0"}))
    assert code(same) == 10164


@pytest.mark.parametrize(
    ("config", "text"),
    [
        ({"max_bytes": 200}, "maximum bytes exceeded"),
        (
            {"max_msgs_per_subject": 1, "discard_new_per_subject": True},
            "maximum messages per subject exceeded",
        ),
    ],
)
def test_limits_of_streams_that_discard_new(config: dict[str, Any], text: str) -> None:
    rig = AdmissionRig(allow_atomic=True, discard=Discard.NEW, **config)
    assert send(rig, (b"s.a", {}), (b"s.a", {}), (b"s.a", {}))["error"]["description"] == text
    assert send(rig, (b"s.a", {}))["seq"] == 1


def test_what_is_no_message_of_a_batch(rig: AdmissionRig) -> None:
    found = [
        ({"Nats-Batch-Id": "b"}, 10175),
        (part("n" * 65, 1), 10179),
        (part("b", 1, "x"), 10200),
        (part("b", 1, Required_Api_Level="x"), 10185),
        (part("b", 1_001), 10199),
        (part("b", 1_001, "eob"), 10176),
    ]
    for fields, refusal in found:
        rig.publish((b"s.a", "1", fields), (b"s.a", "", fields))
        assert code(rig.answers.pop("1")) == refusal
    rig.publish((b"s.a", "1", part("b", 1, Required_Api_Level="2")))
    rig.publish((b"s.a", "", part("b", 2, "1")))
    rig.publish((b"s.a", "", part("b", 1, "1", Expected_Stream="X")))
    rig.settle()
    first = rig.stream.store.load(1)
    assert rig.answers["1"] == {} and first is not None and b"Level" not in first.headers


# Limits


def test_limits_of_a_stream_and_of_a_server() -> None:
    limits = PublishLimits(per_stream_max=2, total_max=3, atomic_messages_max=2, wait_ns=5)
    room = PublishRoom(limits)
    ends: list[BatchEnd] = []
    one, other = AtomicBatches(room, ends), AtomicBatches(room, ends)

    def take(of: AtomicBatches, name: str, seq: int) -> object:
        fields = {key.encode(): value.encode() for key, value in part(name, seq).items()}
        return of.take(Member(b"s.a", b"", b""), fields, 1)

    assert [take(one, name, 1) for name in "ab"] == [None, None]
    assert "10210" in str(take(one, "c", 1))
    assert take(other, "c", 1) is None
    assert "10210" in str(take(other, "d", 1)), "the server has three"
    assert take(one, "a", 2) is None
    assert str(take(one, "a", 3)) == "atomic publish batch is too large: 2 (10199)"
    assert ends == [BatchEnd(b"a", Abandoned.LARGE)]
    assert (len(one), len(other), one.next_due_ns()) == (1, 1, 6)
    one.end()
    other.end()
    assert room == PublishRoom(room.limits)


def test_bytes_are_bounded(monkeypatch: Patch) -> None:
    monkeypatch.setattr(atomic, "BATCH_BYTES_MAX", 600)
    monkeypatch.setattr(atomic, "STAGED_BYTES_MAX", 1_300)
    rig = AdmissionRig(allow_atomic=True)
    for name in ("b", "c"):
        rig.publish(*[(b"s.a", "", part(name, seq)) for seq in (1, 2)])
    assert 1_000 < rig.room.staged_bytes < 1_100
    rig.publish((b"s.a", "1", part("b", 3)), (b"s.a", "2", part("d", 1)))
    assert rig.answers["1"]["error"]["description"].endswith("too large: 600 bytes")
    rig.publish(*[(b"s.a", f"e{seq}", part("e", seq)) for seq in (1, 2, 3)])
    assert [code(rig.answers[f"e{seq}"]) for seq in (2, 3)] == [10210, 10176]
    assert rig.leader.abandoned == [
        BatchEnd(b"b", Abandoned.LARGE),
        BatchEnd(b"e", Abandoned.INCOMPLETE),
    ]
    rig.leader.end()
    assert rig.room == PublishRoom()


# Whatever comes, and in whatever order

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("part"), st.sampled_from("abc"), st.sampled_from("nnnncex")),
        st.tuples(st.just("plain"), st.sampled_from("xy"), st.just("")),
        st.tuples(st.sampled_from(["settle", "lose", "wait"]), st.just(""), st.just("")),
    ),
    max_size=60,
)


class Expected:
    """What should be stored, by rules that fit on a page."""

    def __init__(self) -> None:
        self.open: dict[str, list[str]] = {}
        self.active: dict[str, int] = {}
        self.stored: list[str] = []
        self.count = 0

    def part(self, name: str, how: str, now: int) -> tuple[Fields, str, list[str] | None]:
        """Headers, subject, and what is stored at once; None if it is refused."""
        self.forget(now)
        known = self.open.setdefault(name, [])
        self.count += 1
        subject = f"s.{name}{self.count}"
        seq = len(known) + (2 if how == "x" else 1)
        fields = part(name, seq, {"c": "1", "e": "eob"}.get(how, ""))
        self.active[name] = now
        if how == "x" or (how == "e" and not known):
            del self.open[name]
            return fields, subject, None
        if how != "e":
            known.append(subject)
        return fields, subject, self.open.pop(name) if how in "ce" else []

    def forget(self, now: int) -> None:
        """What waited for ten seconds is gone."""
        for name in [one for one in self.open if self.active[one] + 10 * SECOND <= now]:
            del self.open[name]


def _play(rig: AdmissionRig, steps: list[tuple[str, str, str]]) -> Iterator[tuple[str, bool]]:
    """Plays steps; yields commits with whether they were taken."""
    expected = Expected()
    pending: list[list[str]] = []
    lose = False
    for number, (kind, name, how) in enumerate(steps):
        wanted: list[str] | None
        if kind == "settle":
            rig.settle()
            expected.stored += [one for some in pending for one in some]
            pending.clear()
        elif kind == "wait":
            rig.now += 6 * SECOND
        elif kind == "lose":
            lose = True
        else:
            fields: Fields = {}
            subject, wanted = f"s.{name}", [f"s.{name}"]
            if kind == "part":
                fields, subject, wanted = expected.part(name, how, rig.now)
            made = rig.admit((subject.encode(), str(number), fields))
            assert bool(made.entries) is bool(wanted)
            if lose and made.entries:
                rig.lose(made)
                yield str(number), False
                lose = False
                continue
            rig.propose(made)
            if wanted:
                pending.append(wanted)
            yield str(number), wanted is not None
    rig.settle()
    expected.stored += [one for some in pending for one in some]
    subjects = [rig.stream.store.subject_of(seq) for seq in rig.seqs()]
    assert subjects == [one.encode() for one in expected.stored]
    rig.leader.expire(rig.now)
    expected.forget(rig.now)
    assert rig.room.atomic == len(expected.open)


@settings(max_examples=examples(150))
@given(STEPS)
def test_batches_are_stored_whole_in_the_order_of_their_commits(
    steps: list[tuple[str, str, str]],
) -> None:
    rig = AdmissionRig(allow_atomic=True)
    answers = list(_play(rig, steps))
    for reply, taken in answers:
        assert ("error" not in rig.answers[reply]) is taken
    rig.leader.end()
    assert rig.room == PublishRoom()
