"""Replica audit: the content that each replica really holds, compared message by message.

One consumer is moved to every peer, so that each is served from that peer's store; Spark reads
them side by side and compares (sequence, hash). The majority tells which replica is wrong.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from jsctl.api.stream import StreamInfo
from jsctl.errors import JsctlError
from jsctl.spark.jetstream import JetStream
from jsctl.spark.options import ConnectionOptions
from jsctl.spark.pipeline.jobs.model import Field, Input, Result, Table, Unit
from jsctl.spark.pipeline.replica_reader import OUTAGE_NS, Pinned, pin, unpin

_PEERS = (
    Field("stream", "Stream"),
    Field("peer", "Replica"),
    Field("role", "Role"),
    Field("messages", "Messages", Unit.COUNT),
    Field("first_seq", "First", Unit.COUNT),
    Field("last_seq", "Last", Unit.COUNT),
    Field("digest", "Digest"),
)
_DIFFERENT = (
    Field("stream", "Stream"),
    Field("seq", "Sequence", Unit.COUNT),
    Field("peer", "Replica"),
    Field("problem", "Problem"),
)


def replicas(given: Input) -> Result:
    """Compares the replicas of all streams that have several."""
    peers: list[dict[str, Any]] = []
    different: list[dict[str, Any]] = []
    notes: list[str] = []
    findings = 0
    for info in given.infos:
        names = peers_of(info)
        if len(names) < 2:
            notes.append(f"{info.config.name} has one replica, there is nothing to compare")
            continue
        offline = [one.name for one in info.cluster.replicas if one.offline] if info.cluster else []
        if offline:
            raise JsctlError(f"{info.config.name}: {', '.join(offline)} is offline")
        given.phase(f"{info.config.name}: moving consumers to {', '.join(names)}")
        found = _audit(given, info, names)
        peers += found[0]
        different += found[1]
        findings += found[2]
    tables = (
        Table("replicas", "Replicas", _PEERS, peers),
        Table("different", "Different Messages", _DIFFERENT, different),
    )
    return Result("replicas", "Replica Audit", tables, notes=notes, findings=findings)


def peers_of(info: StreamInfo) -> list[str]:
    """The servers that keep a stream, the leader first."""
    if info.cluster is None or not info.cluster.leader:
        return []
    return [info.cluster.leader, *(one.name for one in info.cluster.replicas)]


def _audit(
    given: Input, info: StreamInfo, names: Sequence[str]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], int]:
    """(rows about peers, rows about messages, number of differing messages) of one stream."""
    stream, state = info.config.name, info.state
    if not state.messages:
        return [], [], 0
    pinned: list[Pinned] = []
    try:
        for name in names:
            pinned.append(
                pin(given.settings, stream, name, len(names), state.first_seq, state.last_seq)
            )
        given.phase(f"{stream}: reading {len(names)} replicas")
        _view(given, pinned)
        peers = given.query("replicas", "peers")
        differing = given.query("replicas", "differing", peers=len(names))
        total = given.query("replicas", "count", peers=len(names))[0]["differing"]
        copies = _copies(given, differing)
    finally:
        given.spark.catalog.dropTempView("replicas")
        with JetStream(ConnectionOptions(given.settings, OUTAGE_NS)) as js:
            for one in pinned:
                unpin(js, one)
    for row in peers:
        row["stream"], row["digest"] = stream, f"{row['digest'] % 2**64:016x}"
        row["role"] = "leader" if row["peer"] == names[0] else "follower"
    rows = [
        {"stream": stream, "seq": row["seq"], "peer": peer, "problem": problem}
        for row in differing
        for peer, problem in verdicts(copies.get(row["seq"], {}), names)
    ]
    return peers, rows, int(total)


def _view(given: Input, pinned: Sequence[Pinned]) -> None:
    """The view `replicas`: one task reads one replica."""
    from jsctl.spark.pipeline.replica_source import NAME, ReplicaSource, replica_options

    given.spark.dataSource.register(ReplicaSource)
    rows = given.spark.read.format(NAME).options(**replica_options(pinned)).load()
    rows.persist().createOrReplaceTempView("replicas")


def _copies(given: Input, differing: Sequence[dict[str, Any]]) -> dict[int, dict[str, int]]:
    """Sequence -> replica -> hash, for the messages that differ."""
    if not differing:
        return {}
    rows = given.spark.createDataFrame([(row["seq"],) for row in differing], "seq BIGINT")
    rows.createOrReplaceTempView("differing")
    found: dict[int, dict[str, int]] = {}
    for row in given.query("replicas", "copies"):
        found.setdefault(row["seq"], {})[row["peer"]] = row["hash"]
    return found


def verdicts(copies: dict[str, int], names: Sequence[str]) -> list[tuple[str, str]]:
    """(replica, what is wrong with it) for one message; all replicas when none is in the right."""
    counts = Counter(copies.values())
    (content, votes), *_ = counts.most_common(1)
    if votes * 2 <= len(names):
        text = "differs, no majority says which is right"
        return [(name, text if name in copies else "missing") for name in names]
    found = []
    for name in names:
        if name not in copies:
            found.append((name, "missing"))
        elif copies[name] != content:
            found.append((name, "other content than the majority"))
    return found
