"""Dead letters of a leading consumer, by hand: when they are sent, and what answers say."""

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jsctl.api.consumer import ConsumerConfig
from jsctl.api.words import AckPolicy
from jsctl.broker.errors import Damaged
from jsctl.broker.jetstream.consumers import dead_letters
from jsctl.broker.jetstream.consumers.consumer import DEAD_LETTERS_KEY, Consumer, config_entry
from jsctl.broker.jetstream.consumers.dead_letters import RETRY_NS, SENT_MAX
from jsctl.broker.jetstream.consumers.facts import ConsumerTurn
from jsctl.broker.jetstream.consumers.leader import ConsumerLeader
from jsctl.broker.jetstream.consumers.state import ConsumerState, Death
from jsctl.broker.protocol.deliveries import Item
from jsctl.broker.store.frame import frame_of
from jsctl.broker.store.memory_store import MemoryStore
from jsctl.broker.store.record import Record
from tests.support.quick import examples

Patch = pytest.MonkeyPatch
SECOND = 10**9


class Rig:
    """A consumer whose log takes everything, and which delivered all that is stored."""

    def __init__(self, count: int, to: str = "dlq") -> None:
        config = ConsumerConfig(
            name="C",
            ack_policy=AckPolicy.EXPLICIT,
            ack_wait=1_000 * SECOND,
            max_deliver=1,
            max_waiting=512,
            metadata={DEAD_LETTERS_KEY: to} if to else {},
        )
        self.now = 1_000 * SECOND
        self.index = 0
        self.store = MemoryStore()
        rows = [
            (seq, self.now, b"s.a", b"NATS/1.0\r\nA: b\r\n\r\n", b"x")
            for seq in range(1, count + 1)
        ]
        self.store.append(frame_of(rows), 1)
        self.consumer = Consumer("S", "C", config)
        self.lead()
        body = json.dumps({"batch": count, "expires": 60 * SECOND}).encode()
        self.settle(self.turn(pulls=[(b"", b"in", b"", body, None)]))

    def lead(self) -> None:
        """Another leader, which knows what is committed."""
        self.leader = ConsumerLeader(
            self.consumer,
            self.store,
            replicated=True,
            has_interest=lambda subject: True,
            jitter=lambda n: 0,
            new_id=lambda: "ID",
            now_ns=self.now,
        )
        self.leader.open_letters(b"_INBOX.secret")

    def turn(self, **given: object) -> ConsumerTurn:
        """One turn."""
        return self.leader.turn(self.now, **given)  # type: ignore[arg-type]

    def settle(self, made: ConsumerTurn) -> None:
        """The log has it, and it is applied."""
        if made.entry is not None:
            self.index += 1
            self.consumer.apply(self.index, made.entry)
            self.leader.committed(made.ticket)

    def terminate(self, *seqs: int, text: bytes = b"") -> None:
        """A client never wants them again."""
        acks = [
            (b"$JS.ACK.S.C.1.%d.%d.0.0" % (seq, seq), b"", b"", b"+TERM" + text, None)
            for seq in seqs
        ]
        made = self.turn(acks=acks)
        assert not made.letters, "nothing is committed yet"
        self.settle(made)

    def letters(self) -> list[Item]:
        """What is sent now."""
        made = self.turn()
        self.settle(made)
        return [one for one in made.letters if isinstance(one, tuple)]

    def answer(self, seq: int, payload: bytes = b'{"stream":"D","seq":1}') -> None:
        """Somebody says that it is stored, or not."""
        said = (b"_INBOX.secret.%d" % seq, b"", b"", payload, None)
        self.settle(self.turn(stored=[said]))


def test_a_letter_is_sent_until_it_is_stored() -> None:
    rig = Rig(3)
    rig.terminate(2, text=b" be\r\ncause")
    (letter,) = rig.letters()
    death = rig.consumer.state.dead[2]
    assert letter[0] == b"dlq.S.C.2.%d" % death.time_ns and letter[1] == b"_INBOX.secret.2"
    assert b"\r\nDead-Letter-Text: be  cause\r\n" in letter[2] and letter[3] == b"x"
    assert rig.letters() == []
    rig.now += RETRY_NS
    assert rig.letters() == [letter]
    rig.lead()
    assert rig.letters() == [letter], "the same from whoever leads"
    assert rig.consumer.needs(2, b"s.a")
    rig.answer(2)
    assert not rig.consumer.state.dead and not rig.consumer.needs(2, b"s.a")
    rig.now += RETRY_NS
    assert rig.letters() == []


ANSWERS: dict[str, tuple[bytes, bool]] = {
    "stored": (b'{"stream":"D","seq":7}', True),
    "a duplicate": (b'{"stream":"D","seq":7,"duplicate":true}', True),
    "there before": (b'{"error":{"code":400,"err_code":10071,"description":"x"},"seq":0}', True),
    "full": (b'{"error":{"code":503,"err_code":10077,"description":"x"},"seq":0}', False),
    "nothing": (b"", False),
    "no document": (b"[1]", False),
    "no sequence": (b'{"stream":"D"}', False),
    "an odd error": (b'{"error":7,"seq":1}', False),
}


@pytest.mark.parametrize("case", ANSWERS)
def test_answers(case: str) -> None:
    payload, stored = ANSWERS[case]
    rig = Rig(1)
    rig.terminate(1)
    rig.letters()
    rig.answer(1, payload)
    assert bool(rig.consumer.state.dead) is not stored
    rig.settle(rig.turn(stored=[(b"_INBOX.secret.x", b"", b"", payload, None)]))
    rig.answer(5, payload)


def test_what_was_delivered_often_enough() -> None:
    rig = Rig(3)
    rig.now += 1_001 * SECOND
    rig.settle(rig.turn())
    assert {one.terminated for one in rig.consumer.state.dead.values()} == {False}
    assert len(rig.letters()) == 3
    assert not rig.consumer.state.pending and rig.consumer.state.floor_stream == 3


def test_so_many_are_under_way() -> None:
    rig = Rig(SENT_MAX + 10)
    rig.terminate(*range(1, SENT_MAX + 11))
    assert len(rig.letters()) == SENT_MAX and rig.letters() == []
    rig.answer(1)
    assert len(rig.letters()) + 1 >= 1
    rig.now += RETRY_NS
    assert len(rig.letters()) == SENT_MAX


def test_letters_that_nobody_takes_leave_room_for_others() -> None:
    rig = Rig(SENT_MAX + 10)
    rig.terminate(*range(1, SENT_MAX + 11))
    first = rig.letters()
    rig.now += RETRY_NS
    sent = {letter[1] for letter in (*first, *rig.letters())}
    assert len(sent) == SENT_MAX + 10


def test_letters_that_are_not_wanted_any_more_are_waited_for_by_nobody() -> None:
    rig = Rig(1)
    rig.terminate(1)
    assert len(rig.letters()) == 1
    wanted = rig.consumer.config
    rig.consumer.apply(9, config_entry(replace(wanted, metadata={})))
    rig.now += 2 * RETRY_NS
    made = rig.turn()
    assert not made.letters and (made.next_due_ns or rig.now + 1) > rig.now
    rig.consumer.apply(10, config_entry(wanted))
    assert len(rig.letters()) == 1


def test_so_many_may_wait(monkeypatch: Patch) -> None:
    monkeypatch.setattr(dead_letters, "DEAD_MAX", 2)
    rig = Rig(4)
    rig.terminate(1, 2, 3)
    assert set(rig.consumer.state.dead) == {1, 2}
    assert set(rig.consumer.state.pending) == {4}


@pytest.mark.parametrize("gone", [True, False])
def test_a_message_that_cannot_be_read(gone: bool, monkeypatch: Patch) -> None:
    rig = Rig(2)
    rig.terminate(1)
    if gone:
        rig.store.remove((1,), 2)
    else:
        monkeypatch.setattr(rig.store, "load", _damaged)
    assert rig.letters() == []
    assert (not rig.consumer.state.dead) is gone


def _damaged(seq: int) -> Record | None:
    raise Damaged("damaged", path="x")


def test_where_nobody_wants_them() -> None:
    rig = Rig(2, to="")
    rig.terminate(1)
    assert not rig.consumer.state.dead and rig.letters() == []


DEATHS = st.dictionaries(
    st.integers(1, 1 << 40),
    st.builds(
        Death,
        st.integers(0, 1 << 60),
        st.integers(1, 1 << 20),
        st.booleans(),
        st.text(max_size=60),
    ),
    max_size=8,
)


def test_answers_to_letters_that_nobody_sent_change_nothing() -> None:
    rig = Rig(1)
    answer = b"_INBOX.secret." + b"9" * 5_000, b"", b"", b'{"stream":"D","seq":1}', None
    assert rig.turn(stored=[answer]).entry is None


@given(DEATHS)
@settings(max_examples=examples(100))
def test_states_are_written_whole(deaths: dict[int, Death]) -> None:
    made = ConsumerState(acks_needed=True)
    made.deliver(range(1, 5), 1, 7)
    for seq, death in deaths.items():
        made.bury(seq, death)
    again = ConsumerState(acks_needed=True)
    again.decode(made.encode())
    assert again.facts() == made.facts()
    older = bytearray(ConsumerState(acks_needed=True).encode())
    older[0] = 1
    again.decode(bytes(older))
    assert not again.dead
