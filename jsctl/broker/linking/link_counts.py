"""Messages over links of a kind since the start, those of links that are gone included."""

from collections.abc import Iterable
from dataclasses import field

from jsctl.broker.interest.links import ServerLink
from jsctl.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class LinkTraffic:
    """Messages and payload bytes in both directions."""

    in_msgs: int = 0
    in_bytes: int = 0
    out_msgs: int = 0
    out_bytes: int = 0

    def plus(self, link: ServerLink) -> "LinkTraffic":
        """With what went over a link."""
        return LinkTraffic(
            self.in_msgs + link.in_messages,
            self.in_bytes + link.in_bytes,
            self.out_msgs + link.out_messages,
            self.out_bytes + link.payload_bytes_out,
        )


@dataclass(slots=True)
class LinkCounts:
    """A link that is gone leaves its counters here."""

    gone: LinkTraffic = LinkTraffic()
    _links: dict[int, ServerLink] = field(default_factory=dict)
    _heard: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Connection -> messages that had come in, and when that was seen to change."""

    def follow(self, links: Iterable[ServerLink], now_ns: int) -> None:
        """Look which links there are; called about once a second and before `now`."""
        present = {id(link): link for link in links}
        heard: dict[int, tuple[int, int]] = {}
        for link in present.values():
            known = self._heard.get(link.conn, (0, 0))
            same = known[0] == link.in_messages
            heard[link.conn] = known if same else (link.in_messages, now_ns)
        self._heard = heard
        for key, link in self._links.items():
            if key not in present:
                self.gone = self.gone.plus(link)
        self._links = present

    def last_ns(self, conn: int) -> int:
        """When a link last brought a message, to about a second; 0 if it never did."""
        return self._heard.get(conn, (0, 0))[1]

    def now(self) -> LinkTraffic:
        """All of it."""
        total = self.gone
        for link in self._links.values():
            total = total.plus(link)
        return total
