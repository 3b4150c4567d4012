"""Every kind of store against a dictionary, with restarts and copies at any point."""

import random
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from jsctl.broker.store import subject_index
from jsctl.broker.store.frame import frame_of
from jsctl.broker.store.memory_store import MemoryStore
from jsctl.broker.store.message_store import MessageStore, StoreOptions
from jsctl.broker.store.record import Record
from jsctl.broker.store.stream_store import StreamStore
from jsctl.broker.store.views import newest
from jsctl.broker.subject.matching import Filters
from tests.support.quick import examples
from tests.support.sim_disk import SimDisk

SUBJECTS = [b"a.1", b"a.2", b"b.1", b"b.1.x", b"c"]
FILTERS = [
    Filters(),
    Filters([b"a.1"]),
    Filters([b"a.2", b"c"]),
    Filters([b"a.*"]),
    Filters([b"b.>", b"c"]),
    Filters([b"none"]),
]
filters = st.sampled_from(FILTERS)


class Model(RuleBasedStateMachine):
    """The store beside `{seq: record}`, its last sequence and its mark."""

    def make(self) -> StreamStore:
        """A new empty store."""
        return MemoryStore()

    def reopen(self, store: StreamStore) -> StreamStore:
        """The store after a restart; one that has no restarts stays."""
        return store

    @initialize()
    def start(self) -> None:
        self.store = self.make()
        self.model: dict[int, Record] = {}
        self.last = 0
        self.mark = 0
        self.time = 1000

    @rule(
        rows=st.lists(
            st.tuples(
                st.sampled_from(SUBJECTS),
                st.binary(max_size=40),
                st.booleans(),
                st.sampled_from([0, 0, 0, 0, 2]),
            ),
            min_size=1,
            max_size=30,
        )
    )
    def append(self, rows: list[tuple[bytes, bytes, bool, int]]) -> None:
        self.mark += 1
        records = []
        for subject, payload, has_headers, gap in rows:
            self.last += 1 + gap
            self.time += 10
            headers = b"NATS/1.0\r\n\r\n" if has_headers else b""
            records.append(Record(self.last, self.time, subject, headers, payload))
        frame = frame_of(records)
        self.store.append(frame, self.mark)
        self.store.append(frame, self.mark)
        self.model.update((one.seq, one) for one in records)

    @rule(seqs=st.lists(st.integers(1, 200), max_size=20), erase=st.booleans())
    def remove(self, seqs: list[int], erase: bool) -> None:
        self.mark += 1
        gone = {seq for seq in seqs if seq in self.model}
        assert self.store.remove(seqs, self.mark, erase) == len(gone)
        assert self.store.remove(seqs, self.mark) == 0
        for seq in gone:
            del self.model[seq]

    @rule(first=st.integers(0, 220))
    def truncate_front(self, first: int) -> None:
        self.mark += 1
        gone = [seq for seq in self.model if seq < first]
        assert self.store.truncate_front(first, self.mark) == len(gone)
        for seq in gone:
            del self.model[seq]

    @rule(
        filters=st.none() | filters,
        up_to=st.none() | st.integers(0, 200),
        keep=st.sampled_from([0, 0, 1, 3]),
    )
    def purge(self, filters: Filters | None, up_to: int | None, keep: int) -> None:
        self.mark += 1
        match = filters.match if filters else Filters().match
        gone = [seq for seq, one in self.model.items() if match(one.subject)]
        if keep:
            del gone[-keep:]
        gone = [seq for seq in gone if up_to is None or seq < up_to]
        assert self.store.purge(filters, up_to, keep, self.mark) == len(gone)
        for seq in gone:
            del self.model[seq]

    @rule(count=st.integers(1, 4), data=st.data())
    def remove_oldest(self, count: int, data: st.DataObject) -> None:
        self.mark += 1
        known = sorted({one.subject for one in self.model.values()})
        chosen = data.draw(st.lists(st.sampled_from(known), unique=True)) if known else []
        gone: list[int] = []
        for subject in chosen:
            gone += [seq for seq, one in self.model.items() if one.subject == subject][:count]
        counts = [(subject, count) for subject in chosen]
        held = Counter(one.subject for one in self.model.values())
        over = [(subject, held[subject] - count) for subject in known if held[subject] > count]
        assert sorted(self.store.excess(known, count)) == over
        assert self.store.remove_oldest(counts, self.mark) == sorted(gone)
        assert self.store.remove_oldest(counts, self.mark - 1) == []
        for seq in gone:
            del self.model[seq]

    @rule(some=st.sets(st.sampled_from(SUBJECTS)))
    def keep_last(self, some: set[bytes]) -> None:
        self.mark += 1
        self.store.note_removals()
        last = {one.subject: seq for seq, one in sorted(self.model.items())}
        gone = [
            seq
            for seq, one in self.model.items()
            if one.subject in some and seq < last[one.subject]
        ]
        assert self.store.keep_last(some, self.mark) == sorted(gone)
        assert self.store.keep_last(some, self.mark) == []
        assert self.store.keep_last(some, self.mark - 1) == []
        told = self.store.take_removals()
        assert [list(one.seqs) for one in told] == ([sorted(gone)] if gone else [])
        assert {name for one in told for name in one.subjects} == {
            self.model[seq].subject for seq in gone
        }
        for seq in gone:
            del self.model[seq]

    @rule(more=st.integers(1, 50))
    def set_first(self, more: int) -> None:
        self.mark += 1
        self.last += more
        self.store.set_first(self.last + 1, self.mark)
        self.model.clear()

    @rule()
    def restart(self) -> None:
        self.store = self.reopen(self.store)

    @rule(from_seq=st.integers(0, 100))
    def copy(self, from_seq: int) -> None:
        other = self.make()
        for chunk in self.store.export_chunks():
            other.import_chunk(chunk)
        assert other.state() == self.store.state()
        assert other.digest() == self.store.digest()
        assert other.deleted() == self.store.deleted()
        chunks = list(self.store.export_chunks(self.last + 1 - min(from_seq, self.last)))
        assert [other.import_chunk(chunk) for chunk in chunks][-1]
        assert other.state() == self.store.state()
        self.store = self.reopen(other)

    @rule(filters=filters, start=st.integers(0, 150), count=st.integers(1, 20))
    def walk(self, filters: Filters, start: int, count: int) -> None:
        want = [one for s, one in self.model.items() if s >= start and filters.match(one.subject)]
        assert self.store.next(filters, start) == (want[0] if want else None)
        assert self.store.next_many(filters, start, count) == want[:count]
        some = self.store.next_many(filters, start, count, 80)
        assert some == want[: len(some)] and (bool(some) == bool(want))
        assert self.store.num_pending(filters, start) == len(want)
        newest = {one.subject: one.seq for one in self.model.values()}
        passing = {s: seq for s, seq in newest.items() if filters.match(s)}
        assert self.store.num_pending(filters, start, True) == sum(
            seq >= start for seq in passing.values()
        )
        bounded = {
            one.subject: one.seq
            for one in self.model.values()
            if one.seq <= start and filters.match(one.subject)
        }
        assert self.store.multi_last(filters, start) == sorted(bounded.values())
        assert self.store.multi_last(filters) == sorted(passing.values())
        for up_to, all_of_them in ((start, bounded), (None, passing)):
            two = self.store.multi_last(filters, up_to, 2)
            assert two == sorted(two) and len(two) == min(len(all_of_them), 2)
            assert set(two) <= set(all_of_them.values())
        counts: dict[bytes, int] = {}
        for one in self.model.values():
            if filters.match(one.subject):
                counts[one.subject] = counts.get(one.subject, 0) + 1
        assert self.store.subjects(filters) == counts

    @rule(
        subject=st.sampled_from([*SUBJECTS, b"a.*", b">", b"none", b"b.>", b"*.1"]),
        few=st.sampled_from([0, 512]),
    )
    def last_for(self, subject: bytes, few: int) -> None:
        """Also as where there are more than a few subjects."""
        match = Filters([subject]).match
        want = [seq for seq, one in self.model.items() if match(one.subject)]
        with pytest.MonkeyPatch.context() as limits:
            limits.setattr(newest, "_MANY", few)
            limits.setattr(subject_index, "_ORDERED_MIN", few)
            assert self.store.last_for(subject) == (want[-1] if want else None)

    @rule(time=st.integers(990, 1600))
    def seq_at_time(self, time: int) -> None:
        want = min((s for s, one in self.model.items() if one.time_ns >= time), default=None)
        assert self.store.seq_at_time(time) == (want or self.last + 1)

    @rule(seqs=st.sets(st.integers(0, 200), max_size=60), most=st.sampled_from([0, 80, 400]))
    def load_many(self, seqs: set[int], most: int) -> None:
        want = [self.model[seq] for seq in sorted(seqs) if seq in self.model]
        assert self.store.load_many(sorted(seqs)) == want
        some = self.store.load_many(sorted(seqs), most)
        assert some == want[: len(some)] and bool(some) == bool(want)

    @rule(seq=st.integers(0, 200))
    def load(self, seq: int) -> None:
        assert self.store.load(seq) == self.model.get(seq)
        assert self.store.is_live(seq) == (seq in self.model)

    @invariant()
    def totals_are_sums(self) -> None:
        self.store.check_totals()

    @invariant()
    def state_is_right(self) -> None:
        state = self.store.state()
        assert state.messages == len(self.model)
        assert (state.last_seq, state.mark) == (self.last, self.mark)
        assert state.first_seq == min(self.model, default=self.last + 1)
        assert state.num_subjects == len({one.subject for one in self.model.values()})
        assert state.num_deleted == self.last + 1 - state.first_seq - len(self.model)
        assert state.bytes == sum(
            self.size()(len(one.subject), len(one.headers), len(one.payload))
            for one in self.model.values()
        )
        first = self.model.get(state.first_seq)
        assert state.first_time_ns == (first.time_ns if first else 0)

    def size(self) -> Callable[[int, int, int], int]:
        """How the store counts a message."""
        return self.store.message_bytes


TestMemoryStore = Model.TestCase
TestMemoryStore.settings = settings(
    max_examples=examples(40), stateful_step_count=30, deadline=None
)


class FileModel(Model):
    """The file store on a simulated disk, with small segments so that they roll often."""

    def make(self) -> StreamStore:
        self.made = getattr(self, "made", 0) + 1
        if self.made == 1:
            self.disk = SimDisk(random.Random(1))
        return MessageStore.open(self.disk, f"s{self.made}", OPTIONS)

    def reopen(self, store: StreamStore) -> StreamStore:
        assert isinstance(store, MessageStore)
        store.close()
        made = MessageStore.open(self.disk, store.directory, OPTIONS)
        assert not made.damage
        # A change without effect leaves no trace; its replay brings the mark.
        made.truncate_front(0, self.mark)
        assert made.state() == store.state()
        assert made.digest() == store.digest()
        assert made.deleted() == store.deleted()
        return made

    @rule(index=st.booleans())
    def checkpoint(self, index: bool) -> None:
        store = self.store
        assert isinstance(store, MessageStore)
        job = store.checkpoint(index)
        if job is not None:
            job.run()
            store.done(job)

    @rule()
    def checkpoint_and_crash(self) -> None:
        self.checkpoint(False)
        self.disk.crash()
        self.store = self.reopen(self.store)


OPTIONS = StoreOptions(segment_bytes=700)
TestFileStore = FileModel.TestCase
TestFileStore.settings = settings(max_examples=examples(60), stateful_step_count=40, deadline=None)
