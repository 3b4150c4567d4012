"""Single nodes, fed with messages by hand: what transcripts cannot show."""

import pytest

from jsctl.broker.raft.codec import encode_members
from jsctl.broker.raft.core import Raft
from jsctl.broker.raft.ready import NOTHING
from jsctl.broker.raft.types import (
    UNKNOWN,
    WHOLE,
    AddLearner,
    Append,
    AppendReply,
    Entry,
    EntryKind,
    Heartbeat,
    HeartbeatReply,
    Members,
    Message,
    Promote,
    RaftLimits,
    RemoveMember,
    Role,
    Standing,
    StandingKind,
    TimeoutNow,
    Timing,
    VoteReply,
    VoteRequest,
)
from tests.broker.raft.single import (
    ABC,
    ALONE,
    ack,
    asleep,
    data,
    follower,
    leader,
    node,
    role,
    serving,
    settle,
    take,
)

# -- commit ----------------------------------------------------------------------------------------


def test_an_older_term_is_not_committed_by_its_copies() -> None:
    raft = leader([1, 2])
    ack(raft, "b", 2)
    ack(raft, "c", 2)
    assert raft.commit == 0

    ack(raft, "c", 3)
    assert raft.commit == 3


def test_a_leader_counts_itself_only_when_durable() -> None:
    raft = serving()
    raft.propose([b"x"])
    ready = raft.ready()
    assert ready.to_persist == (2, 1)
    ack(raft, "b", 2)
    assert raft.commit == 1
    raft.persisted(2, 1)
    assert raft.commit == 2


def test_a_quorum_of_others_is_enough_but_waits_to_be_applied() -> None:
    raft = serving()
    raft.propose([b"x"])
    raft.ready()
    ack(raft, "b", 2)
    ack(raft, "c", 2)
    assert raft.commit == 2
    assert not raft.ready().committed
    raft.persisted(2, 1)
    assert [entry.index for entry in raft.ready().committed] == [2]


def test_acks_of_unknown_nodes_do_not_count_until_they_are_whole() -> None:
    raft = leader()
    ack(raft, "b", 1, standing=StandingKind.UNKNOWN)
    assert raft.commit == 0

    ack(raft, "b", 1, standing=StandingKind.WHOLE)
    assert raft.commit == 1


def test_acks_of_strangers_do_not_count() -> None:
    raft = leader()
    ack(raft, "x", 1)
    raft.step([HeartbeatReply("a", "x", raft.term, 1, 1, 1)])
    assert raft.commit == 0


def test_committed_entries_come_in_portions() -> None:
    raft = node(ALONE, limits=RaftLimits(committed_entries_max=2))
    raft.propose([b"1", b"2", b"3", b"4"])
    take(raft)

    portions = [[entry.index for entry in take(raft).committed] for _ in range(3)]
    assert portions == [[1, 2], [3, 4], [5]]
    assert raft.ready() is NOTHING


# -- durability of promises ------------------------------------------------------------------------


def test_an_ack_waits_for_a_write_of_an_earlier_ready() -> None:
    raft = follower(*data(1, 1, 2))
    first = raft.ready()
    assert [m.index for m in first.send_after_sync if isinstance(m, AppendReply)] == [2]

    # A new leader sends the same while the write is still under way.
    raft.step([Append("a", "c", 3, 2, 2, 0, [])])
    second = raft.ready()
    raft.step([Append("a", "c", 3, 2, 2, 1, [])])
    third = raft.ready()
    assert second.hard_state == (3, "")
    assert not third.send and not third.send_after_sync

    raft.persisted(2, 2)
    assert raft.ready().committed == data(1, 1)


def test_an_owed_ack_is_paid_as_far_as_it_is_durable() -> None:
    raft = follower(*data(1, 2))
    raft.ready()
    raft.step([Append("a", "c", 3, 1, 2, 0, [])])
    raft.ready()
    raft.acked = 0  # As if the ack with the new term's write had not been there.
    raft.step([Append("a", "c", 3, 1, 2, 0, [])])
    assert not raft.ready().send_after_sync
    assert raft.owed == 1

    raft.persisted(1, 2)
    assert [m.index for m in raft.ready().send_after_sync if isinstance(m, AppendReply)] == [1]


def test_acks_of_one_turn_are_one() -> None:
    raft = follower(*data(1, 1))
    raft.step([Append("a", "b", 2, 1, 1, 0, data(2, 2)), Append("a", "b", 2, 2, 2, 0, data(3, 2))])

    acks = [m.index for m in raft.ready().send_after_sync if isinstance(m, AppendReply)]
    assert acks == [3]


def test_a_late_notice_of_a_replaced_entry_is_ignored() -> None:
    raft = follower(*data(1, 2))
    raft.ready()
    raft.step([Append("a", "c", 3, 0, 0, 1, data(1, 3))])
    ready = raft.ready()
    assert ready.truncate_from == 1
    raft.persisted(1, 2)
    assert not raft.ready().committed

    raft.persisted(1, 3)
    assert raft.ready().committed == data(1, 3)


def test_replaced_before_it_was_handed_out_is_never_written() -> None:
    raft = follower(*data(1, 2, 2))
    raft.step([Append("a", "c", 3, 1, 2, 0, data(2, 3))])
    ready = raft.ready()

    assert ready.truncate_from is None
    assert ready.append == [*data(1, 2), *data(2, 3)]


def test_a_group_of_one_sends_nothing_before_its_term_is_durable() -> None:
    raft = Raft("a", members=Members(("a",), ("d",)), jitter=lambda n: 0)
    first = raft.ready()
    assert not first.send and first.send_after_sync
    raft.propose([b"x"])
    second = raft.ready()
    assert not second.send

    raft.persisted(1, 1)
    raft.propose([b"y"])
    raft.step([AppendReply("a", "d", 1, 1)])
    assert raft.ready().send


def test_a_repeated_vote_is_written_again() -> None:
    raft = node(term=1, terms=[1])
    for _ in range(16):
        raft.tick()
    settle(raft)
    request = VoteRequest("a", "b", 5, 1, 1)
    raft.step([request])
    assert raft.ready().hard_state == (5, "b")
    raft.step([request])
    assert raft.ready().hard_state == (5, "b")


# -- limits ----------------------------------------------------------------------------------------


def test_proposals_are_bounded_by_bytes() -> None:
    raft = serving(RaftLimits(proposal_bytes_max=10))
    assert raft.propose([b"1234", b"567"]) == 2
    assert raft.propose([b"the last one may be large"]) == 4
    assert raft.propose([b"8"]) is None
    settle(raft)
    ack(raft, "b", 4)
    assert raft.propose([b"8"]) == 5


def test_appends_are_bounded_by_bytes_and_window() -> None:
    raft = serving(RaftLimits(append_bytes_max=300, inflight_bytes_max=500))
    raft.propose([b"x" * 100] * 6)
    sent = [len(m.entries) for m in raft.ready().send if isinstance(m, Append) and m.to == "b"]
    assert sent == [2, 2]

    ack(raft, "b", 3)
    more = [len(m.entries) for m in raft.ready().send if isinstance(m, Append) and m.to == "b"]
    assert more == [2]


# -- members ---------------------------------------------------------------------------------------


def test_no_change_before_the_first_own_entry_is_committed() -> None:
    raft = leader()
    assert "not committed an entry" in raft.refusal(AddLearner("d"))
    assert raft.propose_members(AddLearner("d")) is None


def test_only_an_idle_leader_changes_members() -> None:
    assert node().refusal(RemoveMember("b")) == "not the leader"
    raft = serving()
    assert raft.transfer("b")
    assert not raft.transfer("c")
    assert "handed over" in raft.refusal(AddLearner("d"))


def test_a_change_wakes_a_sleeping_group() -> None:
    raft = node(ALONE)
    settle(raft)
    raft.tick()
    assert asleep(raft)
    assert raft.propose_members(AddLearner("b")) == 2
    assert not asleep(raft)
    assert "caught up" not in raft.refusal(Promote("x"))


def test_the_last_member_sleeps_without_asking() -> None:
    raft = node(ALONE)
    settle(raft)
    now = raft.now
    for _ in range(100):
        raft.tick()
    assert asleep(raft) and raft.now == now + 1
    assert raft.propose([b"x"]) == 2
    assert asleep(raft)


# -- damaged nodes ---------------------------------------------------------------------------------


def test_a_damaged_follower_is_fed_from_what_it_has() -> None:
    raft = serving()
    raft.propose([b"x"])
    settle(raft)
    ack(raft, "b", 2)
    raft.step([HeartbeatReply("a", "b", 1, 1, 1, 0, standing=StandingKind.UNKNOWN)])
    assert raft.progress()[0].match == 0
    assert not raft.transfer("b")

    raft = serving()
    raft.step([AppendReply("a", "b", 1, 1, True, 0, 0, StandingKind.SUSPECT)])
    assert raft.progress()[0].next == 1


def test_a_damaged_group_of_one_waits_for_the_operator() -> None:
    raft = node(ALONE, [1, 1], standing=Standing(StandingKind.SUSPECT, 1, 5))
    for _ in range(40):
        raft.tick()
    assert role(raft) is Role.FOLLOWER

    raft.rescue(1)
    raft.rescue(1)
    assert role(raft) is Role.LEADER
    assert raft.ready().standing == WHOLE


def test_a_suspect_log_that_was_filled_up_is_whole_at_the_next_start() -> None:
    assert node(terms=[1, 1], standing=Standing(StandingKind.SUSPECT, 1, 2)).standing == WHOLE


def test_who_starts_over_with_a_leader_is_whole_only_with_what_that_leader_has() -> None:
    raft = Raft("b", members=ABC, standing=UNKNOWN, volatile=True, jitter=lambda n: 0)
    raft.step([VoteRequest("b", "a", 4, 2, 1, fresh=True)])
    assert any(getattr(reply, "granted", False) for reply in take(raft).send_after_sync)
    raft.step([Heartbeat("b", "a", 4, 0, 1, 0, quiet=False, last_index=3)])
    settle(raft)
    assert raft.standing == UNKNOWN
    raft.step([Append("b", "a", 4, 0, 0, 0, data(1, 1, 1))])
    settle(raft)
    assert raft.standing == UNKNOWN
    raft.step([Append("b", "a", 4, 2, 1, 0, data(3, 4))])
    settle(raft)
    assert raft.standing == WHOLE


def test_an_empty_volatile_group_of_one_starts_over() -> None:
    raft = node(ALONE, standing=UNKNOWN)
    assert role(raft) is Role.LEADER


def test_a_member_that_knows_no_members_never_campaigns() -> None:
    raft = node(Members())
    for _ in range(100):
        raft.tick()
    raft.campaign()
    assert role(raft) is Role.FOLLOWER and raft.term == 0


# -- state transfer --------------------------------------------------------------------------------


def test_restore_keeps_what_follows_and_drops_what_does_not() -> None:
    raft = follower(*data(1, 1, 2, 2))
    assert raft.restore(2, 2, ABC)
    ready = raft.ready()
    assert [entry.index for entry in ready.append] == [3]
    assert ready.base is not None and ready.base.index == 2
    assert not raft.restore(2, 2, ABC)

    raft = follower(*data(1, 1, 2, 2))
    take(raft)
    assert raft.restore(7, 2, Members(("a", "b")))
    ready = raft.ready()
    assert (ready.truncate_from, ready.to_persist) == (1, (7, 2))
    assert ready.members == Members(("a", "b"))
    raft.step([Append("a", "b", 2, 7, 2, 7, data(8, 2))])
    assert raft.ready().append == data(8, 2)


def test_an_append_below_the_base_is_taken_from_the_base_on() -> None:
    raft = follower(*data(1, 1, 2))
    raft.step([Append("a", "b", 2, 2, 2, 2, [])])
    settle(raft)
    raft.compact(2)
    raft.compact(1)
    raft.step([Append("a", "b", 2, 0, 0, 2, data(1, 1, 2, 2))])
    assert raft.ready().append == data(3, 2)
    assert raft.base_index == 2


def test_an_old_transfer_is_no_news() -> None:
    raft = serving()
    raft.snapshot_sent("b", 1)
    raft.snapshot_failed("b")
    raft.snapshot_sent("x", 1)
    assert raft.ready() is NOTHING


# -- liveness of servers ---------------------------------------------------------------------------


def test_bad_news_about_oneself_or_twice_is_no_news() -> None:
    raft = serving()
    raft.peer_down("a")
    raft.peer_down("x")
    raft.peer_down("b")
    raft.peer_down("b")
    assert [p.active for p in raft.progress()] == [False, True]
    assert not raft.transfer("b")
    raft.peer_up("b")
    assert raft.progress()[0].active
    raft.campaign()
    assert role(raft) is Role.LEADER


def sleeping_leader() -> Raft:
    raft = serving()
    for _ in range(raft.timing.quiet_ticks + 2):
        raft.tick()
        for message in take(raft).send:
            if isinstance(message, Heartbeat):
                raft.step([_answer(message)])
    assert asleep(raft)
    return raft


def _answer(m: Heartbeat) -> Message:
    return HeartbeatReply("a", m.to, m.term, m.round, m.tick, m.last_index, m.quiet)


def test_no_lease_survives_the_sleep() -> None:
    raft = sleeping_leader()
    late = HeartbeatReply("a", "b", raft.term, raft.round, raft.now, raft.last_index, True)
    raft.step([late])
    assert asleep(raft)
    raft.read_index(1)
    ready = raft.ready()
    assert not ready.reads and len(ready.send) == 2


@pytest.mark.parametrize("act", ["propose", "transfer", "peer_up", "campaign"])
def test_whatever_is_asked_of_a_sleeping_leader_wakes_it(act: str) -> None:
    raft = sleeping_leader()
    if act == "propose":
        raft.propose([b"x"])
    elif act == "transfer":
        assert raft.transfer("b")
    elif act == "peer_up":
        raft.peer_up("b")
    else:
        raft.campaign()
    assert not asleep(raft)


# -- construction ----------------------------------------------------------------------------------


def test_sets_of_members_in_the_recovered_log_are_in_effect() -> None:
    config = Entry(1, 1, EntryKind.CONFIG, encode_members(ABC))
    raft = Raft("a", members=Members(), entries=[config], jitter=lambda n: 0)
    assert raft.members == ABC
    assert raft.next_index == 2


@pytest.mark.parametrize(
    "fields",
    [
        {"heartbeat_ticks": 16},
        {"lease_ticks": 0},
        {"margin_ticks": 0},
        {"lease_ticks": 15},
        {"quiet_ticks": -1},
    ],
)
def test_unsafe_timings_are_refused(fields: dict[str, int]) -> None:
    with pytest.raises(AssertionError):
        Timing(**fields)


def test_messages_for_others_are_a_bug() -> None:
    with pytest.raises(AssertionError, match="another"):
        node().step([Heartbeat("b", "c", 1, 0, 1, 1)])


def test_two_leaders_in_a_term_are_a_bug() -> None:
    raft = follower()
    with pytest.raises(AssertionError, match="two leaders"):
        raft.step([Heartbeat("a", "c", 2, 0, 1, 1)])


def test_a_removed_leader_hands_over_to_nobody_that_is_down() -> None:
    raft = Raft("a", members=Members(("a", "b")), jitter=lambda n: 0)
    raft.campaign()
    settle(raft)
    raft.step([VoteReply("a", "b", 1, 1, False, True)])
    settle(raft)
    ack(raft, "b", 1)
    settle(raft)
    assert raft.propose_members(RemoveMember("a")) == 2
    settle(raft)
    raft.peer_down("b")
    ack(raft, "b", 2)

    assert role(raft) is Role.FOLLOWER
    assert not [m for m in raft.ready().send if isinstance(m, TimeoutNow)]


def test_hard_state_that_is_known_needs_no_poll() -> None:
    raft = Raft("a", members=ABC, standing=UNKNOWN, hard_state_known=True, jitter=lambda n: 0)
    raft.step([Append("a", "b", 2, 0, 0, 1, data(1, 2))])
    take(raft)
    assert raft.ready().standing == WHOLE


def test_votes_may_be_forgotten_unless_it_is_said_otherwise() -> None:
    raft = node(standing=UNKNOWN)
    raft.step([Append("a", "b", 2, 0, 0, 1, data(1, 2))])
    settle(raft)
    assert raft.standing == UNKNOWN
    raft.step([VoteReply("a", "b", 3, 2, True, False)])
    assert raft.standing == UNKNOWN
    raft.step([VoteReply("a", "c", 3, 2, True, False)])
    assert raft.ready().standing == WHOLE
