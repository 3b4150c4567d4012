"""Who founds the meta group, who waits, and what of it is on the disk."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jsctl.broker.assets.meta.bootstrap import PATIENCE_NS, SETTLE_NS, Bootstrap, Seen, conflict
from jsctl.broker.assets.meta.group_file import (
    is_evicted,
    read_founding,
    write_evicted,
    write_founding,
)
from jsctl.broker.errors import Damaged
from jsctl.broker.peers.items import Founding
from tests.support.sim_disk import SimDisk

ABC = Founding("id", ("a", "b", "c"), (1, 2, 3))


def seen(peer: str, life: int = 1, founding: Founding | None = None) -> Seen:
    """A JetStream server."""
    return Seen(peer, True, founding, life)


def one(me: str = "a", *, promised: int = 3, life: int = 7) -> Bootstrap:
    """A server of a cluster, started at 0."""
    return Bootstrap(me, life, True, promised, 0)


def test_a_single_server_founds_at_once() -> None:
    made = Bootstrap("a", 7, False, 1, 0).decide([], "new", 0)
    assert made == Founding("new", ("a",), (7,))
    assert made.life_of("a") == 7 and made.life_of("b") is None


def test_the_smallest_founds_once_all_promised_are_seen_for_a_moment() -> None:
    server, others = one(), [seen("c", 3), seen("b", 2)]
    assert server.decide(others[:1], "new", 0) is None
    assert server.decide(others, "new", SETTLE_NS) is None
    assert server.decide(others, "new", 2 * SETTLE_NS - 1) is None
    found = server.decide(others, "new", 2 * SETTLE_NS)
    assert found == Founding("new", ("a", "b", "c"), (7, 2, 3))


def test_others_wait_for_the_smallest_however_long() -> None:
    server = one("b")
    for now_ns in range(0, 10 * PATIENCE_NS, PATIENCE_NS):
        assert server.decide([seen("a"), seen("c")], "new", now_ns) is None


def test_after_a_patience_a_majority_is_enough_and_never_less() -> None:
    majority, alone, pair = one(), one(), one(promised=1)
    for now_ns in (0, SETTLE_NS, PATIENCE_NS):
        assert majority.decide([seen("b")], "new", now_ns) is None
        assert pair.decide([], "new", now_ns) is None
    assert majority.decide([seen("b")], "new", PATIENCE_NS + 1) is not None
    for server in (alone, pair):
        assert server.decide([], "new", 0) is None
        assert server.decide([], "new", 100 * PATIENCE_NS) is None


def test_a_cluster_that_is_configured_has_to_be_seen_however_long() -> None:
    server = Bootstrap("a", 7, True, 3, 0, (("far", 1), ("near", 1)))
    own = [Seen("b", True, None, 1, "own"), Seen("c", True, None, 1, "own")]
    far = [Seen("d", True, None, 1, "far"), Seen("e", False, None, 1, "near")]
    for now_ns in range(0, 10 * PATIENCE_NS, PATIENCE_NS):
        assert server.decide([*own, *far], "new", now_ns) is None
    whole = [*own, *far, Seen("f", True, None, 1, "near")]
    assert server.decide(whole, "new", 10 * PATIENCE_NS) is None, "for a moment"
    found = server.decide(whole, "new", 11 * PATIENCE_NS)
    assert found is not None and found.members == ("a", "b", "c", "d", "f")


def test_a_cluster_without_jetstream_is_not_waited_for_when_the_patience_is_over() -> None:
    server = Bootstrap("a", 7, True, 5, 0, (("far", 3),))
    own, late = [Seen("b", True, None, 1, "own")], PATIENCE_NS + 1
    bare = frozenset({"far"})
    assert server.decide(own, "new", 0, bare) is None
    assert server.decide(own, "new", PATIENCE_NS, bare) is None, "some of it may still come"
    assert server.decide(own, "new", late) is None, "it may only not be there"
    assert server.decide(own, "new", late, frozenset({"near"})) is None
    found = server.decide(own, "new", late, bare)
    assert found is not None and found.members == ("a", "b")


def test_servers_without_jetstream_do_not_count() -> None:
    server, others = one(promised=2), [Seen("b", False, None), seen("c")]
    server.decide(others, "new", 0)
    found = server.decide(others, "new", SETTLE_NS)
    assert found is not None and found.members == ("a", "c")


def test_who_finds_a_group_follows_it_whether_named_or_not() -> None:
    assert one().decide([seen("b", 2, ABC)], "new", 0) == ABC
    assert one("d").decide([seen("x"), seen("b", 2, ABC)], "new", 0) == ABC


@given(st.lists(st.sampled_from("abcde"), unique=True, min_size=2), st.integers(1, 5))
def test_of_those_who_see_each_other_one_founds(peers: list[str], promised: int) -> None:
    founders = []
    for me in peers:
        server = one(me, promised=promised)
        others = [seen(peer) for peer in peers if peer != me]
        server.decide(others, "new", 0)
        founders += [me] if server.decide(others, "new", 2 * PATIENCE_NS) is not None else []
    assert founders in ([min(peers)], [])


def test_servers_of_another_group_are_told_apart() -> None:
    other = Founding("other", ("x",), (1,))
    assert conflict(ABC, [seen("x", 1, other), seen("b", 2, ABC), seen("n")]) == ["x"]
    assert conflict(None, [seen("x", 1, other)]) == []


# On the disk


def disk() -> SimDisk:
    """An empty one."""
    return SimDisk(random.Random(1))


def test_what_was_followed_survives_a_power_cut() -> None:
    one_disk = disk()
    assert read_founding(one_disk) is None
    write_founding(one_disk, ABC)
    one_disk.crash()
    assert read_founding(one_disk) == ABC


def test_one_damaged_copy_is_made_good_by_the_other_two_are_told() -> None:
    one_disk = disk()
    write_founding(one_disk, ABC)
    one_disk.flip_bit("founding/state.0", 300)
    assert read_founding(one_disk) == ABC
    one_disk.flip_bit("founding/state.1", 300)
    with pytest.raises(Damaged, match="meta group does not check"):
        read_founding(one_disk)


def test_an_evicted_store_stays_so() -> None:
    one_disk = disk()
    assert not is_evicted(one_disk)
    write_evicted(one_disk)
    one_disk.crash()
    assert is_evicted(one_disk)
