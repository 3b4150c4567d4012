"""What a leader promised its clients ends with its leadership, whatever is applied next."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from random import Random

from jsctl.broker.raft.core import Raft
from jsctl.broker.raft.types import (
    Append,
    AppendReply,
    Entry,
    EntryKind,
    HeartbeatReply,
    Members,
    Message,
    RaftLimits,
    VoteReply,
    VoteRequest,
)
from jsctl.broker.replication.checkpoints import GroupLimits
from jsctl.broker.replication.group import GroupKind, RaftGroup, ReplicaImporter, SyncJob
from jsctl.broker.replication.groups import Groups
from jsctl.broker.store.wal.log import Wal, WalOptions
from tests.support.sim_disk import SimDisk


@dataclass(slots=True)
class Applied:
    """A unit that remembers, in order, what happened to it."""

    events: list[str] = field(default_factory=list)

    def apply(self, index: int, data: bytes) -> int:
        self.events.append(f"{index} {data.decode()}")
        return index

    def caught_up(self) -> None: ...

    def founded(self) -> bool:
        return False

    def lead(self, term: int) -> None:
        self.events.append(f"lead {term}")

    def unlead(self) -> None:
        self.events.append("unlead")

    def checkpoint(self, index: int, term: int, members: bytes) -> SyncJob | None:
        return None

    def checkpointed(self, job: SyncJob) -> None: ...

    def is_damaged(self) -> bool:
        return False

    def export(self) -> Iterator[bytes]:
        return iter(())

    def importer(self) -> ReplicaImporter:
        raise AssertionError("no state is transferred here")

    def state_overtaken(self) -> None: ...

    def close(self) -> None: ...

    def delete(self) -> None: ...


@dataclass(slots=True)
class Sent:
    """An outbox that keeps the messages."""

    messages: list[Message] = field(default_factory=list)

    def raft(self, peer: str, key: bytes, messages: Sequence[Message]) -> None:
        self.messages += messages


def turn(groups: Groups) -> None:
    """One turn, with a disk that is done at once."""
    groups.drain()
    for batch in groups.seal():
        batch.run()
        groups.synced(batch.ticket)
    groups.drain()


def leader() -> tuple[Groups, RaftGroup, Applied]:
    """A group of three that this server, `a`, leads in its first term."""
    disk = SimDisk(Random(1))
    wal, _ = Wal.open(disk, "log", WalOptions(b"0123456789abcdef"))
    sent, unit = Sent(), Applied()
    groups = Groups(wal, sent, GroupLimits())
    raft = Raft("a", members=Members(("a", "b", "c")), jitter=lambda n: 0)
    group = RaftGroup("S-R3F-x", b"S-R3F-x", GroupKind.STREAM, raft, unit, {})
    groups.add(group)
    raft.campaign()
    for _ in range(4):
        groups.touch(group)
        turn(groups)
        asked, sent.messages = sent.messages, []
        replies: list[Message] = []
        for one in asked:
            if isinstance(one, VoteRequest) and one.to == "b":
                replies.append(VoteReply("a", "b", one.term, one.term, one.pre, True))
            elif isinstance(one, Append) and one.to == "b":
                last = one.entries[-1].index if one.entries else one.prev_index
                replies.append(AppendReply("a", "b", one.term, last))
        groups.step(group.key, replies)
    turn(groups)
    assert group.leading, unit.events
    return groups, group, unit


def test_a_restarted_leader_serves_when_all_that_it_holds_is_applied() -> None:
    disk = SimDisk(Random(1))
    wal, _ = Wal.open(disk, "log", WalOptions(b"0123456789abcdef"))
    unit = Applied()
    groups = Groups(wal, Sent(), GroupLimits())
    raft = Raft(
        "a",
        members=Members(("a",)),
        term=1,
        entries=[Entry(n, 1, EntryKind.DATA, b"%d" % n) for n in range(1, 8)],
        jitter=lambda n: 0,
        limits=RaftLimits(committed_entries_max=2),
    )
    group = RaftGroup("S-R1F-x", b"S-R1F-x", GroupKind.STREAM, raft, unit, {})
    groups.add(group)
    for _ in range(8):
        turn(groups)
        groups.touch(group)
    assert unit.events == [*(f"{n} {n}" for n in range(1, 8)), "lead 2"]


def test_an_entry_of_another_leader_does_not_answer_who_waits_for_ours() -> None:
    groups, group, unit = leader()
    told: list[int | None] = []
    index = groups.propose(group, [b"ours"], told.append)
    assert index is not None
    turn(groups)
    assert told == []
    before = group.raft.log.term_at(index - 1)
    assert before is not None
    term = group.raft.term + 1
    theirs = [Entry(index, term, EntryKind.DATA, b"theirs")]
    groups.step(group.key, [Append("a", "b", term, index - 1, before, index, theirs)])
    turn(groups)
    turn(groups)
    assert unit.events[-2:] == ["unlead", f"{index} theirs"]
    assert told == [None]


def test_a_read_behind_entries_that_are_lost_with_the_leadership_is_refused() -> None:
    groups, group, _ = leader()
    index = groups.propose(group, [b"ours"], lambda _: None)
    assert index is not None
    groups.read(group, 7, settled=True)
    turn(groups)
    raft = group.raft
    groups.step(group.key, [HeartbeatReply("a", "b", raft.term, raft.round, 0, 0)])
    turn(groups)
    assert not groups.reads.answers, "what it is to see is not committed"
    before = raft.log.term_at(index - 1)
    assert before is not None
    groups.step(group.key, [Append("a", "b", raft.term + 1, index - 1, before, index - 1, [])])
    turn(groups)
    assert groups.reads.answers == [(group, 7, False)]
