"""What a replica listens to in its account, as long as this server leads or is fresh enough."""

from dataclasses import dataclass, field

from jsctl.broker.assets.replicas.replica_context import ReplicaContext
from jsctl.broker.interest.targets import Sink, Subscription


@dataclass(slots=True)
class Listening:
    """Subscriptions that end together."""

    context: ReplicaContext
    account: str
    _subscriptions: list[Subscription] = field(default_factory=list)

    def to(self, pattern: bytes, sink: Sink, queue: bytes = b"") -> None:
        """Capture what is published; nothing in an account that is not known any more."""
        made = self.context.traffic.listen(self.account, pattern, sink, queue)
        if made is not None:
            self._subscriptions.append(made)

    def end(self) -> None:
        """Listen to nothing."""
        for subscription in self._subscriptions:
            self.context.traffic.unlisten(subscription)
        self._subscriptions.clear()
