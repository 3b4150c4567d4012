"""Atomic batches: in order and out of it, complete and not, several at once."""

from random import Random
from typing import Any

from tests.differential.asking import Ask, Headers
from tests.differential.messages import OPTIONS, PAYLOADS, TOKENS, drawn_headers

Config = dict[str, Any]
BATCHES = ("u", "v", "w")
FAVOURED = (
    *("Nats-Msg-Id", "Nats-Expected-Last-Sequence", "Nats-Expected-Last-Subject-Sequence"),
    *("Nats-TTL", "Nats-Incr", "Nats-Rollup", "Nats-Expected-Last-Subject-Sequence-Subject"),
    *("Nats-Expected-Stream", "Nats-Schedule", "Nats-Schedule-Target", "A"),
)
USUAL = ("1", "1", "1", "eob", "eob", "x")
"""How a batch is committed."""


def batched(random: Random, ask: Ask, name: str) -> None:
    """Messages of batches, and what they become."""
    prefix = name.lower()
    config: Config = {"name": name, "subjects": [f"{prefix}.>"], "allow_atomic": True}
    for field in random.sample(list(OPTIONS), random.randint(0, 4)):
        if field not in ("sealed", "no_ack", "allow_atomic"):
            config[field] = random.choice(OPTIONS[field])
    config = ask.filled(config)
    if not ask.alone:
        config["num_replicas"] = 3
    if "error" in ask(f"STREAM.CREATE.{name}", config):
        return
    reached = dict.fromkeys(BATCHES, 0)
    for _ in range(random.randint(4, 16)):
        if random.random() < 0.15:
            ask(f"{prefix}.{random.choice(TOKENS)}", random.choice(PAYLOADS), drawn(random, 0.3))
        else:
            one_of_batch(random, ask, prefix, reached)
    found = ask(f"STREAM.INFO.{name}", {"subjects_filter": ">", "deleted_details": True})
    for sequence in range(found["state"].get("first_seq", 0), found["state"]["last_seq"] + 2):
        ask(f"STREAM.MSG.GET.{name}", {"seq": sequence})


def one_of_batch(random: Random, ask: Ask, prefix: str, reached: dict[str, int]) -> None:
    """The next message of one of the batches, mostly."""
    batch = random.choice(BATCHES[: random.choice((1, 1, 2, 3))])
    sequence = reached[batch] + 1
    if random.random() < 0.08:
        sequence = random.choice((0, 1, sequence - 1, sequence + 1, 1001))
    headers = [("Nats-Batch-Id", batch), ("Nats-Batch-Sequence", str(sequence))]
    committed = random.random() < 0.3
    if committed:
        headers.append(("Nats-Batch-Commit", random.choice(USUAL)))
    headers += drawn(random, 0.3)
    ask(f"{prefix}.{random.choice(TOKENS)}", random.choice(PAYLOADS), headers)
    reached[batch] = 0 if committed else sequence


def drawn(random: Random, chance: float) -> Headers:
    """Other headers, now and then."""
    if random.random() > chance:
        return []
    return [one for one in drawn_headers(random, FAVOURED) if not one[0].startswith("Nats-Batch")]
