"""The rules of checks about accounts, clusters, streams, leaf nodes and the meta group."""

from collections import defaultdict
from collections.abc import Callable
from functools import partial
from time import time_ns
from typing import TypeVar

from jsctl.api.cluster import ClusterInfo
from jsctl.api.codec import DecodeError, decode
from jsctl.api.consumer import ConsumerInfo
from jsctl.api.stream import StreamInfo
from jsctl.api.times import parse_time
from jsctl.commands.audit.catalog import Check
from jsctl.commands.audit.examples import (
    FAIL,
    WARN,
    Examples,
    answers,
    at,
    number,
    objects,
    replicas,
    text,
)
from jsctl.commands.toolkit.archives.files import Document, Reader
from jsctl.commands.toolkit.health.consumers import judge_consumer
from jsctl.commands.toolkit.health.streams import judge_stream
from jsctl.commands.toolkit.health.thresholds import Thresholds
from jsctl.errors import UsageError
from jsctl.render.humanize import size
from jsctl.render.reports.server.check import CheckResult

T = TypeVar("T")


def account_limits(check: Check, reader: Reader, found: Examples) -> str:
    """Connections and subscriptions against the claims of accounts."""
    exceeded = False
    for cluster, server in reader.servers():
        for account in reader.names("account"):
            told = reader.each(
                cluster=cluster, server=server, account=account, artifact_type="account_info"
            )
            for document in told:
                # `nats` reads the envelope as the account: no limit is ever seen in it.
                data = at(document, "data")
                for what, count, limit, key in (
                    ("client connections", "client_connections", "conn", "connections"),
                    ("leaf connections", "leafnode_connections", "leaf", "connections"),
                    ("subscriptions", "subscriptions", "subs", "subscriptions"),
                ):
                    value = int(number(data, count))
                    most = int(number(data, "decoded_jwt", "nats", "limits", limit))
                    exceeded |= 0 < most < value
                    _near_account_limit(
                        found, (what, server, account), value, most, check.value(key)
                    )
    return found.worst(FAIL if exceeded else WARN)


def _near_account_limit(
    found: Examples, names: tuple[str, str, str], value: int, limit: int, percent: float
) -> None:
    what, server, account = names
    if limit <= 0:
        return
    share = value * 100 / limit
    if value > limit:
        found.add(
            f"account {account} (on {server}) exceeded {what} limit ({share:.1f}%, {value}/{limit})"
        )
    elif value > int(limit * percent / 100):
        found.add(
            f"account {account} (on {server}) using {share:.1f}% of {what} limit ({value}/{limit})"
        )


def memory_outliers(check: Check, reader: Reader, found: Examples) -> str:
    """Servers that need much more memory than the others of their cluster."""
    used: dict[str, dict[str, float]] = defaultdict(dict)
    complaint = "failed to read VARZ for server {server} in cluster {cluster}"
    for cluster, server, data in answers(reader, "variables", complaint):
        used[cluster][server] = number(data, "mem")
    for cluster, servers in used.items():
        mean = sum(servers.values()) / len(servers)
        for server, memory in servers.items():
            if memory > mean * check.value("memory"):
                found.add(
                    f"Cluster {cluster} avg: {size(int(mean))}, server {server}: "
                    f"{size(int(memory))}"
                )
    return found.worst(WARN)


def uniform_gateways(_check: Check, reader: Reader, found: Examples) -> str:
    """The gateways that servers of one cluster are configured with."""
    configured: dict[tuple[str, str], dict[str, list[str]]] = defaultdict(dict)
    complaint = "failed to read GATEWAYZ for server {server} in cluster {cluster}"
    for cluster, server, data in answers(reader, "gateways", complaint):
        for direction in ("inbound", "outbound"):
            configured[cluster, direction][server] = _gateways(at(data, f"{direction}_gateways"))
    for (cluster, direction), servers in configured.items():
        before: tuple[str, list[str]] | None = None
        for server, names in servers.items():
            if before is not None and names != before[1]:
                found.add(
                    f"Cluster {cluster}, {direction} gateways server {server}: {_listed(names)} "
                    f"!= server {before[0]}: {_listed(before[1])}"
                )
            before = (server, names)
    return found.worst(FAIL)


def _gateways(gateways: object) -> list[str]:
    """Names of those that are configured: one connection outwards, a list of them inwards."""
    if not isinstance(gateways, dict):
        return []
    return sorted(
        name
        for name, told in gateways.items()
        if any(at(one, "configured") for one in (told if isinstance(told, list) else [told]))
    )


def _listed(names: list[str]) -> str:
    return f"[{' '.join(names)}]"


def many_assets(check: Check, reader: Reader, found: Examples) -> str:
    """Replicated streams and consumers of each server."""
    complaint = "failed to load JSZ for server {server}"
    for _, server, data in answers(reader, "jetstream_info", complaint):
        if number(data, "ha_assets") > check.value("assets"):
            found.add(f"{server}: {int(number(data, 'ha_assets'))} HA assets")
    return found.worst(WARN)


def cluster_names(_check: Check, reader: Reader, found: Examples) -> str:
    """Blanks in names of clusters."""
    for cluster in reader.names("cluster"):
        if set(cluster) & set(" \n"):
            found.add(f"Cluster: {cluster}")
    return found.worst(FAIL)


def leaf_names(_check: Check, reader: Reader, found: Examples) -> str:
    """Blanks in names of leaf nodes."""
    blanks: dict[str, set[str]] = defaultdict(set)
    for cluster, _, data in answers(reader, "leafs", "failed to read leafz for server {server}"):
        for leaf in objects(data, "leafs"):
            if set(text(leaf, "name")) & set(" \t\r\n"):
                blanks[cluster].add(text(leaf, "name"))
    for cluster, names in blanks.items():
        found.add(f"Cluster {cluster}: {_listed(sorted(names))}")
    return found.worst(FAIL)


def meta_online(_check: Check, reader: Reader, found: Examples) -> str:
    """Members of the meta group that others call offline."""
    complaint = "error reading JSZ for {cluster}/{server}"
    for cluster, server, data in answers(reader, "jetstream_info", complaint):
        for peer in objects(data, "meta_cluster", "replicas"):
            if at(peer, "offline") and not at(data, "disabled"):
                found.add(f"{cluster} - {server} reports peer {text(peer, 'name')} as offline")
    return found.worst(FAIL)


def meta_leader(_check: Check, reader: Reader, found: Examples) -> str:
    """Whether all agree on who leads the meta group."""
    followers: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    complaint = "error reading JSZ for {cluster}/{server}"
    for cluster, server, data in answers(reader, "jetstream_info", complaint):
        if isinstance(at(data, "meta_cluster"), dict) and not at(data, "disabled"):
            leader = text(data, "meta_cluster", "leader")
            followers[cluster][leader].append(server)
    for cluster, leaders in followers.items():
        if "" in leaders:
            found.add(f"Members of {cluster} have no meta leader")
        elif len(leaders) > 1:
            each = " ".join(
                f"{leader}:{_listed(names)}" for leader, names in sorted(leaders.items())
            )
            found.add(f"Members of {cluster} disagree on meta leader (map[{each}])")
    return found.worst(FAIL)


def lagging_replicas(check: Check, reader: Reader, found: Examples) -> str:
    """Replicas whose last sequence is far behind."""
    for account, stream, told in replicas(reader):
        last = {server: int(number(one, "state", "last_seq")) for server, one in told.items()}
        ahead = max(last, key=lambda server: last[server], default="")
        if not ahead:
            continue
        highest = last[ahead]
        for server, reached in last.items():
            if reached < highest - int(highest * check.value("last_seq") / 100):
                found.add(
                    f"{account}/{stream} server {server} lastSequence: {reached} is behind "
                    f"highest lastSequence: {highest} on server: {ahead}"
                )
    return found.worst(FAIL)


def many_subjects(check: Check, reader: Reader, found: Examples) -> str:
    """Streams of very many subjects."""
    for account, stream, told in replicas(reader):
        for one in told.values():
            subjects = int(number(one, "state", "num_subjects"))
            if subjects > check.value("subjects"):
                found.add(f"{account}/{stream}: {subjects} subjects")
    return found.worst(WARN)


def stream_limits(check: Check, reader: Reader, found: Examples) -> str:
    """Streams that are nearly full."""
    for account, stream, told in replicas(reader):
        for server, one in told.items():
            for what, used, limit in (
                ("messages", "messages", "max_msgs"),
                ("bytes", "bytes", "max_bytes"),
                ("consumers", "consumer_count", "max_consumers"),
            ):
                value, most = int(number(one, "state", used)), int(number(one, "config", limit))
                if most > 0 and value > int(most * check.value(what) / 100):
                    found.add(
                        f"stream {stream} (in {account} on {server}) using "
                        f"{value * 100 / most:.1f}% of {what} limit ({value}/{most})"
                    )
    return found.worst(WARN)


def stream_metadata(_check: Check, reader: Reader, found: Examples) -> str:
    """Thresholds in the metadata of streams, judged as `server check stream` does."""
    failed = False
    for account, stream, told in replicas(reader):
        for server, document in told.items():
            info = _decoded(StreamInfo, document)
            if info is None or _leads_elsewhere(info.cluster, server):
                continue
            limits = Thresholds(None, info.config.metadata)
            if limits.wanted:
                result = CheckResult("stream", f"{account}.{stream}")
                _judged(result, partial(judge_stream, info, limits, result))
                failed |= _told(found, result, f"stream {stream} in {account}")
    return found.worst(FAIL if failed else WARN)


def consumer_metadata(_check: Check, reader: Reader, found: Examples) -> str:
    """Thresholds in the metadata of consumers, judged as `server check consumer` does."""
    failed = False
    for account, stream, told in replicas(reader):
        for server, document in told.items():
            for detail in objects(document, "consumer_detail"):
                info = _decoded(ConsumerInfo, detail)
                if info is None or info.config is None or _leads_elsewhere(info.cluster, server):
                    continue
                limits = Thresholds(None, info.config.metadata)
                if limits.wanted:
                    where = f"consumer {info.name} in stream {stream} in {account}"
                    result = CheckResult("consumer", f"{account}.{stream}.{info.name}")
                    now_ns = _moment(document)
                    _judged(result, partial(judge_consumer, info, limits, result, now_ns))
                    failed |= _told(found, result, where)
    return found.worst(FAIL if failed else WARN)


def _decoded(cls: type[T], document: Document) -> T | None:
    try:
        return decode(cls, document)
    except DecodeError:
        return None


def _leads_elsewhere(cluster: ClusterInfo | None, server: str) -> bool:
    """Only the leader knows all of it."""
    return cluster is not None and cluster.leader != server


def _moment(document: Document) -> int:
    """When the server told it, so that ages are those of then."""
    told = text(document, "ts")
    try:
        return parse_time(told) if told else time_ns()
    except ValueError:
        return time_ns()


def _judged(result: CheckResult, judge: Callable[[], None]) -> None:
    """Metadata that cannot be used is critical, too."""
    try:
        judge()
    except UsageError as error:
        result.critical(str(error))


def _told(found: Examples, result: CheckResult, where: str) -> bool:
    """Adds what was found; tells whether some of it is critical."""
    for warning in result.warnings:
        found.add(f"WARNING: {where}: {warning}")
    for critical in result.criticals:
        found.add(f"CRITICAL: {where}: {critical}")
    return bool(result.criticals)
