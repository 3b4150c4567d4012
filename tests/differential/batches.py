"""Atomic and fast batches: whole ones, and such as break off or contradict themselves."""

from random import Random

from tests.differential.asking import Ask
from tests.differential.messages import (
    HEADERS,
    OPTIONS,
    PAYLOADS,
    TOKENS,
    Config,
    looked_through,
)
from tests.differential.twins import Headers

FITTING = (
    *("storage", "max_msgs", "max_msgs_per_subject", "max_msg_size", "discard", "retention"),
    *("allow_msg_ttl", "allow_rollup_hdrs", "allow_msg_counter", "allow_msg_schedules"),
    *("subject_transform", "first_seq", "deny_delete", "duplicate_window", "max_bytes"),
)
"""Options of a stream that make a difference to batches."""
CARRIED = (
    *("Nats-Msg-Id", "Nats-Expected-Stream", "Nats-Expected-Last-Sequence", "Nats-Rollup"),
    *("Nats-Expected-Last-Subject-Sequence", "Nats-Expected-Last-Subject-Sequence-Subject"),
    *("Nats-Expected-Last-Msg-Id", "Nats-TTL", "Nats-Incr", "Nats-Schedule"),
    *("Nats-Schedule-Target", "Nats-Required-Api-Level", "A"),
)
SLIPS = ("no id", "no sequence", "skip", "again", "commit", "other commit", "outside", "large")
START, APPEND, COMMIT, END, PING = range(5)


def batches(random: Random, ask: Ask, name: str) -> None:
    """Atomic batches, one or two at a time."""
    prefix = name.lower()
    _made(random, ask, name, "allow_atomic")
    for number in range(random.randint(1, 4)):
        _atomic(random, ask, prefix, f"b{number}")
    looked_through(ask, name)


def _made(random: Random, ask: Ask, name: str, word: str) -> Config:
    """A stream that takes batches, as both took it."""
    while True:
        config: Config = {"name": name, "subjects": [f"{name.lower()}.>"], word: True}
        for field in random.sample(FITTING, random.randint(0, 3)):
            config[field] = random.choice(OPTIONS[field])
        if not ask.alone:
            config["num_replicas"] = 3
        if "error" not in ask(f"STREAM.CREATE.{name}", ask.filled(config)):
            return config


def _atomic(random: Random, ask: Ask, prefix: str, batch: str) -> None:
    count = random.randint(1, 5)
    for seq in range(1, count + 1):
        headers: Headers = [("Nats-Batch-Id", batch), ("Nats-Batch-Sequence", str(seq))]
        if seq == count:
            headers.append(("Nats-Batch-Commit", random.choice(("1", "1", "1", "eob"))))
        if random.random() < 0.35:
            field = random.choice(CARRIED)
            headers.append((field, random.choice(HEADERS[field])))
        payload = random.choice(PAYLOADS)
        if random.random() < 0.12:
            headers, payload = _slipped(random.choice(SLIPS), headers, seq, payload)
        ask(f"{prefix}.{random.choice(TOKENS)}", payload, headers)


def _slipped(slip: str, headers: Headers, seq: int, payload: bytes) -> tuple[Headers, bytes]:
    """A message of a batch with something wrong about it."""
    if slip == "outside":
        return [], payload
    if slip == "large":
        return headers, b"x" * 5000
    changes: dict[str, tuple[str, str | None]] = {
        "no id": ("Nats-Batch-Id", None),
        "no sequence": ("Nats-Batch-Sequence", None),
        "skip": ("Nats-Batch-Sequence", str(seq + 1)),
        "again": ("Nats-Batch-Sequence", "1"),
        "commit": ("Nats-Batch-Commit", "1"),
        "other commit": ("Nats-Batch-Commit", "2"),
    }
    field, value = changes[slip]
    left = [one for one in headers if one[0] != field]
    return [*left, *([(field, value)] if value is not None else [])], payload


def fast(random: Random, ask: Ask, name: str) -> None:
    """Fast batches: what their publisher is told, and what is stored."""
    prefix = name.lower()
    # Where messages are refused between others, more is told: docs/differences.md.
    counts = "allow_msg_counter" in _made(random, ask, name, "allow_batched")
    ask.listen(f"fast.{prefix}.>")
    for number in range(random.randint(1, 3)):
        _fast(random, ask, prefix, f"b{number}", ("fail",) if counts else ("fail", "fail", "ok"))
    looked_through(ask, name)


def _fast(random: Random, ask: Ask, prefix: str, batch: str, modes: tuple[str, ...]) -> None:
    gaps = random.choice(modes)
    every = random.choice((1, 2, 3, 10))
    count = random.randint(1, 6)
    seq = 0
    for place in range(count):
        seq += 1 if random.random() < 0.93 else random.choice((0, 2, 3))
        operation = APPEND if place else START
        if place == count - 1:
            operation = random.choice((COMMIT, COMMIT, END))
        elif random.random() < 0.1:
            operation = random.choice((START, APPEND, PING, 5))
        headers: Headers = []
        if gaps == "fail" and random.random() < 0.3:  # Else more is told: docs/differences.md.
            # Refused there as if it was no part of a batch: docs/differences.md.
            field = random.choice([one for one in CARRIED if one != "Nats-Expected-Last-Msg-Id"])
            headers.append((field, random.choice(HEADERS[field])))
        reply = f"fast.{prefix}.{batch}.{every}.{gaps}.{seq}.{operation}.$FI"
        subject = f"{prefix}.{random.choice(TOKENS)}"
        ask.say(subject, random.choice(PAYLOADS), reply, headers)
        ask.heard()
