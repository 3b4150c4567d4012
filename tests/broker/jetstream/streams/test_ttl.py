"""Times to live of messages, as a stream remembers them."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jsctl.broker.jetstream.streams.publish_headers import parse_ttl
from jsctl.broker.jetstream.streams.ttl import NEVER, Ttls
from tests.support.admission_rig import SECOND, AdmissionRig


class Watched(set[int]):
    """Sequences that say how many of them were looked through."""

    seen = 0

    def __iter__(self) -> Iterator[int]:
        """One after the other."""
        for seq in super().__iter__():
            Watched.seen += 1
            yield seq


def test_what_never_expires_costs_nothing_while_nothing_goes_from_the_front() -> None:
    ttls = Ttls()
    for seq in range(1, 101):
        ttls.add(seq, 0, NEVER)
    ttls.never = Watched(ttls.never)
    for _ in range(10):
        ttls.trim(1)
    ttls.trim(3)
    assert Watched.seen == 0
    assert sorted(ttls.never) == [*range(3, 101)]


@pytest.mark.parametrize("ttl", ["9223372036", "9223372036854775807", "009223372036", "2562047h"])
def test_a_time_to_live_beyond_the_end_of_time_is_one_until_then(ttl: str) -> None:
    rig = AdmissionRig(allow_msg_ttl=True)
    rig.now = 1_790_000_000 * SECOND
    assert rig.ask(b"s.a", TTL=ttl) == {"stream": "S", "seq": 1}
    made = Ttls()
    made.restore(rig.stream.ttls.snapshot())
    assert made.next_due_ns() == rig.leader.next_due_ns() == (1 << 63) - 1


@pytest.mark.parametrize(
    ("ttl", "ns"),
    [
        ("1", SECOND),
        ("00000000000000000000001", SECOND),
        ("0", None),
        ("000", None),
        ("9223372036854775808", None),
        ("9999999999999999999", None),
        ("18446744073709551617", None),
        ("9" * 5000, None),
        ("never", NEVER),
        ("1500ms", SECOND),
        ("999ms", None),
    ],
)
def test_a_time_to_live_is_a_number_of_seconds_that_has_64_bits(ttl: str, ns: int | None) -> None:
    assert parse_ttl(ttl.encode()) == ns


@given(st.lists(st.tuples(st.sampled_from(["add", "forget", "trim"]), st.integers(0, 300))))
def test_those_that_are_left_are_known(steps: list[tuple[str, int]]) -> None:
    ttls, wanted, last = Ttls(), set[int](), 0
    for what, number in steps:
        if what == "add":
            for seq in range(last + 1, last + 1 + number):
                ttls.add(seq, 0, NEVER)
            wanted.update(range(last + 1, last + 1 + number))
            last += number
        elif what == "forget":
            ttls.forget(range(number))
            wanted.difference_update(range(number))
        else:
            ttls.trim(number)
            wanted = {seq for seq in wanted if seq >= number}
        other = Ttls()
        other.restore(ttls.snapshot())
        other.trim(last // 2)
        assert ttls.never == wanted
        assert other.never == {seq for seq in wanted if seq >= last // 2}
