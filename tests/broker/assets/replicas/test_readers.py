"""Who delivers a stream's messages hears of those that are for it, and of no others."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jsctl.broker.assets.replicas.consumer_replica import ConsumerReplica
from jsctl.broker.jetstream.consumers.readers import CROWD, Readers
from jsctl.broker.store.contents import Contents
from jsctl.broker.store.stream_store import Removed
from jsctl.broker.subject.matching import TOKENS_MAX, Filters
from tests.support.node_play import NodePlay, PlayClient
from tests.support.stream_requests import consumer, stream

LONG = b".".join([b"a"] * TOKENS_MAX) + b".*"
LONG_SUBJECT = b".".join([b"a"] * TOKENS_MAX) + b".b"
SUBJECTS = (b"a", b"b", b"a.a", b"a.b", b"b.a", b"a.b.c", LONG_SUBJECT)
PATTERNS = (b">", b"*", b"a", b"a.*", b"*.a", b"a.>", b"a.b.c", LONG)


@dataclass
class Heard:
    """Implements `Reader`; all of them are equal."""

    told: list[object] = field(default_factory=list, compare=False)
    seqs: Sequence[int] | None = field(default=None, compare=False)
    tired: bool = field(default=False, compare=False)

    def stored(self, first: int, count: int, seqs: Sequence[int] | None) -> bool:
        assert seqs is None or len(seqs) == count
        self.told.append((first, count))
        self.seqs = seqs
        return not self.tired

    def removed(self, gone: Sequence[Removed]) -> None:
        self.told.append(list(gone))

    def stream_changed(self) -> None:
        self.told.append("changed")

    def purged(self, pattern: bytes) -> None:
        self.told.append(pattern)


filters = st.lists(st.sampled_from(PATTERNS), min_size=1, max_size=3).map(Filters)
some_subjects = st.lists(st.sampled_from(SUBJECTS), min_size=1, max_size=12)


@given(
    st.lists(filters, max_size=2 * CROWD),
    st.lists(st.tuples(st.integers(0, 2 * CROWD), st.none() | filters), max_size=CROWD),
    some_subjects,
    st.lists(some_subjects | st.just([]), max_size=3),
)
def test_each_hears_what_passes(
    first: list[Filters],
    changes: list[tuple[int, Filters | None]],
    stored: list[bytes],
    gone: list[list[bytes]],
) -> None:
    readers, all_of_them = Readers(), [Heard() for _ in range(2 * CROWD + 1)]
    known: dict[int, Filters] = {}
    for number, wanted in [*enumerate(first), *changes]:
        if wanted is None:
            readers.remove(all_of_them[number])
            known.pop(number, None)
        else:
            readers.add(all_of_them[number], wanted)
            known[number] = wanted
    assert bool(readers) == bool(known)
    readers.stored(range(7, 7 + len(stored)), stored)
    removed = [Removed([number], subjects) for number, subjects in enumerate(gone)]
    readers.removed(removed)
    for number, one in enumerate(all_of_them):
        expected: list[object] = []
        if (wanted := known.get(number)) is not None:
            if count := len(wanted.select(stored)):
                expected.append((7, count))
                passing = [7 + at for at, one_of in enumerate(stored) if wanted.match(one_of)]
                assert one.seqs in (None, passing)
            if some := [e for e in removed if not e.subjects or wanted.select(e.subjects)]:
                expected.append(some)
        assert one.told == expected


@pytest.mark.parametrize("others", [0, CROWD + 1])
def test_who_holds_messages_of_before_hears_of_all_that_go(others: int) -> None:
    readers, wary, plain = Readers(), Heard(), Heard()
    for _ in range(others):
        readers.add(Heard(), Filters((b"c",)))
    readers.add(plain, Filters((b"a",)))
    readers.add(wary, Filters((b"a",)), wary=True)
    gone = [Removed([1], [b"b"])]
    readers.removed(gone)
    readers.stored([2], [b"b"])
    assert (wary.told, plain.told) == ([gone], [])
    readers.add(wary, Filters((b"a",)))
    readers.removed(gone)
    assert wary.told == [gone]


def test_who_wants_to_hear_nothing_is_told_nothing_until_it_does() -> None:
    readers, one, other = Readers(), Heard(tired=True), Heard(tired=True)
    readers.add(one, Filters())
    readers.add(other, Filters((b"a",)))
    for seq in (1, 2):
        readers.stored([seq], [b"a"])
        readers.removed([Removed([seq], [b"a"])])
    assert one.told == [(1, 1)]
    assert len(other.told) == 4, "others hear of little anyway"
    readers.stream_changed()
    readers.hear(one)
    readers.stored([3], [b"a"])
    assert one.told == [(1, 1), "changed", (3, 1)]
    readers.remove(one)
    readers.hear(one)
    readers.stored([4], [b"b"])
    assert len(one.told) == 3


def test_all_hear_that_everything_changed() -> None:
    readers = Readers()
    heard = [Heard() for _ in range(CROWD + 2)]
    for number, one in enumerate(heard):
        readers.add(one, Filters((b"a.%d" % number,) if number else ()))
    readers.purged(b"x")
    readers.stream_changed()
    assert [one.told for one in heard] == [[b"x", "changed"]] * len(heard)


# In a server


@pytest.fixture
def client() -> PlayClient:
    """Of a server with a stream S and consumers C0, C1, ... of a subject each, and one of all."""
    made = NodePlay().connect("a")
    assert "error" not in made.ask("$JS.API.STREAM.CREATE.S", **stream(replicas=1))
    for number in range(CROWD + 4):
        body = consumer(f"C{number}", filter_subject=f"s.{number}")
        assert "error" not in made.ask(f"$JS.API.CONSUMER.CREATE.S.C{number}.s.{number}", **body)
    assert "error" not in made.ask("$JS.API.CONSUMER.CREATE.S.ALL", **consumer("ALL"))
    made.play.run(1)
    return made


def pending(client: PlayClient, name: str) -> int:
    """What waits for a consumer."""
    return int(client.ask(f"$JS.API.CONSUMER.INFO.S.{name}")["num_pending"])


def test_nobody_who_is_not_concerned_has_a_turn(
    client: PlayClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.subscribe("got")
    client.publish("$JS.API.CONSUMER.MSG.NEXT.S.C3", b"1", "got")
    client.play.run(1)
    ran: list[str] = []
    run = ConsumerReplica.run

    def noted(self: ConsumerReplica) -> None:
        ran.append(self.consumer.name)
        run(self)

    monkeypatch.setattr(ConsumerReplica, "run", noted)
    client.request("s.2", b"two")
    assert ran == []
    client.request("s.3", b"three")
    assert set(ran) == {"C3"}
    assert [one for _, reply, one in client.messages if reply[:3] == "$JS"] == [b"three"]
    assert [pending(client, name) for name in ("C2", "C3", "C4", "ALL")] == [1, 0, 0, 2]


def test_who_comes_later_gets_what_came_before(client: PlayClient) -> None:
    for number in range(4):
        client.request(f"s.{number}", b"x")
    client.subscribe("got")
    client.publish("$JS.API.CONSUMER.MSG.NEXT.S.C2", b"1", "got")
    client.publish("$JS.API.CONSUMER.MSG.NEXT.S.ALL", b"9", "got")
    client.play.run(1)
    subjects = [reply.split(".")[4] for _, reply, _ in client.messages if reply[:3] == "$JS"]
    assert subjects.count("1") == 5, "each of them for the first time"


def test_what_came_while_nobody_waited_counts(client: PlayClient) -> None:
    for number in range(3):
        client.request(f"s.{number}", b"x")
        assert pending(client, "ALL") == number + 1
    client.ask("$JS.API.STREAM.MSG.DELETE.S", seq=2)
    assert pending(client, "ALL") == 2
    client.subscribe("got")
    client.publish("$JS.API.CONSUMER.MSG.NEXT.S.ALL", b"3", "got")
    client.play.run(1)
    client.request("s.9", b"last")
    client.request("s.9", b"more")
    given = [one for _, reply, one in client.messages if reply[:3] == "$JS"]
    assert given == [b"x", b"x", b"last"]
    assert pending(client, "ALL") == 1


@pytest.mark.parametrize("name", ["C1", "ALL"])
def test_a_purge_moves_whom_nobody_pulls_from(client: PlayClient, name: str) -> None:
    for _ in range(3):
        client.request("s.1", b"x")
    assert pending(client, name) == 3
    client.ask("$JS.API.STREAM.PURGE.S")
    info = client.ask(f"$JS.API.CONSUMER.INFO.S.{name}")
    assert (info["num_pending"], info["ack_floor"]["stream_seq"]) == (0, 3)


def test_what_is_known_to_come_is_read_without_a_search(
    client: PlayClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def searched(*_: object) -> None:
        raise AssertionError("a search")

    client.subscribe("got")
    client.publish("$JS.API.CONSUMER.MSG.NEXT.S.C3", b"9", "got")
    client.play.run(1)
    monkeypatch.setattr(Contents, "next_many", searched)
    for number in (1, 3, 2, 3):
        client.request(f"s.{number}", b"%d" % number)
    assert [one for _, reply, one in client.messages if reply[:3] == "$JS"] == [b"3", b"3"]


def test_other_filters_count_from_the_entry_on(client: PlayClient) -> None:
    client.request("s.1", b"x")
    body = consumer("C1", filter_subject="s.moved")
    client.ask("$JS.API.CONSUMER.CREATE.S.C1.s.moved", action="update", **body)
    client.request("s.moved", b"x")
    client.request("s.1", b"x")
    assert pending(client, "C1") == 1


def test_what_is_removed_is_given_up_whatever_the_filters_are_now(client: PlayClient) -> None:
    client.request("s.1", b"x")
    client.request("s.2", b"x")
    client.subscribe("got")
    client.publish("$JS.API.CONSUMER.MSG.NEXT.S.C2", b"1", "got")
    client.play.run(1)
    body = consumer("C2", filter_subject="s.moved")
    client.ask("$JS.API.CONSUMER.CREATE.S.C2.s.moved", action="update", **body)
    assert client.ask("$JS.API.CONSUMER.INFO.S.C2")["num_ack_pending"] == 1
    client.ask("$JS.API.STREAM.MSG.DELETE.S", seq=2)
    assert client.ask("$JS.API.CONSUMER.INFO.S.C2")["num_ack_pending"] == 0
