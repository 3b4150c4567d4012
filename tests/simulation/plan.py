"""A run as data: settings, and faults and requests at their times; drawn from a seed.

A failing plan is made smaller by leaving items out for as long as it still fails.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

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
class Plan:
    """Everything that a run is made of, besides chance drawn from `seed` while it runs."""

    seed: int
    servers: int
    loss: float = 0.0
    pieces: float = 0.0
    slow: float = 0.0
    delay_ms: float = 1.0
    sync_ms: float = 2.0
    quiet_ticks: int = 40
    election_ticks: int = 8
    checkpoint_entries: int = 40
    entries_kept: int = 10
    append_entries_max: int = 4096
    streams: tuple[tuple[int, str, int], ...] = ((3, "file", -1),)
    """(replicas, storage, max_msgs) of each."""
    chaos_ms: int = 5000
    items: tuple[Item, ...] = field(default=())

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
