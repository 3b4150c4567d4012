"""How bad a thing is, and why, in words. Pure; the thresholds are all here.

A glyph, a place in the order and a sentence come from one judgement, so they cannot disagree.
"""

from collections.abc import Iterable, Sequence

from jsctl.api.times import SECOND_NS
from jsctl.dashboard.model.snapshot import (
    Alert,
    Badge,
    Consumer,
    Level,
    Meta,
    Peer,
    PeerState,
    Server,
    Source,
    Stream,
)
from jsctl.render.humanize import counted, duration, number

CPU_HIGH = 0.9
"""Of all cores."""
STORE_HIGH = 0.85
"""Of what JetStream may use."""
LIMIT_HIGH = 0.95
"""Of a stream's limit, where reaching it refuses messages."""
LAG_HIGH = 1000
"""Messages a growing consumer may be behind before it is worth a mark."""
SOURCE_SILENT_NS = 60 * SECOND_NS
"""A mirror hears from its origin every few seconds."""
Judgement = tuple[Level, str]
FINE: Judgement = (Level.OK, "")


def judge_server(server: Server) -> Judgement:
    """A server by what it told, or by its silence."""
    if not server.up:
        return Level.BAD, f"no answer for {duration(server.age_ns // SECOND_NS * SECOND_NS)}"
    if server.lame_duck:
        return Level.WARN, "is going to shut down (lame duck)"
    if server.cores and server.cpu > CPU_HIGH * 100 * server.cores:
        return Level.WARN, f"CPU at {server.cpu:.0f} % of {server.cores} cores"
    if server.store_max > 0 and server.store > STORE_HIGH * server.store_max:
        return Level.WARN, f"store {server.store / server.store_max:.0%} full"
    return FINE


def judge_peers(peers: Sequence[Peer], leader: str, replicas: int) -> Judgement:
    """A group by its members."""
    gone = [peer.name for peer in peers if peer.state is PeerState.OFFLINE]
    size = max(replicas, len(peers))
    if peers and len(peers) - len(gone) < size // 2 + 1:
        return Level.BAD, f"offline: {', '.join(gone)}" if gone else "no quorum"
    if not leader and peers:
        return Level.BAD, "no leader"
    if gone:
        return Level.WARN, f"{', '.join(gone)} offline"
    behind = [peer for peer in peers if peer.state is PeerState.BEHIND]
    if behind:
        lag = f" by {number(behind[0].lag)}" if behind[0].lag else ""
        return Level.WARN, f"{', '.join(peer.name for peer in behind)} behind{lag}"
    return FINE


def judge_stream(stream: Stream, *, discard_new: bool) -> Judgement:
    """A stream by its group, its data, its sources and its limits."""
    group = judge_peers(stream.peers, stream.leader, stream.replicas)
    if group[0] is Level.BAD:
        return group
    damage = _judge_damage(stream)
    if damage[0] is Level.BAD or (damage is not FINE and group[0] is not Level.WARN):
        return damage
    if group[0] is Level.WARN:
        return group
    for source in stream.sources:
        found = _judge_source(source)
        if found is not FINE:
            return found
    if discard_new:
        for used, most in (
            (stream.bytes, stream.bytes_max),
            (stream.messages, stream.messages_max),
        ):
            if most > 0 and used > LIMIT_HIGH * most:
                return Level.WARN, f"{used / most:.0%} of its limit, then refuses messages"
    return (Level.NOTE, "sealed") if stream.sealed else FINE


def _judge_damage(stream: Stream) -> Judgement:
    """What no replica has is bad; what one of them cannot read is fetched from the others. A
    server that tells only how many there are has given them up."""
    if not stream.damage:
        if stream.lost:
            return Level.BAD, f"{counted(stream.lost, 'message')} lost"
        return FINE
    worst = max(stream.damage, key=lambda one: (one.lost, one.messages))
    if worst.lost:
        lost = counted(worst.lost, "message")
        return Level.BAD, f"{lost} lost on all replicas: {worst.ranges}"
    count = counted(worst.messages, "message")
    return Level.WARN, f"{count} damaged on {worst.server}, being repaired: {worst.ranges}"


def _judge_source(source: Source) -> Judgement:
    word = "mirror" if source.mirror else "source"
    if source.error:
        return Level.WARN, f"{word} {source.name}: {source.error}"
    if source.active_ns < 0:
        return Level.WARN, f"{word} {source.name} was never heard"
    if source.active_ns > SOURCE_SILENT_NS:
        return Level.WARN, f"{word} {source.name} silent for {duration(source.active_ns)}"
    return FINE


def judge_consumer(consumer: Consumer) -> Judgement:
    """A consumer by its group and by whether it moves."""
    group = judge_peers(consumer.peers, consumer.leader, len(consumer.peers))
    if group[0] is Level.BAD:
        return group
    if consumer.paused:
        return Level.NOTE, f"paused for {duration(consumer.pause_left_ns)} more"
    if 0 < consumer.ack_pending_max <= consumer.ack_pending and consumer.lag:
        return Level.WARN, f"{number(consumer.ack_pending)} not acknowledged: nothing is delivered"
    if group[0] is Level.WARN:
        return group
    if consumer.lag >= LAG_HIGH and consumer.lag_rate > 0:
        return Level.WARN, f"{number(consumer.lag)} behind and growing"
    if consumer.ack_pending and consumer.redelivered * 2 > consumer.ack_pending:
        return Level.WARN, f"{number(consumer.redelivered)} delivered again"
    return FINE


def judge_meta(meta: Meta) -> Judgement:
    """The meta group."""
    if not meta.known:
        return FINE
    if not meta.leader:
        return Level.BAD, "no meta leader"
    if meta.need and meta.up < meta.need:
        return Level.BAD, "the meta group has no quorum"
    if meta.have < meta.size:
        return Level.WARN, f"{meta.have} of {meta.size} in sync, spare {meta.spare}"
    return FINE


def alerts_of(
    servers: Iterable[Server],
    meta: Meta,
    streams: Iterable[Stream],
    consumers: Iterable[Consumer],
) -> tuple[Alert, ...]:
    """Everything marked, worst first."""
    found = [
        Alert(one.level, one.name, one.why)
        for many in (servers, streams)
        for one in many
        if one.level >= Level.WARN
    ]
    level, why = judge_meta(meta)
    if level >= Level.WARN:
        found.append(Alert(level, "meta", why))
    found += [
        Alert(one.level, f"{one.stream} > {one.name}", one.why)
        for one in consumers
        if one.level >= Level.WARN
    ]
    return tuple(sorted(found, key=lambda alert: -alert.level))


def badge_of(
    servers: Sequence[Server],
    meta: Meta,
    streams: Sequence[Stream],
    consumers: Sequence[Consumer],
) -> Badge:
    """The one word.

    DOWN: no meta leader, or a replicated group without a quorum. DEGRADED: any other server,
    stream, or group of a consumer that is marked. A consumer that only lags does not count: that
    is its client's affair.
    """
    groups = [judge_peers(one.peers, one.leader, len(one.peers))[0] for one in consumers]
    shared = [level for level, one in zip(groups, consumers, strict=True) if len(one.peers) > 1]
    shared += [
        judge_peers(one.peers, one.leader, one.replicas)[0]
        for one in streams
        if one.replicas > 1 and one.level is Level.BAD
    ]
    if judge_meta(meta)[0] is Level.BAD or Level.BAD in shared:
        return Badge.DOWN
    if judge_meta(meta)[0] is Level.WARN or any(one.level >= Level.WARN for one in servers):
        return Badge.DEGRADED
    if any(one.level >= Level.WARN for one in streams):
        return Badge.DEGRADED
    return Badge.DEGRADED if any(level >= Level.WARN for level in groups) else Badge.HEALTHY
