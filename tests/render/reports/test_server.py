"""Rows of the reports about servers, their connections and JetStream."""

from dataclasses import replace

import pytest

from jsctl.api.cluster import PeerInfo
from jsctl.api.monitoring.connz import ConnInfo
from jsctl.api.monitoring.jsz import JetStreamConfig, JetStreamStats, Jsz, MetaClusterInfo
from jsctl.api.monitoring.statsz import Statsz
from jsctl.api.server import GatewayStat, RouteStat, ServerInfo, SlowConsumersStats
from jsctl.render.column import documents
from jsctl.render.reports.server import activity
from jsctl.render.reports.server.connections import (
    CONNECTION_COLUMNS,
    ConnectionRow,
    account_rows,
    connection_footer,
    count_rows,
    top_accounts,
    top_connections,
)
from jsctl.render.reports.server.jetstream import (
    META_COLUMNS,
    jetstream_columns,
    jetstream_footer,
    jetstream_rows,
    meta_groups,
    meta_rows,
    no_leader_warning,
    sort_jetstream,
)
from jsctl.render.reports.server.overview import (
    SERVER_COLUMNS,
    cluster_footer,
    cluster_rows,
    ping_line,
    server_footer,
    server_rows,
    sort_servers,
)

START = "2026-01-01T00:00:00Z"
NOW = "2026-01-01T01:00:00Z"


def info(name: str, cluster: str = "C", version: str = "2.15.1") -> ServerInfo:
    return ServerInfo(
        name=name, host=f"{name}.x", id=name, cluster=cluster, ver=version, jetstream=True, time=NOW
    )


def stats(connections: int = 0, *, routes: int = 2, gateways: int = 0) -> Statsz:
    return Statsz(
        start=START,
        mem=1024,
        cpu=1.6,
        connections=connections,
        routes=(RouteStat(),) * routes,
        gateways=(GatewayStat(inbound_connections=3),) * gateways,
        slow_consumers=4,
        slow_consumer_stats=SlowConsumersStats(clients=3, routes=1),
    )


def test_servers_are_sorted_by_each_key_in_its_own_direction() -> None:
    rows = server_rows(
        [
            (info("a.net"), stats(1), 3_000_000),
            (info("b.net"), stats(5), 400_000),
            (info("c.net", "D"), stats(3), 2_000_000),
        ]
    )
    for key, expected in (
        ("rtt", ["b", "c", "a"]),
        ("name", ["a", "b", "c"]),
        ("cluster", ["b", "a", "c"]),
        ("conns", ["b", "c", "a"]),
        ("conn", ["b", "c", "a"]),
    ):
        assert [row.name for row in sort_servers(rows, key)] == expected
        assert [row.name for row in sort_servers(rows, key, reverse=True)] == expected[::-1]
    cells = {column.title: column.cell(rows[0]) for column in SERVER_COLUMNS}
    assert (cells["RTT"], cells["Uptime"], cells["CPU %"]) == ("3ms", "1h0m0s", "2")
    assert cells["Slow"] == "4 (c: 3 r: 1 g: 0 l: 0)"


def test_footers_mark_what_should_not_differ() -> None:
    alike = server_rows([(info("a"), stats(1), 0), (info("b"), stats(2), 0)])
    assert server_footer(alike)[:5] == ["", "1", "2", "", "2"]
    assert server_footer(alike)[5:10] == ["3", "0", "", "", "2.0 KiB"]
    mixed = server_rows(
        [(info("a"), stats(), 0), (info("b", version="2.9"), stats(routes=1, gateways=1), 0)]
    )
    assert [server_footer(mixed)[at] for at in (3, 7, 8)] == ["X", "X", "X"]
    clusters = cluster_rows(mixed)
    assert [(row.cluster, row.nodes, row.outgoing, row.incoming) for row in clusters] == [
        ("C", 2, 1, 3)
    ]
    assert cluster_footer(clusters) == ["", 2, 1, 3, 0]
    assert cluster_rows(server_rows([(info("a", ""), stats(), 0)])) == []


def jsz(name: str, leader: str, *, streams: int = 0, domain: str = "") -> tuple[ServerInfo, Jsz]:
    peers = tuple(
        PeerInfo(name=peer, peer=peer * 4, current=True, offline=peer == "n3", active=5_000_000)
        for peer in ("n1", "n2", "n3")
        if peer != leader
    )
    meta = MetaClusterInfo(
        name="C", leader=leader, peer=leader * 4, replicas=peers, cluster_size=3, pending=1
    )
    used = JetStreamStats(memory=1, storage=2048)
    config = JetStreamConfig(domain=domain)
    return info(name), Jsz(streams=streams, stats=used, meta_cluster=meta, config=config)


def test_jetstream_rows_mark_the_meta_leader() -> None:
    replies = [jsz("n1", "n2", streams=3), jsz("n2", "n2", streams=1)]
    rows = sort_jetstream(jetstream_rows(replies), "streams")
    columns = jetstream_columns(rows)
    assert [columns[0].cell(row) for row in rows] == ["n2*", "n1"]
    assert [column.title for column in columns] == [
        *("Server", "Cluster", "Streams", "Consumers", "Messages", "Bytes", "Memory", "File"),
        *("API Req", "Pending", "Quorum Sz", "Rescuing"),
    ]
    footer = ["", "", "4", "0", "0", "0 B", "2 B", "4.0 KiB", "0", 2, "", ""]
    assert jetstream_footer(rows, columns) == footer
    assert [row.name for row in sort_jetstream(rows, "store", reverse=True)] == ["n2", "n1"]
    with_domain = jetstream_rows([jsz("n1", "n1", domain="hub")])
    assert jetstream_columns(with_domain)[2].cell(with_domain[0]) == "hub"
    assert jetstream_columns(rows, data=True)[-1].value(rows[0]) is True


def test_meta_group_as_its_leader_sees_it() -> None:
    replies = [jsz("n1", "n2"), jsz("n2", "n2")]
    (group,) = meta_groups(replies)
    rows = documents(meta_rows(group), META_COLUMNS)
    assert [row["name"] for row in rows] == ["n1", "n2", "n3"]
    assert [row["leader"] for row in rows] == [False, True, False]
    assert [row["online"] for row in rows] == [True, True, False]
    assert [row["active"] for row in rows] == [5_000_000, 0, 5_000_000]
    lost = [jsz("n1", "")]
    assert meta_groups(lost) == []
    assert no_leader_warning(lost) == (
        "WARNING: No cluster meta leader found. The cluster expects 3 nodes but only 1 responded. "
        "JetStream operation requires at least 2 up nodes."
    )
    assert no_leader_warning([(info("a"), Jsz())]) == ""


def connection(cid: int, account: str = "A", **more: object) -> ConnectionRow:
    server = info("n1" if cid % 2 else "n2")
    known = {"cid": cid, "account": account, "kind": "Client", "uptime": f"{cid}s"}
    found = ConnInfo(**known, **more)  # type: ignore[arg-type] # made by name
    return ConnectionRow(server, found)


def test_top_connections_are_the_largest_in_ascending_order() -> None:
    rows = [connection(cid, in_msgs=cid, subscriptions=cid) for cid in (3, 1, 2)]
    assert [row.info.cid for row in top_connections(rows, "in-msgs", 2)] == [2, 3]
    assert [row.info.cid for row in top_connections(rows, "subs", 2, reverse=True)] == [3, 2]
    assert [row.info.cid for row in top_connections(rows, "uptime", 9)] == [1, 2, 3]
    assert [row.info.cid for row in top_connections(rows, "cid", 0)] == [1, 2, 3]
    assert [row.info.cid for row in top_connections(rows, "cid", -1)] == [1, 2, 3]
    footer = connection_footer(rows, CONNECTION_COLUMNS)
    assert (footer[1], footer[7], footer[-1]) == ("Totals for 3 connections", "6", "6")
    assert connection_footer(rows[:1], CONNECTION_COLUMNS) == []
    assert [(row.server.name, row.count) for row in count_rows(rows)] == [("n2", 1), ("n1", 2)]


def test_connection_cells_are_cut_and_marked() -> None:
    row = connection(7, "X" * 50, name="n" * 50, ip="::1", port=9)
    cells = {column.title: column.cell(row) for column in CONNECTION_COLUMNS}
    assert cells["Name"] == "n" * 40 + " .."
    assert cells["Account"] == "X" * 12 + " .."
    assert (cells["CID"], cells["IP"]) == ("7", "::1:9")
    leaf = ConnectionRow(row.server, ConnInfo(cid=7, kind="Leafnode", uptime="1d2h"))
    assert CONNECTION_COLUMNS[0].cell(leaf) == "L7"


def test_accounts_sum_their_connections() -> None:
    rows = [connection(1, "A", in_bytes=5), connection(2, "B", in_bytes=9), connection(3, "A")]
    found = account_rows(rows)
    assert [(row.account, row.connections, row.in_bytes) for row in found] == [
        ("A", 2, 5),
        ("B", 1, 9),
    ]
    assert [row.account for row in top_accounts(found, "in-bytes", 1)] == ["B"]
    assert [row.account for row in top_accounts(found, "conns", 5, reverse=True)] == ["A", "B"]


@pytest.mark.parametrize(
    ("rtt_ns", "shown"),
    [(797_560, "797.56µs"), (1_592_016, "1.592016ms"), (20_000_000, "20ms"), (850, "850ns")],
)
def test_a_server_that_was_pinged(rtt_ns: int, shown: str) -> None:
    assert ping_line("n1", rtt_ns) == f"{'n1':<60} rtt={shown}"
    assert ping_line("\x1b[31mn", rtt_ns).startswith("\\x1b[31mn ")


@pytest.mark.parametrize(("cpu", "shown"), [(0, "0.000"), (12.5, "12.500"), (0.0004, "0.000")])
def test_the_use_of_a_processor_has_three_decimals(cpu: float, shown: str) -> None:
    """In JSON a number without a fraction is a whole one."""
    (column,) = [one for one in activity.SERVER_COLUMNS if one.key == "cpu"]
    row = activity.ServerActivity("n1", replace(stats(), cpu=cpu))
    assert column.cell(row) == shown
