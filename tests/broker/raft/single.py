"""One node, fed with messages by hand."""

from collections.abc import Sequence

from jsctl.broker.raft.core import Raft
from jsctl.broker.raft.ready import Ready
from jsctl.broker.raft.types import (
    WHOLE,
    Append,
    AppendReply,
    Entry,
    EntryKind,
    Members,
    RaftLimits,
    Role,
    Standing,
    StandingKind,
    VoteReply,
)

ABC = Members(("a", "b", "c"))
ALONE = Members(("a",))


def node(
    members: Members = ABC,
    terms: Sequence[int] = (),
    *,
    term: int = 0,
    standing: Standing = WHOLE,
    limits: RaftLimits | None = None,
) -> Raft:
    return Raft(
        "a",
        members=members,
        term=term,
        entries=data(1, *terms),
        standing=standing,
        jitter=lambda n: 0,
        limits=limits,
    )


def data(first: int, *terms: int) -> list[Entry]:
    return [Entry(first + i, term, EntryKind.DATA, b"x") for i, term in enumerate(terms)]


def take(raft: Raft) -> Ready:
    """A Ready whose write is durable at once."""
    ready = raft.ready()
    if ready.to_persist is not None:
        raft.persisted(*ready.to_persist)
    if ready.committed:
        raft.applied_to(ready.committed[-1].index)
    return ready


def settle(raft: Raft) -> None:
    while take(raft):
        pass


def leader(terms: Sequence[int] = (), limits: RaftLimits | None = None) -> Raft:
    """A leader elected by b; nothing is acknowledged yet."""
    raft = node(terms=terms, limits=limits)
    for _ in range(raft.timing.election_ticks):
        raft.tick()
    settle(raft)
    term = raft.term + 1
    raft.step([VoteReply("a", "b", term, raft.term, True, True)])
    raft.step([VoteReply("a", "b", raft.term, raft.term, False, True)])
    assert role(raft) is Role.LEADER
    settle(raft)
    return raft


def serving(limits: RaftLimits | None = None) -> Raft:
    raft = leader(limits=limits)
    ack(raft, "b", raft.last_index)
    ack(raft, "c", raft.last_index)
    assert raft.serving
    settle(raft)
    return raft


def ack(raft: Raft, peer: str, index: int, *, standing: StandingKind = StandingKind.WHOLE) -> None:
    raft.step([AppendReply("a", peer, raft.term, index, standing=standing)])


def role(raft: Raft) -> Role:
    return raft.role


def asleep(raft: Raft) -> bool:
    return raft.quiet


def follower(*entries: Entry, term: int = 2) -> Raft:
    """A node that got entries from leader b."""
    raft = node()
    raft.step([Append("a", "b", term, 0, 0, 0, list(entries))])
    return raft
