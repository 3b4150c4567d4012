"""Pieces that several reports share."""

from collections.abc import Mapping, Sequence

from jsctl.api.cluster import ClusterInfo, PeerInfo, Placement
from jsctl.api.fields import NANOS_MAX
from jsctl.api.times import parse_time
from jsctl.api.words import SERVER_KEYS, Retention
from jsctl.render.details import Details
from jsctl.render.humanize import compact, duration, joined, moment
from jsctl.render.table import table
from jsctl.render.theme import PLAIN, Theme

REQUIRED_LEVEL = "_nats.req.level"
SERVER_VERSION = "_nats.ver"
SERVER_LEVEL = "_nats.level"
NAMES_PER_ROW = 4
MIGRATION_INDENT = 3
RETENTION_WORDS = {
    Retention.LIMITS: "Limits",
    Retention.INTEREST: "Interest",
    Retention.WORK_QUEUE: "WorkQueue",
}


def cluster_cell(cluster: ClusterInfo | None) -> str:
    """`n1*, n2, n3!`: the leader has a star, a peer that is behind or away a mark."""
    if cluster is None or not cluster.name:
        return ""
    peers = list(cluster.replicas)
    names = compact([peer.name for peer in peers] + ([cluster.leader] if cluster.leader else []))
    marked = [
        name + ("!" if peer.offline or not peer.current else "")
        for name, peer in zip(names, peers, strict=False)
    ]
    if cluster.leader:
        marked.append(names[-1] + "*")
    return ", ".join(sorted(marked))


def placement_cell(placement: Placement | None) -> str:
    """Where an asset was asked to live."""
    if placement is None:
        return ""
    text = f"cluster: {placement.cluster} " if placement.cluster else ""
    return text + (f"tags: {', '.join(placement.tags)}" if placement.tags else "")


def api_level(metadata: Mapping[str, str]) -> int:
    """The API level that an asset's configuration needs."""
    text = metadata.get(REQUIRED_LEVEL, "0")
    return int(text) if text.isdigit() else 0


def peer_state(peer: PeerInfo) -> str:
    """`current` or `outdated`."""
    return "current" if peer.current else "outdated"


def peer_seen(peer: PeerInfo) -> str:
    """When a peer was last heard."""
    if 0 < peer.active < NANOS_MAX:
        return f"seen {duration(peer.active)} ago"
    return "not seen"


def leader_text(cluster: ClusterInfo, now: str) -> str:
    """The leader and how long it has been one."""
    if not cluster.leader_since:
        return cluster.leader
    held = parse_time(now) - parse_time(cluster.leader_since)
    return f"{cluster.leader} ({duration(held)})"


def _placed(placement: Placement | None) -> tuple[str, str]:
    return (joined(placement.tags), placement.preferred) if placement is not None else ("", "")


def add_migration(
    screen: Details,
    cluster: ClusterInfo,
    now: str,
    replicas: int,
    placement: Placement | None = None,
    retention: Retention | None = None,
) -> None:
    """Where a group goes that changes its servers: what was, what is wanted, what it waits for."""
    desired = cluster.desired
    if desired is None:
        return
    screen.section("Cluster Migration Status", indent=MIGRATION_INDENT)
    if desired.status is not None:
        screen.row_if("Status", desired.status.description)
        screen.row_if("Type", desired.status.type)
        screen.row_if("Error", desired.status.err)
    if begun := parse_time(desired.created):
        passed = duration(max(0, parse_time(now) - begun))
        screen.row("Created", f"{moment(desired.created)} ({passed})")
    screen.text()
    if desired.name != cluster.name:
        screen.row("Cluster", f"{cluster.name} -> {desired.name}")
    if desired.origin is not None:
        origin = desired.origin
        if origin.replicas != replicas:
            screen.row("Replicas", f"{origin.replicas} -> {replicas}")
        old, new = _placed(origin.placement), _placed(placement)
        for label, was, is_ in zip(("Placement Tags", "Preferred"), old, new, strict=True):
            if was != is_:
                screen.row(label, f"{was or 'none'} -> {is_ or 'none'}")
        if origin.retention is not None and retention is not None and retention != origin.retention:
            both = (origin.retention, retention)
            words = (RETENTION_WORDS.get(one, str(one.value)) for one in both)
            screen.row("Retention Policy", " -> ".join(words))
    names = (f"{one.name} (offline)" if one.offline else one.name for one in desired.replicas)
    screen.rows("Desired Peers", names)
    screen.indent(0)


def add_levels(screen: Details, metadata: Mapping[str, str]) -> None:
    """The rows about the server's version and what the asset needs of it."""
    screen.row_if("Host Version", metadata.get(SERVER_VERSION, ""))
    if SERVER_LEVEL in metadata:
        level = metadata.get(REQUIRED_LEVEL, "0") or "0"
        screen.row("Required API Level", f"{level} hosted at level {metadata[SERVER_LEVEL]}")


def add_metadata(screen: Details, metadata: Mapping[str, str]) -> None:
    """What people attached; keys of the server itself are left out."""
    screen.section("Metadata")
    for key in sorted(metadata):
        if key not in SERVER_KEYS:
            screen.row(key, metadata[key])


def inaccessible_table(
    kind: str, missing: Sequence[str], theme: Theme = PLAIN, width_max: int = 0
) -> str:
    """Assets that did not answer, four names a row, filled column by column."""
    names = sorted(missing)
    height = -(-len(names) // NAMES_PER_ROW)
    rows = [[names[at] for at in range(row, len(names), height)] for row in range(height)]
    rows = [row + [""] * (NAMES_PER_ROW - len(row)) for row in rows]
    return table([], rows, title=f"Inaccessible {kind}", theme=theme, width_max=width_max)


def offline_table(
    kind: str, offline: Mapping[str, str], theme: Theme = PLAIN, width_max: int = 0
) -> str:
    """Assets that their server cannot run, and why."""
    one = kind.removesuffix("s")
    return table(
        [one, "Reason"],
        [[name, offline[name]] for name in sorted(offline)],
        title=f"Offline {kind}",
        theme=theme,
        width_max=width_max,
    )


def created_text(created: str) -> str:
    """For headings."""
    return moment(created)
