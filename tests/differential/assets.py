"""Configurations of streams and consumers, field by field."""

from collections.abc import Callable
from random import Random
from typing import Any

from tests.differential.values import (
    BOOLS,
    METADATA,
    MOMENTS,
    NAMES,
    NUMBERS,
    ODD,
    SECOND,
    SIZES,
    SUBJECTS,
    TEXTS,
    TIMES,
    TRANSFORMS,
    filled,
    some,
)

Draw = Callable[[Random], Any]
Config = dict[str, Any]
ODDLY = 0.06
"""How many values are of any type."""
PLAIN_SUBJECTS = SUBJECTS[:9]
ORIGINS = ("ORIGIN", "ORIGIN", "QUEUE", "NOBODY", "{n}", "a.b", "")
EXTERNALS: tuple[Any, ...] = (
    *({"api": "$JS.hub.API", "deliver": "d.{p}"}, {"api": "X.API"}, {"api": ""}, {}),
    *({"api": "$JS.API"}, {"api": "a b"}, {"api": "X.>"}, {"api": "X.API", "deliver": "origin.a"}),
)
PLACEMENTS: tuple[Any, ...] = (
    *({"cluster": "C"}, {"tags": ["x"]}, {}, {"preferred": "nobody"}),
    {"cluster": "", "tags": [""]},
)
SAMPLES = ("", "0", "1", "50", "100", "100%", "50%", "101", "-1", "x", "1.5", "%")


def of(*values: Any) -> Draw:
    """One of them."""
    return lambda random: random.choice(values)


def lists(values: tuple[Any, ...], most: int = 3) -> Draw:
    """Some of them."""
    return lambda random: some(random, values, most)


DELIVERED = tuple(one for one in SUBJECTS if not one.startswith("origin"))
"""Nothing is delivered into streams of others: that never ends."""
REPUBLISHED = tuple(one for one in TRANSFORMS if one.get("dest"))
"""To nowhere is nothing here: docs/differences.md."""
FILTERING = tuple(one for one in TRANSFORMS if one.get("src"))
"""Without a source a transform filters nothing, and meets all others: docs/differences.md."""


def source(random: Random) -> Config:
    """A mirror or a source."""
    found: Config = {"name": random.choice(ORIGINS)}
    for name, draw in (
        ("opt_start_seq", of(0, 1, 5, 100)),
        ("opt_start_time", of(*MOMENTS)),
        ("filter_subject", of("origin.a", "origin.>", *SUBJECTS)),
        ("subject_transforms", lists((*FILTERING, {"src": "origin.a", "dest": "{p}.m"}), 2)),
        ("external", of(*EXTERNALS)),
        ("consumer", of({"name": "c", "deliver_subject": "d.{p}"}, {"name": "c"}, {})),
    ):
        if random.random() < 0.25:
            found[name] = draw(random)
    return found


STREAM: dict[str, Draw] = {
    "name": of(*NAMES),
    "description": of(*TEXTS),
    "subjects": lists(SUBJECTS),
    "retention": of("limits", "interest", "workqueue", "limits", "other"),
    "max_consumers": of(*NUMBERS),
    "max_msgs": of(*NUMBERS),
    "max_bytes": of(*SIZES),
    "max_age": of(*TIMES),
    "max_msgs_per_subject": of(*NUMBERS),
    "max_msg_size": of(*SIZES),
    "discard": of("old", "new", "new", "other"),
    "storage": of("file", "memory", "disk"),
    "num_replicas": of(0, 1, 1, 2, 3, 5, 6, -1),
    "no_ack": of(*BOOLS),
    "duplicate_window": of(*TIMES),
    "placement": of(*PLACEMENTS),
    "mirror": source,
    "sources": lambda random: [source(random) for _ in range(random.randint(0, 3))],
    "compression": of("none", "s2", "zip"),
    "first_seq": of(0, 1, 5, 1000),
    "subject_transform": of(*TRANSFORMS),
    "republish": of(*REPUBLISHED, {"src": ">", "dest": "r.>", "headers_only": True}),
    "allow_direct": of(*BOOLS),
    "mirror_direct": of(*BOOLS),
    "discard_new_per_subject": of(*BOOLS),
    "sealed": of(*BOOLS),
    "deny_delete": of(*BOOLS),
    "deny_purge": of(*BOOLS),
    "allow_rollup_hdrs": of(*BOOLS),
    "consumer_limits": of(
        {"inactive_threshold": SECOND, "max_ack_pending": 10},
        {"inactive_threshold": -1},
        {"max_ack_pending": -1},
        {"max_ack_pending": 100},
        {},
    ),
    "allow_msg_ttl": of(*BOOLS),
    "subject_delete_marker_ttl": of(*TIMES),
    "allow_msg_counter": of(*BOOLS),
    "allow_atomic": of(*BOOLS),
    "allow_msg_schedules": of(*BOOLS),
    "persist_mode": of("", "default", "async", "sync"),
    "allow_batched": of(*BOOLS),
    "metadata": of(*METADATA),
    "template_owner": of("", "x"),
    "unknown_field": of(1),
}
CONSUMER: dict[str, Draw] = {
    "durable_name": of(*NAMES),
    "name": of(*NAMES),
    "description": of(*TEXTS),
    "deliver_policy": of(
        *("all", "last", "new", "by_start_sequence", "by_start_time", "last_per_subject", "first")
    ),
    "opt_start_seq": of(0, 1, 3, 1000),
    "opt_start_time": of(*MOMENTS),
    "ack_policy": of("none", "all", "explicit", "explicit", "flow_control", "other"),
    "ack_wait": of(*TIMES),
    "max_deliver": of(*NUMBERS),
    "backoff": lists(TIMES),
    "filter_subject": of(*SUBJECTS),
    "filter_subjects": lists(SUBJECTS),
    "replay_policy": of("instant", "original", "other"),
    "rate_limit_bps": of(*NUMBERS),
    "sample_freq": of(*SAMPLES),
    "max_waiting": of(*NUMBERS),
    "max_ack_pending": of(*NUMBERS),
    "flow_control": of(*BOOLS),
    "headers_only": of(*BOOLS),
    "max_batch": of(*NUMBERS),
    "max_expires": of(*TIMES),
    "max_bytes": of(*NUMBERS),
    "deliver_subject": of("d.{p}", "d.{p}", *DELIVERED),
    "deliver_group": of("g", *NAMES),
    "idle_heartbeat": of(*TIMES),
    "inactive_threshold": of(-1, 0, 60 * SECOND, 3600 * SECOND, 10**18),
    "num_replicas": of(0, 1, 1, 2, 3, -1, 6),
    "mem_storage": of(*BOOLS),
    "sourcing": of(*BOOLS),
    "metadata": of(*METADATA),
    "pause_until": of(*MOMENTS),
    "priority_groups": lists(("g", "h", "", "a b", "x" * 17, "é", "*"), 2),
    "priority_policy": of("none", "overflow", "pinned_client", "prioritized", "other"),
    "priority_timeout": of(*TIMES),
    "unknown_field": of(1),
}


def changed(random: Random, config: Config, fields: dict[str, Draw], prefix: str) -> Config:
    """Some fields drawn anew."""
    found = dict(config)
    for name in random.sample(list(fields), random.choice((1, 1, 2, 2, 3, 4))):
        odd = random.random() < ODDLY
        value = random.choice(ODD) if odd else fields[name](random)
        found[name] = filled(value, prefix)
    return found


def sensible_stream(random: Random, name: str, prefix: str) -> Config:
    """What changes are made to: it may be refused, but mostly is taken."""
    found: Config = {"name": name}
    if random.random() < 0.9:
        found["subjects"] = [f"{prefix}.>"]
    if random.random() < 0.7:
        found["retention"] = random.choice(("limits", "interest", "workqueue"))
        found["storage"] = random.choice(("file", "memory"))
    return found


def sensible_consumer(random: Random, name: str, prefix: str) -> Config:
    """The same for a consumer: pull or push."""
    found: Config = {"ack_policy": random.choice(("explicit", "explicit", "none", "all"))}
    if random.random() < 0.7:
        found["durable_name"] = name
    if random.random() < 0.8:
        found["name"] = name
    if random.random() < 0.4:
        found["deliver_subject"] = f"d.{prefix}"
    return found
