"""`consumer report`, `consumer ls`, `consumer info` and `consumer state`."""

from jsctl.api.consumer import ConsumerConfig, ConsumerInfo, PriorityGroupState
from jsctl.api.times import SECOND_NS, format_duration, parse_time
from jsctl.api.words import AckPolicy, DeliverPolicy, PriorityPolicy, ReplayPolicy
from jsctl.dataclass import dataclass
from jsctl.render.column import Column, Duration
from jsctl.render.details import Details
from jsctl.render.humanize import duration, joined, moment, number, since, size
from jsctl.render.reports.assets.parts import (
    add_levels,
    add_metadata,
    add_migration,
    api_level,
    cluster_cell,
    created_text,
    leader_text,
    peer_seen,
    peer_state,
)

BACKOFF_SHOWN = 15
ACK_WORDS = {
    AckPolicy.NONE: "None",
    AckPolicy.ALL: "All",
    AckPolicy.EXPLICIT: "Explicit",
    AckPolicy.FLOW_CONTROL: "Flow Control",
}
REPLAY_WORDS = {ReplayPolicy.INSTANT: "Instant", ReplayPolicy.ORIGINAL: "Original"}
PRIORITY_WORDS = {
    PriorityPolicy.OVERFLOW: "Overflow",
    PriorityPolicy.PINNED_CLIENT: "Pinned Client",
    PriorityPolicy.PRIORITIZED: "Prioritized",
}
DELIVER_WORDS = {
    DeliverPolicy.ALL: "All",
    DeliverPolicy.LAST: "Last",
    DeliverPolicy.NEW: "New",
    DeliverPolicy.LAST_PER_SUBJECT: "Last Per Subject",
}


@dataclass(frozen=True, slots=True)
class ConsumerRow:
    """A consumer in a report; `stream_messages` is what its stream holds."""

    info: ConsumerInfo
    stream_messages: int = 0

    @property
    def config(self) -> ConsumerConfig:
        """The configuration, empty when the server sent none."""
        return self.info.config or ConsumerConfig()

    @property
    def mode(self) -> str:
        """Push or Pull."""
        return "Push" if self.config.deliver_subject else "Pull"

    @property
    def unprocessed_percent(self) -> int:
        """Of the stream's messages, rounded down, at most 100."""
        if not self.stream_messages:
            return 0
        return min(100, self.info.num_pending * 100 // self.stream_messages)

    @property
    def last_delivery(self) -> str:
        """How long ago."""
        return since(self.info.delivered.last_active, self.info.ts)


def _unprocessed(row: ConsumerRow) -> str:
    if not row.info.num_pending:
        return "0"
    return f"{number(row.info.num_pending)} / {row.unprocessed_percent}%"


def _ack_policy(row: ConsumerRow) -> str:
    return ACK_WORDS.get(row.config.ack_policy, str(row.config.ack_policy.value))


REPORT_COLUMNS: tuple[Column[ConsumerRow], ...] = (
    Column("name", "Consumer", lambda row: row.info.name),
    Column("mode", "Mode", lambda row: row.mode),
    Column("ack_policy", "Ack Policy", _ack_policy),
    Column(
        "ack_wait",
        "Ack Wait",
        lambda row: row.config.ack_wait,
        lambda row: duration(row.config.ack_wait),
        raw=lambda row: Duration(row.config.ack_wait),
        priority=1,
    ),
    Column(
        "num_ack_pending",
        "Ack Pending",
        lambda row: row.info.num_ack_pending,
        lambda row: number(row.info.num_ack_pending),
    ),
    Column(
        "num_redelivered",
        "Redelivered",
        lambda row: row.info.num_redelivered,
        lambda row: number(row.info.num_redelivered),
    ),
    Column("num_pending", "Unprocessed", lambda row: row.info.num_pending, _unprocessed),
    Column(
        "ack_floor",
        "Ack Floor",
        lambda row: row.info.ack_floor.stream_seq,
        lambda row: number(row.info.ack_floor.stream_seq),
    ),
    Column(
        "api_level",
        "API Level",
        lambda row: api_level(row.config.metadata),
        lambda row: str(api_level(row.config.metadata)),
        raw=lambda row: str(api_level(row.config.metadata)),
        priority=2,
    ),
    Column("cluster", "Cluster", lambda row: cluster_cell(row.info.cluster)),
)

LIST_COLUMNS: tuple[Column[ConsumerRow], ...] = (
    Column("name", "Name", lambda row: row.info.name),
    Column("description", "Description", lambda row: row.config.description, priority=2),
    Column(
        "created",
        "Created",
        lambda row: row.info.created,
        lambda row: moment(row.info.created),
        priority=1,
    ),
    Column("num_ack_pending", "Ack Pending", lambda row: row.info.num_ack_pending),
    Column("num_pending", "Unprocessed", lambda row: row.info.num_pending),
    Column(
        "last_delivery",
        "Last Delivery",
        lambda row: row.info.delivered.last_active,
        lambda row: row.last_delivery,
    ),
)


def consumer_screen(info: ConsumerInfo, *, only_state: bool = False) -> Details:
    """Configuration and state, or the state alone."""
    word = "State" if only_state else "Information"
    name = f"{info.stream_name} > {info.name}"
    screen = Details(f"{word} for Consumer {name} created {created_text(info.created)}")
    config = info.config or ConsumerConfig()
    if not only_state:
        _add_config(screen, info, config)
        _add_delivery(screen, config)
        _add_priority(screen, info, config)
        _add_target(screen, "Mirror Target", "_nats.mirror.", config)
        _add_target(screen, "Source Target", "_nats.src.", config)
        add_metadata(screen, config.metadata)
    _add_cluster(screen, info, config)
    _add_state(screen, info, config)
    return screen


def _add_config(screen: Details, info: ConsumerInfo, config: ConsumerConfig) -> None:
    screen.section("Configuration")
    screen.row("Name", info.name)
    if config.durable_name != info.name:
        screen.row_if("Durable Name", config.durable_name)
    screen.row_if("Description", config.description)
    if config.deliver_subject:
        screen.row("Delivery Subject", config.deliver_subject)
    else:
        screen.row("Pull Mode", True)
    screen.row_if("Filter Subject", config.filter_subject)
    screen.row_if("Filter Subjects", joined(config.filter_subjects))
    screen.row("Deliver Policy", _deliver_policy(config))
    if config.deliver_subject:
        screen.row_if("Deliver Queue Group", config.deliver_group)
    screen.row("Ack Policy", ACK_WORDS.get(config.ack_policy, config.ack_policy.value))
    if config.ack_policy is not AckPolicy.NONE:
        screen.row("Ack Wait", duration(config.ack_wait))
    screen.row("Replay Policy", REPLAY_WORDS.get(config.replay_policy, config.replay_policy.value))


def _deliver_policy(config: ConsumerConfig) -> str:
    if config.deliver_policy is DeliverPolicy.BY_START_SEQUENCE:
        return f"From Sequence {config.opt_start_seq}"
    if config.deliver_policy is DeliverPolicy.BY_START_TIME:
        return f"Since {moment(config.opt_start_time)}"
    return DELIVER_WORDS.get(config.deliver_policy, str(config.deliver_policy.value))


def _add_delivery(screen: Details, config: ConsumerConfig) -> None:
    if config.max_deliver > 0:
        screen.row("Maximum Deliveries", number(config.max_deliver))
    screen.row_if("Sampling Rate", config.sample_freq)
    if config.rate_limit_bps:
        screen.row("Rate Limit", f"{size(config.rate_limit_bps // 8)} / second")
    if config.max_ack_pending > 0:
        screen.row("Max Ack Pending", number(config.max_ack_pending))
    if config.max_waiting:
        screen.row("Max Waiting Pulls", number(config.max_waiting))
    if config.idle_heartbeat:
        screen.row("Idle Heartbeat", duration(config.idle_heartbeat))
    if config.deliver_subject:
        screen.row("Flow Control", config.flow_control)
    screen.row_if("Headers Only", config.headers_only)
    _add_pull_limits(screen, config)
    screen.row_if("Backoff", _backoff(config.backoff))
    screen.row_if("Replicas", config.num_replicas)
    screen.row_if("Memory Storage", config.mem_storage)


def _add_pull_limits(screen: Details, config: ConsumerConfig) -> None:
    if config.inactive_threshold and not config.deliver_subject:
        screen.row("Inactive Threshold", duration(config.inactive_threshold))
    if config.max_expires:
        screen.row("Max Pull Expire", duration(config.max_expires))
    if config.max_batch:
        screen.row("Max Pull Batch", number(config.max_batch))
    if config.max_bytes:
        screen.row("Max Pull MaxBytes", number(config.max_bytes))


def _backoff(steps: tuple[int, ...]) -> str:
    texts = [format_duration(step) for step in steps]
    if len(texts) > BACKOFF_SHOWN:
        return f"{joined([*texts[:5], '...', *texts[-5:]])} ({len(texts)} total)"
    return joined(texts)


def left_of(info: ConsumerInfo) -> str:
    """How long a pause still takes, in whole seconds."""
    return format_duration(round(info.pause_remaining / SECOND_NS) * SECOND_NS)


def _add_priority(screen: Details, info: ConsumerInfo, config: ConsumerConfig) -> None:
    if info.paused or parse_time(config.pause_until):
        tail = f"{left_of(info)} remaining" if info.paused else "passed"
        screen.row("Paused Until Deadline", f"{moment(config.pause_until)} ({tail})")
    if config.priority_policy is not PriorityPolicy.NONE:
        word = PRIORITY_WORDS.get(config.priority_policy, str(config.priority_policy.value))
        screen.row("Priority Policy", word)
        screen.row("Priority Groups", joined(config.priority_groups))
        if config.priority_timeout:
            screen.row("Pinned TTL", duration(config.priority_timeout))


def _add_target(screen: Details, title: str, prefix: str, config: ConsumerConfig) -> None:
    """The stream that takes what the consumer delivers, where its server has said so."""
    if not config.metadata.get(f"{prefix}stream"):
        return
    screen.section(title)
    for label, key in (("Stream", "stream"), ("Account", "acc"), ("Domain", "domain")):
        screen.row_if(label, config.metadata.get(f"{prefix}{key}", ""))


def _add_cluster(screen: Details, info: ConsumerInfo, config: ConsumerConfig) -> None:
    cluster = info.cluster
    if cluster is None or not cluster.name:
        return
    screen.section("Cluster Information")
    screen.row("Name", cluster.name)
    screen.row_if("Raft Group", cluster.raft_group)
    screen.row("Leader", leader_text(cluster, info.ts))
    for peer in cluster.replicas:
        screen.row("Replica", f"{peer.name}, {peer_state(peer)}, {peer_seen(peer)}")
    add_migration(screen, cluster, info.ts, config.num_replicas)


def _position(consumer_seq: int, stream_seq: int, word: str, when: str, now: str) -> str:
    text = f"Consumer sequence: {number(consumer_seq)} Stream sequence: {number(stream_seq)}"
    if parse_time(when):
        text += f" {word}: {since(when, now)} ago"
    return text


def _add_state(screen: Details, info: ConsumerInfo, config: ConsumerConfig) -> None:
    screen.section("State")
    add_levels(screen, config.metadata)
    for label, at, word in (
        ("Last Delivered Message", info.delivered, "Last delivery"),
        ("Acknowledgment Floor", info.ack_floor, "Last Ack"),
    ):
        where = _position(at.consumer_seq, at.stream_seq, word, at.last_active, info.ts)
        if label == "Last Delivered Message" or config.ack_policy is not AckPolicy.NONE:
            screen.row(label, where)
    if config.ack_policy is not AckPolicy.NONE:
        most = (
            f" out of maximum {number(config.max_ack_pending)}"
            if config.max_ack_pending > 0
            else ""
        )
        screen.row("Outstanding Acks", number(info.num_ack_pending) + most)
        screen.row("Redelivered Messages", number(info.num_redelivered))
    screen.row("Unprocessed Messages", number(info.num_pending))
    if config.deliver_subject:
        group = f" using Queue Group {config.deliver_group}" if config.deliver_group else ""
        screen.row("Active Interest", f"Active{group}" if info.push_bound else "No interest")
    else:
        most = number(config.max_waiting) if config.max_waiting > 0 else ""
        tail = f"of maximum {most}" if most else "of unlimited"
        screen.row("Waiting Pulls", f"{number(info.num_waiting)} {tail}")
    if info.paused:
        until = moment(config.pause_until)
        screen.row("Paused Until", f"{until} ({left_of(info)} remaining)")
    if config.priority_policy is PriorityPolicy.PINNED_CLIENT:
        screen.rows("Priority Groups", [_group(group) for group in info.priority_groups])


def _group(state: PriorityGroupState) -> str:
    if not state.pinned_client_id:
        return f"{state.group}: No client"
    return f"{state.group}: pinned {state.pinned_client_id} at {moment(state.pinned_ts)}"
