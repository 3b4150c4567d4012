"""Groups of which nobody can tell any more what they acknowledged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jsctl.broker.jetstream.meta.assignments import GroupAssignment
from jsctl.broker.raft.types import StandingKind
from tests.simulation.machine import Process
from tests.simulation.rot import LOG, kind_of

if TYPE_CHECKING:
    from tests.simulation.run import Simulation


def lost_at_birth(simulation: Simulation, group: GroupAssignment) -> bool:
    """Whether the only founder lost its disk, or its log, before anybody else had what was on it.

    Such a group stays offline by design, until an operator decides.
    """
    if len(group.founders) != 1 or group.storage == "memory":
        return False
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


def _is_robbed(process: Process) -> bool:
    """Whether part of the log of a server was damaged in this run."""
    return any(kind_of(path) == LOG for path, _, _ in process.machine.decay.places)
