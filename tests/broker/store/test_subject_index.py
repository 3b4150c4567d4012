"""What the index by subject tells of many subjects at once, against a look at each message."""

from hypothesis import given, settings
from hypothesis import strategies as st

from jsctl.broker.store.subject_index import SubjectIndex
from jsctl.broker.subject.matching import Filters
from tests.support.quick import examples

SUBJECTS = (b"a.1", b"a.2", b"a.3", b"b.1", b"b.2", b"c")
PATTERNS = (
    (),
    (b"a.*",),
    (b"*.*",),
    (b"*.1", b"c"),
    (b"b.1",),
    (b"a.1", b"b.1", b"none"),
    (b"d.>",),
)
"""All, many and few of the subjects, by patterns and by name, and none."""


@settings(max_examples=examples(60))
@given(
    st.lists(st.sampled_from(SUBJECTS), min_size=1, max_size=30),
    st.sampled_from(PATTERNS),
    st.data(),
)
def test_many_are_told_of_as_each_alone(
    subjects: list[bytes], patterns: tuple[bytes, ...], data: st.DataObject
) -> None:
    index, filters = SubjectIndex(), Filters(patterns)
    messages = dict(enumerate(subjects, 1))
    index.add_many(list(messages), subjects)
    for seq in data.draw(st.lists(st.sampled_from(sorted(messages)), unique=True)):
        assert index.remove(messages.pop(seq), seq)
    seqs: dict[bytes, list[int]] = {}
    for seq, subject in messages.items():
        seqs.setdefault(subject, []).append(seq)
    passing = {subject: some for subject, some in seqs.items() if filters.match(subject)}
    live = sorted(seq for some in passing.values() for seq in some)
    assert index.counts(filters) == {subject: len(some) for subject, some in passing.items()}
    assert sorted(index.lasts(filters)) == sorted(some[-1] for some in passing.values())
    bound = data.draw(st.integers(0, len(subjects) + 1))
    assert index.count_from(filters, bound) == sum(seq >= bound for seq in live)
    assert index.last_from(filters, bound) == sum(some[-1] >= bound for some in passing.values())
    keep = data.draw(st.integers(0, len(subjects) + 1))
    below = min([bound, *live[-keep:]]) if keep and live else bound
    assert sorted(index.purged(filters, bound, keep)) == sorted(
        (subject, below) for subject, some in passing.items() if some[0] < below
    )
    limit = data.draw(st.integers(1, 4))
    assert sorted(index.crowded(limit)) == sorted(
        subject for subject, some in seqs.items() if len(some) > limit
    )


@settings(max_examples=examples(60))
@given(st.lists(st.sampled_from(SUBJECTS), min_size=1, max_size=30), st.data())
def test_what_lies_below_a_sequence_goes(subjects: list[bytes], data: st.DataObject) -> None:
    index = SubjectIndex()
    index.add_many(range(1, len(subjects) + 1), subjects)
    bound = data.draw(st.integers(0, len(subjects) + 2))
    index.cut_front(bound)
    left = [(seq, subject) for seq, subject in enumerate(subjects, 1) if seq >= bound]
    assert set(index) == {subject for _, subject in left}
    for name in SUBJECTS:
        assert index.live(name) == [seq for seq, subject in left if subject == name]
    index.add_many([100], [b"b.1"])
    assert index.last(b"b.1") == 100
