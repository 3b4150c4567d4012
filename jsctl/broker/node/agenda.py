"""When the parts of a node are due, and which turns they can be left alone in.

Most turns carry messages, and are nothing to the parts that time or rare events concern: elections
of who is there, statistics, requests that wait, routes. These are looked at when one of them is
due, when something happened that may have changed that (`stirred`), and now and then; in other
turns they cost one comparison.

JetStream works in each turn that brings something to it. Once a turn that brought nothing has found
that nothing is left to do, those that follow are quiet until something is due: one that brings
nothing either only passes messages on.
"""

from typing import TYPE_CHECKING, Final

from jsctl.broker.node.doors import Door
from jsctl.broker.node.lame_duck import LameDuck, Stage
from jsctl.broker.node.portions import Portions
from jsctl.broker.sessions.sessions import Sessions
from jsctl.broker.system.account import SystemAccount
from jsctl.broker.system.server import ServerParts

if TYPE_CHECKING:
    from jsctl.broker.node.jetstream import JetStream

STAYING: Final = Stage.STAYING
"""Members of an enum are found much slower than this, and this one is asked for in each turn."""
LOOK_NS = 100_000_000
"""How often parts that nothing happened to are looked at, if there are turns."""


class Agenda:
    """See the module. All times in ns."""

    def __init__(
        self,
        server: ServerParts,
        jetstream: "JetStream | None",
        system: SystemAccount,
        departure: LameDuck,
        portions: Portions,
    ) -> None:
        self.stirred = True
        """Something happened that may have changed when parts are due. Set by all, cleared by the
        node at the end of a turn."""
        self.quiet_until_ns = 0
        """Until then nothing is due, and nothing was left to do."""
        self._jetstream = jetstream
        self._system = system
        self._departure = departure
        self._portions = portions
        self._sessions: Sessions = server.sessions
        self._links = server.links
        self._leafs = server.leafs
        self._gates = server.gates
        doors: tuple[Door | None, ...] = (server.links, server.leafs, server.gates)
        self.doors = tuple(door for door in doors if door is not None)
        """Those that other servers come through."""
        self._due_ns: int | None = None
        """When one of the parts is that most turns are nothing to."""
        self._look_ns = 0
        self._next_ns: int | None = None
        """When anything is, sessions apart; as the last turn found that was not quiet."""
        self._expecting = False
        """At the end of the last turn something waited that each turn may bring."""

    def is_time(self, now_ns: int) -> bool:
        """Whether this turn looks at the parts that most turns are nothing to."""
        return (
            self.stirred
            or now_ns >= self._look_ns
            or self._expecting
            or self._departure.stage is not STAYING
        )

    def quiet_deadline_ns(self) -> int | None:
        """When the next turn has to be, at the end of a quiet one."""
        due_ns = self._next_ns
        at = self._sessions.deadline_ns()
        return at if due_ns is None or (at is not None and at < due_ns) else due_ns

    def deadline_ns(self, now_ns: int, *, busy: bool) -> int | None:
        """The same of any other. `busy`: something has to go on at once."""
        jetstream = self._jetstream
        self._expecting = (
            self._system.expecting
            or (jetstream is not None and jetstream.expecting)
            or (self._leafs is not None and self._leafs.expecting)
            or (self._links is not None and self._links.expecting)
            or (self._gates is not None and self._gates.take_stirred())
        )
        if busy or self._portions.waiting:
            return now_ns
        if self.stirred or self._expecting or (jetstream is not None and jetstream.pending):
            self._plan(now_ns)
            self.quiet_until_ns = 0
        due_ns = self._due_ns
        urgent_ns = None if jetstream is None else jetstream.urgent_ns()
        if urgent_ns is not None and (due_ns is None or urgent_ns < due_ns):
            due_ns = urgent_ns
        self._next_ns = due_ns
        return self.quiet_deadline_ns()

    def _plan(self, now_ns: int) -> None:
        due = [self._system.next_due_ns(), self._departure.next_due_ns(now_ns)]
        due += [door.deadline_ns() for door in self.doors]
        if self._jetstream is not None:
            due.append(self._jetstream.next_due_ns())
        self._due_ns = min((at for at in due if at is not None), default=None)
        look_ns = now_ns + LOOK_NS
        self._look_ns = look_ns if self._due_ns is None else min(look_ns, self._due_ns)

    def rest(self, *, busy: bool) -> None:
        """After `deadline_ns` of a turn that brought nothing: what follows may be quiet."""
        jetstream = self._jetstream
        restless = (
            busy
            or self.stirred
            or self._expecting
            or self._portions.waiting
            or self._gates is not None  # They tell JetStream themselves who listens where.
            or self._departure.stage is not STAYING
            or (jetstream is not None and (jetstream.pending or not jetstream.rests))
        )
        next_ns = self._look_ns if self._next_ns is None else min(self._look_ns, self._next_ns)
        self.quiet_until_ns = 0 if restless else next_ns
