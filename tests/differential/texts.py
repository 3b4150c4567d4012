"""Bodies that are nearly what is asked for: a character too few, a number of another kind."""

import json
from collections.abc import Callable
from random import Random
from typing import Any

from tests.differential.asking import Ask
from tests.differential.assets import CONSUMER, STREAM, changed, sensible_consumer, sensible_stream
from tests.differential.bodies import WORDS
from tests.differential.values import filled

SIGNS: tuple[str, ...] = (
    *'{}[]",:0189.eE+-\\/ \t\n\r*x',
    *("null", "true", "false", "1e3", "1.0", "-0", "00", "\\u0061", "\\u12", "\\n", "/**/"),
    *('""', "{}", "[]", "[[]]", '{"a":1}', "1e400", "0x10", "\x01"),
)
NUMBERS = (
    *("1e3", "1.0", "1.5", "-0", "0.0", "1E2", "1e-1", "1e400", "9" * 30, "-1e3", "+1", "01"),
    *("9223372036854775807", "9223372036854775808", "18446744073709551615", "true", "null", '"1"'),
)
CARELESS = ("PURGE", "RESET", "UNPIN", "RESTORE")
"""Broken bodies of these are taken for none there: docs/differences.md."""


def texts(random: Random, ask: Ask, name: str) -> None:
    """Requests of all kinds, each with a slip of the pen."""
    prefix = name.lower()
    config = {"name": name, "subjects": [f"{prefix}.>"]}
    ask(f"STREAM.CREATE.{name}", config)
    consumer = {"name": "c", "durable_name": "c", "ack_policy": "explicit"}
    ask(f"CONSUMER.CREATE.{name}.c", {"stream_name": name, "config": consumer})
    for _ in range(10):
        subject, body = _sound(random, name, prefix)
        text = json.dumps(body)
        for _ in range(random.choice((1, 1, 1, 2))):
            text = random.choice(SLIPS)(random, text)
        ask(subject, text.encode("utf-8"))


def _sound(random: Random, name: str, prefix: str) -> tuple[str, Any]:
    """A request, and its body as it should be."""
    chance = random.random()
    if chance < 0.3:
        drawn = changed(random, sensible_stream(random, name, prefix), STREAM, prefix)
        return f"STREAM.{random.choice(('CREATE', 'UPDATE'))}.{name}", _small(drawn)
    if chance < 0.6:
        drawn = changed(random, sensible_consumer(random, "c", prefix), CONSUMER, prefix)
        drawn.pop("sourcing", None)
        return f"CONSUMER.CREATE.{name}.c", {"stream_name": name, "config": _small(drawn)}
    words = [one for one in WORDS if not any(word in one for word in CARELESS)]
    subject = random.choice(words)
    body = {field: random.choice(values) for field, values in WORDS[subject].items()}
    names = {"r": name, "p": name, "s": name, "c": "c", "x": "NOBODY"}
    return subject.format(**names), filled(body, prefix)


def _small(config: dict[str, Any]) -> dict[str, Any]:
    """Without fields that are long for their own sake."""
    return {key: value for key, value in config.items() if len(json.dumps(value)) < 500}


def _inserted(random: Random, text: str) -> str:
    at = random.randint(0, len(text))
    return text[:at] + random.choice(SIGNS) + text[at:]


def _removed(random: Random, text: str) -> str:
    at = random.randrange(len(text) or 1)
    return text[:at] + text[at + random.choice((1, 1, 1, 3)) :]


def _replaced(random: Random, text: str) -> str:
    at = random.randrange(len(text) or 1)
    return text[:at] + random.choice(SIGNS) + text[at + 1 :]


def _cut(random: Random, text: str) -> str:
    return text[: random.randint(0, len(text))]


def _numbered(random: Random, text: str) -> str:
    """Another number, or what is none, in the place of a value."""
    places = [at for at, sign in enumerate(text) if sign == ":"]
    if not places:
        return text
    at = random.choice(places) + 1
    end = min((text.find(sign, at) for sign in ",}" if text.find(sign, at) > 0), default=at)
    return f"{text[:at]} {random.choice(NUMBERS)}{text[end:]}"


def _twice(random: Random, text: str) -> str:
    """The whole document's fields once more, behind themselves."""
    inner = text.strip()[1:-1]
    return f"{{{inner}, {_numbered(random, '{' + inner + '}')[1:-1]}}}" if inner else text


def _deep(random: Random, text: str) -> str:
    """A field that nobody knows, or one that is known, with a document in it."""
    depth = random.choice((1, 3, 100))
    inner = random.choice(("[" * depth + "]" * depth, '{"a":' * depth + "1" + "}" * depth))
    field = random.choice(("unknown", "seq", "name", "config", "placement", "subject"))
    return f'{{"{field}": {inner}, {text.strip()[1:]}'


SLIPS: tuple[Callable[[Random, str], str], ...] = (
    *(_inserted, _inserted, _removed, _replaced, _cut, _numbered, _numbered, _twice, _deep),
)
