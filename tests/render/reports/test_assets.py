"""Rows and screens of streams and consumers from API objects: golden output."""

from dataclasses import replace

import pytest

from jsctl.api.cluster import ClusterInfo, PeerInfo, Placement
from jsctl.api.consumer import ConsumerConfig, ConsumerInfo, PriorityGroupState, SequenceInfo
from jsctl.api.errors import ApiErrorBody
from jsctl.api.stream import (
    ConsumerLimits,
    ExternalStream,
    LostData,
    ReplicaDamage,
    Republish,
    SequenceRange,
    SourceInfo,
    StreamAlternate,
    StreamConfig,
    StreamConsumerSource,
    StreamInfo,
    StreamSource,
    StreamState,
    SubjectTransform,
)
from jsctl.api.words import (
    AckPolicy,
    Compression,
    DeliverPolicy,
    Discard,
    PersistMode,
    PriorityPolicy,
    Storage,
)
from jsctl.render.column import Cell
from jsctl.render.reports.assets.leaders import leader_rows, leader_table
from jsctl.render.reports.assets.parts import cluster_cell, inaccessible_table, offline_table
from jsctl.render.reports.consumers import LIST_COLUMNS as CONSUMER_LIST
from jsctl.render.reports.consumers import REPORT_COLUMNS as CONSUMER_REPORT
from jsctl.render.reports.consumers import ConsumerRow, consumer_screen
from jsctl.render.reports.stream.screen import stream_screen
from jsctl.render.reports.stream.tables import (
    LIST_COLUMNS,
    REPLICATION_COLUMNS,
    REPORT_COLUMNS,
    StreamRow,
    is_system_stream,
    replication_graph,
    replication_rows,
    report_columns,
)
from jsctl.render.table import table

NOW = "2026-11-21T08:17:10Z"
CLUSTER = ClusterInfo(
    name="C1",
    leader="n2.example.net",
    leader_since="2026-11-21T08:16:00Z",
    raft_group="S-R3F-x",
    replicas=(
        PeerInfo(name="n1.example.net", current=True, active=2_000_000),
        PeerInfo(name="n3.example.net", current=False, offline=True, active=10**9, lag=1),
    ),
)
STREAM = StreamInfo(
    config=StreamConfig(
        name="ORDERS",
        description="All orders",
        subjects=("orders.>",),
        storage=Storage.FILE,
        num_replicas=3,
        max_msgs=-1,
        max_bytes=-1,
        max_msg_size=-1,
        max_consumers=-1,
        duplicate_window=120 * 10**9,
        placement=Placement(cluster="C1", tags=("a", "b")),
        metadata={"_nats.ver": "2.15.1", "_nats.level": "5", "_nats.req.level": "2", "team": "x"},
    ),
    created="2026-11-21T08:17:01Z",
    cluster=CLUSTER,
    state=StreamState(
        messages=1234,
        bytes=2048,
        first_seq=1,
        first_ts="2026-11-21T08:17:02Z",
        last_seq=1240,
        last_ts="2026-11-21T08:17:05Z",
        num_deleted=6,
        lost=LostData(msgs=(7, 8), bytes=99),
        consumer_count=2,
        num_subjects=3,
    ),
    ts=NOW,
)


def cells(columns: object, row: object, *, raw: bool = False) -> list[Cell]:
    return [column.cell(row, raw=raw) for column in columns]  # type: ignore[attr-defined] # rows


def test_rows_of_the_stream_report() -> None:
    assert cells(REPORT_COLUMNS, StreamRow(STREAM)) == [
        *("ORDERS", "File", "cluster: C1 tags: a, b", "2", "1,234", "2.0 KiB", "2 (99 B)", "6"),
        *("2", "n1, n2*, n3!"),
    ]
    raw = cells(REPORT_COLUMNS, StreamRow(STREAM), raw=True)
    assert raw[3:9] == [2, 1234, 2048, 2, 6, 2]
    assert cells(LIST_COLUMNS, StreamRow(STREAM))[0] == "ORDERS"
    assert cells(LIST_COLUMNS, StreamRow(STREAM))[3:] == ["1,234", "2.0 KiB", "5.00s"]


def test_damaged_replicas_are_shown_where_there_are_any() -> None:
    ranges = (SequenceRange(first=3, last=9), SequenceRange(first=12, last=12))
    damaged = replace(
        STREAM,
        damage=(
            ReplicaDamage(name="n1", messages=8, ranges=ranges),
            ReplicaDamage(name="n2", messages=8, lost=2, ranges=ranges),
        ),
    )
    rows = [StreamRow(STREAM), StreamRow(damaged)]
    assert report_columns(rows[:1]) == REPORT_COLUMNS, "as the table of nats"
    (extra,) = report_columns(rows)[len(REPORT_COLUMNS) :]
    assert report_columns(rows[:1], machine=True)[-1] is extra
    assert [extra.cell(row) for row in rows] == ["", "n1: 8, n2: 8 (2 lost)"]
    screen = stream_screen(damaged).render()
    assert "Damaged Messages: 8 on n1 (being repaired): 3-9, 12" in screen
    assert "8 on n2 (2 lost): 3-9, 12" in screen
    assert "Damaged Messages" not in stream_screen(STREAM).render()


def test_cluster_cells() -> None:
    assert cluster_cell(None) == ""
    assert cluster_cell(ClusterInfo(leader="x")) == ""
    assert cluster_cell(replace(CLUSTER, leader="")) == "n1, n3!"
    assert cluster_cell(ClusterInfo(name="C", leader="n1")) == "n1*"


def test_internal_streams_are_known() -> None:
    assert is_system_stream("KV_x")
    assert is_system_stream("$MQTT_msgs")
    assert not is_system_stream("ORDERS")


def test_the_screen_of_a_stream() -> None:
    text = stream_screen(STREAM).render()
    for line in (
        "                  Description: All orders\n",
        "            Placement Cluster: C1\n",
        "               Placement Tags: a, b\n",
        "                         team: x\n",
        "                       Leader: n2.example.net (1m10s)\n",
        "                      Replica: n1.example.net, current, seen 2ms ago\n",
        "                      Replica: n3.example.net, outdated, OFFLINE, seen 1.00s ago, "
        "1 operation behind\n",
        "           Required API Level: 2 hosted at level 5\n",
        "                Lost Messages: 2 (99 B)\n",
        "             Deleted Messages: 6\n",
    ):
        assert line in text
    assert "_nats" not in text
    state = stream_screen(STREAM, only_state=True).render()
    assert state.startswith("State for Stream ORDERS created ")
    assert "Limits" not in state


def test_rare_options_of_a_stream() -> None:
    config = replace(
        STREAM.config,
        sealed=True,
        compression=Compression.S2,
        persist_mode=PersistMode.ASYNC,
        first_seq=1000,
        discard=Discard.NEW,
        discard_new_per_subject=True,
        subject_transform=SubjectTransform(src="", dest="b"),
        republish=Republish(src="a", dest="b", headers_only=True),
        subject_delete_marker_ttl=10**9,
        mirror_direct=True,
        max_bytes=1024,
        max_age=3600 * 10**9,
        consumer_limits=ConsumerLimits(inactive_threshold=10**9, max_ack_pending=5),
        sources=(
            StreamSource(name="Z"),
            StreamSource(
                name="A",
                opt_start_seq=5,
                opt_start_time=NOW,
                external=ExternalStream(api="api.x", deliver="d.x"),
                consumer=StreamConsumerSource(name="c", deliver_subject="s"),
            ),
        ),
    )
    info = replace(
        STREAM,
        config=config,
        sources=(
            SourceInfo(name="A", lag=3, active=10**9, error=ApiErrorBody(description="boom")),
            SourceInfo(
                name="Z",
                active=-1,
                filter_subject="",
                external=ExternalStream(api="p"),
                subject_transforms=(
                    SubjectTransform(src="a", dest="b"),
                    SubjectTransform(src="c"),
                ),
            ),
        ),
        alternates=(StreamAlternate(name="M", cluster="C2", domain="hub"),),
    )
    text = stream_screen(info).render()
    for part in (
        "Sealed: true",
        "Compression: S2 Compression",
        "Persistence Mode: Async",
        "First Sequence: 1,000",
        "Discard Policy: New Per Subject",
        "Subject Transform: > to b",
        "Republishing Headers: a to b",
        "Subject Delete Markers TTL: 1.00s",
        "Mirror Direct Get: true",
        "Maximum Bytes: 1.0 KiB",
        "Maximum Age: 1h0m0s",
        "Consumer Inactive Threshold: 1.00s",
        "Sources: A, Start Seq: 5, Start Time: ",
        "API Prefix: api.x, Delivery Prefix: d.x, Consumer Name: c (s)\n",
        "Last Seen: never",
        "Subject Filters and Transforms: a to b\n",
        "Ext. API Prefix: p",
        "Error: boom",
        "Alternates: M: Cluster: C2 Domain: hub",
    ):
        assert part in text


def test_replication_rows_and_graph() -> None:
    mirror = replace(
        STREAM,
        config=replace(STREAM.config, name="M", mirror=StreamSource(name="ORDERS")),
        mirror=SourceInfo(name="ORDERS", lag=1, active=2_000_000),
    )
    sourced = replace(
        STREAM,
        config=replace(
            STREAM.config, name="T", sources=(StreamSource(name="M", filter_subject="x"),)
        ),
    )
    rows = replication_rows([STREAM, mirror, sourced])
    assert [cells(REPLICATION_COLUMNS, row) for row in rows] == [
        ["M", "Mirror", "", "ORDERS", "", "2ms", "1", ""],
        ["T", "Source", "", "M", "x untransformed", "never", "0", ""],
    ]
    twice = ("a", "b")
    both = replace(
        STREAM,
        config=replace(
            STREAM.config,
            name="T",
            sources=tuple(StreamSource(name="M", filter_subject=one) for one in twice),
        ),
        sources=tuple(
            SourceInfo(name="M", filter_subject=one, lag=lag) for lag, one in enumerate(twice)
        ),
    )
    shown = [cells(REPLICATION_COLUMNS, row) for row in replication_rows([both])]
    assert [(row[4], row[6]) for row in shown] == [
        ("a untransformed", "0"),
        ("b untransformed", "1"),
    ]
    graph = replication_graph([STREAM, mirror])
    assert graph.splitlines()[2:] == [
        '\tn1[label="M"];',
        '\tn2[label="ORDERS"];',
        '\tn2->n1[color="blue",label="Mirror"];',
        "\t",
        "}",
    ]


CONSUMER = ConsumerInfo(
    stream_name="ORDERS",
    name="C",
    created="2026-11-21T08:17:01Z",
    config=ConsumerConfig(
        name="C",
        durable_name="C",
        ack_policy=AckPolicy.EXPLICIT,
        ack_wait=30 * 10**9,
        max_ack_pending=1000,
        max_waiting=512,
        max_deliver=-1,
    ),
    delivered=SequenceInfo(consumer_seq=5, stream_seq=5, last_active="2026-11-21T08:17:09Z"),
    ack_floor=SequenceInfo(consumer_seq=3, stream_seq=3),
    num_ack_pending=2,
    num_pending=1,
    cluster=CLUSTER,
    ts=NOW,
)


def test_rows_of_the_consumer_reports() -> None:
    assert cells(CONSUMER_REPORT, ConsumerRow(CONSUMER, 3)) == [
        *("C", "Pull", "Explicit", "30.00s", "2", "0", "1 / 33%", "3", "0", "n1, n2*, n3!")
    ]
    raw = cells(CONSUMER_REPORT, ConsumerRow(CONSUMER), raw=True)
    assert [str(cell) for cell in raw[3:5]] == ["30s", "2"]
    line = table([column.title for column in CONSUMER_REPORT], [raw]).splitlines()[-2]
    assert line.startswith(f"│ C        │ Pull │ Explicit   │ {'30s':>8} │ {'2':>11} │"), line
    assert "│ 0         │ n1" in line
    assert ConsumerRow(CONSUMER, 0).unprocessed_percent == 0
    assert cells(CONSUMER_LIST, ConsumerRow(CONSUMER))[3:] == [2, 1, "1.00s"]
    push = replace(CONSUMER, config=ConsumerConfig(deliver_subject="x"), num_pending=0)
    assert cells(CONSUMER_REPORT, ConsumerRow(push, 3))[1:3] == ["Push", "None"]


@pytest.mark.parametrize(
    ("config", "parts"),
    [
        (
            ConsumerConfig(
                deliver_subject="to.me",
                deliver_group="g",
                flow_control=True,
                idle_heartbeat=10**9,
                rate_limit_bps=8192,
                deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
                opt_start_seq=7,
            ),
            (
                "Delivery Subject: to.me",
                "Deliver Policy: From Sequence 7",
                "Deliver Queue Group: g",
                "Rate Limit: 1.0 KiB / second",
                "Idle Heartbeat: 1.00s",
                "Flow Control: true",
                "Active Interest: No interest",
            ),
        ),
        (
            ConsumerConfig(
                name="x",
                durable_name="other",
                ack_policy=AckPolicy.EXPLICIT,
                deliver_policy=DeliverPolicy.BY_START_TIME,
                opt_start_time=NOW,
                max_deliver=5,
                backoff=tuple(range(10**9, 17 * 10**9, 10**9)),
                max_batch=1,
                max_expires=10**9,
                max_bytes=2048,
                inactive_threshold=10**9,
                num_replicas=1,
                mem_storage=True,
                headers_only=True,
                filter_subjects=("a", "b"),
                priority_policy=PriorityPolicy.PINNED_CLIENT,
                priority_groups=("g",),
                priority_timeout=10**9,
                pause_until=NOW,
            ),
            (
                "Durable Name: other",
                "Deliver Policy: Since ",
                "Maximum Deliveries: 5",
                "5s, ..., 12s",
                "(16 total)",
                "Max Pull Batch: 1",
                "Max Pull Expire: 1.00s",
                "Max Pull MaxBytes: 2,048",
                "Inactive Threshold: 1.00s",
                "Memory Storage: true",
                "Filter Subjects: a, b",
                "Priority Policy: Pinned Client",
                "Pinned TTL: 1.00s",
                "Paused Until Deadline: ",
                "Paused Until: ",
                "Waiting Pulls: 0 of unlimited",
                "Priority Groups: g: pinned id at ",
                "h: No client",
            ),
        ),
    ],
    ids=["push", "pull"],
)
def test_the_screen_of_a_consumer(config: ConsumerConfig, parts: tuple[str, ...]) -> None:
    groups = (
        PriorityGroupState(group="g", pinned_client_id="id", pinned_ts=NOW),
        PriorityGroupState(group="h"),
    )
    info = replace(CONSUMER, config=config, paused=True, priority_groups=groups)
    text = consumer_screen(info).render()
    for part in parts:
        assert part in text


def test_the_state_of_a_consumer() -> None:
    text = consumer_screen(CONSUMER, only_state=True).render()
    assert (
        "Last Delivered Message: Consumer sequence: 5 Stream sequence: 5 Last delivery: 1.00s ago\n"
        in text
    )
    assert "Outstanding Acks: 2 out of maximum 1,000\n" in text
    assert "Configuration" not in text


def test_leaders() -> None:
    rows = leader_rows([CLUSTER, CLUSTER, replace(CLUSTER, leader="n1"), None])
    assert [(row.server, row.count, row.bar) for row in rows] == [
        ("n1", 1, "***"),
        ("n2.example.net", 2, "*******"),
    ]
    two = leader_rows([CLUSTER, replace(CLUSTER, name="C2")])
    assert leader_table(two, "Streams").count("├") == 3


def test_assets_that_cannot_answer() -> None:
    lines = inaccessible_table("Streams", [f"STREAM-{at}" for at in range(6)]).splitlines()
    assert lines[1].strip("│ ") == "Inaccessible Streams"
    assert lines[3] == "│ STREAM-0 │ STREAM-2 │ STREAM-4 │  │"
    assert "│ S      │ why    │" in offline_table("Streams", {"S": "why"})
