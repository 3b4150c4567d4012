"""Deliveries that go out together say the same as single ones."""

from hypothesis import given
from hypothesis import strategies as st

from jsctl.broker.protocol.deliveries import Deliveries, Row, singly

payloads = st.one_of(st.binary(max_size=12), st.integers(95, 105).map(lambda size: b"x" * size))
rows = st.lists(
    st.tuples(
        st.integers(1, 3),
        st.sampled_from([0, 9, 1_795_318_215_467_174_150]),
        st.sampled_from([b"a", b"orders.new"]),
        st.just(b""),
        payloads,
    ),
    min_size=1,
    max_size=30,
)


@given(rows, st.integers(1, 3), st.integers(1, 1001))
def test_as_single_ones(drawn: list[Row], inboxes: int, first: int) -> None:
    seq, made = first * 7, list[Row]()
    for gap, time_ns, subject, headers, payload in drawn:
        seq += gap
        made.append((seq, time_ns, subject, headers, payload))
    names = [b"in.%d" % at for at in range(inboxes)]
    pending = len(made) + 98
    together = Deliveries(b"$JS.ACK.S.C%.1.", made, names, first, pending)
    assert len(together) == len(made)
    items = singly([(b"x", b"", b"", b"", b""), together])[1:]
    assert items == [
        (
            names[at % inboxes],
            b"$JS.ACK.S.C%%.1.%d.%d.%d.%d" % (row[0], first + at, row[1], pending - at),
            b"",
            row[4],
            row[2],
        )
        for at, row in enumerate(made)
    ]
    for place in range(inboxes):
        own = items[place::inboxes]
        assert together.size(place, inboxes) == sum(
            len(reply) + len(payload) + len(subject) for _, reply, _, payload, subject in own
        )
    assert together.frames(b"MSG ", b" 7 ") == b"".join(
        b"MSG %b 7 %b %d\r\n%b\r\n" % (subject, reply, len(payload), payload)
        for _, reply, _, payload, subject in items
    )
    assert together.routed(b"RMSG A ") == b"".join(
        b"RMSG A %b %b@%b %d\r\n%b\r\n" % (inbox, reply, subject, len(payload), payload)
        for inbox, reply, _, payload, subject in items
    )
