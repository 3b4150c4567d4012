"""What waits for the disk, and what does not."""

import random

from jsctl.broker.raft.ready import Ready
from jsctl.broker.raft.types import AddLearner, Append, AppendReply, Message, VoteRequest
from jsctl.broker.replication.durability import DurabilityGate, Withheld
from jsctl.broker.replication.group import RaftGroup
from jsctl.broker.store.wal.log import Wal
from jsctl.broker.turn import DiskBatch
from tests.support.groups_rig import ABC, ALONE, OPTIONS, entries, lone_group
from tests.support.sim_disk import SimDisk


def gate() -> DurabilityGate:
    wal, _ = Wal.open(SimDisk(random.Random(1)), "log", OPTIONS)
    return DurabilityGate(wal)


def take(gate: DurabilityGate, group: RaftGroup, *messages: Message) -> Withheld | None:
    group.raft.step(messages)
    return gate.write(group, group.raft.ready())


def sealed(gate: DurabilityGate) -> DiskBatch:
    batch, free = gate.seal()
    assert batch is not None and not free
    return batch


def test_an_answer_is_held_until_its_batch_ran() -> None:
    waits, group = gate(), lone_group("S", ABC)
    assert take(waits, group, Append("a", "b", 1, 0, 0, 0, entries(1, b"x"))) is None
    batch = sealed(waits)
    assert not waits.idle and group.ticket == batch.ticket
    batch.run()
    (held,) = waits.synced(batch.ticket)
    assert held.group is group and held.to_persist == (1, 1)
    assert [type(one) for one in held.messages if isinstance(one, AppendReply)]
    assert waits.idle


def test_one_batch_at_a_time_and_the_next_one_carries_the_rest() -> None:
    waits, group, other = gate(), lone_group("S", ABC), lone_group("T", ABC)
    take(waits, group, Append("a", "b", 1, 0, 0, 0, entries(1, b"x")))
    first = sealed(waits)
    take(waits, group, Append("a", "b", 1, 1, 1, 0, entries(2, b"y")))
    take(waits, other, VoteRequest("a", "c", 9, 5, 5))
    assert waits.seal() == (None, [])
    first.run()
    assert [held.group for held in waits.synced(first.ticket)] == [group]
    second = sealed(waits)
    second.run()
    assert [held.group for held in waits.synced(second.ticket)] == [group, other]


def test_entries_of_memory_wait_for_nothing_but_terms_and_votes() -> None:
    waits, group = gate(), lone_group("M", ABC, volatile=True)
    assert take(waits, group, Append("a", "b", 1, 0, 0, 0, entries(1, b"x"))) is None
    batch = sealed(waits)  # The term
    batch.run()
    waits.synced(batch.ticket)
    free = take(waits, group, Append("a", "b", 1, 1, 1, 0, entries(2, b"y")))
    assert free is not None and free.to_persist is not None
    assert waits.seal() == (None, [])


def test_nothing_of_a_group_that_is_gone_is_held_any_more() -> None:
    waits, group, other = gate(), lone_group("S", ABC), lone_group("T", ABC)
    take(waits, group, Append("a", "b", 1, 0, 0, 0, entries(1, b"x")))
    take(waits, other, Append("a", "b", 1, 0, 0, 0, entries(1, b"x")))
    waits.forget(group)
    batch = sealed(waits)
    batch.run()
    assert [held.group for held in waits.synced(batch.ticket)] == [other]


def test_what_waits_for_records_that_turn_out_to_be_none_leaves_with_the_turn() -> None:
    waits, group = gate(), lone_group("M", ABC, volatile=True)
    take(waits, group, Append("a", "b", 1, 0, 0, 0, entries(1, b"x")))
    batch = sealed(waits)
    batch.run()
    waits.synced(batch.ticket)
    waits.expect(group)
    assert take(waits, group, Append("a", "b", 1, 1, 1, 0, entries(2, b"y"))) is None
    none, (held,) = waits.seal()
    assert none is None and held.group is group and not group.unsealed


def founding(group: RaftGroup) -> Ready:
    assert group.raft.founding
    group.raft.propose([b"config"])
    return group.raft.ready()


def test_a_founding_that_would_come_again_waits_for_nothing_and_nobody_for_it() -> None:
    waits, group = gate(), lone_group("S", ALONE)
    waits.expect(group)
    free = waits.found(group, founding(group))
    assert free.to_persist == (2, 1) and not free.messages
    assert waits.seal() == (None, []) and waits.wal.pending_bytes
    waits.flush()
    batch = sealed(waits)
    seen = [group.provisional]
    batch.run()
    assert waits.synced(batch.ticket) == []
    assert [*seen, group.provisional] == [True, False]
    assert waits.seal() == (None, [])


def test_what_is_acknowledged_stands_behind_the_founding_in_the_log() -> None:
    waits, group = gate(), lone_group("S", ALONE)
    free = waits.found(group, founding(group))
    assert free.to_persist is not None
    group.raft.persisted(*free.to_persist)
    group.raft.propose([b"message"])
    assert waits.write(group, group.raft.ready()) is None
    batch = sealed(waits)
    batch.run()
    (held,) = waits.synced(batch.ticket)
    assert held.to_persist == (3, 1) and not group.provisional


def test_no_other_server_gets_anything_of_a_log_whose_founding_is_not_durable() -> None:
    waits, group = gate(), lone_group("S", ALONE)
    free = waits.found(group, founding(group))
    assert free.to_persist is not None
    group.raft.persisted(*free.to_persist)
    group.raft.applied_to(group.raft.ready().committed[-1].index)
    assert group.raft.propose_members(AddLearner("b"))
    ready = group.raft.ready()
    assert [type(one) for one in ready.send] == [Append]
    assert waits.write(group, ready) is None and not ready.send
    batch = sealed(waits)
    batch.run()
    (held,) = waits.synced(batch.ticket)
    assert [type(one) for one in held.messages] == [Append]
