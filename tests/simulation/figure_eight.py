"""The one history in which an older term's entry, counted on a quorum, is lost all the same.

Known as figure 8 of the RAFT paper. Three servers hold a stream:

    A leads, is cut off, and takes entries X that nobody else gets
    C is elected by B, writes the first entry of its term, and is cut off before B gets that
    A comes back, is elected by B, and gives B the first of X: now a quorum holds it
    A is cut off again; C is elected by B, and puts its own entry in the place of X

Between the last two steps X must not be committed. Chance hardly ever finds its way there, so
connections are cut and mended here by what the servers' logs say.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from jsctl.broker.raft.core import Raft
from jsctl.broker.raft.types import Role
from tests.simulation.plan import Item, Plan

if TYPE_CHECKING:
    from tests.simulation.machine import Process
    from tests.simulation.run import Simulation

PUBLISHED = 3


def figure_eight_plan(seed: int) -> Plan:
    """A run in which nothing else happens; appends carry one entry each, as X must go alone."""
    return Plan(
        seed,
        3,
        checkpoint_entries=50_000,
        append_entries_max=1,
        chaos_ms=6000,
        items=(Item(1500, "figure_eight", 0, 0, 0),),
    )


class FigureEight:
    """Looks at the group of one stream after each turn; `step` is what it waits for."""

    def __init__(self, simulation: Simulation, stream: int) -> None:
        self.network = simulation.network
        self.group = simulation.group_name(stream)
        leader = simulation.leader(self.group) if self.group else None
        self.step: Callable[[Process, Raft], None] = self._over
        if leader is None or len(simulation.machines) != 3:
            return
        self.a = self.b = self.c = leader.number
        self.first_term = leader.engine.groups.by_name[self.group].raft.term
        self.second_term = 0
        self._cut(self.a, *(other.number for other in leader.machine.others))
        for number in range(PUBLISHED):
            leader.publish((b"S%d.%d" % (stream, number), b"", b"", b"only on A"))
        self.step = self._elects

    def turned(self, process: Process) -> None:
        """A server finished a turn."""
        group = process.engine.groups.by_name.get(self.group)
        if group is not None:
            self.step(process, group.raft)

    def _cut(self, one: int, *others: int) -> None:
        self.network.disconnect([pair for b in others for pair in ((one, b), (b, one))])

    def _mend(self, one: int, other: int) -> None:
        self.network.connect([(one, other), (other, one)])

    def _elects(self, process: Process, raft: Raft) -> None:
        """B votes for C: what C sends from now on does not arrive."""
        candidate = next((m for m in process.machine.others if m.peer == raft.vote), None)
        if raft.term == self.first_term or candidate is None or candidate.number == self.a:
            return
        self.b, self.c, self.second_term = process.number, candidate.number, raft.term
        self.network.disconnect([(self.c, self.b)])
        self.step = self._leads

    def _leads(self, process: Process, raft: Raft) -> None:
        """C leads, alone: A and B find each other again."""
        if process.number == self.c and raft.role is Role.LEADER:
            self.network.disconnect([(self.b, self.c)])
            self._mend(self.a, self.b)
            self.step = self._gives

    def _gives(self, process: Process, raft: Raft) -> None:
        """B has the first of X, in A's new term: A hears that, and no more arrives at B."""
        if process.number != self.b or raft.term <= self.second_term:
            return
        if raft.log.last_index > raft.log.commit and raft.log.last_term == self.first_term:
            self.network.disconnect([(self.a, self.b)])
            self.step = self._counts

    def _counts(self, process: Process, raft: Raft) -> None:
        """A heard B. Whatever it made of that, B and C go on without it."""
        heard = max((progress.match for progress in raft.peers.values()), default=0)
        if process.number == self.a and heard > 0:
            self.network.disconnect([(self.b, self.a)])
            self._mend(self.b, self.c)
            self.step = self._over

    def _over(self, process: Process, raft: Raft) -> None:
        """Nothing more to do."""
