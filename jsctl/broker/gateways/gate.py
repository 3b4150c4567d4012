"""One connection to or from a server of another cluster, from the first byte to the last."""

from enum import Enum, auto

from jsctl.broker.gateways.remotes import RemoteCluster
from jsctl.broker.interest.links import GatewayLink
from jsctl.broker.protocol.route import GatewayParser
from jsctl.broker.sessions.keepalive import KeepAlive
from jsctl.dataclass import dataclass


class GateStage(Enum):
    """What a connection waits for."""

    CONNECT = auto()
    """Accepted: the other side has to say who it is."""
    INFO = auto()
    """The same, and the rest of it; dialed ones begin here."""
    LINKED = auto()


@dataclass(slots=True, eq=False)
class Gate:
    """See the module. Times in ns."""

    conn: int
    host: str
    port: int
    gate_id: int
    opened_ns: int
    parser: GatewayParser
    alive: KeepAlive
    stage: GateStage
    remote: RemoteCluster | None = None
    """Set on connections that this side dialed."""
    gateway: str = ""
    """The other cluster's name, as it says itself."""
    server_id: str = ""
    server_name: str = ""
    bare: bool = False
    """The other side is a broker without JetStream."""
    link: GatewayLink | None = None
    last_in_ns: int = 0
    measured: int = 0
    """Messages that had gone out when its round trip was asked for out of turn."""
    closing: bool = False

    @property
    def label(self) -> str:
        """As the log names it."""
        return f"{self.host}:{self.port} - gid:{self.gate_id}"

    @property
    def outbound(self) -> bool:
        """Whether messages go out on it."""
        return self.remote is not None
