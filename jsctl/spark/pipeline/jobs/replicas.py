"""Replica audit: the content that each replica really holds, compared message by message.

One consumer is moved to every peer, so that each is served from that peer's store; Spark reads
them side by side and compares (sequence, hash). The majority tells which replica is wrong.

A stream in use changes while it is read, and its replicas remove old messages each at a moment of
its own. So what differs is read a second time with new consumers: only what differs in both looks
is a finding.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jsctl.api.stream import StreamInfo
from jsctl.api.words import Retention
from jsctl.spark.connection.jetstream import JetStream
from jsctl.spark.options import ConnectionOptions
from jsctl.spark.pipeline.jobs.model import Field, Input, Result, Table, Unit
from jsctl.spark.pipeline.replicas.reader import OUTAGE_NS, Pinned, pin, unpin

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

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
        name, names, offline = info.config.name, peers_of(info), offline_of(info)
        if offline:
            notes.append(f"{name}: {', '.join(offline)} is offline and was not compared")
            findings += 1
        if reason := _incomparable(info, names):
            notes.append(f"{name} {reason}")
            continue
        found = _audit(given, info, names)
        peers += found.peers
        different += found.different
        findings += found.total
    tables = (
        Table("replicas", "Replicas", _PEERS, peers),
        Table("different", "Different Messages", _DIFFERENT, different),
    )
    return Result("replicas", "Replica Audit", tables, notes=notes, findings=findings)


def _incomparable(info: StreamInfo, names: Sequence[str]) -> str:
    """Why a stream's replicas cannot be compared; empty if they can."""
    if info.config.num_replicas < 2:
        return "has one replica, there is nothing to compare"
    if len(names) < 2:
        return "has fewer than two replicas online, there is nothing to compare"
    if info.config.retention is Retention.WORK_QUEUE:
        return "is a work queue: reading it would take its messages, so it was not compared"
    return ""


def peers_of(info: StreamInfo) -> list[str]:
    """The servers that keep a stream and are online, the leader first."""
    if info.cluster is None or not info.cluster.leader:
        return []
    online = (one.name for one in info.cluster.replicas if not one.offline)
    return [info.cluster.leader, *online]


def offline_of(info: StreamInfo) -> list[str]:
    """The servers that keep a stream and are offline."""
    return [one.name for one in info.cluster.replicas if one.offline] if info.cluster else []


@dataclass(frozen=True, slots=True)
class Found:
    """Of one stream: rows about peers, rows about messages, and how many messages differ."""

    peers: list[dict[str, Any]]
    different: list[dict[str, Any]]
    total: int


def _audit(given: Input, info: StreamInfo, names: Sequence[str]) -> Found:
    stream, last = info.config.name, info.state.last_seq
    if not last:
        return Found([], [], 0)
    given.phase(f"{stream}: reading {len(names)} replicas")
    with ExitStack() as views:
        views.enter_context(_held(given, info, names, "held", (1, last)))
        suspects = given.frame("replicas", "differing", peers=len(names))
        views.enter_context(_view(given, "suspects", suspects))
        span = given.query("replicas", "span")[0]
        if span["differing"]:
            given.phase(f"{stream}: reading again what differs")
            again = (span["first_seq"], span["last_seq"])
            views.enter_context(_held(given, info, names, "held_again", again))
            suspects = given.frame("replicas", "confirmed", peers=len(names))
        views.enter_context(_view(given, "confirmed", suspects))
        total = given.query("replicas", "total")[0]["differing"]
        copies = _copies(given) if total else {}
        peers = _peers(given, stream, names)
    rows = [
        {"stream": stream, "seq": seq, "peer": peer, "problem": problem}
        for seq, found in copies.items()
        for peer, problem in verdicts(found, names)
    ]
    return Found(peers, rows, total)


def _peers(given: Input, stream: str, names: Sequence[str]) -> list[dict[str, Any]]:
    """What each peer holds, without what changed between the two looks."""
    nothing = {"messages": 0, "first_seq": 0, "last_seq": 0, "digest": 0}
    found = {row["peer"]: row for row in given.query("replicas", "peers")}
    rows = []
    for name in sorted(names):
        row = found.get(name, nothing)
        role = "leader" if name == names[0] else "follower"
        digest = f"{row['digest'] % 2**64:016x}"
        rows.append({**row, "stream": stream, "peer": name, "role": role, "digest": digest})
    return rows


@contextmanager
def _held(
    given: Input, info: StreamInfo, names: Sequence[str], view: str, span: tuple[int, int]
) -> Iterator[None]:
    """A view of what each peer holds of a range: one task reads one replica, once."""
    from jsctl.spark.pipeline.replicas.source import NAME, ReplicaSource, replica_options

    stream, replicas = info.config.name, info.config.num_replicas
    pinned: list[Pinned] = []
    given.spark.dataSource.register(ReplicaSource)
    try:
        for name in names:
            pinned.append(pin(given.settings, stream, name, replicas, *span))
        rows = given.spark.read.format(NAME).options(**replica_options(pinned)).load()
        with _view(given, view, rows):
            yield
    finally:
        with JetStream(ConnectionOptions(given.settings, OUTAGE_NS)) as js:
            for one in pinned:
                unpin(js, one)


@contextmanager
def _view(given: Input, name: str, rows: "DataFrame") -> Iterator[None]:
    """A view whose rows are computed once."""
    kept = rows.persist()
    kept.createOrReplaceTempView(name)
    try:
        yield
    finally:
        given.spark.catalog.dropTempView(name)
        kept.unpersist()


def _copies(given: Input) -> dict[int, dict[str, int]]:
    """Sequence -> replica -> hash, for the first messages that differ."""
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
