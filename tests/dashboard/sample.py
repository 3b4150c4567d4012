"""A cluster that never changes: what goldens, pictures and benchmarks show.

Five servers, one of them behind, fourteen streams, some in trouble.
"""

import json
import math
from dataclasses import replace

from jsctl.api.monitoring.connz import ConnInfo
from jsctl.api.times import DAY_NS, HOUR_NS, MINUTE_NS, SECOND_NS, parse_time
from jsctl.dashboard.model.judge import alerts_of, badge_of, judge_stream
from jsctl.dashboard.model.message import StoredMessage
from jsctl.dashboard.model.snapshot import (
    Card,
    Consumer,
    Event,
    Level,
    Member,
    Meta,
    Peer,
    PeerState,
    RaftGroup,
    Server,
    Snapshot,
    Source,
    Stream,
)
from jsctl.dashboard.model.tracks import kind_of

NOW_NS = parse_time("2026-03-02T12:42:16Z")
GIB = 1024**3
MIB = 1024**2
LEADER, CURRENT, BEHIND, OFFLINE = PeerState
ACCOUNT = "APP"


def wave(value: float, phase: int, count: int = 60, depth: float = 0.5) -> tuple[float, ...]:
    """Samples that end near a value."""
    return tuple(
        value * (1 - depth * (1 - at / count) + 0.22 * math.sin(0.55 * at + phase))
        for at in range(1, count + 1)
    )


def _server(at: int, cpu: float, mem: float, conns: int, flow: tuple[float, float]) -> Server:
    name = f"n{at}"
    behind = at == 4
    into, out = flow
    return Server(
        name=name,
        id=f"NID{at}",
        cluster="prod-east",
        version="2.15.1",
        host=f"10.0.0.{at}",
        level=Level.WARN if behind else Level.OK,
        why="18,204 operations behind" if behind else "",
        meta_leader=at == 2,
        age_ns=SECOND_NS // 2,
        cpu=cpu * 8,
        cores=8,
        mem=int(mem * GIB),
        connections=conns,
        subscriptions=conns * 11,
        routes=4,
        in_msgs=into,
        out_msgs=out,
        store=int((0.41, 0.46, 0.40, 0.65, 0.39)[at - 1] * 512 * GIB),
        store_max=512 * GIB,
        leaders=(38, 44, 29, 2, 31)[at - 1],
        assets=60,
        api_total=90_000 + at,
        api_errors=at,
        rtt_ns=(410_000, 380_000, 520_000, 3_900_000, 470_000)[at - 1],
        uptime_ns=41 * DAY_NS,
        cpu_trend=tuple(value * 8 for value in wave(cpu, at)),
        in_trend=wave(into, at),
        out_trend=wave(out, at + 1),
        mem_trend=wave(mem * GIB, at, depth=0.1),
        connections_trend=wave(conns, at, depth=0.1),
    )


def peers(leader: str, *others: str) -> tuple[Peer, ...]:
    """`n4!` is behind, `n4?` is offline."""
    found = [Peer(leader, LEADER)]
    for at, word in enumerate(others):
        state = {"!": BEHIND, "?": OFFLINE}.get(word[-1], CURRENT)
        lag = 18_204 if state is BEHIND else 0
        found.append(Peer(word.rstrip("!?"), state, lag, (28 + 3 * at) * 1_000_000))
    return tuple(found)


def _stream(
    name: str,
    members: tuple[Peer, ...],
    messages: int,
    size: float,
    rate: float,
    consumers: int,
    lag: int,
    lost: int = 0,
) -> Stream:
    subject = name.lower().replace("_", ".")
    found = Stream(
        account=ACCOUNT,
        name=name,
        kind=kind_of(name),
        replicas=len(members),
        subjects=(f"{subject}.>",),
        retention="limits",
        storage="file",
        messages=messages,
        bytes=int(size),
        bytes_max=20 * GIB if name == "ORDERS" else -1,
        first_seq=1,
        last_seq=messages,
        last_ns=NOW_NS - 81_000_000,
        idle_ns=81_000_000,
        num_subjects=1204,
        consumers=consumers,
        leader=members[0].name,
        group=f"S-R{len(members)}F-k2Qz{len(name):02}",
        peers=members,
        lag=lag,
        rate=rate,
        trend=wave(rate, len(name)),
        lost=lost,
    )
    level, why = judge_stream(found, discard_new=False)
    return replace(found, level=level, why=why)


def streams() -> tuple[Stream, ...]:
    """Worst first, as the model orders them."""
    return (
        _stream("OBJ_assets", peers("n5", "n3", "n4?"), 18_200, 41.8 * GIB, 3, 0, 0, lost=2),
        _stream("CLICKS", peers("n1", "n4!", "n5"), 188_000_000, 96.4 * GIB, 10_300, 4, 48_200),
        _stream("MAIL-OUT", peers("n2", "n4!", "n5"), 20_100, 102 * MIB, 8, 1, 4),
        _stream("IOT-TELEM", peers("n1", "n2", "n5"), 72_000_000, 28 * GIB, 5200, 3, 5100),
        _stream("ORDERS", peers("n2", "n1", "n3"), 12_413_882, 8.1 * GIB, 6000, 6, 1200),
        _stream("METRICS", peers("n1"), 402_000, 819 * MIB, 2200, 3, 902),
        _stream("EVENTS", peers("n3", "n1", "n5"), 64_000_000, 31.2 * GIB, 2700, 9, 310),
        replace(
            _stream("ORDERS-DR", peers("n3"), 12_400_000, 8.1 * GIB, 1400, 0, 242),
            sources=(Source("ORDERS", mirror=True, lag=242, active_ns=80_000_000),),
        ),
        _stream("PAYMENTS", peers("n2", "n3", "n5"), 3_200_000, 4.9 * GIB, 421, 5, 88),
        _stream("SESSIONS", peers("n5", "n1", "n2"), 1_200_000, 2.2 * GIB, 399, 2, 12),
        _stream("AUDIT", peers("n5", "n2", "n3"), 9_100_000, 12 * GIB, 61, 1, 0),
        _stream("INVOICES", peers("n3", "n1", "n2"), 880_000, 1.4 * GIB, 22, 2, 0),
        _stream("KV_config", peers("n1", "n2", "n3"), 2200, 10 * MIB, 1, 0, 0),
        _stream("KV_flags", peers("n2", "n3", "n5"), 412, 10 * MIB, 0, 0, 0),
    )


def _consumer(
    name: str, stream: str, lag: int, acks: int, level: Level = Level.OK, why: str = ""
) -> Consumer:
    return Consumer(
        account=ACCOUNT,
        stream=stream,
        name=name,
        level=level,
        why=why,
        ack="explicit",
        filters=(f"{stream.lower()}.new.>",),
        lag=lag,
        lag_rate=312.0 if level else 0.0,
        ack_pending=acks,
        ack_pending_max=1000,
        ack_wait_ns=30 * SECOND_NS,
        redelivered=acks // 20,
        waiting=2,
        delivered_seq=12_412_871,
        floor_seq=12_412_807,
        leader="n2",
        group="C-R3F-" + name[:4],
        peers=peers("n2", "n1", "n3"),
        rate=200.0,
        trend=wave(200.0, lag),
    )


def consumers() -> tuple[Consumer, ...]:
    """By severity and lag."""
    warn = (Level.WARN, "behind and growing")
    return (
        _consumer(
            "sessionizer",
            "CLICKS",
            41_200,
            1000,
            Level.WARN,
            "1,000 not acknowledged: nothing is delivered",
        ),
        _consumer("warehouse", "CLICKS", 7000, 512, *warn),
        _consumer("tsdb", "IOT-TELEM", 5100, 256, *warn),
        _consumer("fraud", "PAYMENTS", 88, 88, Level.WARN, "60 delivered again"),
        _consumer("billing", "ORDERS", 1011, 64),
        _consumer("rollup", "METRICS", 902, 128),
        replace(
            _consumer("reports", "ORDERS", 804, 0, Level.NOTE, "paused for 3m0s more"),
            paused=True,
            pause_left_ns=3 * MINUTE_NS,
        ),
        _consumer("geoip", "EVENTS", 260, 40),
        _consumer("search-index", "ORDERS", 193, 20),
        _consumer("notify", "EVENTS", 50, 11),
        _consumer("expiry", "SESSIONS", 12, 2),
        _consumer("crm-sync", "ORDERS", 11, 4),
        _consumer("smtp", "MAIL-OUT", 4, 4),
        _consumer("emailer", "ORDERS", 0, 0),
        _consumer("ledger", "ORDERS", 0, 0),
    )


def meta() -> Meta:
    """n2 leads, n4 is behind."""
    members = (
        Peer("n1", CURRENT, 0, 100_000_000),
        Peer("n2", LEADER),
        Peer("n3", CURRENT, 0, 100_000_000),
        Peer("n4", BEHIND, 18_204, 900_000_000),
        Peer("n5", CURRENT, 0, 100_000_000),
    )
    since = 3 * DAY_NS + 4 * HOUR_NS
    return Meta("n2", 47, since, 5, 3, members, known=True)


def _event(ago_s: int, level: Level, what: str, who: str, said: str) -> Event:
    return Event(NOW_NS - ago_s * SECOND_NS, level, what, who, said, serial=1000 - ago_s)


def events() -> tuple[Event, ...]:
    """The last minute."""
    return (
        _event(43, Level.WARN, "lag", "CLICKS", "replica n4 fell behind: 18,204 ops"),
        _event(36, Level.WARN, "maxdeliv", "PAYMENTS > fraud", "seq 88,120 delivered 5 times"),
        _event(24, Level.BAD, "server", "n4", "no STATSZ reply for 2.1 s"),
        _event(23, Level.WARN, "quorum", "CLICKS", "quorum 2/3, next failure stops writes"),
        _event(9, Level.OK, "leader", "CLICKS", "elected n1"),
        _event(5, Level.OK, "api", "deploy", "STREAM.UPDATE.INVOICES"),
        _event(1, Level.OK, "server", "n4", "answers again"),
    )


def groups() -> tuple[RaftGroup, ...]:
    """The meta group and that of ORDERS."""

    def group(name: str, asset: str, leader: str, names: tuple[str, ...], at: int) -> RaftGroup:
        members = tuple(
            Member(
                server=one,
                state="leader" if one == leader else "follower",
                term=at,
                committed=5_120_400,
                applied=5_102_196 if one == "n4" else 5_120_400,
                last_index=5_120_400,
                log_entries=1204,
                log_bytes=88 * MIB,
                snapshot_index=5_119_196,
                seen_ns=0,
                catching_up=one == "n4",
            )
            for one in names
        )
        slow = "n4" in names
        return RaftGroup(
            account="$SYS" if name == "_meta_" else ACCOUNT,
            name=name,
            asset=asset,
            leader=leader,
            term=at,
            size=len(names),
            need=len(names) // 2 + 1,
            committed=5_120_400,
            members=members,
            level=Level.WARN if slow else Level.OK,
            why="n4 catches up" if slow else "",
        )

    every = ("n1", "n2", "n3", "n4", "n5")
    return (
        group("_meta_", "meta group", "n2", every, 47),
        group("S-R3F-k2Qz06", "ORDERS", "n2", ("n1", "n2", "n3"), 19),
    )


def card(value: float, phase: int, change: float) -> Card:
    """A number with a past."""
    return Card(value, wave(value, phase), change)


def sample() -> Snapshot:
    """All of it."""
    flows = ((3300, 15_000), (6600, 27_500), (2100, 10_600), (889, 2600), (3700, 13_000))
    numbers = ((27, 1.2, 412), (74, 1.9, 398), (25, 1.1, 405), (79, 2.4, 121), (29, 1.0, 391))
    servers = tuple(
        _server(at, cpu, mem, conns, flow)
        for at, ((cpu, mem, conns), flow) in enumerate(zip(numbers, flows, strict=True), 1)
    )
    made = Snapshot(
        taken_ns=NOW_NS,
        context="prod-east",
        account=ACCOUNT,
        connected=True,
        system=True,
        jetstream=True,
        rtt_ns=410_000,
        publish=card(28_900, 1, 0.04),
        deliver=card(41_500, 3, -0.02),
        lag=card(55_900, 5, 0.08),
        api=card(107, 2, 0.0),
        store=sum(one.store for one in servers),
        store_max=sum(one.store_max for one in servers),
        servers=servers,
        streams=streams(),
        consumers=consumers(),
        groups=groups(),
        meta=meta(),
        events=events(),
    )
    parts = (made.servers, made.meta, made.streams, made.consumers)
    return replace(made, alerts=alerts_of(*parts), badge=badge_of(*parts))


def messages(count: int = 25) -> list[StoredMessage]:
    """The newest of ORDERS."""
    kinds = ("paid.ap", "new.eu", "paid.eu", "cancel.eu", "shipped.us", "new.us")
    found = []
    for at in range(count):
        body = {
            "id": 88_102 + at,
            "sku": f"A-{17 + at % 5}",
            "qty": at % 3 + 1,
            "total": 41.9,
            "customer": {"id": 3312 + at, "tier": "gold"},
        }
        found.append(
            StoredMessage(
                12_413_858 + at,
                NOW_NS - (count - at) * 61_000_000,
                f"orders.{kinds[at * 7 % len(kinds)]}",
                (("Nats-Msg-Id", f"o-{88_102 + at}"),),
                json.dumps(body).encode(),
            )
        )
    return found


def connections() -> list[ConnInfo]:
    """Clients of a server, the busiest first."""
    names = ("orders-api", "billing-worker", "clickstream", "nats-top", "iot-gateway", "deploy")
    return [
        ConnInfo(
            cid=100 + at,
            name=name,
            account=ACCOUNT,
            ip=f"10.1.0.{at + 7}",
            port=50_112 + at * 13,
            in_msgs=9_400_000 // (at + 1) ** 2,
            out_msgs=3_100_000 // (at + 1),
            pending_bytes=48_000 if name == "clickstream" else 0,
            subscriptions=12 + at * 3,
            rtt=f"{310 + at * 45}µs",
            lang=("go", "python3", "rust")[at % 3],
            version=("1.39.1", "2.16.0", "0.38.0")[at % 3],
        )
        for at, name in enumerate(names)
    ]
