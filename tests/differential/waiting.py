"""Pulls that wait beside each other: whom the next message goes to."""

from random import Random

from tests.differential.asking import Ask
from tests.differential.messages import ACKS, HOUR, PAYLOADS, TOKENS, Config, spread, stir

WAITED: tuple[Config, ...] = (
    *({}, {}, {"max_waiting": 2}, {"max_ack_pending": 2}, {"filter_subject": "{p}.a"}),
    *({"max_batch": 2}, {"ack_policy": "none"}, {"ack_policy": "all"}, {"headers_only": True}),
    *(
        {"priority_groups": ["g"], "priority_policy": policy}
        for policy in ("overflow", "pinned_client", "prioritized", "overflow", "prioritized")
    ),
)
ASKED: Config = {
    "batch": (1, 1, 2, 3),
    "max_bytes": (60, 150, 500, 5000),
    "min_pending": (1, 2, 4),
    "min_ack_pending": (1, 2, 3),
    "priority": (0, 1, 5, 9),
    "no_wait": (True,),
    "id": ("x",),
}


def waiting(random: Random, ask: Ask, name: str) -> None:
    """Several at a time, with messages and acknowledgements between them."""
    prefix = name.lower()
    made = {"name": name, "subjects": [f"{prefix}.>"], **spread(random, ask)}
    ask(f"STREAM.CREATE.{name}", made)
    config: Config = {"durable_name": "c", "ack_policy": "explicit", "ack_wait": HOUR}
    config |= ask.filled(random.choice(WAITED))
    if "error" in ask(f"CONSUMER.CREATE.{name}.c", {"stream_name": name, "config": config}):
        return
    ask.listen(f"pull.{prefix}.*")
    for place in range(random.randint(5, 10)):
        chance = random.random()
        if chance < 0.45:
            body = _body(random, config)
            if not ask.alone:
                body.pop("max_bytes", None)  # Told too soon there: docs/differences.md.
            ask.say(f"$JS.API.CONSUMER.MSG.NEXT.{name}.c", body, f"pull.{prefix}.{place}")
        elif chance < 0.75:
            for _ in range(random.randint(1, 3)):
                ask(f"{prefix}.{random.choice(TOKENS)}", random.choice(PAYLOADS))
        elif chance < 0.92:
            ask.acknowledge(random.randint(-4, -1), random.choice(ACKS), config.get("ack_policy"))
        elif chance < 0.98:
            _meddle(random, ask, name)
        else:
            ask(f"CONSUMER.DELETE.{name}.c", b"")
            ask.heard()
            return
        ask.heard()
    ask(f"CONSUMER.INFO.{name}.c", b"")


def _body(random: Random, config: Config) -> Config:
    found: Config = {"batch": random.choice(ASKED["batch"]), "expires": HOUR}
    for field in random.sample(list(ASKED), random.choice((0, 1, 1, 2))):
        found[field] = random.choice(ASKED[field])
    if found.get("no_wait"):
        del found["expires"]
    if config.get("priority_groups") and random.random() < 0.95:
        found["group"] = "g"
    if config.get("priority_policy") == "pinned_client":
        found.pop("id", None)  # Everybody's is another one.
    return found


def _meddle(random: Random, ask: Ask, name: str) -> None:
    what = random.choice(("unpin", "pause", "info", "purge", "reset"))
    if what == "unpin":
        ask(f"CONSUMER.UNPIN.{name}.c", {"group": "g"})
    elif what == "pause":  # And no end of it: docs/differences.md.
        ask(f"CONSUMER.PAUSE.{name}.c", {"pause_until": "2100-01-01T00:00:00Z"})
    elif what == "purge":
        ask(f"STREAM.PURGE.{name}", {})
        stir(ask, name.lower())
    elif what == "reset":
        ask(f"CONSUMER.RESET.{name}.c", {"seq": 1})
    else:
        ask(f"CONSUMER.INFO.{name}.c", b"")
