"""An account that may not have much: what is refused, and what is counted."""

from random import Random

from tests.differential.asking import Ask
from tests.differential.messages import PAYLOADS, Config
from tests.differential.twins import MODEST

BYTES = (-1, 0, 1000, 20_000, 50_000, 50_001, 100_000, 2_000_000)
CONSUMER: dict[str, tuple[object, ...]] = {
    "max_ack_pending": (-1, 0, 5, 10, 11, 100),
    "mem_storage": (True,),
    "inactive_threshold": (0, 10**12),
    "ack_policy": ("none", "explicit", "all"),
    "num_replicas": (0, 1),
    "max_batch": (0, 5),
}


def limited(random: Random, ask: Ask, name: str) -> None:
    """Streams, consumers and messages until there is no more room."""
    ask.enter(MODEST)
    for _ in range(random.randint(8, 14)):
        one = f"{name}{random.choice('XYZUV')}"
        chance = random.random()
        if chance < 0.35:
            _stream(random, ask, one)
        elif chance < 0.6:
            config: Config = {"name": random.choice("abcd"), "ack_policy": "explicit"}
            for field in random.sample(list(CONSUMER), random.randint(0, 2)):
                config[field] = random.choice(CONSUMER[field])
            config["durable_name"] = config["name"]
            body = {"stream_name": one, "config": config}
            ask(f"CONSUMER.CREATE.{one}.{config['name']}", body)
        elif chance < 0.8:
            size = random.choice((10, 1000, 9000, 30_000))
            if "error" not in ask(f"STREAM.INFO.{one}", b""):
                ask(f"{one.lower()}.a", random.choice((*PAYLOADS, b"x" * size)))
        elif chance < 0.9:
            ask(f"STREAM.{random.choice(('DELETE', 'PURGE'))}.{one}", b"")
        ask("INFO", b"")


def _stream(random: Random, ask: Ask, name: str) -> None:
    config: Config = {"name": name, "subjects": [f"{name.lower()}.>"]}
    config["storage"] = random.choice(("file", "memory"))
    if random.random() < 0.8:
        config["max_bytes"] = random.choice(BYTES)
    if random.random() < 0.2:
        config["max_consumers"] = random.choice((-1, 0, 1, 2, 5))
    if random.random() < 0.2:
        config["consumer_limits"] = {"max_ack_pending": random.choice((5, 10, 100))}
    word = random.choice(("CREATE", "CREATE", "UPDATE"))
    ask(f"STREAM.{word}.{name}", config)
