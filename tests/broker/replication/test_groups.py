"""Groups over one log: what leaves when, what is applied, and what the log may forget.

The promise that matters: nothing of `send_after_sync` leaves before its batch and all earlier
ones are durable. It is checked against the disk: what a power cut would leave is read again.
"""

import copy
import random
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from jsctl.broker.raft.types import (
    Append,
    AppendReply,
    Heartbeat,
    HeartbeatReply,
    Members,
    Message,
    VoteReply,
    VoteRequest,
)
from jsctl.broker.replication.checkpoints import IN_TURN_AT_ONCE, GroupLimits
from jsctl.broker.store.wal.log import Wal
from jsctl.dataclass import replace
from tests.support.groups_rig import (
    ABC,
    OPTIONS,
    Checkpoint,
    Rig,
    Unit,
    entries,
    lone_group,
)
from tests.support.quick import examples


def test_an_answer_waits_for_its_own_batch() -> None:
    rig = Rig()
    rig.add("S", ABC)
    rig.step(Append("a", "b", 1, 0, 0, 0, entries(1, b"x")))
    assert not any(isinstance(one, AppendReply) for one in rig.take_sent())
    rig.run_disk()
    (reply,) = [one for one in rig.take_sent() if isinstance(one, AppendReply)]
    assert reply.index == 1


def test_while_a_batch_is_with_the_disk_the_next_one_collects() -> None:
    rig = Rig()
    rig.add("S", ABC)
    rig.add("T", ABC)
    rig.step(Append("a", "b", 1, 0, 0, 0, entries(1, b"x")))
    rig.step(Append("a", "b", 1, 1, 1, 0, entries(2, b"y")))
    rig.step(VoteRequest("a", "c", 9, 5, 5), key=b"T")
    assert len(rig.batches) == 1
    rig.run_disk()
    replies = [one for one in rig.take_sent() if not isinstance(one, HeartbeatReply)]
    assert [one.index for one in replies if isinstance(one, AppendReply)] == [1]
    assert len(rig.batches) == 1, "the second batch carries both groups"
    rig.run_disk()
    kinds = {type(one) for one in rig.take_sent()}
    assert {AppendReply, VoteReply} <= kinds


def test_an_answer_without_records_waits_for_the_records_before_it() -> None:
    rig = Rig()
    rig.add("S", ABC)
    rig.step(Append("a", "b", 1, 0, 0, 0, entries(1, b"x")))
    rig.step(Append("a", "b", 1, 0, 0, 0, entries(1, b"x")))
    assert not any(isinstance(one, AppendReply) for one in rig.take_sent())
    rig.run_disk()
    assert any(isinstance(one, AppendReply) for one in rig.take_sent())


class Checked(Rig):
    """Looks at what a power cut would leave whenever a promise leaves."""

    def raft(self, peer: str, key: bytes, messages: Sequence[Message]) -> None:
        super().raft(peer, key, messages)
        promises = [one for one in messages if isinstance(one, AppendReply | VoteReply)]
        if not promises:
            return
        disk = copy.deepcopy(self.disk)
        disk.rng = NoLuck()
        disk.crash()
        _, recovered = Wal.open(disk, "log", OPTIONS)
        found = recovered.groups.get(key)
        for one in promises:
            if isinstance(one, AppendReply) and not one.rejected and one.index:
                assert found is not None and found.term >= one.term
                assert found.last_index >= one.index or found.term > one.term
            elif isinstance(one, VoteReply) and one.granted and not one.pre:
                assert found is not None and found.term >= one.term
                assert found.term > one.term or found.vote.decode() == one.to


class NoLuck(random.Random):
    """Every sector and name that was not synced is lost."""

    def randrange(self, *_: object) -> int:
        return 2

    def random(self) -> float:
        return 0.99


MOVES = st.one_of(
    st.tuples(st.just("append"), st.sampled_from("ST"), st.integers(1, 3)),
    st.tuples(st.just("vote"), st.sampled_from("ST"), st.integers(1, 2)),
    st.tuples(st.just("disk"), st.just(""), st.integers(1, 2)),
    st.tuples(st.just("again"), st.sampled_from("ST"), st.just(1)),
)


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(MOVES, max_size=14))
def test_what_is_promised_is_on_the_disk(moves: list[tuple[str, str, int]]) -> None:
    rig = Checked()
    groups = {name: rig.add(name, ABC) for name in "ST"}
    terms = dict.fromkeys("ST", 1)
    for move, name, count in moves:
        if move == "disk":
            for _ in range(count):
                rig.run_disk()
            continue
        raft, key = groups[name].raft, name.encode()
        if move == "vote":
            terms[name] += count
            rig.step(VoteRequest("a", "bc"[count % 2], terms[name], 1000, terms[name]), key=key)
        else:
            last, term = raft.last_index, terms[name]
            prev = last if move == "append" else max(last - 1, 0)
            prev_term = raft.log.term_at(prev) or 0
            more = entries(prev + 1, *[b"x"] * count, term=term)
            rig.step(Append("a", "b", term, prev, prev_term, 0, more), key=key)
    rig.settle()


def test_entries_are_applied_and_who_waits_is_told() -> None:
    rig = Rig()
    group = rig.add("S")
    told: list[int | None] = []
    index = rig.groups.propose(group, [b"x", b"y"], told.append)
    assert index == 2 and not told
    rig.turn()
    assert not told, "not before it is durable"
    rig.settle()
    assert told == [300] and rig.units["S"].applied == [(2, b"x"), (3, b"y")]
    assert rig.units["S"].told[-1] == "caught up"


def test_entries_of_memory_do_not_go_to_the_log() -> None:
    rig = Rig()
    group = rig.add("M", volatile=True)
    told: list[int | None] = []
    rig.groups.propose(group, [b"x", b"y"], told.append)
    rig.turn()
    assert told == [300] and not rig.batches, "applied in the same turn, without the disk"
    assert not Wal.open(rig.disk, "log", OPTIONS)[1].groups[b"M"].entries


def test_a_memory_follower_answers_at_once_but_not_before_its_term() -> None:
    rig = Rig()
    rig.add("S", ABC, volatile=True)
    rig.step(Append("a", "b", 1, 0, 0, 0, entries(1, b"x")))
    assert not any(isinstance(one, AppendReply) for one in rig.take_sent()), "a new term"
    rig.step(Append("a", "b", 1, 1, 1, 0, entries(2, b"y")))
    assert not any(isinstance(one, AppendReply) for one in rig.take_sent()), "still not durable"
    rig.run_disk()
    replies = [one for one in rig.take_sent() if isinstance(one, AppendReply)]
    assert max(one.index for one in replies) == 2
    assert Wal.open(rig.disk, "log", OPTIONS)[1].groups[b"S"].term == 1
    rig.step(Append("a", "b", 1, 2, 1, 0, entries(3, b"z")))
    (reply,) = [one for one in rig.take_sent() if isinstance(one, AppendReply)]
    assert reply.index == 3 and not rig.batches
    rig.step(Append("a", "c", 9, 3, 1, 0, entries(4, b"x", term=9)))
    assert not any(isinstance(one, AppendReply) for one in rig.take_sent()), "another new term"
    rig.run_disk()
    assert any(isinstance(one, AppendReply) for one in rig.take_sent())


def test_a_stranger_is_answered_while_a_group_is_founded_on_its_only_server() -> None:
    rig = Rig()
    group = lone_group("S")
    unit = rig.units["S"] = Unit(regained=True)
    group.unit = unit
    rig.groups.add(group)
    group.raft.campaign()
    rig.step(VoteRequest("a", "z", 2, 0, 0, pre=True))
    rig.settle()
    (reply,) = [one for one in rig.take_sent() if isinstance(one, VoteReply)]
    assert reply.to == "z" and not reply.granted
    assert unit.told.count("founded") == 1 and group.leading


def test_a_stranger_is_answered_between_entries_that_wait_for_nothing() -> None:
    rig = Rig()
    group = rig.add("S")
    group.passes = lambda _: True
    rig.take_sent()
    told: list[int | None] = []
    rig.groups.propose(group, [b"x"], told.append)
    rig.step(VoteRequest("a", "z", 2, 0, 0, pre=True))
    rig.settle()
    assert told == [200] and any(isinstance(one, VoteReply) for one in rig.take_sent())


def test_proposals_of_a_follower_are_refused() -> None:
    rig = Rig()
    group = rig.add("S", ABC)
    assert rig.groups.propose(group, [b"x"], lambda _: None) is None
    assert not group.waiting and not rig.groups.step(b"none", [])


def test_a_leader_that_is_deposed_stops_and_tells_who_waits() -> None:
    rig = Rig()
    group = rig.add("S")
    told: list[int | None] = []
    rig.groups.propose(group, [b"x"], told.append)
    rig.groups.remove(group)
    assert told == [None] and rig.units["S"].told[-1] == "unlead"
    assert rig.groups.by_key(b"S") is None and not rig.groups.step(b"S", [])
    rig.settle()
    assert Wal.open(rig.disk, "log", OPTIONS)[1].groups.get(b"S") is None or not group.leading


def test_leaders_are_announced_once_they_serve() -> None:
    rig = Rig()
    group = rig.add("S")
    changes = [(one.leader, one.term) for one in rig.groups.changes]
    assert changes == [("a", 1)] and group.leading and group.led_term == 1
    rig.groups.changes.clear()
    follower = rig.add("T", ABC)
    rig.step(Heartbeat("a", "b", 1, 0, 0, 0), key=b"T")
    assert [(one.group.name, one.leader) for one in rig.groups.changes] == [("T", "b")]
    assert not follower.leading and follower.leader == "b"


def test_reads_are_answered_when_applied_and_fail_elsewhere() -> None:
    rig = Rig()
    leader, follower = rig.add("S"), rig.add("T", ABC)
    rig.groups.read(leader, 1)
    rig.groups.read(follower, 2)
    rig.settle()
    assert {(token, good) for _, token, good in rig.groups.reads.answers} == {(1, True), (2, False)}


def test_a_settled_read_waits_for_what_was_in_the_log() -> None:
    rig = Rig()
    group = rig.add("S")
    rig.settle()
    rig.groups.propose(group, [b"x"], None)
    rig.groups.read(group, 1)
    rig.groups.read(group, 2, settled=True)
    rig.turn()
    assert [token for _, token, _ in rig.groups.reads.answers] == [1], "the disk has it not yet"
    rig.settle()
    assert [(token, good) for _, token, good in rig.groups.reads.answers] == [(1, True), (2, True)]


def test_the_only_member_need_not_ask_whether_it_is_current() -> None:
    rig = Rig()
    group = rig.add("S")
    rig.settle()
    assert rig.groups.is_current(group, settled=True)
    assert not rig.groups.is_current(rig.add("T", ABC))
    rig.groups.propose(group, [b"x"], None)
    assert rig.groups.is_current(group)
    assert not rig.groups.is_current(group, settled=True)
    rig.settle()
    assert rig.groups.is_current(group, settled=True)
    rig.groups.remove(group)
    assert not rig.groups.is_current(group)


def awake(rig: Rig) -> bool:
    """Whether any group wants ticks."""
    return bool(rig.groups.schedule.awake)


def busy(rig: Rig) -> bool:
    """Whether something is left for another turn."""
    return bool(rig.groups.schedule.busy)


def test_sleeping_groups_take_no_ticks_and_wake() -> None:
    rig = Rig()
    group = rig.add("S")
    assert awake(rig)
    rig.groups.tick(200)
    assert group.raft.quiet and not awake(rig)
    rig.groups.propose(group, [b"x"], None)
    assert awake(rig)
    follower = rig.add("T", ABC)
    rig.step(Heartbeat("a", "b", 1, 0, 0, 0, quiet=True, last_index=0), key=b"T")
    rig.groups.tick(1)
    rig.groups.tick(1)
    asleep = follower.raft.quiet
    rig.groups.peer_down("b")
    rig.groups.peer_up("b")
    rig.groups.peer_down("stranger")
    assert awake(rig) and (asleep or follower.raft.leader == "b")


def test_a_peer_that_left_while_it_was_down_is_not_down_when_it_comes_back() -> None:
    rig = Rig()
    group = rig.add("T", ABC)
    rig.groups.peer_down("c")
    down = set(group.raft.down)
    group.raft.members = Members(("a", "b"))
    rig.groups.peer_up("c")
    assert down == {"c"} and not group.raft.down


def test_a_checkpoint_lets_the_log_go() -> None:
    rig = Rig(GroupLimits(checkpoint_bytes=100, checkpoint_entries=1000, entries_kept=2))
    group = rig.add("S")
    for _ in range(6):
        rig.groups.propose(group, [bytes(60)], None)
        rig.settle()
    (first, *_) = rig.units["S"].checkpoints
    assert isinstance(first, Checkpoint) and first.ran
    assert group.checkpointed > 0 and not group.checkpoint_running
    assert 0 < group.raft.base_index <= group.checkpointed


def test_a_checkpoint_of_a_group_that_is_gone_is_forgotten() -> None:
    rig = Rig(GroupLimits(checkpoint_bytes=10))
    group = rig.add("S")
    rig.groups.propose(group, [bytes(60)], None)
    rig.turn()
    while not any(batch.ticket < 0 for batch in rig.batches):
        rig.run_disk()
    rig.groups.remove(group)
    rig.settle()
    assert rig.units["S"].checkpoints == [] and rig.groups.idle


def test_jobs_of_others_come_back() -> None:
    rig = Rig()
    group, work = rig.add("S"), Checkpoint(5)
    rig.groups.checkpoints.run(group, work)
    assert not rig.groups.idle
    rig.settle()
    assert rig.groups.checkpoints.finished == [(group, work)] and work.ran and rig.groups.idle


def test_a_group_that_alone_keeps_the_oldest_log_is_made_to_let_go() -> None:
    rig = Rig()
    idle, busy = rig.add("S"), rig.add("T")
    rig.groups.propose(idle, [b"x"], None)
    rig.settle()
    for _ in range(40):
        rig.groups.propose(busy, [bytes(4000)], None)
        rig.settle()
        rig.groups.relieve()
        rig.settle()
    names = [name for name in rig.disk.list("log") if name.endswith(".wal")]
    assert idle.checkpointed > 0 and idle.raft.base_index > 0
    assert len(names) <= 4, names


def test_many_groups_that_keep_the_oldest_log_let_go_of_it_one_after_the_other() -> None:
    """Each opens and writes files: all in one turn would hold up everybody."""
    rig = Rig()
    idle = [rig.add(f"S{number}") for number in range(100)]
    for group in idle:
        rig.groups.propose(group, [b"x"], None)
    rig.settle()
    busy = rig.add("T")
    most = 0
    for _ in range(40):
        rig.groups.propose(busy, [bytes(4000)], None)
        rig.settle()
        rig.groups.relieve()
        rig.turn()
        while rig.batches:
            most = max(most, sum(batch.ticket < 0 for batch in rig.batches))
            rig.run_disk()
    assert most == IN_TURN_AT_ONCE
    assert all(group.checkpointed > 0 for group in idle)


def test_what_is_asked_for_while_a_checkpoint_runs_follows_it() -> None:
    """The one that runs does not have what came since, and nobody asks again."""
    rig = Rig()
    group = rig.add("S")
    rig.groups.checkpoints.soon(group)
    rig.turn()
    rig.groups.propose(group, [b"x"], None)
    rig.groups.checkpoints.in_turn(group)
    rig.settle()
    assert len(rig.units["S"].checkpoints) == 2


def test_who_waits_for_its_turn_and_goes_is_forgotten() -> None:
    rig = Rig()
    groups = [rig.add(f"S{number}") for number in range(IN_TURN_AT_ONCE + 1)]
    for group in groups:
        rig.groups.checkpoints.in_turn(group)
    rig.turn()
    rig.groups.remove(groups[-1])
    rig.settle()
    assert rig.groups.idle
    assert [len(rig.units[group.name].checkpoints) for group in groups] == [
        *[1] * IN_TURN_AT_ONCE,
        0,
    ]


def test_parked_groups_keep_their_log() -> None:
    rig = Rig()
    group = rig.add("S")
    rig.groups.propose(group, [b"x"], None)
    rig.settle()
    rig.groups.park()
    assert not rig.groups.by_name and not awake(rig)
    assert rig.units["S"].told[-1] == "unlead"
    rig.settle()
    assert Wal.open(rig.disk, "log", OPTIONS)[1].groups[b"S"].last_index == 2


def test_nothing_reaches_parked_groups_that_the_disk_finishes_later() -> None:
    """Their files are closed."""
    rig = Rig()
    group, unit = rig.add("S"), rig.units["S"]
    rig.groups.propose(group, [b"x"], None)
    rig.groups.checkpoints.soon(group)
    rig.turn()
    assert len(rig.batches) == 2, "entry and checkpoint are on their way to the disk"
    before = list(unit.applied)
    rig.groups.park()
    told = list(unit.told)
    rig.settle()
    assert (unit.applied, unit.told, unit.checkpoints) == (before, told, [])
    assert not busy(rig) and not awake(rig)
    assert rig.groups.idle
    assert Wal.open(rig.disk, "log", OPTIONS)[1].groups[b"S"].last_index == 2


def test_a_removed_group_does_not_wake_up_again() -> None:
    """It would ask for votes for ever, and nobody would take what it says."""
    rig = Rig()
    group = rig.add("S", ABC)
    rig.settle()
    rig.groups.remove(group)
    rig.groups.touch(group)
    rig.turn()
    assert not busy(rig) and not awake(rig)


def test_a_drain_that_does_not_end_goes_on_in_the_next_turn() -> None:
    rig = Rig(GroupLimits(drain_rounds=1))
    group = rig.add("S", ABC)
    group.raft.limits = replace(group.raft.limits, committed_entries_max=1)
    rig.groups.step(b"S", [Append("a", "b", 1, 0, 0, 2, entries(1, b"x", b"y"))])
    for _ in range(10):
        rig.turn()
        if rig.batches:
            rig.run_disk()
        if busy(rig):
            break
    assert busy(rig), "one round is not enough for two entries"
    while busy(rig) or rig.batches:
        rig.run_disk()
    assert rig.units["S"].applied == [(1, b"x"), (2, b"y")] and group.raft.applied == 2
