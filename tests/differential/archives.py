"""Streams that are backed up on one server and restored on the other."""

from random import Random
from typing import Any

from tests.differential.asking import Ask
from tests.differential.messages import (
    CONSUMED,
    FAVOURED,
    HOUR,
    PAYLOADS,
    TOKENS,
    drawn_headers,
    looked_through,
    made,
)

Config = dict[str, Any]
KEPT = tuple(one for one in CONSUMED if not one.startswith(("priority", "mem_storage")))
"""What a consumer in memory had is not in an archive, nor who of a group was served."""
LOSING = {"max_msgs", "max_bytes", "max_msgs_per_subject", "allow_rollup_hdrs", "retention"}
"""Where messages go while a consumer waits for them; what it has then: docs/differences.md."""
SAID = (b"", b"+ACK", b"+TERM", b'-NAK {"delay": 3600000000000}', b"+WPI")


def archived(random: Random, ask: Ask, name: str) -> None:
    """A stream with messages and consumers goes to the other server, and on there."""
    prefix = name.lower()
    config = made(random, ask, name, prefix)
    favoured = tuple(one for key, words in FAVOURED.items() if config.get(key) for one in words)
    favoured = tuple(one for one in favoured if not one.startswith("Nats-Batch"))
    _publish(random, ask, prefix, favoured)
    consumers: list[str] = []
    if LOSING.isdisjoint(config) and random.random() < 0.7:
        consumers = [one for one in ("c0", "c1") if _consumed(random, ask, name, one)]
    for _ in range(0 if consumers else random.randint(0, 2)):
        ask(f"STREAM.MSG.DELETE.{name}", {"seq": random.randint(1, 8)})
    _publish(random, ask, prefix, favoured)
    left_out = config.get("retention") != "interest" and random.random() < 0.2
    if not ask.exchanged(name, no_consumers=left_out, consumed=bool(consumers)):
        return
    looked_through(ask, name)
    if not ask.alone:
        ask.forget_floors()  # Those there are behind what was gone before: docs/differences.md.
    for consumer in consumers:
        ask.counted(f"CONSUMER.INFO.{name}.{consumer}")
        ask.several(f"CONSUMER.MSG.NEXT.{name}.{consumer}", {"batch": 3, "no_wait": True})
    _publish(random, ask, prefix, favoured, ids=False)
    looked_through(ask, name)


def _publish(
    random: Random, ask: Ask, prefix: str, favoured: tuple[str, ...], *, ids: bool = True
) -> None:
    """Some messages. Which ids are known behind a restore: docs/differences.md."""
    left_out = ("Nats-Batch",) if ids else ("Nats-Batch", "Nats-Msg-Id")
    for _ in range(random.randint(1, 5)):
        headers = drawn_headers(random, (*favoured, "Nats-Msg-Id", "A"))
        headers = [one for one in headers if not one[0].startswith(left_out)]
        ask(f"{prefix}.{random.choice(TOKENS)}", random.choice(PAYLOADS), headers)


def _consumed(random: Random, ask: Ask, name: str, consumer: str) -> bool:
    """A consumer with something delivered, and some of it acknowledged; whether it is there."""
    config: Config = {"durable_name": consumer, "ack_policy": "explicit", "ack_wait": HOUR}
    for field in random.sample(KEPT, random.randint(0, 3)):
        config[field] = random.choice(CONSUMED[field])
    body = {"stream_name": name, "config": ask.filled(config)}
    if "error" in ask(f"CONSUMER.CREATE.{name}.{consumer}", body):
        return False
    subject = f"CONSUMER.MSG.NEXT.{name}.{consumer}"
    ask.several(subject, {"batch": random.randint(1, 3), "no_wait": True})
    for _ in range(random.randint(0, 2)):
        ask.acknowledge(random.randint(-3, -1), random.choice(SAID))
    return True
