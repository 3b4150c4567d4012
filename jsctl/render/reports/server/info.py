"""One server in full, as an info screen."""

from jsctl.api.monitoring.jsz import JetStreamConfig, JetStreamLimits, JetStreamStats, JetStreamVarz
from jsctl.api.monitoring.varz import Varz
from jsctl.api.times import SECOND_NS
from jsctl.render.details import Details
from jsctl.render.humanize import duration, limit, moment, number, size


def server_screen(varz: Varz) -> Details:
    """The screen of `server info`."""
    screen = Details(f"Server information for {varz.server_name} ({varz.server_id})")
    _add_process(screen, varz)
    _add_connections(screen, varz)
    if varz.jetstream.config is not None:
        _add_jetstream(screen, varz.jetstream, varz.jetstream.config)
    _add_limits(screen, varz)
    _add_statistics(screen, varz)
    _add_clusters(screen, varz)
    return screen


def _add_process(screen: Details, varz: Varz) -> None:
    screen.section("Process Details")
    screen.row("Version", varz.version)
    screen.row("Git Commit", varz.git_commit)
    screen.row("Go Version", varz.go)
    screen.row("Start Time", moment(varz.start))
    screen.row("Configuration Load Time", moment(varz.config_load_time))
    screen.row_if("Configuration Digest", varz.config_digest)
    screen.row("Uptime", varz.uptime)


def _add_connections(screen: Details, varz: Varz) -> None:
    screen.section("Connection Details")
    screen.row("Auth Required", varz.auth_required)
    screen.row("TLS Required", varz.tls_required)
    more = f" ({varz.ip})" if varz.ip else ""
    screen.row("Host", f"{varz.host}:{varz.port}{more}")
    screen.rows("Client URLs", varz.connect_urls)
    screen.rows("WebSocket URLs", varz.ws_connect_urls)


def _add_jetstream(screen: Details, jetstream: JetStreamVarz, config: JetStreamConfig) -> None:
    stats = jetstream.stats or JetStreamStats()
    screen.section("JetStream")
    screen.row("Domain", config.domain)
    screen.row("API Support Level", stats.api.level)
    screen.row("Storage Directory", config.store_dir)
    screen.row("Active Accounts", number(stats.accounts))
    screen.row("Memory In Use", size(stats.memory))
    screen.row("File In Use", size(stats.storage))
    screen.row("API Requests", number(stats.api.total))
    screen.row("API Errors", number(stats.api.errors))
    screen.row("Always sync writes to disk", config.sync_always)
    screen.row("Write sync Frequency", duration(config.sync_interval))
    screen.row("Maximum Memory Storage", size(config.max_memory))
    screen.row("Maximum File Storage", size(config.max_storage))
    screen.row_if("Unique Tag", config.unique_tag)
    screen.row("Cluster Message Compression", config.compress_ok)
    _add_jetstream_limits(screen, jetstream.limits or JetStreamLimits())
    screen.row("Strict API Parsing", config.strict)


def _add_jetstream_limits(screen: Details, limits: JetStreamLimits) -> None:
    screen.row("Maximum HA Assets", limit(limits.max_ha_assets, none_from=0))
    screen.row("Maximum Ack Pending", limit(limits.max_ack_pending, none_from=0))
    screen.row("Maximum Request Batch", limit(limits.max_request_batch, none_from=0))
    window = limits.max_duplicate_window
    screen.row("Maximum Duplicate Window", duration(window) if window > 0 else "unlimited")
    screen.row("Maximum Messages Per Batch", number(limits.max_batch_size))
    screen.row("Maximum Batch Timeout", duration(limits.max_batch_timeout))
    screen.row("Maximum Open Batches Per Stream", number(limits.max_batch_inflight_per_stream))
    screen.row("Maximum Open Batches Per Server", number(limits.max_batch_inflight_total))


def _add_limits(screen: Details, varz: Varz) -> None:
    screen.section("Limits")
    screen.row("Maximum Connections", number(varz.max_connections))
    screen.row("Maximum Subscriptions", number(varz.max_subscriptions))
    screen.row("Maximum Payload", size(varz.max_payload))
    screen.row("TLS Timeout", duration(round(varz.tls_timeout * SECOND_NS)))
    screen.row("Write Deadline", duration(varz.write_deadline))


def _add_statistics(screen: Details, varz: Varz) -> None:
    screen.section("Statistics")
    screen.row("CPU Cores", f"{varz.cores} {varz.cpu:.2f}%")
    screen.row_if("GOMAXPROCS", varz.gomaxprocs)
    screen.row("Memory", size(varz.mem))
    screen.row_if("GOMEMLIMIT", size(varz.gomemlimit) if varz.gomemlimit else "")
    screen.row("Connections", number(varz.connections))
    screen.row("Subscriptions", number(varz.subscriptions))
    screen.row("Messages", f"{number(varz.in_msgs)} in {number(varz.out_msgs)} out")
    screen.row("Bytes", f"{size(varz.in_bytes)} in {size(varz.out_bytes)} out")
    screen.row("Slow Consumers", number(varz.slow_consumers))


def _add_clusters(screen: Details, varz: Varz) -> None:
    if varz.cluster.name:
        screen.section("Cluster")
        screen.row("Name", varz.cluster.name)
        screen.rows("Tags", varz.tags)
        screen.row("Host", f"{varz.cluster.addr}:{varz.cluster.cluster_port}")
        screen.rows("URLs", varz.cluster.urls)
    if varz.gateway.name:
        screen.section("Super Cluster")
        screen.row("Name", varz.gateway.name)
        screen.row("Host", f"{varz.gateway.host}:{varz.gateway.port}")
        screen.rows("Clusters", [gateway.name for gateway in varz.gateway.gateways])
