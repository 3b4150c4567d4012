"""What a consumer has still to deliver is not counted anew when messages are removed."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jsctl.api.consumer import ConsumerConfig
from jsctl.api.words import DeliverPolicy
from jsctl.broker.jetstream.consumers.consumer import Consumer
from jsctl.broker.jetstream.consumers.defaults import with_defaults
from jsctl.broker.jetstream.consumers.delivery import ConsumerDelivery
from jsctl.broker.jetstream.consumers.starting import begin
from jsctl.broker.store.contents import Contents
from jsctl.broker.store.frame import frame_of
from jsctl.broker.store.memory_store import MemoryStore
from jsctl.broker.subject.matching import Filters
from tests.support.node_play import NodePlay
from tests.support.quick import examples

NOW = 1_700_000_000_000_000_000
SECONDS_OF_IDS = 5
SUBJECTS = (b"k.a", b"k.b", b"k.c", b"other")
FILTERS = ((), ("k.>",), ("k.a",), ("other", "k.b"), ("k.*", "other"))


class Life:
    """A consumer's delivery on a store, told of each change as a replica tells it."""

    def __init__(self, filters: tuple[str, ...], policy: str) -> None:
        self.store = MemoryStore()
        self.mark = 0
        config = ConsumerConfig(
            durable_name="C", deliver_policy=DeliverPolicy(policy), filter_subjects=filters
        )
        self.consumer = Consumer("S", "C", with_defaults(config))
        self.delivery: ConsumerDelivery | None = None

    def begin(self) -> None:
        """The consumer is made now."""
        self.delivery = ConsumerDelivery(self.consumer, self.store)
        begin(self.delivery.progress, self.consumer, self.store)
        self.delivery.cursor = self.delivery.progress.state.next_stream
        self.delivery.forget_count()
        self.check()

    def change(self, stored: list[bytes], command: str, number: int) -> None:
        """One entry of the log: messages, and a removal."""
        store = self.store
        self.mark += 1
        before = store.messages
        store.note_removals()
        first = store.last_seq + 1
        rows = [(first + at, NOW, subject, b"", b"x") for at, subject in enumerate(stored)]
        if rows:
            store.append(frame_of(rows), self.mark)
        if command == "limit":
            store.remove_oldest(store.excess(set(stored), 1 + number % 3), self.mark)
        elif command == "remove":
            store.remove([number, number + 2], self.mark)
        elif command == "cut":
            store.truncate_front(number, self.mark)
        elif command == "purge":
            store.purge(Filters((b"k.a", b"other")[: 1 + number % 2]), number, 0, self.mark)
        gone = store.take_removals()
        known = before + len(stored) - sum(len(one.seqs) for one in gone) == store.messages
        assert known or command == "cut", "only a cut does not say what went"
        if self.delivery is not None:
            if not known:
                self.delivery.look_anew()
            else:
                match = self.consumer.filters.match
                passing = [row[0] for row in rows if match(row[2])]
                if passing and not self.delivery.deaf:
                    told = passing if number % 4 else None
                    self.delivery.stored(rows[0][0], len(passing), told)
                if not self.delivery.deaf:
                    self.delivery.removed(gone)
        self.check()

    def deliver(self, count: int) -> None:
        """Somebody gets the next ones."""
        if self.delivery is not None:
            delivery = self.delivery
            delivery.deaf = False
            chosen = bool(delivery.progress.state.last_seqs)
            found = self.store.next_many(self.consumer.filters, delivery.cursor, count)
            given = delivery.peek_new(count)
            assert chosen or count == 0 or given == found
            assert given or count == 0 or delivery.num_pending == 0, "what is there is given"
            delivery.take_new(given, NOW)
            self.check()

    def reset(self, seq: int) -> None:
        """It is to begin anew somewhere."""
        if self.delivery is not None and not self.delivery.progress.state.last_seqs:
            self.delivery.cursor = min(seq, self.delivery.cursor)
            self.delivery.forget_count()

    def check(self) -> None:
        """It is what a count says."""
        delivery = self.delivery
        if delivery is None:
            return
        kept = delivery.num_pending
        delivery.forget_count()
        assert delivery.num_pending == kept


@settings(max_examples=examples(300), deadline=None)
@given(
    filters=st.sampled_from(FILTERS),
    policy=st.sampled_from(("all", "last_per_subject", "new")),
    before=st.lists(st.sampled_from(SUBJECTS), max_size=12),
    steps=st.lists(
        st.tuples(
            st.lists(st.sampled_from(SUBJECTS), max_size=4),
            st.sampled_from(("", "", "limit", "limit", "remove", "cut", "purge", "reset")),
            st.integers(1, 30),
            st.integers(0, 3),
        ),
        max_size=12,
    ),
)
def test_the_count_that_is_kept_is_the_one_that_is_counted(
    filters: tuple[str, ...],
    policy: str,
    before: list[bytes],
    steps: list[tuple[list[bytes], str, int, int]],
) -> None:
    if policy == "last_per_subject" and not filters:
        filters = (">",)
    life = Life(filters, policy)
    life.change(before, "", 0)
    life.begin()
    for stored, command, number, wanted in steps:
        life.change(stored, command, number)
        if command == "reset":
            life.reset(number)
        if life.delivery is not None and not wanted:
            life.delivery.go_deaf()
            life.check()
        life.deliver(wanted)


@pytest.mark.parametrize("filters", [(), ("k.a",)])
def test_what_is_stored_below_where_it_stands_does_not_count(filters: tuple[str, ...]) -> None:
    """A reset may put it beyond the end of the stream."""
    life = Life(filters, "all")
    life.begin()
    assert life.delivery is not None
    life.delivery.cursor = 5
    for stored, expected in ((2, 0), (2, 0), (1, 1), (2, 3)):
        life.change([b"k.a"] * stored, "", 0)
        assert life.delivery.num_pending == expected
    life.delivery.cursor = 10
    life.delivery.forget_count()
    for stored, expected in ((1, 0), (4, 3)):
        assert life.delivery.num_pending == 0
        life.change([b"k.a"] * stored, "", 0)
        assert life.delivery.num_pending == expected


@pytest.mark.parametrize("policy", ["all", "last_per_subject", "new"])
def test_a_bucket_is_not_counted_again_with_every_put(
    policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: list[int] = []
    count = Contents.num_pending

    def counted(self: Contents, filters: Filters, seq: int, last: bool = False) -> int:
        counts.append(seq)
        return count(self, filters, seq, last)

    play = NodePlay()
    client = play.connect("a")
    client.ask(
        "$JS.API.STREAM.CREATE.KV_B",
        name="KV_B",
        subjects=["$KV.B.>"],
        max_msgs_per_subject=1,
        duplicate_window=(SECONDS_OF_IDS - 1) * 1_000_000_000,
    )
    for key in range(20):
        client.publish(f"$KV.B.k{key}", b"v")
    client.subscribe("watch")
    config = {
        "deliver_subject": "watch",
        "filter_subject": "$KV.B.>",
        "deliver_policy": policy,
        "ack_policy": "none",
    }
    made = client.ask("$JS.API.CONSUMER.CREATE.KV_B", stream_name="KV_B", config=config)
    assert "error" not in made
    client.messages.clear()
    monkeypatch.setattr(Contents, "num_pending", counted)
    for number in range(50):
        headers = b"NATS/1.0\r\nNats-Msg-Id: %d\r\n\r\n" % number if number % 2 else b""
        client.publish(f"$KV.B.k{number % 20}", b"w", headers=headers)
    heard = [reply for to, reply, _ in client.messages if to.startswith("$KV")]
    assert len(heard) == 50
    assert {reply.rpartition(".")[2] for reply in heard} == {"0"}, "nothing is left behind each"
    play.run(SECONDS_OF_IDS)
    info = client.ask(f"$JS.API.CONSUMER.INFO.KV_B.{made['name']}")
    assert info["num_pending"] == 0, json.dumps(info)
    assert not counts


def test_what_replaced_the_chosen_one_is_given() -> None:
    life = Life(("k.a",), "last_per_subject")
    life.change([b"k.a"], "", 0)
    life.begin()
    life.change([b"k.a"], "limit", 3)
    assert life.delivery is not None
    assert [row[0] for row in life.delivery.peek_new(1)] == [2]
