"""Groups of which nobody can tell any more what they acknowledged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jsctl.broker.jetstream.meta.assignments import GroupAssignment
from jsctl.broker.raft.quorum import quorum_size
from jsctl.broker.raft.types import StandingKind
from tests.simulation.machine import Process
from tests.simulation.rot import LOG, kind_of

if TYPE_CHECKING:
    from tests.simulation.run import Simulation


def lost_at_birth(simulation: Simulation, group: GroupAssignment) -> bool:
    """Whether the only founder lost its disk, or its log, before anybody else had what was on it;
    or most of several theirs, while the meta group still had to commit that they were chosen.

    Such a group stays offline by design, until an operator decides.
    """
    if group.storage == "memory":
        return False
    if len(group.founders) != 1:
        return _most_are_lost(simulation, group)
    (founder,) = group.founders
    whole = False
    for process in simulation.processes():
        life = process.engine.options.life
        if process.peer == founder and life == group.incarnations.get(founder):
            return _is_robbed(process) and not simulation.checker.history(group.name).voters
        replica = process.engine.groups.by_name.get(group.name)
        kind = None if replica is None else replica.raft.standing.kind
        whole = whole or kind is StandingKind.WHOLE
    return not whole


def _most_are_lost(simulation: Simulation, group: GroupAssignment) -> bool:
    if simulation.checker.history(group.name).leaders:
        return False
    lives = {one.peer: one.engine.options.life for one in simulation.processes()}
    given = [
        (lives[peer], group.incarnations.get(peer)) for peer in group.founders if peer in lives
    ]
    return sum(life != chosen for life, chosen in given) >= quorum_size(len(group.founders))


def _is_robbed(process: Process) -> bool:
    """Whether part of the log of a server was damaged in this run."""
    return any(kind_of(path) == LOG for path, _, _ in process.machine.decay.places)
