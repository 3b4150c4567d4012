"""What all client sessions of a server share."""

from dataclasses import field

from jsctl.broker.interest.targets import ClientPeer
from jsctl.broker.routing.limits import RoutingLimits, ServerIdentity
from jsctl.broker.routing.router import Router
from jsctl.broker.sessions.effort import Effort
from jsctl.broker.sessions.refusal_log import RefusalLog
from jsctl.broker.turn import Verify
from jsctl.dataclass import dataclass


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
    refusals: RefusalLog = field(default_factory=RefusalLog)
