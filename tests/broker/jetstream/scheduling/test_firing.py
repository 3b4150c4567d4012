"""Schedules at a stream's leader: what is made when, whatever is on its way or goes wrong."""

import random
from collections.abc import Callable
from dataclasses import replace
from time import perf_counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jsctl.api.codec import dumps
from jsctl.broker.errors import Damaged
from jsctl.broker.jetstream.scheduling.firing import ROUND_MESSAGES_MAX
from jsctl.broker.jetstream.scheduling.schedules import ScheduledMessage, Schedules
from jsctl.broker.jetstream.streams.entries import Config, encode_config
from jsctl.broker.jetstream.streams.pub_acks import Acks
from jsctl.broker.jetstream.streams.stream import Stream
from jsctl.broker.protocol import headers as blocks
from jsctl.broker.store.memory_store import MemoryStore
from jsctl.broker.store.record import Record
from tests.support.admission_rig import SECOND, AdmissionRig
from tests.support.quick import examples

Patch = pytest.MonkeyPatch


def rig_of(**config: Any) -> AdmissionRig:
    """A stream that has schedules."""
    return AdmissionRig(allow_msg_schedules=True, allow_rollup_hdrs=True, **config)


@pytest.fixture
def rig() -> AdmissionRig:
    return rig_of()


def plan(rig: AdmissionRig, subject: str, text: str, target: str = "s.out", **more: str) -> Any:
    """Publish a schedule; the answer."""
    return rig.ask(subject.encode(), Schedule=text, Schedule_Target=target, **more)


def once(rig: AdmissionRig, after_s: int) -> str:
    """A schedule that is due after some seconds."""
    minutes, seconds = divmod(rig.now // SECOND + after_s, 60)
    assert minutes < 60
    return f"@at 1970-01-01T00:{minutes:02}:{seconds:02}Z"


def fire(rig: AdmissionRig, seconds: float = 0) -> int:
    """Let time pass; how many entries that makes, all of which are applied."""
    rig.now += int(seconds * SECOND)
    made = rig.leader.expire(rig.now)
    rig.propose(made)
    rig.settle()
    return len(made.entries)


def held(rig: AdmissionRig) -> dict[str, list[int]]:
    """Subject -> sequences."""
    found: dict[str, list[int]] = {}
    for seq, _, subject, _, _ in rig.stream.store.load_range(1, 10_000):
        found.setdefault(subject.decode(), []).append(seq)
    return found


def header(rig: AdmissionRig, seq: int, name: str) -> str:
    """A header of a message."""
    found = rig.stream.store.load(seq)
    assert found is not None
    return (blocks.get(found.headers, name.encode()) or b"").decode()


def begin_schedules(rig: AdmissionRig) -> None:
    """The stream begins to have schedules; those that it holds are not known yet."""
    config = replace(rig.stream.config, allow_msg_schedules=True)
    rig.leader.configured(1, config)
    rig.waiting.append((encode_config(1, dumps(config)), Acks()))
    rig.settle()


def test_once(rig: AdmissionRig) -> None:
    assert plan(rig, "s.a", once(rig, 5))["seq"] == 1
    assert rig.leader.next_due_ns() == rig.now + 5 * SECOND
    assert fire(rig, 4.9) == 0 and held(rig) == {"s.a": [1]}
    assert fire(rig, 0.1) == 1 and held(rig) == {"s.out": [2]}
    assert header(rig, 2, "Nats-Schedule-Next") == "purge"
    assert not rig.stream.schedules
    assert fire(rig, 100) == 0


def test_what_was_missed_is_made_once(rig: AdmissionRig) -> None:
    plan(rig, "s.a", "@every 10s")
    rig.lead_anew()
    assert fire(rig, 1_000) == 1 and fire(rig) == 0
    assert header(rig, 2, "Nats-Schedule-Next") == "1970-01-01T00:33:30Z"
    assert fire(rig, 9) == 0 and fire(rig, 1) == 1
    assert held(rig) == {"s.a": [1], "s.out": [2, 3]}


def test_a_round_is_in_flight_once(rig: AdmissionRig) -> None:
    plan(rig, "s.a", "@every 1s")
    rig.now += SECOND
    made = rig.leader.expire(rig.now)
    assert len(made.entries) == 1
    rig.propose(made)
    assert rig.leader.expire(rig.now + 10 * SECOND).entries == []
    rig.settle()
    assert fire(rig, 10) == 1


def test_what_the_log_does_not_take_is_made_later(rig: AdmissionRig) -> None:
    plan(rig, "s.a", once(rig, 1))
    rig.now += SECOND
    rig.lose(rig.leader.expire(rig.now))
    assert held(rig) == {"s.a": [1]}
    end = {"Nats-Schedule-Next": "purge", "Nats-Scheduler": "s.a"}
    rig.lose(rig.admit((b"s.end", "", end)))
    assert fire(rig) == 1 and held(rig) == {"s.out": [2]}


def test_a_leader_that_is_deposed_made_nothing_that_is_not_applied(rig: AdmissionRig) -> None:
    plan(rig, "s.a", once(rig, 1))
    rig.now += SECOND
    rig.leader.expire(rig.now)
    rig.lead_anew()
    assert fire(rig) == 1 and fire(rig, 10) == 0
    assert held(rig) == {"s.out": [2]}


ENDS: dict[str, tuple[bytes, dict[str, str]]] = {
    "another schedule": (b"s.a", {"Nats-Schedule": "@yearly", "Nats-Schedule-Target": "s.x"}),
    "a message": (b"s.a", {}),
    "its end": (b"s.end", {"Nats-Schedule-Next": "purge", "Nats-Scheduler": "s.a"}),
}


@pytest.mark.parametrize("case", ENDS)
def test_it_waits_for_what_is_on_its_way(rig: AdmissionRig, case: str) -> None:
    plan(rig, "s.a", once(rig, 1))
    rig.now += SECOND
    subject, headers = ENDS[case]
    rig.publish((subject, "", headers))
    assert rig.leader.expire(rig.now).entries == []
    due_ns = rig.leader.next_due_ns()
    assert due_ns is not None and due_ns > rig.now, "no turn is spent on it"
    rig.settle()
    assert fire(rig, 1) == 0 and "s.out" not in held(rig)


@pytest.mark.parametrize("what", ["purge", "delete", "remove"])
def test_it_waits_for_its_removal(rig: AdmissionRig, what: str) -> None:
    log: list[bytes] = []
    plan(rig, "s.a", once(rig, 1))
    rig.lead_anew(unapplied=lambda: log)
    rig.now += SECOND
    entries: dict[str, Callable[[], bytes]] = {
        "purge": lambda: rig.leader.purge(b"s.a", 0, 0),
        "delete": lambda: rig.leader.delete(1, True),
        "remove": lambda: rig.leader.remove([1]),
    }
    log.append(entries[what]())
    assert rig.leader.expire(rig.now).entries == []
    rig.waiting.append((log.pop(), Acks()))
    rig.settle()
    assert fire(rig, 1) == 0 and held(rig) == {}


def test_one_on_its_way_is_gone_for_whoever_expects_it(rig: AdmissionRig) -> None:
    plan(rig, "s.a", once(rig, 1))
    rig.now += SECOND
    rig.propose(rig.leader.expire(rig.now))
    end = {"Nats-Schedule-Next": "purge", "Nats-Scheduler": "s.a"}
    once_only = {
        "Nats-Expected-Last-Subject-Sequence": "1",
        "Nats-Expected-Last-Subject-Sequence-Subject": "s.a",
    }
    rig.publish((b"s.end", "x", {**end, **once_only}))
    assert rig.answers["x"]["error"]["err_code"] == 10071
    rig.settle()
    assert held(rig) == {"s.out": [2]}


def test_two_ends_are_one(rig: AdmissionRig) -> None:
    plan(rig, "s.a", "@yearly")
    end = {"Nats-Schedule-Next": "purge", "Nats-Scheduler": "s.a"}
    end["Nats-Expected-Last-Subject-Sequence"] = "1"
    end["Nats-Expected-Last-Subject-Sequence-Subject"] = "s.a"
    rig.publish((b"s.end", "1", end), (b"s.end", "2", end))
    rig.settle()
    assert rig.answers["2"]["error"]["err_code"] == 10071
    assert held(rig) == {"s.end": [2]} and not rig.stream.schedules


def test_all_that_is_due_comes_in_portions(rig: AdmissionRig) -> None:
    count = 2 * ROUND_MESSAGES_MAX + 5
    headers = {"Nats-Schedule": once(rig, 1), "Nats-Schedule-Target": "s.out"}
    rig.publish(*[(b"s.a.%d" % number, "", headers) for number in range(count)])
    rig.settle()
    assert fire(rig, 1) == 1 and len(held(rig)["s.out"]) == ROUND_MESSAGES_MAX
    assert fire(rig) == fire(rig) == 1 and len(held(rig)["s.out"]) == count
    assert fire(rig) == 0


def test_its_own_end_comes_first() -> None:
    rig = rig_of(allow_msg_ttl=True)
    plan(rig, "s.a", once(rig, 3), TTL="2s")
    plan(rig, "s.b", once(rig, 3), TTL="3s")
    fire(rig, 3)
    assert held(rig) == {}
    rig = rig_of(max_age=2 * SECOND, duplicate_window=SECOND)
    plan(rig, "s.a", once(rig, 3))
    fire(rig, 3)
    fire(rig)
    assert held(rig) == {}


def test_no_interest_ends_it() -> None:
    wanted = {b"s.a", b"s.b"}
    rig = AdmissionRig(
        wanted.__contains__,
        allow_msg_schedules=True,
        allow_rollup_hdrs=True,
        retention=type(rig_of().stream.config.retention)("interest"),
    )
    plan(rig, "s.a", once(rig, 1))
    plan(rig, "s.b", "@every 1s")
    fire(rig, 1)
    assert held(rig) == {"s.b": [2]}
    assert rig.stream.schedules is not None and len(rig.stream.schedules) == 1


def test_what_the_stream_does_not_take_is_not_made() -> None:
    rig = rig_of(max_msg_size=130)
    rig.payload = b""
    for subject, text in ((b"s.a", once(rig, 1)), (b"s.b", "@every 1s")):
        rig.payload = b"x" * 20
        answer = plan(rig, subject.decode(), text)
        assert "error" not in answer, answer
    rig.payload = b"x" * 120
    assert rig.ask(b"s.big")["seq"] == 3
    rig.payload = b""
    assert "error" not in plan(rig, "s.c", once(rig, 1), Schedule_Source="s.big")
    assert fire(rig, 1) == 1 and fire(rig) == 0
    assert rig.stream.schedules is not None and len(rig.stream.schedules) == 1


def test_a_clock_that_steps(rig: AdmissionRig) -> None:
    plan(rig, "s.a", once(rig, 100))
    plan(rig, "s.b", "@every 10s", "s.often")
    rig.now += 1_000 * SECOND
    rig.ask(b"s.x")
    rig.now -= 1_000 * SECOND
    # Messages are not older than those before them, but nothing is due that is not.
    assert fire(rig, 5) == 0
    assert fire(rig, 5) == 1 and "s.out" not in held(rig)
    assert fire(rig, 100) == 1 and "s.out" in held(rig)


def test_damage_is_waited_for_or_given_up(rig: AdmissionRig, monkeypatch: Patch) -> None:
    plan(rig, "s.a", once(rig, 1))
    wanted: list[int] = []

    def needs(seq: int) -> bool:
        wanted.append(seq)
        return len(wanted) < 2

    rig.lead_anew(needs)
    load, broken = rig.stream.store.load, {1}

    def damaged(seq: int) -> Record | None:
        if seq in broken:
            raise Damaged("damaged", path="x")
        return load(seq)

    monkeypatch.setattr(rig.stream.store, "load", damaged)
    assert fire(rig, 1) == 0 and wanted == [1]
    due_ns = rig.leader.next_due_ns()
    assert due_ns is not None and due_ns > rig.now
    assert fire(rig, 1) == 1 and not rig.stream.schedules
    broken.clear()
    assert held(rig) == {"s.a": [1]}


def test_a_damaged_source(rig: AdmissionRig, monkeypatch: Patch) -> None:
    rig.payload = b"source"
    rig.ask(b"s.src")
    rig.payload = b"own"
    plan(rig, "s.a", "@every 1s", Schedule_Source="s.src")
    waits = [True]
    rig.lead_anew(needs=lambda seq: waits[0])
    load = rig.stream.store.load

    def damaged(seq: int) -> Record | None:
        if seq == 1:
            raise Damaged("damaged", path="x")
        return load(seq)

    monkeypatch.setattr(rig.stream.store, "load", damaged)
    assert fire(rig, 1) == 0
    waits[0] = False
    assert fire(rig, 1) == 1
    found = load(3)
    assert found is not None and found.payload == b"own"


def test_schedules_that_were_stored_before_are_found() -> None:
    rig = AdmissionRig(allow_rollup_hdrs=True)
    headers = b"NATS/1.0\r\nNats-Schedule: %b\r\nNats-Schedule-Target: s.out\r\n\r\n"
    arrived = [
        (seq, rig.now, b"s.%d" % (seq % 1_500), headers % once(rig, 50).encode(), b"", "id", False)
        for seq in range(1, 2_501)
    ]
    made, _, error = rig.leader.admit_sourced("O", arrived, rig.now)
    assert error is None
    rig.propose(made)
    rig.settle()
    assert fire(rig, 60) == 0
    begin_schedules(rig)
    assert rig.leader.next_due_ns() is not None
    for _ in range(12):
        fire(rig)
    assert not rig.stream.schedules and len(held(rig)["s.out"]) == 1_500


def test_a_source_whose_headers_are_no_block(rig: AdmissionRig) -> None:
    rig.propose(rig.leader.admit([(b"s.src", b"r", b"X", b"source", None)], rig.now))
    rig.settle()
    plan(rig, "s.a", "@every 1s", Schedule_Source="s.src")
    assert fire(rig, 1) == 1
    found = rig.stream.store.load(3)
    assert found is not None and found.payload == b"source"
    assert header(rig, 3, "Nats-Scheduler") == "s.a"


def test_looking_for_schedules_costs_nothing_where_no_message_is() -> None:
    rig = AdmissionRig(allow_rollup_hdrs=True)
    headers = b"NATS/1.0\r\nNats-Schedule: %b\r\nNats-Schedule-Target: s.out\r\n\r\n"
    arrived = [
        (seq, rig.now, b"s.%d" % seq, headers % once(rig, 50).encode(), b"", "id", False)
        for seq in (1, 10**9, 10**12)
    ]
    made, _, _ = rig.leader.admit_sourced("", arrived, rig.now)
    rig.propose(made)
    rig.settle()
    begin_schedules(rig)
    assert fire(rig) == 1 and rig.stream.schedules is not None
    assert not rig.stream.schedules.scan and len(rig.stream.schedules) == 3


def test_a_stream_made_later_stands_where_the_first_one_does() -> None:
    """One that begins with the newest config applies what was before it."""
    config = rig_of().stream.config
    old = replace(config, allow_msg_schedules=False)
    streams = [Stream("A", one, 5, MemoryStore()) for one in (config, old)]
    for stream in streams:
        for index, one in enumerate((old, config), 1):
            stream.apply(index, Config(index, dumps(one)))
    assert streams[0].snapshot() == streams[1].snapshot()
    assert streams[0].schedules is not None and streams[0].schedules.scan == 1


def test_a_hundred_thousand_of_them_cost_nothing_while_none_is_due(rig: AdmissionRig) -> None:
    assert rig.stream.schedules is not None
    for seq in range(1, 100_001):
        rig.stream.schedules.set(seq, b"s.%d" % seq, rig.now + 10**15 + seq)
    began = perf_counter()
    for _ in range(10_000):
        assert rig.leader.next_due_ns()
    assert perf_counter() - began < 1
    began = perf_counter()
    data = rig.stream.snapshot()
    again = Stream("A", rig.stream.config, 5, MemoryStore())
    again.restore(data)
    assert perf_counter() - began < 5
    assert again.snapshot() == data


# The state


OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(["set", "move", "drop", "forget", "trim", "due"]), st.integers(0, 30)
    ),
    max_size=120,
)


@given(OPERATIONS)
@settings(max_examples=examples(200), deadline=None)
def test_what_is_due_is_what_a_list_says(operations: list[tuple[str, int]]) -> None:
    state, model, seq = Schedules(), dict[int, tuple[int, bytes]](), 0
    for number, (name, value) in enumerate(operations):
        subject = b"%d" % (value % 7)
        if name == "set":
            seq += 1
            state.set(seq, subject, value + 1)
            model = {one: row for one, row in model.items() if row[1] != subject}
            model[seq] = value + 1, subject
        elif name == "move":
            state.move(value, number + 1)
            if value in model:
                model[value] = number + 1, model[value][1]
        elif name == "drop":
            state.drop(subject)
            model = {one: row for one, row in model.items() if row[1] != subject}
        elif name == "forget":
            state.forget((value, value + 1))
            model = {one: row for one, row in model.items() if one not in (value, value + 1)}
        elif name == "trim":
            state.trim(value)
            model = {one: row for one, row in model.items() if one >= value}
        due = sorted(
            ScheduledMessage(one, row[1], row[0]) for one, row in model.items() if row[0] <= value
        )
        assert sorted(state.due(value, 100)) == due
        assert state.next_due_ns() == min((row[0] for row in model.values()), default=None)
        assert len(state) == len(model)
    again = Schedules()
    assert again.restore(state.snapshot(), 0) == len(state.snapshot())
    assert again.snapshot() == state.snapshot()


def test_what_is_out_of_date_is_not_kept() -> None:
    state, rng = Schedules(), random.Random(1)
    for seq in range(1, 20_001):
        state.set(seq, b"%d" % (seq % 10), rng.randrange(1, 10**9))
        state.move(seq, rng.randrange(1, 10**9))
    assert len(state) == 10 and len(state._heap) < 200 and len(state._order) < 200
