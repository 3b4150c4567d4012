"""How a leader brings a group to the peers that are wanted, one safe step at a time."""

from collections.abc import Sequence

from jsctl.broker.assets.membership import (
    HandOver,
    MembershipChange,
    Settled,
    Step,
    Waiting,
    next_step,
)
from jsctl.broker.raft.core import Raft
from jsctl.broker.raft.types import (
    AddLearner,
    AppendReply,
    Members,
    Promote,
    RemoveMember,
    Role,
    StandingKind,
)
from tests.broker.raft.single import settle

EVERYBODY = frozenset("abcdef")


def leader(voters: str, learners: str = "") -> Raft:
    """`a` leads; the others have all of its log."""
    raft = Raft("a", members=Members((voters[0],)), jitter=lambda n: 0)
    raft.campaign()
    settle(raft)
    assert raft.role is Role.LEADER
    for peer in voters[1:] + learners:
        assert raft.propose_members(AddLearner(peer)) is not None
        everybody_acks(raft)
        if peer in voters:
            assert raft.propose_members(Promote(peer)) is not None, raft.refusal(Promote(peer))
            everybody_acks(raft)
    everybody_acks(raft)
    return raft


def catch_up(raft: Raft, peer: str, standing: StandingKind = StandingKind.WHOLE) -> None:
    """A peer says that it has all of the log."""
    raft.step([AppendReply("a", peer, raft.term, raft.last_index, standing=standing)])
    settle(raft)


def everybody_acks(raft: Raft) -> None:
    """So do all."""
    settle(raft)
    for peer in raft.members.all():
        if peer != "a":
            catch_up(raft, peer)
    settle(raft)


def test_who_is_dead_and_not_wanted_goes_before_others_have_joined() -> None:
    raft = leader("abc", "d")
    catch_up(raft, "d", StandingKind.UNKNOWN)
    assert isinstance(step(raft, "abd"), Waiting), "c is there, and counts"
    assert step(raft, "abd", EVERYBODY - {"c"}) == MembershipChange(RemoveMember("c"))


def step(raft: Raft, wanted: Sequence[str], up: frozenset[str] = EVERYBODY) -> Step:
    """The next one, with some servers online."""
    return next_step(raft, tuple(wanted), lambda peer: peer in up)


def test_nothing_to_do() -> None:
    assert step(leader("abc"), "cba") == Settled()


def test_those_who_are_there_join_first() -> None:
    raft = leader("a")
    assert step(raft, "abc", frozenset("ac")) == MembershipChange(AddLearner("c"))
    assert step(raft, "abc", frozenset("a")) == MembershipChange(AddLearner("b"))


def test_a_learner_becomes_a_voter_once_it_caught_up() -> None:
    raft = leader("ab")
    raft.propose_members(AddLearner("c"))
    everybody_acks(raft)
    raft.propose([b"x" * 10])
    catch_up(raft, "b")
    assert step(raft, "abc") == MembershipChange(Promote("c"))
    late = leader("ab")
    late.propose_members(AddLearner("c"))
    settle(late)
    catch_up(late, "b")
    waits = step(late, "abc")
    assert isinstance(waits, Waiting) and waits.what == "catchup" and "peer c" in waits.why


def test_a_learner_that_is_in_doubt_stays_one() -> None:
    raft = leader("ab")
    raft.propose_members(AddLearner("c"))
    everybody_acks(raft)
    catch_up(raft, "c", StandingKind.UNKNOWN)
    assert isinstance(step(raft, "abc"), Waiting)


def test_additions_come_before_removals() -> None:
    raft = leader("abc")
    assert step(raft, "abd") == MembershipChange(AddLearner("d"))


def test_those_who_are_gone_leave_first_learners_before_voters() -> None:
    raft = leader("abcd")
    assert step(raft, "ab", frozenset("abc")) == MembershipChange(RemoveMember("d"))
    assert step(raft, "ab", frozenset("abd")) == MembershipChange(RemoveMember("c"))
    assert step(leader("abc", "d"), "ab") == MembershipChange(RemoveMember("d"))


def test_of_those_who_are_there_the_one_furthest_behind_leaves_first() -> None:
    raft = leader("abc")
    raft.propose([b"x"])
    settle(raft)
    catch_up(raft, "b")
    assert step(raft, "a") == MembershipChange(RemoveMember("c"))
    assert step(raft, "a", frozenset("ac")) == MembershipChange(RemoveMember("b"))


def test_the_leader_goes_last_and_hands_over_to_the_best() -> None:
    raft = leader("abc")
    raft.propose([b"x"])
    settle(raft)
    catch_up(raft, "c")
    assert step(raft, "bc") == HandOver("c")
    assert step(raft, "bc", frozenset("ab")) == HandOver("b")


def test_a_leader_that_nobody_can_follow_stays() -> None:
    waits = step(leader("a"), "")
    assert isinstance(waits, Waiting) and waits.what == "quorum"


def test_a_whole_move_ends_where_it_is_to_be() -> None:
    raft = leader("abc")
    for _ in range(20):
        found = step(raft, "ade")
        if isinstance(found, Settled):
            break
        assert isinstance(found, MembershipChange), found
        assert raft.propose_members(found.change) is not None, raft.refusal(found.change)
        everybody_acks(raft)
        assert len(raft.members.voters) >= 3, "never fewer voters than before"
    assert set(raft.members.voters) == set("ade") and not raft.members.learners
