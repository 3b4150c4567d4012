"""The router as streams and consumers see it: accounts by name."""

from collections.abc import Callable, Sequence

from jsctl.broker.interest.targets import Sink, Subscription
from jsctl.broker.protocol.deliveries import Item, OutgoingMessage
from jsctl.broker.routing.router import Router
from jsctl.dataclass import dataclass


@dataclass(slots=True)
class RouterTraffic:
    """Implements `replica_context.AccountTraffic`."""

    router: Router
    enabled: Callable[[str], bool]
    """Whether an account has JetStream."""

    def listen(
        self, account: str, pattern: bytes, sink: Sink, queue: bytes = b""
    ) -> Subscription | None:
        """Capture what is published; None for an account that is unknown, or has no JetStream."""
        found = self.router.accounts.get(account)
        if found is None or not self.enabled(account):
            return None
        return self.router.subscribe(found, pattern, sink, queue)

    def unlisten(self, subscription: Subscription) -> None:
        """End a capture."""
        self.router.unsubscribe(subscription)

    def deliver(self, account: str, said: Sequence[OutgoingMessage]) -> None:
        """Publish a batch, in order."""
        found = self.router.accounts.get(account)
        if found is not None:
            self.router.publish_batch(found, said)

    def ask(self, account: str, item: Item) -> None:
        """Publish a request of this server."""
        found = self.router.accounts.get(account)
        if found is not None:
            subject, reply, headers, payload, _ = item
            self.router.publish(found, subject, payload, reply=reply, headers=headers)

    def wanted(self, account: str, subject: bytes) -> bool:
        """Whether anybody listens."""
        found = self.router.accounts.get(account)
        return found is not None and self.router.has_interest(found, subject)

    def reached(self, account: str, subject: bytes) -> bool:
        """The same for a consumer: nobody hears one in an account that has no JetStream."""
        return self.enabled(account) and self.wanted(account, subject)

    def named(self, account: str, subject: bytes) -> bool:
        """Whether somebody listens to just this subject, by no pattern."""
        found = self.router.accounts.get(account)
        return found is not None and found.sublist.has(subject)

    def changes(self, account: str) -> list[bytes] | None:
        """Patterns on which somebody began or ceased to listen since the last call; None: any."""
        found = self.router.accounts.get(account)
        return None if found is None else found.sublist.take_changed()

    def has_changes(self, account: str) -> bool:
        """Whether `changes` would tell of any."""
        found = self.router.accounts.get(account)
        return found is None or found.sublist.changed != []
