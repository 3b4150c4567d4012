"""Counters: totals at the leader, whatever is in flight, refused, lost or removed meanwhile."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jsctl.broker.errors import Damaged
from jsctl.broker.jetstream.streams import counters
from jsctl.broker.jetstream.streams.pub_acks import Acks
from jsctl.broker.jetstream.streams.publish_room import PublishLimits
from jsctl.broker.jetstream.streams.sequencer import Admitted, Arrived
from jsctl.broker.store.record import Publish, Record
from tests.support.admission_rig import AdmissionRig
from tests.support.quick import examples

Patch = pytest.MonkeyPatch


@pytest.fixture
def rig() -> AdmissionRig:
    made = AdmissionRig(allow_msg_counter=True)
    made.payload = b""
    return made


def body(rig: AdmissionRig, seq: int) -> Any:
    """What a message holds, and its headers."""
    found = rig.stream.store.load(seq)
    assert found is not None
    return json.loads(found.payload)["val"], found.headers


def source(
    rig: AdmissionRig, seq: int, total: str, subject: str = "s.a", incr: str = "1", name: str = "O"
) -> str:
    """A message of another stream; why it is not taken."""
    headers = f"NATS/1.0\r\nNats-Incr: {incr}\r\n"
    headers += f"Nats-Stream-Source: {name} {seq} > > o.{subject} id\r\n\r\n"
    payload = b'{"val":"%b"}' % total.encode()
    arrived: Arrived = (seq, rig.now, subject.encode(), headers.encode(), payload, "id", False)
    made, _, error = rig.leader.admit_sourced("O", [arrived], rig.now)
    rig.propose(made)
    rig.settle()
    return "" if error is None else str(error.err_code)


def test_totals_over_what_is_in_flight(rig: AdmissionRig) -> None:
    rig.publish(*[(b"s.a", str(n), {"Nats-Incr": str(n)}) for n in range(1, 4)])
    rig.publish((b"s.a", "4", {"Nats-Incr": "-7"}), (b"s.b", "5", {"Nats-Incr": "5"}))
    rig.settle()
    assert [rig.answers[str(n)]["val"] for n in range(1, 6)] == ["1", "3", "6", "-1", "5"]
    rig.publish((b"s.a", "6", {"Nats-Incr": "1"}))
    rig.settle()
    assert body(rig, 6) == ("0", b"NATS/1.0\r\nNats-Incr: 1\r\n\r\n")


def test_what_the_log_does_not_take_does_not_count(rig: AdmissionRig) -> None:
    assert rig.ask(Incr=5)["val"] == "5"
    rig.lose(rig.admit((b"s.a", "x", {"Nats-Incr": "100"})))
    rig.lose(rig.admit((b"s.b", "x", {"Nats-Incr": "100"})))
    assert rig.ask(b"s.b", Incr=1)["val"] == "1"
    assert rig.ask(Incr=1)["val"] == "6"


def test_another_leader_reads_what_is_stored(rig: AdmissionRig) -> None:
    for number in (5, 6):
        rig.ask(Incr=number)
    rig.lead_anew()
    assert rig.ask(Incr=1)["val"] == "12"
    headers = {"Nats-Incr": "1", "Nats-Counter-Sources": '{"O":{"x":"4"},"P":null}'}
    rig.publish((b"s.a", "", headers))
    rig.settle()
    for leader in ("the same", "another"):
        if leader == "another":
            rig.lead_anew()
        rig.ask(Incr=1)
        head = body(rig, rig.stream.store.last_seq)[1]
        assert head.endswith(b'Nats-Counter-Sources: {"O":{"x":"4"},"P":{}}\r\n\r\n')


@pytest.mark.parametrize("told", ["x", "[1]", '{"O":1}', '{"O":{"x":1}}'])
def test_what_is_broken_is_broken_for_every_leader(rig: AdmissionRig, told: str) -> None:
    rig.publish((b"s.a", "", {"Nats-Incr": "1", "Nats-Counter-Sources": told}))
    assert rig.error(Incr=1) == (10172, "message counter is broken")
    rig.lead_anew()
    assert rig.error(Incr=1)[0] == 10172


@pytest.mark.parametrize(
    ("payload", "total"),
    [
        (b'{"val": "5", "more": 1}', "6"),
        (b'{"val":"+5"}', "6"),
        (b"5", None),
        (b"", None),
        (b'{"val":5}', None),
        (b'{"val":"5.5"}', None),
        (b'{"val":"\xff"}', None),
        (b"{}", None),
    ],
)
def test_bodies_of_others(rig: AdmissionRig, payload: bytes, total: str | None) -> None:
    found = counters._read(Record(1, 1, b"s.a", b"", payload))
    if total is None:
        assert "10172" in repr(found) or "broken" in str(found)
    else:
        assert isinstance(found, counters.Total) and found.value + 1 == int(total)
    assert "broken" in str(counters._read(None))


def test_a_damaged_total_is_waited_for_or_lost(rig: AdmissionRig, monkeypatch: Patch) -> None:
    rig.ask(Incr=1)
    asked: list[int] = []

    def needs(seq: int) -> bool:
        asked.append(seq)
        return len(asked) == 1

    rig.lead_anew(needs)

    def load(seq: int) -> Record | None:
        raise Damaged("cut", path="x", first_seq=seq, last_seq=seq)

    with monkeypatch.context() as patch:
        patch.setattr(rig.stream.store, "load", load)
        assert [rig.error(Incr=1)[0] for _ in range(2)] == [10008, 10172]
    assert asked == [1, 1]
    assert rig.ask(Incr=1)["val"] == "2"


def test_totals_at_hand_are_bounded(rig: AdmissionRig, monkeypatch: Patch) -> None:
    monkeypatch.setattr(counters, "TOTALS_KEPT_MAX", 3)
    for turn in range(1, 4):
        for number in range(6):
            rig.publish((f"s.{number}".encode(), "r", {"Nats-Incr": "2"}))
        rig.settle()
        assert rig.answers["r"]["val"] == str(2 * turn)


def test_a_trace_changes_nothing(rig: AdmissionRig) -> None:
    headers = b"NATS/1.0\r\nNats-Incr: 5\r\n\r\n"
    for _ in range(2):
        rig.leader.judge((b"s.a", b"", headers, b"", None), rig.now)
    assert rig.ask(Incr=1)["val"] == "1"


def test_what_is_refused(rig: AdmissionRig) -> None:
    for name, value in (("Rollup", "sub"), ("Expected_Last_Sequence", "0")):
        assert rig.error(**{"Incr": "1", name: value}) == (  # type: ignore[arg-type]
            10171,
            "message counter increment is invalid",
        )
    assert rig.error(Incr="one")[0] == 10171
    rig.publish((b"s.b", "one", {"Nats-Incr": "1"}), (b"s.b", "none", {"Key": "value"}))
    assert rig.answers["none"]["error"]["err_code"] == 10169
    assert rig.error(Other=1)[0] == 10169
    rig.payload = b"x"
    assert rig.error(Incr=1) == (10170, "message counter has payload")
    rig.publish((b"s.a", "plain"))
    assert rig.answers["plain"]["error"]["err_code"] == 10169
    rig.payload = b""
    rig.settle()
    rig.room.limits = PublishLimits(payload_bytes_max=50)
    assert rig.error(Incr="1" * 40)[0] == 10054
    assert rig.ask(Incr="1")["val"] == "1"


def test_batches_of_increments() -> None:
    rig = AdmissionRig(allow_msg_counter=True, allow_atomic=True, max_msg_size=105)
    rig.payload = b""

    def batch(*increments: str) -> Any:
        for seq, increment in enumerate(increments, 1):
            fields = {"Nats-Batch-Id": "b", "Nats-Batch-Sequence": str(seq)}
            fields |= {"Nats-Incr": increment} if increment else {}
            fields |= {"Nats-Batch-Commit": "1"} if seq == len(increments) else {}
            rig.publish((b"s.a", str(seq), fields))
        rig.settle()
        return rig.answers[str(len(increments))]

    rig.ask(Incr=1)
    rig.answers.clear()
    assert batch("2", "3")["count"] == 2
    assert [body(rig, seq)[0] for seq in (1, 2, 3)] == ["1", "3", "6"]
    assert batch("2", "")["error"]["err_code"] == 10169
    assert batch("2", "x")["error"]["err_code"] == 10171
    assert rig.ask(Incr=10**9)["val"] == "1000000006"
    assert batch("1", "1")["error"]["err_code"] == 10054
    assert rig.ask(Incr=1)["val"] == "1000000007"


def test_one_that_is_refused_behind_others_of_its_turn(rig: AdmissionRig) -> None:
    rig.propose(
        Admitted([rig.leader.configure(2, replace(rig.stream.config, max_msg_size=60))], [Acks()])
    )
    rig.settle()
    numbers = ["5", "1" * 60, "6"]
    rig.publish(*[(b"s.a", one, {"Nats-Incr": one}) for one in numbers])
    rig.settle()
    assert rig.answers[numbers[1]]["error"]["err_code"] == 10054
    assert rig.answers["6"]["val"] == "11"


# Sources


def test_differences_are_added(rig: AdmissionRig) -> None:
    assert [source(rig, seq, total) for seq, total in ((3, "10"), (4, "7"))] == ["", ""]
    assert rig.ask(Incr=1)["val"] == "8"
    assert source(rig, 9, "20", incr="1") == ""
    total, headers = body(rig, 4)
    assert total == "21" and b"Nats-Incr: 13\r\n" in headers
    assert b'Nats-Counter-Sources: {"O":{"o.s.a":"20"}}\r\n' in headers
    assert source(rig, 1, "5", name="P") == ""
    total, headers = body(rig, 5)
    assert total == "26"
    assert b'Nats-Counter-Sources: {"O":{"o.s.a":"20"},"P":{"o.s.a":"5"}}\r\n' in headers
    assert source(rig, 2, "6", name="O") == ""
    assert body(rig, 6)[0] == "12"


def test_old_headers_of_sources(rig: AdmissionRig) -> None:
    headers = b"NATS/1.0\r\nNats-Incr: 1\r\nNats-Stream-Source: O 5\r\n\r\n"
    arrived: Arrived = (5, 1, b"s.a", headers, b'{"val":"4"}', "", False)
    rig.propose(rig.leader.admit_sourced("O", [arrived], rig.now)[0])
    rig.settle()
    assert b'{"O":{"s.a":"4"}}' in body(rig, 1)[1]


def test_what_is_no_counter_is_not_taken(rig: AdmissionRig) -> None:
    assert source(rig, 1, "x") == "10172"
    assert source(rig, 1, "1", incr="x") == "10171"
    assert source(rig, 1, "1", incr="") == "10169"
    rig.publish((b"s.a", "", {"Nats-Incr": "1", "Nats-Counter-Sources": '{"O":{"o.s.a":"?"}}'}))
    assert source(rig, 2, "5") == ""
    assert body(rig, 2)[0] == "6", "what cannot be read was nothing"


# Whatever comes

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.sampled_from("ab"), st.integers(-(10**40), 10**40)),
        st.tuples(st.sampled_from(["settle", "lose", "lead", "purge"]), st.just("a"), st.just(0)),
    ),
    max_size=40,
)


@settings(max_examples=examples(120))
@given(STEPS)
def test_totals_are_sums(steps: list[tuple[str, str, int]]) -> None:
    rig = AdmissionRig(allow_msg_counter=True)
    rig.payload = b""
    sums, wanted = {"a": 0, "b": 0}, dict[str, str]()
    lose = False
    for number, (kind, subject, value) in enumerate(steps):
        if kind == "lead":
            rig.settle()
            rig.lead_anew()
        elif kind == "purge":
            rig.settle()
            rig.propose(Admitted([rig.leader.purge(b"s.a", 0, 0)], [Acks()]))
            rig.settle()
            sums["a"] = 0
        elif kind == "settle":
            rig.settle()
        elif kind == "lose":
            lose = True
        else:
            reply = str(number)
            made = rig.admit((f"s.{subject}".encode(), reply, {"Nats-Incr": str(value)}))
            if lose:
                rig.lose(made)
                lose = False
                continue
            rig.propose(made)
            sums[subject] += value
            wanted[reply] = str(sums[subject])
    rig.settle()
    assert {reply: rig.answers[reply]["val"] for reply in wanted} == wanted


# Together

INCREMENTS = st.sampled_from(
    ["1", "+1", "-1", " 7", "007", "-0", "9" * 18, "9" * 19, "x", "", "1 ", "\t1"]
)
PUBLISHES = st.tuples(
    st.sampled_from([b"s.a", b"s.b", b"s.c"]),
    st.sampled_from([b"r", b"r", b"", b"_I.$FI.x"]),
    st.sampled_from(["Nats-Incr"] * 9 + ["nats-incr", "Nats-Expected-Stream"]),
    INCREMENTS,
    st.sampled_from([b""] * 9 + [b"x"]),
)
BATCHES = st.lists(
    st.one_of(
        st.lists(PUBLISHES, max_size=5),
        st.lists(PUBLISHES.filter(lambda one: one[3] in {"1", "-1", " 7"}), max_size=8),
        st.sampled_from(["settle", "lose", "purge"]),
    ),
    max_size=8,
)


@settings(max_examples=examples(150))
@given(BATCHES, st.sampled_from([{}, {"max_msg_size": 60}, {"no_ack": True}]))
def test_increments_are_taken_together_as_one_by_one(
    batches: list[Any], config: dict[str, Any]
) -> None:
    fast, slow = (AdmissionRig(allow_msg_counter=True, **config) for _ in range(2))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(slow.leader._checks, "together", lambda *_: [])
        lose = False
        for batch in batches:
            if batch == "lose":
                lose = True
                continue
            made: list[Admitted] = []
            for rig in (fast, slow):
                if isinstance(batch, str):
                    rig.settle()
                    if batch == "purge":
                        made.append(Admitted([rig.leader.purge(b"s.a", 0, 0)], [Acks()]))
                        rig.propose(made[-1])
                        rig.settle()
                    continue
                publishes = [
                    (subject, reply, f"NATS/1.0\r\n{name}:{value}\r\n\r\n".encode(), body, None)
                    for subject, reply, name, value, body in batch
                ]
                made.append(rig.leader.admit(list(publishes), rig.now))
                (rig.lose if lose else rig.propose)(made[-1])
            lose = lose and isinstance(batch, str)
            assert len({tuple(one.entries) for one in made}) <= 1
            told = [[[*acks] for acks in one.acks] for one in made]
            assert not made or told[0] == told[1]
            assert fast.said == slow.said
        for rig in (fast, slow):
            rig.settle()
    assert fast.said == slow.said
    assert fast.stream.store.digest() == slow.stream.store.digest()


def test_plain_increments_are_taken_together(rig: AdmissionRig) -> None:
    head = b"NATS/1.0\r\nNats-Incr: 2\r\n\r\n"
    batch: list[Publish] = [(b"s.%d" % (n % 2), b"r", head, b"", None) for n in range(5)]
    found = rig.leader._checks.together(batch, 1)
    assert [one[3] for one in found] == [b"2", b"2", b"4", b"4", b"6"]
    rig.propose(rig.leader.admit(batch, rig.now))
    rig.settle()
    assert [answer["val"] for _, answer in rig.said] == ["2", "2", "4", "4", "6"]
    assert body(rig, 5) == ("6", head)
