"""A case is a seed: requests one after the other, drawn with what came back in mind."""

import json
from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any

from tests.differential.assets import (
    CONSUMER,
    STREAM,
    Config,
    changed,
    sensible_consumer,
    sensible_stream,
)
from tests.differential.bodies import WHO, WORDS, drawn_body
from tests.differential.twins import Twins, differences
from tests.differential.values import filled

Found = tuple[str, str, list[str]]
"""Subject, body, and how the answers differ."""
Ask = Callable[[str, Any], Any]
"""Asks both for a word of the API, or publishes to a subject of small letters."""
STREAMS = (
    *("ORIGIN", "ORIGIN", "QUEUE", "INTEREST", "SEALED", "LIMITED", "MIRROR", "WIDE", "NOBODY"),
)
UPDATED = {field: draw for field, draw in STREAM.items() if field != "first_seq"}
"""An update shows the first sequence as it is: docs/differences.md."""
CARELESS = ("PURGE", "RESET", "UNPIN")
ACTIONS = ("", "", "create", "update", "other", None, 1)


class Apart(Exception):
    """The servers said different things, so that what they hold is different from here on."""


def played(twins: Twins, seed: int, case: Callable[[Random, Ask, str], None]) -> list[Found]:
    """Play one case on both servers, up to the first answer that differs; what did."""
    found: list[Found] = []
    random = Random(seed)

    def ask(subject: str, body: Any) -> Any:
        payload = body if isinstance(body, bytes) else json.dumps(body).encode()
        prefix = "$JS.D.API." if random.random() < 0.2 else "$JS.API."
        plain = subject.islower()
        real, ours = twins.ask(subject if plain else f"{prefix}{subject}", payload)
        lines = list(differences(real, ours))
        if lines:
            found.append((subject, payload.decode("utf-8", "replace"), lines))
            raise Apart
        return real

    with suppress(Apart):
        case(random, ask, f"C{seed}")
    twins.clear()
    return found


def streams(random: Random, ask: Ask, name: str) -> None:
    """A stream is made, changed, looked at."""
    prefix = name.lower()
    config = sensible_stream(random, name, prefix)
    for _ in range(random.choice((1, 1, 2))):
        drawn = changed(random, config, STREAM, prefix)
        answer = ask(f"STREAM.CREATE.{name}", drawn)
        if "error" not in answer:
            config = drawn
            break
    else:
        ask(f"STREAM.CREATE.{name}", config)
    for _ in range(random.randint(1, 4)):
        drawn = changed(random, config, UPDATED, prefix)
        answer = ask(f"STREAM.UPDATE.{name}", drawn)
        if "error" not in answer:
            config = drawn
    ask(f"STREAM.INFO.{name}", b"")
    ask(f"STREAM.CREATE.{name}", config)


def consumers(random: Random, ask: Ask, name: str) -> None:
    """The same for a consumer of one of the streams that are there."""
    stream = random.choice(STREAMS)
    prefix = stream.lower()
    config = sensible_consumer(random, name, prefix)
    for number in range(random.randint(2, 5)):
        drawn = changed(random, config, CONSUMER, prefix) if number != 1 else config
        answer = ask(*consumer_request(random, stream, name, drawn, number))
        if "error" not in answer:
            config = drawn
    ask(f"CONSUMER.INFO.{stream}.{name}", b"")
    ask(f"CONSUMER.DELETE.{stream}.{name}", b"")


def consumer_request(
    random: Random, stream: str, name: str, config: Config, number: int
) -> tuple[str, Config]:
    """Subject and body: there are four ways to ask."""
    body: Config = {"stream_name": stream, "config": config}
    chance = random.random()
    if chance < 0.05:
        body["stream_name"] = random.choice(("ORIGIN", "", "x", None))
    if random.random() < 0.5:
        body["action"] = random.choice(ACTIONS)
    if number and body.get("action") == "create" and not config.get("durable_name"):
        body["action"] = ""  # The same once more is no mistake here: docs/differences.md.
    if random.random() < 0.1:
        body["pedantic"] = random.choice((True, True, False, "x"))
    way = random.random()
    if way < 0.15:
        return f"CONSUMER.DURABLE.CREATE.{stream}.{name}", body
    filter_subject = config.get("filter_subject")
    if (
        way < 0.3
        and isinstance(filter_subject, str)
        and filter_subject
        and " " not in filter_subject
    ):
        return f"CONSUMER.CREATE.{stream}.{name}.{filter_subject}", body
    if way < 0.35:
        return f"CONSUMER.CREATE.{stream}.{name}.origin.a", body
    return f"CONSUMER.CREATE.{stream}.{name}", body


def others(random: Random, ask: Ask, name: str) -> None:
    """Requests of all other kinds about what is there, and what is not."""
    prefix = name.lower()
    ask(f"STREAM.CREATE.{name}", {"name": name, "subjects": [f"{prefix}.>"]})
    for _ in range(3):
        ask(f"{prefix}.a", b"message")
    config = {"name": "c", "durable_name": "c", "ack_policy": "explicit"}
    ask(f"CONSUMER.CREATE.{name}.c", {"stream_name": name, "config": config})
    for _ in range(8):
        subject, fields = random.choice(list(WORDS.items()))
        names = {
            "r": name,
            "p": name,
            "s": random.choice((name, name, *WHO)),
            "c": random.choice(("c", "c", *WHO)),
        }
        # Broken bodies of these two are taken for none there: docs/differences.md.
        careless = any(word in subject for word in CARELESS)
        body = filled(drawn_body(random, fields, junk=not careless), prefix)
        ask(subject.format(**names), body)


CASES = {"streams": streams, "consumers": consumers, "others": others}
