"""The server as the system account sees it: what it may read of the node, and nothing to change."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from jsctl.broker.accounts.accounts import Accounts
from jsctl.broker.options import Options
from jsctl.broker.routing.limits import ServerIdentity
from jsctl.broker.routing.router import Router
from jsctl.broker.sessions.last_line import LastLine
from jsctl.broker.sessions.sessions import Sessions

if TYPE_CHECKING:
    from jsctl.broker.assets.engine import Engine
    from jsctl.broker.jsapi.service import ApiService
    from jsctl.broker.routes.links import Links


class Server(Protocol):
    """What is None is not switched on, or has not begun yet."""

    @property
    def options(self) -> Options:
        """Those that count now; a reload replaces them."""

    @property
    def identity(self) -> ServerIdentity:
        """What INFO says."""

    @property
    def addresses(self) -> Mapping[str, tuple[str, int]]:
        """Where the edge listens, by kind."""

    @property
    def accounts(self) -> Accounts:
        """All accounts."""

    @property
    def router(self) -> Router:
        """Subscriptions of all accounts."""

    @property
    def sessions(self) -> Sessions:
        """Client connections."""

    @property
    def line(self) -> LastLine:
        """Behind which requests are served."""

    @property
    def links(self) -> "Links | None":
        """Connections to other servers; None outside of a cluster."""

    @property
    def engine(self) -> "Engine | None":
        """JetStream, if it is switched on."""

    @property
    def api(self) -> "ApiService | None":
        """JetStream's API."""

    @property
    def failed(self) -> str:
        """Why the server has to end, once it has to."""
