"""How a group's leader brings its members to the peers that the meta group wants.

One change at a time, through the group's own log; a new voter only after it caught up; the
leader goes last and hands over first (reliability: members).
"""

from collections.abc import Callable, Collection, Sequence

from jsctl.broker.raft.core import Raft
from jsctl.broker.raft.types import AddLearner, PeerId, Promote, RemoveMember
from jsctl.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class MembershipChange:
    """Propose this change of members; raft may refuse it for now, with a reason."""

    change: AddLearner | Promote | RemoveMember


@dataclass(frozen=True, slots=True)
class HandOver:
    """Transfer leadership, because this server is to leave the group."""

    to: PeerId


@dataclass(frozen=True, slots=True)
class Waiting:
    """Nothing to do now; `what` and `why` are shown to operators."""

    what: str
    why: str


@dataclass(frozen=True, slots=True)
class Settled:
    """Members and wanted peers are the same."""


Step = MembershipChange | HandOver | Waiting | Settled


def next_step(raft: Raft, wanted: Sequence[PeerId], online: Callable[[PeerId], bool]) -> Step:
    """The next step of a leader towards `wanted`; call again when it is done."""
    voters, learners = raft.members.voters, raft.members.learners
    return (
        _add(wanted, voters, learners, online)
        or _promote(raft, wanted, learners)
        or _bury(raft, wanted, online)
        or _catch_up(wanted, learners)
        or _shrink(raft, wanted, voters, learners, online)
        or Settled()
    )


def _add(
    wanted: Sequence[PeerId],
    voters: Collection[PeerId],
    learners: Collection[PeerId],
    online: Callable[[PeerId], bool],
) -> Step | None:
    missing = [peer for peer in wanted if peer not in voters and peer not in learners]
    if not missing:
        return None
    missing.sort(key=lambda peer: not online(peer))
    return MembershipChange(AddLearner(missing[0]))


def _promote(raft: Raft, wanted: Sequence[PeerId], learners: Collection[PeerId]) -> Step | None:
    for peer in learners:
        if peer in wanted and not raft.refusal(Promote(peer)):
            return MembershipChange(Promote(peer))
    return None


def _bury(raft: Raft, wanted: Sequence[PeerId], online: Callable[[PeerId], bool]) -> Step | None:
    """Who is to leave and is not there does not have to wait until others have joined."""
    for peer in raft.members.all():
        if peer not in wanted and not online(peer) and not raft.refusal(RemoveMember(peer)):
            return MembershipChange(RemoveMember(peer))
    return None


def _catch_up(wanted: Sequence[PeerId], learners: Collection[PeerId]) -> Step | None:
    joining = [peer for peer in learners if peer in wanted]
    if not joining:
        return None
    return Waiting("catchup", f"waiting for peer {joining[0]} to catch up before adding it")


def _shrink(
    raft: Raft,
    wanted: Sequence[PeerId],
    voters: Collection[PeerId],
    learners: Collection[PeerId],
    online: Callable[[PeerId], bool],
) -> Step | None:
    """Who is not there goes first, then who is furthest behind: the others are to commit it."""
    surplus = [peer for peer in (*learners, *voters) if peer not in wanted]
    others = [peer for peer in surplus if peer != raft.me]
    if others:
        match = {one.peer: one.match for one in raft.progress()}
        others.sort(key=lambda peer: (online(peer), match.get(peer, 0)))
        possible = [peer for peer in others if not raft.refusal(RemoveMember(peer))]
        return MembershipChange(RemoveMember((possible or others)[0]))
    if not surplus:
        return None
    heirs = [p for p in raft.progress() if p.peer in wanted and p.peer in voters]
    if not heirs:
        return Waiting("quorum", "waiting for a peer that can take over")
    best = max(heirs, key=lambda p: (online(p.peer), p.match))
    return HandOver(best.peer)
