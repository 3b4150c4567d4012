"""Limits on a memory store, against dropping one message after the other."""

from hypothesis import given
from hypothesis import strategies as st

from jsctl.broker.store import record, retention
from jsctl.broker.store.memory_store import MemoryStore


@given(
    st.lists(st.tuples(st.sampled_from([b"a", b"b"]), st.integers(0, 50)), min_size=1, max_size=30),
    st.integers(-1, 20),
    st.integers(-1, 1500),
    st.integers(-1, 5),
)
def test_limits_hold_and_not_more_than_needed_goes(
    rows: list[tuple[bytes, int]], messages_max: int, bytes_max: int, per_subject: int
) -> None:
    store = MemoryStore()
    records = [(n + 1, n, subject, b"", bytes(size)) for n, (subject, size) in enumerate(rows)]
    store.append(record.encode_frame(records), 1)
    gone = retention.subjects_to_drop(store, [b"a", b"b"], per_subject)
    store.remove(gone, 2)
    if per_subject > 0:
        for subject in (b"a", b"b"):
            total = sum(one[0] == subject for one in rows)
            assert store.count_for(subject) == min(total, per_subject)
    else:
        assert not gone
    sizes = [
        store.message_bytes(len(one[2]), 0, len(one[4])) for one in records if one[0] not in gone
    ]
    while (0 < messages_max < len(sizes)) or (0 < bytes_max < sum(sizes)):
        del sizes[0]
    store.truncate_front(retention.front_to_drop(store, messages_max, bytes_max), 3)
    assert (store.messages, store.size_bytes) == (len(sizes), sum(sizes))
