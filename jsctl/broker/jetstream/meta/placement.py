"""Which servers hold a replica. Pure: facts about servers in, peer ids out.

Candidates are filtered (cluster, tags, room, HA assets), ordered (online first, full disks last,
then the least loaded) and taken greedily under the `unique_tag` rule. Chance only breaks ties
between equals, through the injected jitter. The outcome is logged by the meta leader and never
computed again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import field

from jsctl.broker.turn import Jitter
from jsctl.dataclass import dataclass

_ROOM_STEP = 1 << 30
"""Servers whose free room differs by less than this count as equally free."""
_TAG_NO_JETSTREAM = "!jetstream"


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """One JetStream server as the meta leader knows it. Sizes in bytes, -1: unlimited."""

    peer: str
    name: str
    cluster: str = ""
    domain: str = ""
    tags: tuple[str, ...] = ()
    online: bool = True
    known: bool = True
    """False until its first statistics were heard."""
    jetstream: bool = True
    store_max: int = -1
    store_used: int = 0
    store_reserved: int = 0
    memory_max: int = -1
    memory_used: int = 0
    memory_reserved: int = 0
    streams: int = 0
    ha_assets: int = 0
    ha_assets_max: int = 0
    """0: unlimited."""
    incarnation: int = 0
    """The life of the server's disk."""
    disk_full: bool = False
    """It takes no messages for what is on its disk until there is room again."""
    boot: int = 0
    """This run of the server's process, to which what only memory holds is bound."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What an asset asks of its servers. `bytes_max` -1: no reservation."""

    replicas: int
    cluster: str
    tags: tuple[str, ...] = ()
    bytes_max: int = -1
    memory: bool = False
    unique_tag: str = ""
    """Prefix, e.g. `az:`: each peer needs a tag of its own that begins so."""
    preferred: str = ""
    """Peer id that shall lead if it is chosen and online."""


@dataclass(frozen=True, slots=True)
class Placed:
    """The chosen peers, existing ones in their old slots first, and who shall lead."""

    peers: tuple[str, ...]
    preferred: str


@dataclass(slots=True)
class NoPeers:
    """Why there was no placement; `text` is what the client is told."""

    offline: bool = False
    exclude_tag: bool = False
    no_storage: bool = False
    unique_tag: bool = False
    misc: bool = False
    no_jetstream: bool = False
    unmatched: list[str] = field(default_factory=list)
    excluded: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The reasons joined, in the order that operators know."""
        flags = [
            (self.offline, "peer offline"),
            (self.exclude_tag, "exclude tag set"),
            (self.no_storage, "insufficient storage"),
            (self.unique_tag, "server tag not unique"),
            (self.misc, "miscellaneous issue"),
            (self.no_jetstream, "jetstream not enabled in cluster"),
        ]
        parts = ["no suitable peers for placement"]
        parts += [text for happened, text in flags if happened]
        for label, tags in (("not matched", self.unmatched), ("excluded", self.excluded)):
            if tags:
                parts.append(f"tags {label} [" + ", ".join(f"'{tag}'" for tag in tags) + "]")
        return ", ".join(parts)


def room(server: ServerFacts, memory: bool) -> int:
    """Bytes that may still be promised on a server."""
    maximum = server.memory_max if memory else server.store_max
    if maximum < 0:
        return 1 << 62
    if memory:
        return max(0, maximum - max(server.memory_used, server.memory_reserved))
    return max(0, maximum - max(server.store_used, server.store_reserved))


def _tags_of(server: ServerFacts) -> set[str]:
    return {tag.lower() for tag in server.tags}


def _tags_fit(server: ServerFacts, wanted: Wanted, why: NoPeers) -> bool:
    tags = _tags_of(server)
    if _TAG_NO_JETSTREAM in tags:
        why.exclude_tag = True
        return False
    for tag in wanted.tags:
        negated = tag.startswith("!")
        present = tag.lower().lstrip("!") in tags
        if present != negated:
            continue
        into = why.excluded if negated else why.unmatched
        shown = tag[1:] if negated else tag
        if shown not in into:
            into.append(shown)
        return False
    return True


def _fits(server: ServerFacts, wanted: Wanted, why: NoPeers) -> bool:
    if not server.jetstream:
        why.no_jetstream = True
        return False
    if not server.known:
        why.offline = True
        return False
    if not _tags_fit(server, wanted, why):
        return False
    if wanted.bytes_max > 0 and wanted.bytes_max > room(server, wanted.memory):
        why.no_storage = True
        return False
    if wanted.replicas > 1 and 0 < server.ha_assets_max < server.ha_assets:
        why.misc = True
        return False
    return True


def _unique_prefix(wanted: Wanted) -> str:
    prefix = wanted.unique_tag.lower()
    if prefix and any(tag.lower().startswith(prefix) for tag in wanted.tags):
        return ""
    return prefix


def _unique_tag(server: ServerFacts, prefix: str) -> str:
    return next((tag for tag in sorted(_tags_of(server)) if tag.startswith(prefix)), "")


def _shuffled(servers: Sequence[ServerFacts], jitter: Jitter) -> list[ServerFacts]:
    result = list(servers)
    for last in range(len(result) - 1, 0, -1):
        other = jitter(last + 1)
        result[last], result[other] = result[other], result[last]
    return result


def _order(candidates: list[ServerFacts], wanted: Wanted) -> list[ServerFacts]:
    def rank(server: ServerFacts) -> tuple[bool, bool, int, int, int]:
        replicated = server.ha_assets if wanted.replicas > 1 else 0
        free = room(server, wanted.memory) // _ROOM_STEP
        full = server.disk_full and not wanted.memory
        return (not server.online, full, replicated, -free, server.streams)

    return sorted(candidates, key=rank)


def _take(
    ordered: list[ServerFacts], count: int, prefix: str, taken: set[str], why: NoPeers
) -> list[ServerFacts]:
    chosen: list[ServerFacts] = []
    for server in ordered:
        if len(chosen) == count:
            break
        if prefix:
            tag = _unique_tag(server, prefix)
            if not tag or tag in taken:
                why.unique_tag = True
                continue
            taken.add(tag)
        chosen.append(server)
    return chosen


def choose_peers(
    servers: Sequence[ServerFacts],
    wanted: Wanted,
    jitter: Jitter,
    *,
    existing: Sequence[str] = (),
    excluded: Sequence[str] = (),
    leader: str = "",
) -> Placed | NoPeers:
    """Place `wanted.replicas` replicas.

    `existing` peers stay, in their slots, whatever their tags; newcomers are appended.
    `excluded` peers are not taken. `leader` (the present one) is preferred to lead.
    """
    why = NoPeers()
    by_peer = {server.peer: server for server in servers}
    kept = [peer for peer in existing if peer not in excluded][: wanted.replicas]
    barred = {*existing, *excluded}
    candidates = [
        server
        for server in _shuffled(servers, jitter)
        if server.cluster == wanted.cluster
        and server.peer not in barred
        and _fits(server, wanted, why)
    ]
    prefix = _unique_prefix(wanted)
    taken = {_unique_tag(by_peer[peer], prefix) for peer in kept if prefix and peer in by_peer}
    missing = wanted.replicas - len(kept)
    chosen = _take(_order(candidates, wanted), missing, prefix, taken, why)
    if len(chosen) < missing:
        return why
    peers = (*kept, *(server.peer for server in chosen))
    online = [peer for peer in peers if peer in by_peer and by_peer[peer].online]
    if len(online) < wanted.replicas // 2 + 1:
        why.offline = True
        return why
    roomy = [peer for peer in online if wanted.memory or not by_peer[peer].disk_full]
    return Placed(peers, _preferred(online, roomy, wanted, leader, jitter))


def _preferred(
    online: list[str], roomy: list[str], wanted: Wanted, leader: str, jitter: Jitter
) -> str:
    for peer in (wanted.preferred, leader):
        if peer and peer in online:
            return peer
    able = roomy or online
    return able[jitter(len(able))]


def choose_replacement(
    servers: Sequence[ServerFacts],
    wanted: Wanted,
    jitter: Jitter,
    *,
    peers: Sequence[str],
    removed: str,
) -> Placed | NoPeers:
    """The group's peers with `removed` replaced by another server."""
    return choose_peers(servers, wanted, jitter, existing=peers, excluded=(removed,))


@dataclass(frozen=True, slots=True)
class ReplicaStanding:
    """How far a replica is: for picking whom to keep. `lag` in log entries."""

    online: bool
    lag: int = 0


def scale_down(
    peers: Sequence[str], replicas: int, standings: Mapping[str, ReplicaStanding], leader: str
) -> tuple[str, ...]:
    """Whom to keep: the leader, then online peers by lag, then offline ones.

    The kept peers stand in their old order.
    """

    def rank(peer: str) -> tuple[bool, bool, int]:
        standing = standings.get(peer, ReplicaStanding(online=False))
        return (peer != leader, not standing.online, standing.lag)

    kept = set(sorted(peers, key=rank)[:replicas])
    return tuple(peer for peer in peers if peer in kept)


def choose_subset(
    peers: Sequence[str], replicas: int, standings: Mapping[str, ReplicaStanding], jitter: Jitter
) -> tuple[str, ...] | None:
    """Peers for a consumer with fewer replicas than its stream; None without a quorum online."""
    order = list(peers)
    for last in range(len(order) - 1, 0, -1):
        other = jitter(last + 1)
        order[last], order[other] = order[other], order[last]
    unknown = ReplicaStanding(online=False)
    order.sort(key=lambda peer: not standings.get(peer, unknown).online)
    chosen = order[:replicas]
    online = [peer for peer in chosen if standings.get(peer, unknown).online]
    if len(online) < replicas // 2 + 1:
        return None
    return tuple(chosen)
