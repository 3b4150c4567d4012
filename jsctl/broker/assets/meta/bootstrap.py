"""How servers without any state found the meta group, and how later ones join it.

A server that has meta state on its disk needs none of this. One without looks at its peers: if
any of them belongs to a meta group already it waits to be added there. Otherwise the server with
the smallest peer id founds the group, with the servers it sees, once it sees all that its
configured routes and gateways promise (or, after a patience, a majority of them) and the picture
has been stable for a moment. Clusters that have not found each other yet must not found a group
each, so some server of each configured one has to be seen in any case, unless the patience is
over and those of its servers that gateways lead to have no JetStream: who of them comes later finds
the group and joins it. The others follow what the founder announces, when it names them.

Two founders cannot both be followed by one server: what a server followed is on its disk before
it takes part. When two found at the same time, without seeing each other, one of the groups has no
quorum; who is left in it gives it up, see `hopeless`. Servers whose meta groups differ for good
refuse each other loudly, see `conflict`.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import field

from jsctl.broker.peers.items import Founding
from jsctl.dataclass import dataclass

SETTLE_NS = 250_000_000
"""The set of servers must not have changed for this long."""
PATIENCE_NS = 3_000_000_000
"""After this long a majority of the promised servers is enough."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What a peer says of itself: `founding` empty when it has no meta group yet."""

    peer: str
    jetstream: bool
    founding: Founding | None
    life: int = 0
    cluster: str = ""


@dataclass(slots=True)
class Bootstrap:
    """Decides for one server. Times in ns; pure."""

    me: str
    life: int
    clustered: bool
    promised: int
    """Servers that the configuration names, this one included."""
    started_ns: int
    other_clusters: tuple[tuple[str, int], ...] = ()
    """Clusters that the configuration names, and how many of the promised servers are theirs. Each
    has to be seen, however long that takes, or to say that it has no JetStream."""
    _last: tuple[str, ...] = field(default=())
    _since_ns: int = 0

    def decide(
        self, seen: Sequence[Seen], new_id: str, now_ns: int, bare: Set[str] = frozenset()
    ) -> Founding | None:
        """The group to take part in from now on; None while that is open.

        `new_id` is used when this server founds. A result that does not name this server as a
        member means: wait to be added. `bare` are clusters whose servers, as far as they are
        linked, say that they have no JetStream.
        """
        if not self.clustered:
            return Founding(new_id, (self.me,), (self.life,))
        for other in seen:
            if other.founding is not None:
                return other.founding
        lives = {self.me: self.life} | {s.peer: s.life for s in seen if s.jetstream}
        known = tuple(sorted(lives))
        if known != self._last:
            self._last, self._since_ns = known, now_ns
        if now_ns - self._since_ns < SETTLE_NS or known[0] != self.me:
            return None
        present = {other.cluster for other in seen if other.jetstream}
        missing = {name: count for name, count in self.other_clusters if name not in present}
        if missing and (not self._is_late(now_ns) or not missing.keys() <= bare):
            return None
        if not self._enough(len(known), self.promised - sum(missing.values()), now_ns):
            return None
        return Founding(new_id, known, tuple(lives[peer] for peer in known))

    def _is_late(self, now_ns: int) -> bool:
        return now_ns - self.started_ns > PATIENCE_NS

    def _enough(self, known: int, promised: int, now_ns: int) -> bool:
        promised = max(promised, 2)
        if known >= promised:
            return True
        return self._is_late(now_ns) and known >= max(2, promised // 2 + 1)


def hopeless(mine: Founding, me: str, elsewhere: Mapping[str, Founding]) -> Founding | None:
    """The group to go to, when so many founders of this one follow another that it can never
    have had, and never will have, a quorum. Only for a server whose log of it is empty."""
    gone = [
        peer
        for peer in mine.members
        if peer != me and peer in elsewhere and elsewhere[peer].meta_id != mine.meta_id
    ]
    if len(mine.members) - len(gone) > len(mine.members) // 2:
        return None
    return elsewhere[gone[0]]


def conflict(mine: Founding | None, seen: Sequence[Seen]) -> list[str]:
    """Peers that belong to another meta group than this server."""
    if mine is None:
        return []
    return [
        other.peer
        for other in seen
        if other.founding is not None and other.founding.meta_id != mine.meta_id
    ]
