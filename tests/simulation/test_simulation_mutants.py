"""Planted bugs: the checkers must find each within a bounded number of seeds."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from jsctl.broker.assets.replicas.leading_stream import LeadingStream
from jsctl.broker.assets.replicas.stored_stream import StreamImporter
from jsctl.broker.jetstream.streams.sequencer import Admitted
from jsctl.broker.ports import Disk
from jsctl.broker.raft import election, replication
from jsctl.broker.raft.core import Raft
from jsctl.broker.raft.ready import Ready
from jsctl.broker.raft.state import RaftState
from jsctl.broker.raft.types import VoteReply, VoteRequest
from jsctl.broker.replication.bootstrap import GroupBootstrap
from jsctl.broker.replication.durability import DurabilityGate, Withheld
from jsctl.broker.replication.group import RaftGroup
from jsctl.broker.replication.state_file import GroupState
from jsctl.broker.store.wal.log import Recovered, Wal, WalOptions
from tests.simulation.figure_eight import figure_eight_plan
from tests.simulation.hunting import drawn, hunt, note
from tests.simulation.plan import draw
from tests.simulation.run import failure

Patch = pytest.MonkeyPatch
SEEDS = 40
STAGED = 6


def _acks_before_sync(patch: Patch) -> None:
    def let_through(self: DurabilityGate, group: RaftGroup, ready: Ready) -> Withheld | None:
        free = write(self, group, ready)
        if free is None and self._held and self._held[-1].group is group:
            return self._held.pop()
        return free

    write = DurabilityGate.write
    patch.setattr(DurabilityGate, "write", let_through)


def _votes_before_sync(patch: Patch) -> None:
    def reply(state: RaftState, m: VoteRequest, *, granted: bool) -> None:
        state.send(VoteReply(m.sender, state.me, m.term, state.term, m.pre, granted))

    def guard_promises(raft: Raft, out: Ready) -> None:
        if raft.hard_dirty:
            raft.hard_dirty = False
            out.hard_state = (raft.term, raft.vote)

    patch.setattr(election, "reply", reply)
    patch.setattr(Raft, "guard_promises", guard_promises)


def _commits_an_older_term_by_count(patch: Patch) -> None:
    patch.setattr(replication, "may_commit", lambda state, index: True)


def _a_lost_disk_counts_as_whole(patch: Patch) -> None:
    start = GroupBootstrap.start

    def begin(
        self: GroupBootstrap,
        key: bytes,
        state: GroupState | None,
        *,
        peers: Sequence[str],
        founders: Sequence[str],
        life: int | None,
        volatile: bool,
        **more: Any,
    ) -> Raft:
        life = self.boot if volatile else self.life
        more |= {"life": life, "volatile": volatile}
        return start(self, key, state, peers=peers, founders=peers, **more)

    patch.setattr(GroupBootstrap, "start", begin)


def _forgets_the_tail_at_restart(patch: Patch) -> None:
    def forgetful(disk: Disk, directory: str, options: WalOptions) -> tuple[Wal, Recovered]:
        wal, recovered = read(disk, directory, options)
        for group in recovered.groups.values():
            del group.entries[-1:]
        return wal, recovered

    read = Wal.open
    patch.setattr(Wal, "open", forgetful)


def _publishes_are_acknowledged_when_proposed(patch: Patch) -> None:
    def hasty(self: LeadingStream, admitted: Admitted) -> None:
        propose(self, admitted)
        for acks in admitted.acks:
            items = [(reply, b"", b"", ack, b"") for reply, ack in acks or ()]
            self._context.traffic.deliver(self._assigned.assignment.account, items)

    propose = LeadingStream._propose
    patch.setattr(LeadingStream, "_propose", hasty)


def _a_received_store_is_never_synced_again(patch: Patch) -> None:
    def switch(self: StreamImporter) -> None:
        assert self._stream is not None
        self.stored.replace(self._stream, self.number)

    patch.setattr(StreamImporter, "switch", switch)


@pytest.mark.planted
@pytest.mark.parametrize(
    ("plant", "first"),
    [
        (_acks_before_sync, 1),
        (_votes_before_sync, 1),
        pytest.param(_a_lost_disk_counts_as_whole, 38, marks=pytest.mark.mutants),
        (_forgets_the_tail_at_restart, 1),
        (_publishes_are_acknowledged_when_proposed, 1),
        (_a_received_store_is_never_synced_again, 2),
    ],
)
def test_planted_bug_is_found(
    plant: Callable[[Patch], None], first: int, monkeypatch: Patch
) -> None:
    hunt(plant, drawn(draw, first, SEEDS, (3, 5)), monkeypatch, asserted=True)


@pytest.mark.planted
@pytest.mark.mutants
def test_an_entry_of_an_older_term_committed_by_count_is_found(monkeypatch: Patch) -> None:
    """Chance hardly ever finds this one: its history is staged."""
    found = []
    for seed in range(STAGED):
        plan = figure_eight_plan(seed)
        assert not failure(plan), f"seed {seed} fails without the planted bug"
        with monkeypatch.context() as planted:
            _commits_an_older_term_by_count(planted)
            told = failure(plan)
        if told:
            found.append((f"figure_eight_plan({seed})", told))
    assert len(found) >= STAGED // 2
    note(_commits_an_older_term_by_count.__name__, *found[0])
