"""What servers of other clusters say of their JetStream, while it is open who founds a meta group.

Brokers without one say so when they are linked, nats-servers do not. So all servers that share the
system account are asked how they are: they answer with their cluster, and whether they have one.
Who does not answer any more is gone, or came back as another one.
"""

from jsctl.api.jsontext import parse_object
from jsctl.api.strict import DecodeError
from jsctl.broker.accounts.accounts import Account
from jsctl.broker.interest.targets import Sink, Subscription
from jsctl.broker.routing.router import Router

PING = b"$SYS.REQ.SERVER.PING"
ASK_NS = 1_000_000_000
SILENT_NS = 5 * ASK_NS
"""An answer counts for so long."""
ANSWER_BYTES_MAX = 1 << 20
SERVERS_MAX = 10_000


class FarServers:
    """See the module. `inbox` is where this server hears the answers."""

    def __init__(self, router: Router, system: Account, inbox: bytes) -> None:
        self._router = router
        self._inbox = inbox
        self._heard: dict[str, tuple[str, bool, int]] = {}
        """Server id -> cluster, whether it has a JetStream, and until when that counts."""
        self._due_ns = 0
        self._system = system
        self._sub: Subscription | None = None

    def ask(self, now_ns: int) -> None:
        """Ask everybody, now and then."""
        if now_ns < self._due_ns:
            return
        self._due_ns = now_ns + ASK_NS
        self._heard = {name: one for name, one in self._heard.items() if one[2] > now_ns}
        if self._sub is None:
            sink = Sink(self, self._system)
            self._sub = self._router.subscribe(self._system, self._inbox, sink)
        self._router.publish(self._system, PING, b"", reply=self._inbox)

    def end(self) -> None:
        """Nobody need answer any more."""
        if self._sub is not None:
            self._router.unsubscribe(self._sub)
            self._sub = None

    def take(self, sink: Sink) -> None:
        """Answers came. One that cannot be read tells nothing."""
        for _, _, _, payload, _ in sink.take():
            try:
                server = parse_object(payload, bytes_max=ANSWER_BYTES_MAX).get("server")
            except DecodeError:
                continue
            if not isinstance(server, dict) or len(self._heard) >= SERVERS_MAX:
                continue
            name, cluster = server.get("id"), server.get("cluster")
            if isinstance(name, str) and isinstance(cluster, str):
                until_ns = self._router.now_ns + SILENT_NS
                self._heard[name] = cluster, server.get("jetstream") is True, until_ns

    def bare(self) -> frozenset[str]:
        """Clusters of which servers were heard, and none of them has a JetStream."""
        others = {cluster for cluster, serves, _ in self._heard.values() if serves}
        return frozenset(cluster for cluster, _, _ in self._heard.values()) - others
