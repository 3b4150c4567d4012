"""Sets of members along the log."""

import pytest

from jsctl.broker.raft.codec import encode_members
from jsctl.broker.raft.membership import Membership, next_members
from jsctl.broker.raft.types import (
    AddLearner,
    Change,
    Entry,
    EntryKind,
    Members,
    Promote,
    RemoveMember,
)

ABC = Members(("a", "b", "c"))
ABCD = Members(("a", "b", "c"), ("d",))
AB = Members(("a", "b"))


def config(index: int, members: Members) -> Entry:
    return Entry(index, 1, EntryKind.CONFIG, encode_members(members))


def history() -> Membership:
    made = Membership(2, ABC)
    data = Entry(3, 1, EntryKind.DATA, b"x")
    assert made.append([data, config(4, ABCD), data, config(6, AB)])
    return made


def test_a_set_is_active_from_its_append_on() -> None:
    made = history()

    assert (made.active, made.active_index) == (AB, 6)
    assert [made.at(index) for index in (2, 3, 4, 5, 6, 9)] == [ABC, ABC, ABCD, ABCD, AB, AB]
    assert not made.append([Entry(7, 1, EntryKind.DATA, b"")])


def test_truncation_reverts() -> None:
    made = history()

    assert not made.truncate(7)
    assert made.truncate(5)
    assert made.active == ABCD
    assert made.truncate(3)
    assert (made.active, made.active_index) == (ABC, 2)
    with pytest.raises(AssertionError, match="base"):
        made.truncate(2)


def test_compaction_keeps_the_set_of_the_base() -> None:
    made = history()

    assert made.compact(5) == ABCD
    assert made.history == [(5, ABCD), (6, AB)]
    with pytest.raises(AssertionError, match="below"):
        made.at(4)


def test_restart_forgets_everything() -> None:
    made = history()

    assert made.restart(9, ABC)
    assert not made.restart(10, ABC)
    assert made.history == [(10, ABC)]


def test_sets_come_in_order() -> None:
    with pytest.raises(AssertionError, match="order"):
        history().append([config(6, AB)])


@pytest.mark.parametrize(
    ("members", "change", "expected"),
    [
        (ABC, AddLearner("d"), ABCD),
        (ABCD, AddLearner("d"), None),
        (ABC, AddLearner("a"), None),
        (ABC, AddLearner(""), None),
        (ABCD, Promote("d"), Members(("a", "b", "c", "d"))),
        (ABC, Promote("d"), None),
        (ABC, Promote("a"), None),
        (ABC, RemoveMember("c"), AB),
        (ABCD, RemoveMember("d"), ABC),
        (ABC, RemoveMember("x"), None),
        (Members(("a",)), RemoveMember("a"), None),
        (Members(("a",), ("b",)), RemoveMember("b"), Members(("a",))),
    ],
)
def test_steps(members: Members, change: Change, expected: Members | None) -> None:
    assert next_members(members, change) == expected


def test_a_set_contains_both_kinds() -> None:
    assert "d" in ABCD and "a" in ABCD and "x" not in ABCD
    assert ABCD.all() == ("a", "b", "c", "d")
