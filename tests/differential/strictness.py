"""Requests that ask for strictness, and such that say what the server has to know."""

from random import Random

from tests.differential.asking import Ask
from tests.differential.assets import CONSUMER, STREAM, changed, sensible_consumer, sensible_stream
from tests.differential.bodies import WORDS
from tests.differential.twins import Headers
from tests.differential.values import filled

LEVELS = ("0", "1", "4", "5", "6", "99", "x", "", "-1", "5 ", "1.0")
PEDANTIC = (True, True, True, True, False, None, "x")
SAFE = ("NAMES", "LIST", "INFO", "MSG.GET", "SNAPSHOT")
"""What changes nothing."""


def strict(random: Random, ask: Ask, name: str) -> None:
    """A stream and a consumer, where nothing may be filled in; and levels of the API."""
    prefix = name.lower()
    config = sensible_stream(random, name, prefix)
    for _ in range(random.randint(1, 3)):
        drawn = changed(random, config, STREAM, prefix)
        answer = ask(f"STREAM.CREATE.{name}", {**drawn, "pedantic": random.choice(PEDANTIC)})
        if "error" not in answer:
            config = drawn
            break
    else:
        ask(f"STREAM.CREATE.{name}", config)
    drawn = {**config, "pedantic": True, "max_age": random.choice((0, 3600 * 10**9, 10**7))}
    ask(f"STREAM.UPDATE.{name}", drawn)
    for _ in range(random.randint(1, 3)):
        consumer = changed(random, sensible_consumer(random, "c", prefix), CONSUMER, prefix)
        consumer.pop("sourcing", None)
        body = {"stream_name": name, "config": consumer, "pedantic": random.choice(PEDANTIC)}
        ask(f"CONSUMER.CREATE.{name}.c", body, _level(random))
    for _ in range(4):
        words = [one for one in WORDS if any(word in one for word in SAFE)]
        subject = random.choice(words)
        body = {field: random.choice(values) for field, values in WORDS[subject].items()}
        if "NAMES" in subject and not ask.alone:
            body.pop("subject", None)  # Streams without any are named there: docs/differences.md.
        names = {"r": name, "p": name, "s": name, "c": "c", "x": "NOBODY"}
        ask(subject.format(**names), filled(body, prefix), _level(random, always=True))


def _level(random: Random, *, always: bool = False) -> Headers:
    """What is needed of the API, if anything."""
    if not always and random.random() < 0.5:
        return []
    return [("Nats-Required-Api-Level", random.choice(LEVELS))]
