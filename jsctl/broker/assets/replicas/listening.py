"""What a replica listens to in its account, as long as this server leads or is fresh enough."""

from dataclasses import field

from jsctl.broker.assets.replicas.replica_context import ReplicaContext
from jsctl.broker.interest.targets import Sink, Subscription
from jsctl.dataclass import dataclass


@dataclass(slots=True)
class Listening:
    """Subscriptions that end together."""

    context: ReplicaContext
    account: str
    _wanted: list[tuple[bytes, Sink, bytes]] = field(default_factory=list)
    _subscriptions: list[Subscription] = field(default_factory=list)

    def to(self, pattern: bytes, sink: Sink, queue: bytes = b"") -> None:
        """Capture what is published; nothing in an account that is gone, or has no JetStream."""
        self._wanted.append((pattern, sink, queue))
        self._listen(pattern, sink, queue)

    def _listen(self, pattern: bytes, sink: Sink, queue: bytes) -> None:
        made = self.context.traffic.listen(self.account, pattern, sink, queue)
        if made is not None:
            self._subscriptions.append(made)

    def anew(self) -> None:
        """The account has come, or is gone, or its JetStream: listen to the same where it can be
        heard now."""
        self._fall_silent()
        for wanted in self._wanted:
            self._listen(*wanted)

    def end(self) -> None:
        """Listen to nothing."""
        self._wanted.clear()
        self._fall_silent()

    def _fall_silent(self) -> None:
        for subscription in self._subscriptions:
            self.context.traffic.unlisten(subscription)
        self._subscriptions.clear()
