"""A stream judged: its replicas, messages, subjects, sources and mirror."""

from jsctl.api.cluster import ClusterInfo
from jsctl.api.stream import StreamInfo
from jsctl.api.times import SECOND_NS, format_duration
from jsctl.commands.toolkit.health.thresholds import Thresholds
from jsctl.render.reports.server.check import CheckResult


def judge_stream(info: StreamInfo, limits: Thresholds, result: CheckResult) -> None:
    """All rules, in the order in which `nats` tells them."""
    _cluster(info, limits, result)
    _messages(info, limits, result)
    _subjects(info, limits, result)
    _sources(info, limits, result)
    _mirror(info, limits, result)


def _cluster(info: StreamInfo, limits: Thresholds, result: CheckResult) -> None:
    cluster, expected = info.cluster, limits.count("peer-expect")
    if cluster is None or info.config.num_replicas <= 1:
        if expected:
            result.critical("Stream is not clustered")
        return
    if not cluster.leader:
        result.critical("No leader")
        return
    peers = len(cluster.replicas) + 1
    if expected and peers != expected:
        result.critical(f"Expected {expected} replicas got {peers}")
        return
    result.ok(f"{peers} peers")
    _peers(cluster, limits, result)


def _peers(cluster: ClusterInfo, limits: Thresholds, result: CheckResult) -> None:
    lag, seen = limits.count("peer-lag-critical"), limits.seconds("peer-seen-critical")
    if offline := sum(peer.offline for peer in cluster.replicas):
        result.critical(f"{offline} replicas offline")
    if lag:
        lagged = sum(peer.lag > lag for peer in cluster.replicas)
        _either(result, lagged, f"{lagged} replicas lagged", "replicas are current")
    if seen:
        inactive = sum(peer.active > seen * SECOND_NS for peer in cluster.replicas)
        _either(result, inactive, f"{inactive} replicas inactive", "replicas are active")


def _either(result: CheckResult, wrong: int, text: str, fine: str) -> None:
    if wrong:
        result.critical(text)
    else:
        result.ok(fine)


def _messages(info: StreamInfo, limits: Thresholds, result: CheckResult) -> None:
    warn, critical = limits.count("msgs-warn"), limits.count("msgs-critical")
    if not warn and not critical:
        return
    held = info.state.messages
    text = "Messages stored in the stream"
    result.measure("messages", held, warning=warn, critical=critical, help=text)
    if critical and held <= critical:
        result.critical(f"{held} messages")
    elif warn and held <= warn:
        result.warn(f"{held} messages")
    else:
        result.ok(f"{held} messages")


def _subjects(info: StreamInfo, limits: Thresholds, result: CheckResult) -> None:
    """More than the thresholds are too many; a smaller critical one asks for enough of them."""
    warn, critical = limits.count("subjects-warn"), limits.count("subjects-critical")
    if not warn and not critical:
        return
    found = info.state.num_subjects
    text = "Number of subjects stored in the stream"
    result.measure("subjects", found, warning=warn, critical=critical, help=text)
    rising = warn < critical
    if found >= critical if rising else found <= critical:
        result.critical(f"{found} subjects")
    elif found >= warn if rising else found <= warn:
        result.warn(f"{found} subjects")
    else:
        result.ok(f"{found} subjects")


def _sources(info: StreamInfo, limits: Thresholds, result: CheckResult) -> None:
    count = len(info.sources)
    fewest, most = limits.count("min-sources"), limits.count("max-sources")
    result.measure(
        "sources",
        count,
        warning=fewest,
        critical=most,
        help="Number of sources being consumed by this stream",
    )
    if (fewest and count < fewest) or (most and count > most):
        result.critical(f"{count} sources")
    else:
        result.ok(f"{count} sources")
    lag, seen = limits.count("lag-critical"), limits.seconds("seen-critical")
    if not lag and not seen:
        return
    lagged = sum(lag > 0 and source.lag >= lag for source in info.sources)
    inactive = sum(seen > 0 and source.active >= seen * SECOND_NS for source in info.sources)
    result.measure(
        "sources_lagged",
        lagged,
        help="Number of sources that are behind more than the configured threshold",
    )
    result.measure("sources_inactive", inactive, help="Number of sources that are inactive")
    _either(result, lagged, f"{lagged} sources are lagged", f"{count} sources current")
    _either(result, inactive, f"{inactive} sources are inactive", f"{count} sources active")


def _mirror(info: StreamInfo, limits: Thresholds, result: CheckResult) -> None:
    lag, seen = limits.count("lag-critical"), limits.seconds("seen-critical")
    if (not lag and not seen) or info.sources:
        return
    if info.config.mirror is None:
        result.critical("not mirrored")
        return
    if info.mirror is None:
        result.critical("invalid state")
        return
    found = info.mirror
    result.measure(
        "lag",
        found.lag,
        critical=lag,
        help="Number of operations this peer is behind its origin",
    )
    result.measure(
        "active",
        found.active / SECOND_NS,
        critical=seen,
        unit="s",
        help="Indicates if this peer is active and catching up if lagged",
    )
    late, silent = lag and found.lag >= lag, seen and found.active >= seen * SECOND_NS
    if late:
        result.critical(f"Mirror Lag {found.lag}")
    if silent:
        result.critical(f"Mirror Seen {format_duration(found.active)}")
    if not late and not silent:
        result.ok(f"Mirror {info.config.mirror.name}")
