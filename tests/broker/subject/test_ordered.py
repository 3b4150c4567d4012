"""Subjects in order: what begins alike is found, whatever came and went."""

import random

import pytest

from jsctl.broker.store import subject_index
from jsctl.broker.store.subject_index import SubjectIndex
from jsctl.broker.subject import ordered
from jsctl.broker.subject.matching import Filters
from jsctl.broker.subject.ordered import OrderedSubjects, pieces

PATTERNS = (
    (b"a.1.>",),
    (b"a.1.*", b"b.2.>"),
    (b"a.12", b"b.3.*"),
    (b"c.*.x",),
    (b"*.1.x",),
    (b"a.\xff.>",),
    (b"a.\xff",),
    (b"zz.>",),
    (b"a.1*.>",),
    (b"*.7.*",),
    (b"*.1.>", b"a.*.x"),
    (b"*.*.x",),
    (b"*.*.*.y",),
    (b"*.3",),
    (b"*.*",),
    (b"c.>.x",),
)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of it happens with a few subjects, too."""
    monkeypatch.setattr(subject_index, "_ORDERED_MIN", 8)
    monkeypatch.setattr(ordered, "RUN_MIN", 8)
    monkeypatch.setattr(ordered, "ORDERS_MAX", 2)
    monkeypatch.setattr(ordered, "_LOOK_UP", 1)
    for module in (ordered, subject_index):
        monkeypatch.setattr(module, "RUN_MAX", 64)


class Play:
    """An index, and a plain table beside it."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.index = SubjectIndex()
        self.live: dict[int, bytes] = {}

    def subject(self) -> bytes:
        last = self.rng.choice((b"", b".x", b".y", b".\xff"))
        return b"%c.%d" % (self.rng.choice(b"abc"), self.rng.randrange(60)) + last

    def add(self) -> None:
        first = max(self.live, default=0) + 1
        seqs = list(range(first, first + self.rng.randrange(1, 12)))
        alike = self.rng.random() < 0.2
        names = [self.subject()] * len(seqs) if alike else [self.subject() for _ in seqs]
        self.index.add_many(seqs, names)
        self.live.update(zip(seqs, names, strict=True))

    def remove(self) -> None:
        for seq in self.rng.sample(sorted(self.live), min(len(self.live), 6)):
            assert self.index.remove(self.live.pop(seq), seq)

    def cut(self) -> None:
        known = sorted(set(self.live.values()))
        names = set(self.rng.sample(known, min(len(known), 30)))
        bound = max(self.live, default=0) - self.rng.randrange(20)
        self.index.cut([(name, bound) for name in names])
        for seq in [seq for seq, name in self.live.items() if name in names and seq < bound]:
            del self.live[seq]

    def put_back(self) -> None:
        gone = set(range(1, max(self.live, default=0))) - set(self.live)
        if gone:
            seq = self.rng.choice(sorted(gone))
            self.live[seq] = self.subject()
            self.index.insert(self.live[seq], seq)

    def clear(self) -> None:
        if self.rng.random() < 0.1:
            self.index.clear()
            self.live.clear()

    def step(self) -> None:
        does = (self.add, self.add, self.add, self.remove, self.cut, self.put_back, self.clear)
        self.rng.choice(does)()


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.usefixtures("small")
def test_patterns_find_what_a_look_at_all_finds(seed: int) -> None:
    play = Play(seed)
    looks = 0
    for _ in range(300):
        play.step()
        filters = Filters(play.rng.choice(PATTERNS))
        wanted = {name for name in play.live.values() if filters.match(name)}
        assert sorted(play.index.select(filters)) == sorted(wanted)
        ordered_now = play.index._ordered
        if ordered_now is not None and pieces(filters.patterns[0]) and len(play.index) >= 8:
            looks += 1
            assert len(ordered_now) <= 2 * len(play.index) + 64
    assert looks > 50


@pytest.mark.usefixtures("small")
def test_the_order_is_given_up_where_nobody_looks_any_more() -> None:
    index = SubjectIndex()
    index.add_many(range(1, 101), [b"a.%d" % number for number in range(100)])
    index.select(Filters((b"a.1.>",)))
    assert index._ordered is not None
    for number in range(100):
        index.add_many((1000 + number,), (b"b.%d" % number,))
    assert index._ordered is None


def test_few_subjects_are_looked_at_for_a_pattern_that_few_begin_with(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    index = SubjectIndex()
    index.add_many(range(1, 200_001), [b"o.%d.x" % number for number in range(200_000)])
    looked: list[int] = []
    real = Filters.select

    def select(self: Filters, subjects: list[bytes]) -> list[bytes]:
        looked.append(len(subjects))
        return real(self, subjects)

    monkeypatch.setattr(Filters, "select", select)
    for _ in range(5):
        assert index.select(Filters((b"o.77.>",))) == [b"o.77.x"]
    assert looked[0] > 100_000, "the order is made in portions"
    assert looked[-1] == 1
    for number in range(3000):
        index.add_many((300_000 + number,), (b"o.77.%d" % number,))
        assert len(index.select(Filters((b"o.77.*",)))) == number + 2
    assert max(looked[5:]) <= 3001 + ordered.RUN_MIN


@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [
        (b"o.1.>", [(0, b"o.1.", b"o.1/")]),
        (b"o.1", [(0, b"o.1", b"o.1\0")]),
        (b"o.*.made", [(0, b"o.", b"o/"), (2, b"made", b"made\0")]),
        (b"*.1.*", [(1, b"1.", b"1/")]),
        (b"a.*.b.*.c.>", [(0, b"a.", b"a/"), (4, b"c.", b"c/"), (2, b"b.", b"b/")]),
        (b"*.*", []),
        (b">", []),
        (b"*.\xff", [(1, b"\xff", b"\xff\0")]),
        (b"*." * 15 + b"x", [(15, b"x", b"x\0")]),
        (b"*." * 15 + b"x.y", [(15, b"x.", b"x/")]),
        (b"*." * 16 + b"x", []),
    ],
)
def test_what_subjects_have_in_common_that_a_pattern_matches(
    pattern: bytes, wanted: list[tuple[int, bytes, bytes]]
) -> None:
    assert pieces(pattern) == wanted


@pytest.mark.parametrize(
    ("pattern", "passing"), [(b"*.7.>", 500), (b"o.*.77", 1), (b"*.*.77", 1), (b"*.7.1007", 1)]
)
def test_few_subjects_are_looked_at_for_tokens_behind_wildcards(
    pattern: bytes, passing: int
) -> None:
    index = SubjectIndex()
    index.add_many(range(1, 50_001), [b"o.%d.%d" % (n % 100, n) for n in range(50_000)])
    filters = Filters((pattern,))
    for _ in range(2):
        assert len(index.select(filters)) == passing
    before = index.searched
    assert len(index.select(filters)) == passing
    assert index.searched - before == passing
    assert index.candidates(filters) == index.select(filters)


def test_a_look_sorts_one_portion_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ordered, "RUN_MAX", 100)
    sorts: list[int] = []
    real = ordered._Order.sort

    def sort(self: ordered._Order) -> None:
        sorts[-1] += 1
        real(self)

    monkeypatch.setattr(ordered._Order, "sort", sort)
    some = OrderedSubjects([b"a.%d.x.%d" % (n % 50, n) for n in range(1000)])
    found: list[list[bytes] | None] = []
    for _ in range(25):
        sorts.append(0)
        found.append(some.passing((b"a.*.x.77",), 100))
    assert max(sorts) == 1
    assert sum(sorts) == 20, "for what they begin with, and for what they end with"
    assert found[-1] == [b"a.27.x.77"]


def test_so_many_patterns_are_not_looked_for_one_by_one() -> None:
    some = OrderedSubjects([b"a.%d" % n for n in range(1000)])
    patterns = [b"a.%d.>" % n for n in range(100)]
    assert some.passing(patterns, 100) is None
    assert some.passing(patterns[:10], 100) == []


def test_an_order_that_nobody_looks_at_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ordered, "RUN_MAX", 1000)
    names = [b"a.%d.x" % n for n in range(200)]
    some = OrderedSubjects(names)
    for pattern in (b"*.7.x", b"a.7.x"):
        assert some.passing((pattern,), 100) == [b"a.7.x"]
    assert sorted(some._orders) == [0, 1]
    for number in range(4):
        some.fresh += [b"a.%d.y" % n for n in range(300 * number, 300 * (number + 1))]
        assert some.passing((b"a.7.x",), 1000) == [b"a.7.x"]
    assert sorted(some._orders) == [0]
