"""Admission of publishes by a stream's leader."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jsctl.api.errors import api_error
from jsctl.api.stream import StreamConfig, SubjectTransform
from jsctl.api.words import Discard, Retention
from jsctl.broker.jetstream.streams import timers
from jsctl.broker.jetstream.streams.admission import StreamLeader
from jsctl.broker.jetstream.streams.entries import SKIPPED_TO_MAX
from jsctl.broker.jetstream.streams.pub_acks import Acks
from jsctl.broker.jetstream.streams.sequencer import Admitted
from jsctl.broker.store.record import Publish
from tests.support.admission_rig import SECOND
from tests.support.admission_rig import AdmissionRig as Rig
from tests.support.quick import examples


def test_acks_are_what_the_real_server_writes() -> None:
    rig = Rig()
    made = rig.leader.admit([(b"s.a", b"r", b"", b"x", None), (b"s.a", b"", b"", b"", None)], 7)
    assert [*map(list, made.acks)] == [[(b"r", b'{"stream":"S","seq":1}')]]
    headers = b"NATS/1.0\r\nNats-Msg-Id: 1\r\n\r\n"
    again: list[Publish] = [(b"s.a", b"r", headers, b"x", None)] * 2
    made = rig.leader.admit(again, 7)
    assert [*map(list, made.acks)] == [
        [(b"r", b'{"stream":"S","seq":3}'), (b"r", b'{"stream":"S","seq":3,"duplicate": true}')]
    ]
    named = StreamLeader(rig.stream, domain="hub")
    made = named.admit([(b"s.a", b"r", b"", b"x", None)], 7)
    assert [*map(list, made.acks)] == [[(b"r", b'{"stream":"S","seq":1,"domain":"hub"}')]]


def test_sequences_go_on_over_what_is_in_flight() -> None:
    rig = Rig()
    rig.publish((b"s.a", "1"), (b"s.b", "2"))
    rig.publish((b"s.c", "3"))
    assert rig.answers == {}
    rig.settle()
    assert [rig.answers[key]["seq"] for key in ("1", "2", "3")] == [1, 2, 3]
    assert rig.seqs() == [1, 2, 3]


def test_retries_of_an_id_get_the_first_sequence() -> None:
    rig = Rig()
    rig.publish((b"s.a", "1", {"Nats-Msg-Id": "x"}), (b"s.a", "2", {"Nats-Msg-Id": "x"}))
    rig.publish((b"s.a", "3", {"Nats-Msg-Id": "x"}))
    assert rig.answers == {}
    rig.settle()
    assert rig.answers["1"] == {"stream": "S", "seq": 1}
    for key in ("2", "3"):
        assert rig.answers[key] == {"stream": "S", "seq": 1, "duplicate": True}
    rig.publish((b"s.a", "4", {"Nats-Msg-Id": "x"}))
    assert rig.answers["4"]["duplicate"] is True
    rig.now += 120 * SECOND
    assert rig.ask(Msg_Id="x") == {"stream": "S", "seq": 2}


ID_TURNS = st.lists(st.lists(st.sampled_from(["", "a", "b", "c", "d"]), max_size=5), max_size=8)


@settings(max_examples=examples(80))
@given(ID_TURNS, st.sampled_from([0, 1, 120]))
def test_an_id_is_stored_once_however_it_comes(turns: list[list[str]], window_s: int) -> None:
    rig = Rig(duplicate_window=window_s * SECOND)
    stored = 0
    seen: dict[str, int] = {}
    for turn, names in enumerate(turns):
        fields = [{"Nats-Msg-Id": name} if name else {} for name in names]
        rig.publish(*[(b"s.x", f"{turn}.{n}", one) for n, one in enumerate(fields)])
        for n, name in enumerate(names):
            again = bool(window_s and name) and name in seen
            if not again:
                stored += 1
                seen[name] = stored
            answer = {"stream": "S", "seq": seen[name] if again else stored}
            seen[name] = seen[name] if again else stored
            wanted = answer | ({"duplicate": True} if again else {})
            if turn % 2:
                rig.settle()
                assert rig.answers[f"{turn}.{n}"] == wanted
    rig.settle()
    assert rig.stream.store.messages == stored


def test_what_the_log_does_not_take_was_never_admitted() -> None:
    rig = Rig(max_msgs=3, discard=Discard.NEW)
    rig.publish((b"s.a", "1", {"Nats-Msg-Id": "x"}))
    lost = rig.leader.admit([(b"s.a", b"", b"NATS/1.0\r\nNats-Msg-Id: y\r\n\r\n", b"", None)], 1)
    assert lost.entries
    rig.leader.proposed(None)
    rig.settle()
    assert rig.leader.next_seq == 2
    assert rig.ask(Msg_Id="y", Expected_Last_Msg_Id="x") == {"stream": "S", "seq": 2}


@pytest.mark.parametrize(
    ("fields", "outcome"),
    [
        ({"Expected_Stream": "T"}, (10060, "expected stream does not match")),
        ({"Expected_Last_Sequence": 5}, (10071, "wrong last sequence: 2")),
        ({"Expected_Last_Subject_Sequence": 5}, (10071, "wrong last sequence: 1")),
        (
            {
                "Expected_Last_Subject_Sequence": 1,
                "Expected_Last_Subject_Sequence_Subject": "s.*",
            },
            (10071, "wrong last sequence: 2"),
        ),
        (
            {"Expected_Last_Subject_Sequence_Subject": "s.*"},
            (10193, "missing sequence for expected last sequence per subject"),
        ),
        ({"Expected_Last_Msg_Id": "q"}, (10070, "wrong last msg ID: two")),
        ({"Rollup": "sub"}, (10111, "rollup not permitted")),
        ({"TTL": "1s"}, (10166, "per-message TTL is disabled")),
        ({"Batch_Id": "b"}, (10174, "atomic publish is disabled")),
        ({"Incr": "1"}, (10168, "message counters is disabled")),
        ({"Schedule": "@daily"}, (10188, "message schedules is disabled")),
        ({"Stream_Source": "x"}, (10227, "message stream source header is not allowed")),
    ],
)
def test_refusals_by_headers(fields: dict[str, Any], outcome: tuple[int, str]) -> None:
    rig = Rig()
    rig.publish((b"s.a", "1", {"Nats-Msg-Id": "one"}), (b"s.b", "2", {"Nats-Msg-Id": "two"}))
    assert rig.error(**fields) == outcome
    rig.settle()
    assert rig.error(**fields) == outcome


def test_expectations_that_hold() -> None:
    rig = Rig()
    assert rig.ask(Expected_Last_Sequence=0, Expected_Last_Subject_Sequence=0)["seq"] == 1
    rig.publish((b"s.a", "1"), (b"s.b", "2"))
    answer = rig.ask(
        Expected_Stream="S", Expected_Last_Sequence=3, Expected_Last_Subject_Sequence=2
    )
    assert answer == {"stream": "S", "seq": 4}
    assert rig.ask(
        b"s.c", Expected_Last_Subject_Sequence=4, Expected_Last_Subject_Sequence_Subject="s.a"
    ) == {"stream": "S", "seq": 5}


def test_of_two_equal_expectations_in_one_turn_one_wins() -> None:
    rig = Rig()
    wanted = {"Nats-Expected-Last-Subject-Sequence": "0"}
    rig.publish((b"s.a", "1", wanted), (b"s.a", "2", wanted), (b"s.b", "3", wanted))
    rig.publish((b"s.a", "4", wanted))
    rig.settle()
    assert [rig.answers[key]["seq"] for key in "1234"] == [1, 0, 2, 0]


def test_rollups_and_times_to_live_where_allowed() -> None:
    rig = Rig(allow_rollup_hdrs=True, allow_msg_ttl=True)
    rig.publish((b"s.a", ""), (b"s.b", ""))
    assert rig.ask(Rollup="sub")["seq"] == 3
    assert rig.seqs() == [2, 3]
    assert rig.error(Rollup="some")[0] == 10111
    assert rig.error(TTL="soon") == (10165, "invalid per-message TTL")
    assert rig.error(TTL="0.5s") == (10165, "invalid per-message TTL")
    assert rig.ask(b"s.t", TTL="2s")["seq"] == 4
    assert rig.ask(b"s.n", TTL="never")["seq"] == 5
    assert rig.leader.next_due_ns() == rig.now + 2 * SECOND
    rig.now += 2 * SECOND
    rig.propose(rig.leader.expire(rig.now))
    assert rig.leader.next_due_ns() is None
    rig.settle()
    assert rig.seqs() == [2, 3, 5]


@pytest.mark.parametrize(
    ("config", "text"),
    [
        ({"max_msgs": 2}, "maximum messages exceeded"),
        ({"max_bytes": 60}, "maximum bytes exceeded"),
        (
            {"max_msgs_per_subject": 2, "discard_new_per_subject": True},
            "maximum messages per subject exceeded",
        ),
    ],
)
def test_a_full_stream_that_discards_new(config: dict[str, Any], text: str) -> None:
    rig = Rig(discard=Discard.NEW, **config)
    rig.publish((b"s.a", "1"))
    rig.publish((b"s.a", "2"), *[(b"s.a", f"{at}") for at in range(3, 6)])
    errors = [rig.answers[key] for key in rig.answers]
    assert {answer["error"]["description"] for answer in errors} == {text}
    assert {answer["error"]["err_code"] for answer in errors} == {10077}
    rig.settle()
    assert rig.error() == (10077, text)


def test_sizes() -> None:
    rig = Rig(max_msg_size=3)
    assert rig.error() == (10054, "message size exceeds maximum allowed")
    rig = Rig()
    code, text = rig.error(x="y" * (65 << 10))
    assert (code, text) == (10097, "header size exceeds maximum allowed of 64k")


def test_sealed_refusal_and_no_ack() -> None:
    assert Rig(sealed=True).error() == (10109, "invalid operation on sealed stream")
    rig = Rig()
    rig.leader.refuse_all(api_error("JSAccountResourcesExceededErr"))
    assert rig.error()[0] == 10002
    silent = Rig(no_ack=True)
    silent.publish((b"s.a", "1"), (b"s.a", "2", {"Nats-Expected-Stream": "T"}))
    silent.settle()
    assert silent.answers == {}
    assert silent.seqs() == [1]


def test_without_interest_the_sequence_is_used_up() -> None:
    rig = Rig(lambda subject: subject == b"s.a", retention=Retention.INTEREST)
    rig.publish((b"s.b", "1"), (b"s.a", "2"), (b"s.b", "3"))
    rig.settle()
    assert [rig.answers[key]["seq"] for key in "123"] == [1, 2, 3]
    assert rig.seqs() == [2]


def test_subjects_are_transformed_before_they_are_stored() -> None:
    rig = Rig(subject_transform=SubjectTransform(src="s.*", dest="t.{{wildcard(1)}}"))
    assert rig.ask()["seq"] == 1
    record = rig.stream.store.load(1)
    assert record is not None and record.subject == b"t.a"


def test_age_removes_and_leaves_markers() -> None:
    rig = Rig(max_age=10 * SECOND, subject_delete_marker_ttl=5 * SECOND, allow_msg_ttl=True)
    rig.publish((b"s.a", ""), (b"s.a", ""), (b"s.b", ""))
    rig.settle()
    rig.now += 5 * SECOND
    rig.publish((b"s.b", ""))
    rig.settle()
    assert rig.leader.expire(rig.now).entries == []
    rig.now += 5 * SECOND
    assert rig.leader.next_due_ns() == rig.now
    rig.propose(rig.leader.expire(rig.now))
    rig.publish((b"s.c", "c"))
    rig.settle()
    assert rig.seqs() == [4, 5, 6]
    marker = rig.stream.store.load(5)
    assert marker is not None and marker.subject == b"s.a"
    fields = b"Nats-Marker-Reason: MaxAge\r\nNats-TTL: 5s\r\nNats-Rollup: sub\r\n"
    assert marker.headers == b"NATS/1.0\r\n%b\r\n" % fields
    rig.now += 5 * SECOND
    rig.propose(rig.leader.expire(rig.now))
    rig.settle()
    last = rig.stream.store.load(7)
    assert rig.seqs() == [6, 7]
    assert last is not None and last.subject == b"s.b"


def test_age_passes_over_messages_that_never_expire() -> None:
    rig = Rig(max_age=10 * SECOND, allow_msg_ttl=True)
    rig.ask(b"s.n", TTL="never")
    rig.ask(b"s.m", TTL="never")
    assert rig.leader.next_due_ns() is None
    rig.now += SECOND
    rig.publish((b"s.a", ""), (b"s.b", ""))
    rig.settle()
    assert rig.leader.next_due_ns() == rig.now + 10 * SECOND
    rig.now += 10 * SECOND
    rig.propose(rig.leader.expire(rig.now))
    rig.settle()
    assert rig.seqs() == [1, 2]
    assert rig.leader.next_due_ns() is None


@pytest.mark.parametrize("markers", [0, SECOND])
def test_age_passes_over_more_messages_that_never_expire_than_a_round_has(
    markers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timers, "ROUND_MESSAGES_MAX", 4)
    rig = Rig(max_age=10 * SECOND, allow_msg_ttl=True, subject_delete_marker_ttl=markers)
    for _ in range(9):
        rig.ask(b"s.n", TTL="never")
    rig.publish(*[(b"s.a", "")] * 6)
    rig.settle()
    rig.now += 10 * SECOND
    for _ in range(4):
        rig.propose(rig.leader.expire(rig.now))
        rig.settle()
    assert rig.seqs() == [*range(1, 10), *range(16, 17 if markers else 16)]
    assert rig.leader.next_due_ns() == (rig.now + SECOND if markers else None)


def test_ids_are_forgotten_on_a_quiet_stream() -> None:
    rig = Rig()
    rig.publish((b"s.a", "", {"Nats-Msg-Id": "x"}))
    rig.settle()
    due = rig.leader.next_due_ns()
    assert due == rig.now + 120 * SECOND
    rig.propose(rig.leader.expire(due))
    rig.settle()
    assert len(rig.stream.dedupe) == 0
    assert rig.leader.next_due_ns() is None


def test_a_leader_with_a_slow_clock_stores_no_id_twice_within_its_window() -> None:
    """The leader before, with a quick one, had all forget the id."""
    rig = Rig()
    assert rig.ask(Msg_Id="x") == {"stream": "S", "seq": 1}
    over = rig.now + 120 * SECOND
    rig.propose(rig.leader.expire(over))
    rig.settle()
    rig.now = over - SECOND
    rig.lead_anew()
    assert rig.ask(Msg_Id="x") == {"stream": "S", "seq": 2}
    assert [row[1] for row in rig.stream.store.load_range(1, 2)] == [over - 120 * SECOND, over]


def test_large_turns_are_split_into_entries() -> None:
    rig = Rig()
    big: list[Publish] = [(b"s.a", b"", b"", bytes(1 << 20), None)] * 9
    made = rig.leader.admit(big, rig.now)
    assert len(made.entries) == 3
    rig.propose(made)
    rig.settle()
    assert rig.seqs() == list(range(1, 10))


def test_a_new_config_counts_from_when_it_is_applied() -> None:
    rig = Rig()
    config = replace(rig.stream.config, max_msg_size=2)
    rig.propose(Admitted([rig.leader.configure(2, config)], [Acks()]))
    rig.settle()
    assert rig.error()[0] == 10054


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"max_msgs": 2, "discard": Discard.NEW}, 10077),
        ({"max_msg_size": 2}, 10054),
        ({"sealed": True}, 10109),
    ],
)
def test_a_config_in_the_log_counts_for_what_comes_behind_it(
    change: dict[str, Any], code: int
) -> None:
    """Else more would be stored after the update was answered than it allows."""
    rig = Rig()
    rig.publish((b"s.a", "1"), (b"s.a", "2"))
    config = replace(rig.stream.config, **change)
    rig.propose(Admitted([rig.leader.configure(2, config)], [Acks()]))
    rig.leader.configured(2, config)
    rig.publish((b"s.a", "3"))
    assert list(rig.answers) == ["3"] and rig.answers["3"]["error"]["err_code"] == code
    rig.settle()
    assert rig.seqs() == [1, 2]
    assert rig.error()[0] == code
    rig.propose(Admitted([rig.leader.configure(3, StreamConfig(name="S"))], [Acks()]))
    rig.settle()
    assert rig.ask()["seq"] == 3, "what was on its way is applied, and does not count for ever"


def test_entries_with_bounds_made_by_the_leader() -> None:
    rig = Rig()
    rig.publish((b"s.a", ""), (b"s.b", ""), (b"s.a", ""))
    rig.propose(Admitted([rig.leader.purge(b"s.a", 0, 1)], [Acks()]))
    rig.propose(Admitted([rig.leader.delete(2, False)], [Acks()]))
    rig.settle()
    assert rig.seqs() == [3]
    rig.propose(Admitted([rig.leader.remove([3])], [Acks()]))
    rig.settle()
    assert rig.seqs() == []


@pytest.mark.parametrize("pattern", [b"", b">"])
def test_a_purge_beyond_the_last_message_is_where_the_stream_goes_on(pattern: bytes) -> None:
    rig = Rig()
    rig.publish((b"s.a", ""))
    rig.propose(Admitted([rig.leader.purge(pattern, 8, 0)], [Acks()]))
    rig.publish((b"s.a", ""))
    rig.settle()
    assert rig.seqs() == [9]


def test_what_the_log_does_not_take_behind_a_purge_leaves_its_sequences_alone() -> None:
    rig = Rig()
    rig.ask()
    rig.propose(Admitted([rig.leader.purge(b"", 8, 0)], [Acks()]))
    rig.lose(rig.admit((b"s.a", "lost")))
    rig.publish((b"s.a", "taken"))
    rig.settle()
    assert rig.answers["taken"] == {"stream": "S", "seq": 9}
    assert rig.seqs() == [9]


@pytest.mark.parametrize(
    ("pattern", "up_to"), [(b"s.a", 8), (b"", 0), (b"", 1), (b"", SKIPPED_TO_MAX + 1)]
)
def test_other_purges_take_no_sequences(pattern: bytes, up_to: int) -> None:
    rig = Rig()
    rig.publish((b"s.a", ""))
    rig.propose(Admitted([rig.leader.purge(pattern, up_to, 0)], [Acks()]))
    rig.publish((b"s.a", ""))
    rig.settle()
    assert rig.seqs() == [2]


def test_too_much_in_flight_is_refused() -> None:
    rig = Rig()
    rig.leader.admit([(b"s.a", b"", b"", b"", None)] * 100_001, rig.now)
    made = rig.leader.admit([(b"s.a", b"r", b"", b"", None)], rig.now)
    assert json.loads(made.rejects[0][1])["error"]["err_code"] == 10167
