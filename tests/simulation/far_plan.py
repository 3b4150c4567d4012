"""Plans of clusters that are far apart, with a leaf node at the first one."""

import random
from dataclasses import replace

from tests.simulation.plan import ConsumerKind, Item, Plan, StreamKind, draw

SIZES = {3: ((2, 1), (1, 2)), 5: ((3, 2), (2, 3), (4, 1)), 6: ((3, 3),)}
"""Servers -> how they may be in two clusters."""
NEAR = ("crash", "crash_leader", "pause", "isolate", "isolate_leader", "reset", "one_way")
"""What happens within clusters besides."""
FAR = ("far_cut", "far_cut", "far_link_cut", "far_reset", "far_slow", "cluster_pause")
AT_LEAF = ("leaf_crash", "leaf_cut", "leaf_reset")
ASKED = ("move", "move", "step_down", "meta_step_down", "purge", "consumer")
FAR_MS = (0, 25, 75)
"""One way: half of a round trip."""


def draw_far(seed: int, servers: int = 3) -> Plan:
    """A plan with links that are slow, cut and broken, and streams that move."""
    rng = random.Random(seed * 1000 + 850 + servers)
    sizes = rng.choice(SIZES[servers])
    kinds = [kind for group in (NEAR, FAR, AT_LEAF, ASKED) for kind in group if rng.random() < 0.6]
    items: list[Item] = []
    at, gap_ms, chaos_ms = 1_500, rng.choice([150, 300, 600]), rng.choice([3000, 4000, 6000])
    while at < chaos_ms:
        kind = rng.choice(kinds or FAR)
        duration = rng.choice([50, 300, 800, 1500])
        items.append(Item(at, kind, rng.randrange(60), rng.randrange(1 << 16), duration))
        at += int(rng.expovariate(1.0) * gap_ms) + 20
    plan = draw(seed, servers)
    return replace(
        plan,
        clusters=sizes,
        leaf=seed % 7 not in (1, 2),
        far_ms=rng.choice(FAR_MS),
        chat=True,
        streams=tuple(
            (count, rng.choice(["file", "file", "memory"]), -1) for count in (min(max(sizes), 3), 1)
        ),
        kinds=tuple(
            StreamKind(consumers=(ConsumerKind(push=rng.random() < 0.4),)) for _ in range(2)
        ),
        chaos_ms=chaos_ms,
        items=tuple(items),
    )


def draw_edge(seed: int, servers: int = 3) -> Plan:
    """The same with a leaf node that has a JetStream of its own, which goes on without its hub."""
    rng = random.Random(seed * 1000 + 870 + servers)
    plan = draw_far(seed, servers)
    items = list(plan.items)
    for at in range(1_800, plan.chaos_ms, rng.choice([400, 700, 1200])):
        kind, duration = rng.choice(AT_LEAF), rng.choice([50, 300, 800, 1500])
        items.append(Item(at, kind, rng.randrange(60), rng.randrange(1 << 16), duration))
    items.sort(key=lambda item: item.at_ms)
    return replace(plan, leaf=True, edge=True, items=tuple(items))


def calm(seed: int, far_ms: int, sizes: tuple[int, ...] = (3, 3)) -> Plan:
    """Nothing goes wrong; clusters are so far apart."""
    return Plan(
        seed,
        sum(sizes),
        clusters=sizes,
        leaf=True,
        far_ms=far_ms,
        chat=True,
        streams=((3, "file", -1), (1, "file", -1)),
        chaos_ms=8_000,
    )
