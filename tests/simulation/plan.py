"""A run as data: settings, and faults and requests at their times; drawn from a seed.

A failing plan is made smaller by leaving items out for as long as it still fails.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from jsctl.broker.options import RaftOptions

FAULTS = {
    "crash": 4.0,
    "crash_leader": 4.0,
    "kill_all": 0.7,
    "wipe": 1.0,
    "wipe_ambush": 1.0,
    "pause": 2.0,
    "isolate": 3.0,
    "isolate_leader": 3.0,
    "ambush": 3.0,
    "split": 2.0,
    "one_way": 2.0,
    "reset": 2.0,
    "slow_disk": 1.0,
}
STORAGE_FAULTS = ("sync_fails", "full_disk", "set_clock")
"""Of disks and clocks; only in plans with kinds."""
LETTER_FAULTS = ("crash_leader", "step_down", "cut_consumer_off")
ROT_FAULTS = ("rot", "rot", "unreadable", "unopenable")
"""Of the bytes that a disk holds; only in plans of their own."""
DAMAGE_FAULTS = ("unreadable", "unreadable", "rot")
"""Damage that is there while the server goes on."""
ROT_COMPANY = ("crash", "crash_leader", "isolate", "step_down", "step_down", "remove_peer", "scale")
"""What happens besides in these."""
CHANGES = ("consumer", "consumer", "limit", "step_down")
"""Requests that meet what is on its way."""
ROOM_FAULTS = (*["full_disk"] * 3, "sync_fails", "crash", "crash_leader")
"""Of disks without room."""
TURMOIL = (
    "crash",
    "crash_leader",
    "kill_all",
    "isolate_leader",
    "ambush",
    "pause",
    "step_down",
    "scale",
    "remove_peer",
)
"""What happens besides changes."""
REQUESTS = {
    "step_down": 3.0,
    "meta_step_down": 1.0,
    "scale": 1.5,
    "remove_peer": 1.5,
    "purge": 1.0,
    "delete": 1.5,
    "consumer": 1.0,
    "recreate": 0.4,
    "limit": 0.5,
}


@dataclass(frozen=True)
class Item:
    """Something that happens at `at_ms`; `pick` and `more` choose whom and how."""

    at_ms: int
    kind: str
    pick: int
    more: int
    duration_ms: int

    def __str__(self) -> str:
        return f"Item({self.at_ms}, {self.kind!r}, {self.pick}, {self.more}, {self.duration_ms}),"


@dataclass(frozen=True)
class ConsumerKind:
    """What a consumer is created with; one that pushes has somebody listening most of the time."""

    ack: str = "explicit"
    push: bool = False
    max_deliver: int = -1
    max_ack_pending: int = 0
    filter: str = ""
    """The last word of the subjects that it wants."""
    rate_bps: int = 0
    letters: bool = False
    """What it gives up goes to a stream of dead letters."""


@dataclass(frozen=True)
class StreamKind:
    """What a stream is created with, besides what `Plan.streams` says."""

    retention: str = "limits"
    max_age_ms: int = 0
    per_subject: int = -1
    window_ms: int = 120_000
    discard: str = "old"
    bytes_more: int = 0
    """Payloads are that much bigger."""
    consumers: tuple[ConsumerKind, ...] = (ConsumerKind(),)
    counter: bool = False
    """Its messages are increments."""
    schedules: bool = False
    """Schedules are published to it, and nothing else."""
    chained: bool = False
    direct: bool = False  # Somebody gets messages from any replica.
    ttl: bool = False  # Some messages have a time to live of their own.

    def switches(self) -> dict[str, object]:
        """What its configuration has for it."""
        given = {
            "allow_direct": self.direct,
            "allow_msg_ttl": self.ttl,
            "allow_msg_counter": self.counter,
            "allow_msg_schedules": self.schedules,
        }
        found: dict[str, object] = {name: True for name, wanted in given.items() if wanted}
        return found | ({"metadata": {"jsctl.chain": "sha256"}} if self.chained else {})


@dataclass(frozen=True)
class Plan:
    """Everything that a run is made of, besides chance drawn from `seed` while it runs."""

    seed: int
    servers: int
    loss: float = 0.0
    pieces: float = 0.0
    slow: float = 0.0
    delay_ms: float = 1.0
    sync_ms: float = 2.0
    loop_syncs: float = 0.0  # How often a brief batch that is alone is synced in the loop.
    quiet_ticks: int = 40
    election_ticks: int = 8
    checkpoint_entries: int = 40
    entries_kept: int = 10
    append_entries_max: int = 4096
    segment_bytes: int = RaftOptions().store_segment_bytes
    """Of streams' messages: files as large as by default are never full in a run."""
    streams: tuple[tuple[int, str, int], ...] = ((3, "file", -1),)
    """(replicas, storage, max_msgs) of each."""
    kinds: tuple[StreamKind, ...] = ()
    """Of the first streams; the others are plain."""
    copies: bool = False
    """Whether there is a mirror of the first stream, and one that sources all."""
    letters: bool = False
    """Whether there is a stream of dead letters."""
    sums: bool = False
    """Whether there is a stream that sums up all counters."""
    batches: bool = False
    """Whether streams take atomic and fast batches, and somebody publishes them."""
    chat: bool = False
    """Whether clients publish and subscribe outside of streams, too."""
    seeds: int = 0
    """How many servers are named in the routes that all are configured with; 0: all of them."""
    clusters: tuple[int, ...] = ()
    """How many servers are in each of several clusters; empty: they are in one."""
    leaf: bool = False  # Whether one more server hangs on the first cluster.
    edge: bool = False  # Whether that has a JetStream of its own.
    far_ms: int = 0
    """How long it takes from one cluster to another."""
    chaos_ms: int = 5000
    items: tuple[Item, ...] = field(default=())

    def kind(self, number: int) -> StreamKind:
        """What a stream is besides what every plan says."""
        return self.kinds[number] if number < len(self.kinds) else StreamKind()

    def __str__(self) -> str:
        head = replace(self, items=())
        return "\n".join([repr(head), *(f"    {item}" for item in self.items)])


def draw(seed: int, servers: int = 3) -> Plan:
    """The plan of a seed. Each seed has only some kinds of faults, at its own rates."""
    rng = random.Random(seed * 1000 + servers)
    weights = {kind: weight for kind, weight in FAULTS.items() if rng.random() < 0.6}
    weights.update((kind, weight) for kind, weight in REQUESTS.items() if rng.random() < 0.6)
    weights = weights or {"crash": 1.0}
    chaos_ms = rng.choice([3000, 4000, 6000])
    gap_ms = rng.choice([150, 300, 600])
    items: list[Item] = []
    at = 1200
    while at < chaos_ms:
        kind = rng.choices(list(weights), list(weights.values()))[0]
        duration = rng.choice([50, 300, 800, 1500])
        items.append(Item(at, kind, rng.randrange(60), rng.randrange(1 << 16), duration))
        at += int(rng.expovariate(1.0) * gap_ms) + 20
    replicas = [3, *rng.sample([1, 3, 5 if servers >= 5 else 3], 1)]
    return Plan(
        seed,
        servers,
        loss=rng.choice([0.0, 0.0, 0.02, 0.08]),
        pieces=rng.choice([0.0, 0.0, 0.2]),
        slow=rng.choice([0.0, 0.0, 0.05, 0.15]),
        delay_ms=rng.choice([0.3, 1.0, 5.0]),
        sync_ms=rng.choice([0.5, 2.0, 15.0, 60.0]),
        quiet_ticks=rng.choice([0, 4, 40]),
        election_ticks=rng.choice([6, 8, 16]),
        checkpoint_entries=rng.choice([5, 20, 80, 50_000]),
        entries_kept=rng.choice([0, 5, 40]),
        streams=tuple(
            (count, rng.choice(["file", "file", "memory"]), rng.choice([-1, -1, 20]))
            for count in replicas
        ),
        chaos_ms=chaos_ms,
        items=tuple(items),
    )


WINDOWS_MS = [400, 2_000, 120_000]


def _draw_consumer(rng: random.Random, retention: str) -> ConsumerKind:
    acks = ["explicit", "explicit", "all", "none"]
    return ConsumerKind(
        ack=rng.choice(acks[:1] if retention == "workqueue" else acks),
        push=rng.random() < 0.4,
        max_deliver=rng.choice([-1, -1, 2, 3]),
        max_ack_pending=rng.choice([0, 0, 5]),
        filter=rng.choice(["", "", "1"]),
    )


def _draw_kind(rng: random.Random) -> StreamKind:
    retention = rng.choice(["limits", "limits", "interest", "workqueue"])
    max_age_ms = rng.choice([0, 0, 1_000]) if retention == "limits" else 0
    window_ms = rng.choice(WINDOWS_MS)
    count = 1 if retention == "workqueue" else rng.choice([1, 2])
    return StreamKind(
        retention=retention,
        max_age_ms=max_age_ms,
        per_subject=rng.choice([-1, -1, 4]) if retention == "limits" else -1,
        window_ms=min(window_ms, max_age_ms or window_ms),
        discard=rng.choice(["old", "old", "new"]),
        consumers=tuple(_draw_consumer(rng, retention) for _ in range(count)),
    )


def draw_kinds(seed: int, servers: int = 3) -> Plan:
    """A plan with streams and consumers of all kinds, plain publishing, and fewer faults."""
    rng = random.Random(seed * 1000 + 500 + servers)
    plan = draw(seed, servers)
    items = [one for one in plan.items if one.at_ms < 3_000][: rng.choice([0, 2, 5, 9])]
    return replace(
        plan,
        streams=tuple(
            (count, rng.choice(["file", "file", "memory"]), rng.choice([-1, 30]))
            for count in (3, rng.choice([1, 3]))
        ),
        kinds=(_draw_kind(rng), _draw_kind(rng)),
        chat=True,
        chaos_ms=3_000,
        items=_with_storage(rng, items, rng.choice([0, 1, 3]) if items else 0),
    )


def draw_ttl(seed: int, servers: int = 3) -> Plan:
    """A plan of the same kinds in which some messages have a time to live of their own."""
    plan = draw_kinds(seed, servers)
    kinds = tuple(replace(one, ttl=one.retention == "limits") for one in plan.kinds)
    return replace(plan, kinds=kinds)


def draw_copies(seed: int, servers: int = 3) -> Plan:
    """A plan in which other streams take what the streams hold; nothing is made anew."""
    plan = draw(seed, servers)
    rng = random.Random(seed * 1000 + 300 + servers)
    unfit = ("recreate", "limit")
    return replace(
        plan,
        copies=True,
        streams=tuple((count, storage, -1) for count, storage, _ in plan.streams),
        kinds=tuple(StreamKind(consumers=()) for _ in plan.streams),
        items=tuple(one for one in plan.items if one.kind not in unfit)[: rng.choice([3, 8, 20])],
    )


def draw_batches(seed: int, servers: int = 3) -> Plan:
    """A plan with atomic batches, to streams of all kinds and plain ones."""
    plan = (draw, draw_kinds)[seed % 2](seed, servers)
    return replace(plan, batches=True)


def draw_counters(seed: int, servers: int = 3) -> Plan:
    """A plan with counters; in every second one they are summed up, and none is taken away."""
    rng = random.Random(seed * 1000 + 400 + servers)
    plan, sums = draw(seed, servers), seed % 2 == 0
    unfit = ("recreate", "purge", "delete", "limit") if sums else ("limit",)
    return replace(
        plan,
        sums=sums,
        streams=tuple(
            (count, storage, -1 if sums else rng.choice([-1, 20]))
            for count, storage, _ in plan.streams
        ),
        kinds=tuple(
            StreamKind(counter=True, consumers=(), per_subject=rng.choice([-1, 1, 3]))
            for _ in plan.streams
        ),
        items=tuple(one for one in plan.items if one.kind not in unfit),
    )


def draw_schedules(seed: int, servers: int = 3) -> Plan:
    """A plan with schedules; in every second one clocks are set as well."""
    rng = random.Random(seed * 1000 + 450 + servers)
    plan = draw(seed, servers)
    items = [one for one in plan.items if one.kind != "limit"]
    return replace(
        plan,
        streams=tuple(
            (count, storage, rng.choice([-1, -1, 40])) for count, storage, _ in plan.streams
        ),
        kinds=tuple(StreamKind(schedules=True, consumers=()) for _ in plan.streams),
        items=_with_storage(rng, items, 3 * (seed % 2), ("set_clock",)),
    )


def draw_chains(seed: int, servers: int = 3) -> Plan:
    """A plan of many faults, of all kinds, or with disks that rot, in which streams have chains of
    hashes."""
    plan = (draw, draw_kinds, draw_rot)[seed % 3](seed, servers)
    kinds = [plan.kind(number) for number in range(len(plan.streams))]
    return replace(plan, kinds=tuple(replace(one, chained=True) for one in kinds))


def draw_letters(seed: int, servers: int = 3) -> Plan:
    """A plan of the same kinds in which messages that consumers give up are stored elsewhere, and
    leaders come and go."""
    plan = draw_kinds(seed, servers)
    rng = random.Random(seed * 1000 + 470 + servers)
    consumer = ConsumerKind(push=False, max_deliver=rng.choice([2, 3]), letters=True)
    items = [one for one in plan.items if one.kind not in ("recreate", "consumer", "remove_peer")]
    return replace(
        plan,
        letters=True,
        kinds=tuple(replace(one, consumers=(consumer,)) for one in plan.kinds),
        items=_with_storage(rng, items, rng.choice([0, 3, 6]), LETTER_FAULTS),
    )


def draw_storage(seed: int, servers: int = 3) -> Plan:
    """A plan of the same kinds in which hardly anything but disks and clocks goes wrong."""
    plan = draw_kinds(seed, servers)
    rng = random.Random(seed * 1000 + 700 + servers)
    return replace(plan, items=_with_storage(rng, list(plan.items[:1]), 5))


def draw_changes(seed: int, servers: int = 3) -> Plan:
    """A plan of the same kinds in which consumers are made again, and limits change, all the time.

    Streams let go of what was consumed, or refuse what is too much: there it counts what was on
    its way when something changed.
    """
    plan = draw_kinds(seed, servers)
    rng = random.Random(seed * 1000 + 600 + servers)
    kinds = tuple(
        StreamKind(
            retention=rng.choice(["workqueue", "interest"]),
            consumers=(ConsumerKind(push=rng.random() < 0.5),),
        )
        if rng.random() < 0.6
        else replace(one, discard="new")
        for one in plan.kinds
    )
    changes = [
        Item(at, kind, rng.randrange(60), rng.randrange(1 << 16), rng.choice([0, 2, 20, 50]))
        for at in range(1_200, 3_000, rng.choice([150, 250]))
        for kind in [rng.choice(CHANGES)]
    ]
    items = sorted([*plan.items[:1], *changes], key=lambda one: one.at_ms)
    return replace(plan, kinds=kinds, items=tuple(items), sync_ms=rng.choice([2.0, 15.0, 60.0]))


def draw_room(seed: int, servers: int = 3) -> Plan:
    """A plan of the same kinds in which disks are full again and again, while syncs fail and
    servers end; checkpoints are frequent, as most of what needs room is theirs."""
    plan = draw_kinds(seed, servers)
    rng = random.Random(seed * 1000 + 800 + servers)
    return replace(
        plan,
        checkpoint_entries=rng.choice([5, 20]),
        entries_kept=rng.choice([0, 5, 40]),
        segment_bytes=rng.choice([1_000, 4_000]),
        loop_syncs=rng.choice([0.0, 0.9]),
        items=_with_storage(rng, list(plan.items[:2]), 12, ROOM_FAULTS),
    )


def draw_turmoil(seed: int, servers: int = 3) -> Plan:
    """A plan of changes in which servers come and go, too, and so do replicas."""
    plan = draw_changes(seed, servers)
    rng = random.Random(seed * 1000 + 650 + servers)
    return replace(
        plan,
        checkpoint_entries=rng.choice([5, 20, 80]),
        entries_kept=rng.choice([0, 5, 40]),
        segment_bytes=rng.choice([1_000, 4_000]),
        items=_with_storage(rng, list(plan.items), 6, TURMOIL),
    )


def draw_loop(seed: int, servers: int = 3) -> Plan:
    """A plan of one of the other drawings in which servers mostly sync in their own loops, and some
    end there."""
    drawn = (draw, draw_kinds, draw_storage)[seed % 3](seed, servers)
    rng = random.Random(seed)
    syncs = replace(drawn, loop_syncs=rng.choice([0.5, 0.9, 1.0]), sync_ms=rng.choice([2, 10, 30]))
    ends = _with_storage(rng, list(drawn.items), rng.choice([0, 2, 4]), ("crash", "crash_leader"))
    return replace(syncs, items=ends)


def draw_rot(seed: int, servers: int = 3) -> Plan:
    """A plan of the same kinds in which the disk of one server rots, or cannot be read.

    Logs are short and leaders come and go, so that who is damaged has to hand on its state.
    """
    plan = draw_kinds(seed, servers)
    rng = random.Random(seed * 1000 + 900 + servers)
    items = _with_storage(rng, [], rng.choice([1, 2, 4]), ROT_FAULTS)
    return replace(
        plan,
        checkpoint_entries=rng.choice([5, 20]),
        entries_kept=rng.choice([0, 5]),
        chaos_ms=4_000,
        items=_with_storage(rng, list(items), rng.choice([1, 3, 5]), ROT_COMPANY, 4_000),
    )


def draw_damage(seed: int, servers: int = 3) -> Plan:
    """A plan with rotting disks in which consumers are made again, and read everything once more:
    they meet what is damaged before it is repaired."""
    plan = draw_rot(seed, servers)
    rng = random.Random(seed * 1000 + 950 + servers)
    acks = [rng.choice(["explicit", "none"]) for _ in plan.kinds]
    items = _with_storage(rng, list(plan.items[:2]), 3, DAMAGE_FAULTS, 3_500)
    return replace(
        plan,
        streams=((3, "file", -1), (rng.choice([1, 3]), "file", -1)),
        kinds=tuple(StreamKind(consumers=(ConsumerKind(ack=ack),)) for ack in acks),
        items=_with_storage(rng, list(items), 8, ("consumer", "consumer", "step_down"), 3_800),
    )


def draw_lost_log(seed: int, servers: int = 3) -> Plan:
    """A plan in which a server loses its log, and nothing else, once or more."""
    plan = draw_damage(seed, servers)
    rng = random.Random(seed * 1000 + 970 + servers)
    items = [one for one in plan.items if one.kind not in DAMAGE_FAULTS]
    more = _with_storage(rng, [], rng.randrange(1, 4), ("lose_log",), 3_500)
    items = sorted([*items, *more], key=lambda one: one.at_ms)
    return replace(plan, items=tuple(items))


def _with_storage(
    rng: random.Random,
    items: list[Item],
    count: int,
    faults: tuple[str, ...] = STORAGE_FAULTS,
    end_ms: int = 3_000,
) -> tuple[Item, ...]:
    more = [
        Item(
            rng.randrange(1_200, end_ms),
            rng.choice(faults),
            rng.randrange(60),
            rng.randrange(1 << 16),
            rng.choice([50, 300, 800]),
        )
        for _ in range(count)
    ]
    return tuple(sorted([*items, *more], key=lambda one: one.at_ms))


def shrink(plan: Plan, fails: Callable[[Plan], bool], runs_max: int = 200) -> Plan:
    """A plan with fewer items that fails as well."""
    size = max(len(plan.items) // 2, 1)
    runs = 0
    while runs < runs_max and plan.items:
        smaller = None
        for start in range(0, len(plan.items), size):
            runs += 1
            candidate = replace(plan, items=plan.items[:start] + plan.items[start + size :])
            if fails(candidate):
                smaller = candidate
                break
        if smaller is not None:
            plan = smaller
            size = min(size, max(len(plan.items), 1))
        elif size == 1:
            break
        else:
            size = max(size // 2, 1)
    return plan
