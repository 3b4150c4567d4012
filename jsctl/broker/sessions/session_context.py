"""What all client sessions of a server share."""

from dataclasses import field

from jsctl.broker.interest.targets import ClientPeer
from jsctl.broker.routing.limits import RoutingLimits, ServerIdentity
from jsctl.broker.routing.router import Router
from jsctl.broker.sessions.effort import Effort
from jsctl.broker.sessions.refusals import Refusal
from jsctl.broker.turn import Verify
from jsctl.dataclass import dataclass

REFUSED_MAX = 64
"""In a turn, that are remembered until its end."""


@dataclass(slots=True)
class SessionContext:
    """Where sessions route to, what bounds them, and what they want done at the end of a turn."""

    router: Router
    limits: RoutingLimits
    identity: ServerIdentity
    effort: Effort
    """What this turn still does of the input at hand."""
    verifies: list[Verify] = field(default_factory=list)
    """Password checks for the edge."""
    closes: list[tuple[ClientPeer, str]] = field(default_factory=list)
    """Sessions that end, with the reason."""
    refused: list[tuple[ClientPeer, Refusal]] = field(default_factory=list)
    """What clients were not allowed; of many the first `REFUSED_MAX`."""
    refusals: int = 0
    """How many of these there were."""

    def refuse(self, client: ClientPeer, refusal: Refusal) -> None:
        """A client was told that it may not do something."""
        self.refusals += 1
        if len(self.refused) < REFUSED_MAX:
            self.refused.append((client, refusal))
