"""Messages over routes since the start, those of links that are gone included."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from jsctl.broker.routing.targets import RouteLink


@dataclass(frozen=True, slots=True)
class Traffic:
    """Messages and payload bytes in both directions."""

    in_msgs: int = 0
    in_bytes: int = 0
    out_msgs: int = 0
    out_bytes: int = 0

    def plus(self, link: RouteLink) -> "Traffic":
        """With what went over a link."""
        return Traffic(
            self.in_msgs + link.in_messages,
            self.in_bytes + link.in_bytes,
            self.out_msgs + link.out_messages,
            self.out_bytes + link.payload_bytes_out,
        )


@dataclass(slots=True)
class LinkCounts:
    """A link that is gone leaves its counters here."""

    gone: Traffic = Traffic()
    _links: dict[int, RouteLink] = field(default_factory=dict)

    def follow(self, links: Iterable[RouteLink]) -> None:
        """Look which links there are; called about once a second and before `now`."""
        present = {id(link): link for link in links}
        for key, link in self._links.items():
            if key not in present:
                self.gone = self.gone.plus(link)
        self._links = present

    def now(self) -> Traffic:
        """All of it."""
        total = self.gone
        for link in self._links.values():
            total = total.plus(link)
        return total
