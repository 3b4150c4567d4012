"""Where events and advisories leave: whether anybody listens, and how they are published."""

from collections.abc import Sequence

from jsctl.broker.routing.router import Router
from jsctl.broker.routing.setup import random_name
from jsctl.dataclass import dataclass

ID_LENGTH = 22


@dataclass(frozen=True, slots=True)
class EventOutlet:
    """Of one server."""

    router: Router
    server_id: str
    system: str
    """The name of the system account; empty when there is none."""

    def new_id(self) -> str:
        """A fresh id for an event."""
        return random_name(self.router.jitter, ID_LENGTH)

    def wanted(self, subject: str, account: str = "") -> bool:
        """Whether anybody listens; in the system account unless another is named."""
        place = self.router.accounts.get(account or self.system)
        return place is not None and self.router.has_interest(place, subject.encode())

    def may_be_wanted(self, account: str, tokens: Sequence[bytes]) -> bool:
        """Whether anybody may listen to a subject that begins with these tokens."""
        place = self.router.accounts.get(account)
        return place is not None and place.sublist.may_match_below(tokens)

    def wanted_of_server(self, event: str) -> bool:
        """The same, for an event of this server itself."""
        return self.wanted(f"$SYS.SERVER.{self.server_id}.{event}")

    def publish(self, account: str, subject: bytes, payload: bytes) -> None:
        """Tell everybody who listens; nobody in an account that is not known."""
        found = self.router.accounts.get(account)
        if found is not None:
            self.router.publish(found, subject, payload)
