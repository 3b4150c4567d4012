"""The server as its system account and monitoring see it: the parts that they read.

Nothing here leads back to the node. What is read changes while the server runs; the parts
themselves do not, but for the options, which a reload replaces.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from jsctl.broker.accounts.accounts import Accounts
from jsctl.broker.options import Options
from jsctl.broker.routing.limits import ServerIdentity
from jsctl.broker.routing.router import Router
from jsctl.broker.sessions.last_line import LastLine
from jsctl.broker.sessions.request_budget import RequestBudget
from jsctl.broker.sessions.sessions import Sessions
from jsctl.broker.system.tallies import Tallies
from jsctl.dataclass import dataclass

if TYPE_CHECKING:
    from jsctl.broker.assets.engine import Engine
    from jsctl.broker.gateways.gates import Gates
    from jsctl.broker.jsapi.live_view import ApiView
    from jsctl.broker.leafnodes.leafs import Leafs
    from jsctl.broker.routes.links import Links


@dataclass(slots=True)
class ServerParts:
    """What is None is not switched on."""

    options: Options
    """Those that count now."""
    identity: ServerIdentity
    """What INFO says."""
    addresses: Mapping[str, tuple[str, int]]
    """Where the edge listens, by kind."""
    router: Router
    """Accounts and their subscriptions."""
    sessions: Sessions
    """Client connections."""
    line: LastLine
    """Behind which requests are served."""
    tallies: Tallies
    links: "Links | None"
    """Connections to other servers; None outside of a cluster."""
    leafs: "Leafs | None"
    """Leaf nodes and hubs."""
    gates: "Gates | None"
    """Other clusters."""
    jetstream: "ApiView | None"
    budget: RequestBudget
    """What a turn does of requests."""

    @property
    def accounts(self) -> Accounts:
        """All accounts."""
        return self.router.accounts

    @property
    def engine(self) -> "Engine | None":
        """JetStream below its API."""
        return None if self.jetstream is None else self.jetstream.engine
