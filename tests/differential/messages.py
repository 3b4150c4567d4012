"""What happens to messages: headers of publishes, requests for them, acknowledgements."""

from random import Random
from typing import Any

from tests.differential.asking import Ask
from tests.differential.values import SECOND

HOUR = 3600 * SECOND
Config = dict[str, Any]
TOKENS = ("a", "a", "b", "c", "a.b", "x.y")
PAYLOADS = (b"", b"one", b"two", b"x" * 300, b'{"val":"5"}', b'{"val":"x"}', b"\x00\xff")
NUMBERS = ("0", "1", "2", "3", "4", "5", "9", "-1", "x", "", " 1", "+1", "07", "1 ")
HEADERS: dict[str, tuple[str, ...]] = {
    "Nats-Msg-Id": ("one", "two", "three", ""),
    "Nats-Expected-Stream": ("{n}", "{n}", "OTHER", ""),
    "Nats-Expected-Last-Sequence": NUMBERS,
    "Nats-Expected-Last-Subject-Sequence": NUMBERS,
    "Nats-Expected-Last-Subject-Sequence-Subject": ("{p}.a", "{p}.*", "{p}.>", "q", "", "a..b"),
    "Nats-Expected-Last-Msg-Id": ("one", "two", "", "x"),
    "Nats-Rollup": ("sub", "all", "sub", "SUB", "other", ""),
    "Nats-TTL": (
        "1h",
        "3600",
        "60",
        "never",
        "NEVER",
        "-1",
        "0",
        "x",
        "",
        "500ms",
        "1h30m",
        "-1h",
        "1.5h",
    ),
    "Nats-Incr": ("1", "+1", "-1", "0", "+5", "x", "", "1.5", "99999999999999999999", "--1"),
    "Nats-Required-Api-Level": ("0", "1", "4", "5", "x", "", "99"),
    "Nats-Marker-Reason": ("Purge", "x"),
    "Nats-Schedule": (
        *("@at 2100-01-01T00:00:00Z", "@every 24h", "@hourly", "0 0 0 1 1 *", "@every 1ms", "x"),
        *("", "@at x", "@yearly", "0 0 0 31 2 *", "@every -1s"),
    ),
    "Nats-Schedule-Target": ("{p}.t", "{p}.a", "{p}.*", "elsewhere", ""),
    "Nats-Schedule-Source": ("{p}.a", "{p}.*", "elsewhere", ""),
    "Nats-Schedule-TTL": ("1h", "x", "never", "", "1"),
    "Nats-Schedule-Time-Zone": ("UTC", "Europe/Berlin", "Nowhere", ""),
    "Nats-Schedule-Rollup": ("sub", "all", "x"),
    "Nats-Scheduler": ("{p}.a", "x"),
    "Nats-Schedule-Next": ("purge", "x"),
    "Nats-Batch-Id": ("u", "u", "v", "", "i" * 65),
    "Nats-Batch-Sequence": ("1", "2", "3", "0", "x", ""),
    "Nats-Batch-Commit": ("1", "eob", "x", ""),
    "KV-Operation": ("DEL", "PURGE"),
    "Nats-Stream-Source": ("ORIGIN 5 > >", "x"),
    "Nats-Trace-Only": ("true",),
    "nats-msg-id": ("one", "two"),
    "A": ("b", ""),
}
"""What a publish may say. Batches are a case of their own."""
BATCHED = ("Nats-Batch-Id", "Nats-Batch-Sequence", "Nats-Batch-Commit")
SCHEDULED = tuple(one for one in HEADERS if one.startswith("Nats-Schedule"))
OPTIONS: dict[str, tuple[Any, ...]] = {
    "storage": ("file", "memory"),
    "retention": ("limits", "limits", "interest", "workqueue"),
    "max_msgs": (1, 3, 5),
    "max_bytes": (100, 400, 1000),
    "max_msgs_per_subject": (1, 1, 2),
    "max_msg_size": (10, 200),
    "discard": ("new", "old"),
    "discard_new_per_subject": (True,),
    "duplicate_window": (0, 60 * SECOND),
    "allow_msg_ttl": (True,),
    "subject_delete_marker_ttl": (HOUR,),
    "allow_rollup_hdrs": (True,),
    "allow_msg_counter": (True,),
    "allow_atomic": (True,),
    "allow_msg_schedules": (True,),
    "allow_direct": (True,),
    "deny_delete": (True,),
    "deny_purge": (True,),
    "no_ack": (True,),
    "first_seq": (1, 7),
    "sealed": (True,),
    "max_age": (HOUR,),
    "compression": ("s2",),
    "republish": ({"src": "{p}.>", "dest": "r.{p}.>"}, {"src": ">", "dest": "r.>"}),
    "subject_transform": ({"src": "{p}.*", "dest": "{p}.t.{{wildcard(1)}}"},),
}
UPDATED = tuple(one for one in OPTIONS if one not in ("first_seq", "storage", "sealed"))


def drawn_headers(random: Random, favoured: tuple[str, ...] = ()) -> list[tuple[str, str]]:
    """A few lines of them."""
    found = []
    for _ in range(random.choice((0, 1, 1, 1, 2, 2, 3))):
        name = random.choice(favoured if favoured and random.random() < 0.7 else list(HEADERS))
        found.append((name, random.choice(HEADERS[name])))
    return found


def drawn_options(random: Random, prefix: str) -> Config:
    """A stream; with what its messages may ask for, mostly."""
    found: Config = {"subjects": [f"{prefix}.>"]}
    for name in random.sample(list(OPTIONS), random.randint(1, 5)):
        if name not in ("sealed", "no_ack"):
            found[name] = random.choice(OPTIONS[name])
    return found


FAVOURED: dict[str, tuple[str, ...]] = {
    "allow_msg_ttl": ("Nats-TTL",),
    "allow_rollup_hdrs": ("Nats-Rollup",),
    "allow_msg_counter": ("Nats-Incr",),
    "allow_atomic": BATCHED,
    "allow_msg_schedules": (*SCHEDULED, "Nats-Schedule"),
}


def published(random: Random, ask: Ask, name: str) -> None:
    """Messages with all kinds of headers, and what is made of them."""
    prefix = name.lower()
    config = made(random, ask, name, prefix)
    favoured = tuple(one for key, words in FAVOURED.items() if config.get(key) for one in words)
    favoured += (
        "Nats-Expected-Last-Sequence",
        "Nats-Expected-Last-Subject-Sequence",
        "Nats-Msg-Id",
    )
    for _ in range(random.randint(5, 14)):
        if random.random() < 0.7:
            subject = f"{prefix}.{random.choice(TOKENS)}"
            headers = drawn_headers(random, favoured)
            ask(subject, random.choice(PAYLOADS), headers)
        else:
            meddle(random, ask, name, prefix, config)
    looked_through(ask, name)


def looked_through(ask: Ask, name: str) -> None:
    """All that a stream has, message by message."""
    found = ask(f"STREAM.INFO.{name}", {"subjects_filter": ">", "deleted_details": True})
    for sequence in range(found["state"].get("first_seq", 0), found["state"]["last_seq"] + 2):
        ask(f"STREAM.MSG.GET.{name}", {"seq": sequence})


def made(random: Random, ask: Ask, name: str, prefix: str) -> Config:
    """A stream that both took."""
    while True:
        config: Config = ask.filled({"name": name, **drawn_options(random, prefix)})
        if not ask.alone:
            config["num_replicas"] = 3
        if "error" not in ask(f"STREAM.CREATE.{name}", config):
            return config


def meddle(random: Random, ask: Ask, name: str, prefix: str, config: Config) -> None:
    """Something else than a message."""
    what = random.choice(("purge", "delete", "update", "update", "get", "info"))
    if what == "purge":
        kept = random.choice(({}, {"seq": 3}, {"keep": 1}, {"keep": 0}))
        where = random.choice(({}, {"filter": f"{prefix}.a"}, {"filter": f"{prefix}.*"}))
        ask(f"STREAM.PURGE.{name}", {**kept, **where})
    elif what == "delete":
        ask(f"STREAM.MSG.DELETE.{name}", {"seq": random.randint(1, 6)})
    elif what == "update":
        field = random.choice(UPDATED)
        drawn = {**config, **ask.filled({field: random.choice(OPTIONS[field])})}
        if random.random() < 0.3:
            # Without its first sequence it is shown as it is: docs/differences.md.
            drawn.pop(random.choice([one for one in drawn if one != "first_seq"]))
        drawn["name"] = name
        if "error" not in ask(f"STREAM.UPDATE.{name}", drawn):
            config.clear()
            config.update(drawn)
    elif what == "get":
        word = random.choice(("last_by_subj", "next_by_subj"))
        ask(f"STREAM.MSG.GET.{name}", {word: f"{prefix}.{random.choice(('a', '>', 'z'))}"})
    else:
        ask(f"STREAM.INFO.{name}", {"subjects_filter": ">"})


CONSUMED: dict[str, tuple[Any, ...]] = {
    "ack_policy": ("explicit", "explicit", "all", "none"),
    "max_deliver": (1, 2, 3),
    "max_ack_pending": (1, 2, 3),
    "filter_subject": ("{p}.a", "{p}.*"),
    "filter_subjects": (["{p}.a", "{p}.b"], ["{p}.x.>", "{p}.c"]),
    "headers_only": (True,),
    "sample_freq": ("100",),
    "max_batch": (2,),
    "max_bytes": (200,),
    "deliver_policy": ("all", "last", "new", "last_per_subject"),
    "backoff": ([HOUR, 2 * HOUR],),
    "mem_storage": (True,),
    "priority_groups": (["g"],),
    "priority_policy": ("overflow", "prioritized", "pinned_client"),
    "metadata": ({"a": "b"},),
}
FILTERS = ("filter_subject", "filter_subjects")
ACKS = (
    *(b"", b"+ACK", b"+ACK", b"-NAK", b"-NAK", b"+TERM", b"+TERM why", b"+WPI", b"+NXT", b"+ACKx"),
    *(b'-NAK {"delay": 3600000000000}', b'-NAK {"delay": -1}', b"-NAK {", b"-NAK 1", b"junk"),
    *(b'+NXT {"batch": 2, "no_wait": true}', b"+NXT 2", b"+NXT {", b"+OK", b"+WPI x", b"+ack"),
)


def delivered(random: Random, ask: Ask, name: str) -> None:
    """Messages that a consumer hands out, and what is said about them."""
    prefix = name.lower()
    ask(f"STREAM.CREATE.{name}", {**stored(random, name, prefix), **spread(random, ask)})
    config: Config = {"durable_name": "c", "ack_policy": "explicit", "ack_wait": HOUR}
    config = drawn_consumer(random, ask, config)
    if "error" in ask(f"CONSUMER.CREATE.{name}.c", {"stream_name": name, "config": config}):
        return
    for _ in range(random.randint(6, 14)):
        acted(random, ask, name, prefix, config)
    ask(f"CONSUMER.INFO.{name}.c", b"")
    ask(f"STREAM.INFO.{name}", {"subjects_filter": ">"})


def stored(random: Random, name: str, prefix: str) -> Config:
    """The stream that is consumed."""
    found: Config = {"name": name, "subjects": [f"{prefix}.>"]}
    if random.random() < 0.3:
        found["max_msgs_per_subject"] = random.choice((1, 2))
    if random.random() < 0.3:
        found["max_msgs"] = 4
    found["storage"] = random.choice(("file", "memory"))
    return found


def spread(random: Random, ask: Ask) -> Config:
    """How many replicas it has, in a cluster."""
    return {} if ask.alone else {"num_replicas": random.choice((1, 3))}


def drawn_consumer(random: Random, ask: Ask, config: Config, most: int = 4) -> Config:
    """The same with some fields drawn anew."""
    found = dict(config)
    for field in random.sample(list(CONSUMED), random.randint(0, most)):
        found[field] = random.choice(CONSUMED[field])
    if "priority_policy" in found or "priority_groups" in found:
        found.setdefault("priority_groups", ["g"])
        found.setdefault("priority_policy", "overflow")
    filled: Config = ask.filled(found)
    return filled


def acted(random: Random, ask: Ask, name: str, prefix: str, config: Config) -> None:
    """One step of what clients and operators do."""
    chance = random.random()
    if chance < 0.3:
        for _ in range(random.randint(1, 3)):
            ask(f"{prefix}.{random.choice(TOKENS)}", random.choice(PAYLOADS), [("A", "b")])
    elif chance < 0.6:
        body: Config = {"batch": random.randint(1, 3), random.choice(("no_wait", "x")): True}
        if "no_wait" not in body:
            body = {"batch": body["batch"], "expires": 80_000_000}
        if config.get("priority_groups") and random.random() < 0.9:
            body["group"] = "g"
        if random.random() < 0.15 and ask.alone:  # Else told too soon there: docs/differences.md.
            body["max_bytes"] = random.choice((50, 150, 400))
        ask.several(f"CONSUMER.MSG.NEXT.{name}.c", body)
    elif chance < 0.85:
        ask.acknowledge(random.randint(-4, -1), random.choice(ACKS), config.get("ack_policy"))
    else:
        operated(random, ask, name, prefix, config)


def operated(random: Random, ask: Ask, name: str, prefix: str, config: Config) -> None:
    """Something that changes what a consumer has before it."""
    what = random.choice(("purge", "delete", "update", "info", "reset", "pause", "info", "unpin"))
    if what == "purge":
        purge = random.choice(({}, {"filter": f"{prefix}.a"}, {"keep": 1}))
        ask(f"STREAM.PURGE.{name}", purge)
        if "filter" in purge or not ask.alone:
            ask.forget_floors()
    elif what == "delete":
        ask(f"STREAM.MSG.DELETE.{name}", {"seq": random.randint(1, 6)})
    elif what == "update":
        drawn = drawn_consumer(random, ask, config, 2)
        body = {"stream_name": name, "config": drawn, "action": "update"}
        if "error" not in ask(f"CONSUMER.CREATE.{name}.c", body):
            if any(drawn.get(field) != config.get(field) for field in FILTERS):
                ask.forget_waiting()
            config.clear()
            config.update(drawn)
    elif what == "info":
        ask(f"CONSUMER.INFO.{name}.c", b"")
    elif what == "reset":
        to = random.choice((b"", {"seq": 1}, {"seq": 3}, {"seq": 50}))
        _reset(ask, name, to, pushes="deliver_subject" in config)
    elif what == "unpin":
        ask(f"CONSUMER.UNPIN.{name}.c", {"group": "g"})
    else:
        until = random.choice(
            ("2100-01-01T00:00:00Z", "2020-01-01T00:00:00Z", "2020-01-01T00:00:00Z")
        )
        ask(f"CONSUMER.PAUSE.{name}.c", {"pause_until": until})


DELIVERED = (".delivered:", ".num_ack_pending:", ".num_pending:")
"""Fields of a consumer's info that change when it sends something."""


def _reset(ask: Ask, name: str, asked: object, *, pushes: bool) -> None:
    """What is stored below where a consumer was reset to counts there: docs/differences.md. Whether
    one that `pushes` has sent something by the time of the answer is chance there."""
    chance = DELIVERED if pushes else ()
    answer = ask(f"CONSUMER.RESET.{name}.c", asked, chance=chance)
    if answer.get("num_pending") == 0 and asked:
        ask.forget_pending()


PUSHED: dict[str, tuple[Any, ...]] = {
    "ack_policy": ("explicit", "explicit", "all", "none"),
    "max_deliver": (1, 2),
    "max_ack_pending": (1, 2, 5),
    "filter_subject": ("{p}.a", "{p}.*"),
    "headers_only": (True,),
    "flow_control": (True,),
    "idle_heartbeat": (HOUR,),
    "deliver_policy": ("all", "last", "new", "last_per_subject"),
    "deliver_group": ("q",),
    "rate_limit_bps": (1_000_000,),
    "sample_freq": ("100%",),
    "backoff": ([HOUR, 2 * HOUR],),
}


def _leave_out(ask: Ask, stream: Config, consumer: Config) -> None:
    """What is another number there: docs/differences.md."""
    if stream.keys() & {"max_msgs", "max_msgs_per_subject"}:
        ask.forget_pending()
    if "max_deliver" in consumer:
        ask.forget_floors()


def pushed(random: Random, ask: Ask, name: str) -> None:
    """Messages that a consumer sends by itself."""
    prefix = name.lower()
    limited = {**stored(random, name, prefix), **spread(random, ask)}
    ask(f"STREAM.CREATE.{name}", limited)
    # Whether some are delivered before the answer to who makes the consumer is chance in a cluster.
    for _ in range(random.randint(0, 3) if ask.alone else 0):
        ask(f"{prefix}.{random.choice(TOKENS)}", random.choice(PAYLOADS), [("A", "b")])
    config: Config = {
        **{"durable_name": "c", "ack_policy": "explicit", "ack_wait": HOUR},
        **{"deliver_subject": f"to.{prefix}"},
    }
    for field in random.sample(list(PUSHED), random.randint(0, 4)):
        config[field] = random.choice(PUSHED[field])
    if config.get("flow_control"):
        config["idle_heartbeat"] = HOUR
    config = ask.filled(config)
    _leave_out(ask, limited, config)
    ask.listen(f"to.{prefix}", config.get("deliver_group", ""))
    if "error" in ask(f"CONSUMER.CREATE.{name}.c", {"stream_name": name, "config": config}):
        return
    ask.heard()
    for _ in range(random.randint(4, 9)):
        chance = random.random()
        if chance < 0.4:
            for _ in range(random.randint(1, 3)):
                ask(f"{prefix}.{random.choice(TOKENS)}", random.choice(PAYLOADS), [("A", "b")])
        elif chance < 0.8:
            ask.acknowledge(random.randint(-4, -1), random.choice(ACKS), config.get("ack_policy"))
        else:
            operated(random, ask, name, prefix, config)
            if "max_ack_pending" in config:
                stir(ask, prefix)
        ask.heard()
    ask(f"CONSUMER.INFO.{name}.c", b"")


def stir(ask: Ask, prefix: str) -> None:
    """A message, so that the consumer looks for more: where a purge took away what waited for its
    acknowledgement it does so at once here, and with the next message there."""
    ask.forget_pending()
    ask(f"{prefix}.a", b"stirred")
