"""Streams that take from another one: what they have when the origin's last message is there."""

from base64 import b64encode
from random import Random
from typing import Any

from tests.differential.asking import Ask
from tests.differential.messages import HEADERS, OPTIONS, PAYLOADS, TOKENS, Config

ENDS = (b"the end of the beginning", b"the end")
TAKEN = ("A", "Nats-Msg-Id", "Nats-TTL", "Nats-Rollup", "Nats-Expected-Last-Sequence")
ORIGINAL = ("storage", "max_msgs", "max_msgs_per_subject", "first_seq", "allow_msg_ttl")
OWN = (
    *("storage", "max_msgs", "max_msgs_per_subject", "allow_rollup_hdrs", "allow_msg_ttl"),
    *("duplicate_window", "deny_delete", "allow_direct", "compression"),
)
PICKED: tuple[tuple[Config, str], ...] = (
    ({}, "end"),
    ({"filter_subject": "{p}.>"}, "end"),
    ({"filter_subject": "{p}.*"}, "end"),
    ({"filter_subject": "{p}.a"}, "a"),
    ({"opt_start_seq": 2}, "end"),
    ({"opt_start_seq": 100}, ""),
    ({"opt_start_time": "2020-01-01T00:00:00Z"}, "end"),
    ({"subject_transforms": [{"src": "{p}.*", "dest": "to.{p}.{{wildcard(1)}}"}]}, "end"),
    ({"subject_transforms": [{"src": "{p}.>", "dest": "to.{p}.>"}]}, "end"),
    (
        {"subject_transforms": [{"src": "{p}.a", "dest": "to.{p}.z"}, {"src": "{p}.b"}]},
        "a",
    ),
    ({"subject_transforms": [{"src": "{p}.*", "dest": ""}]}, "end"),
)
"""What is taken of the origin, and where its last message goes so that it is taken, too."""


def copied(random: Random, ask: Ask, name: str) -> None:
    """A mirror, or a stream with a source. What is taken is waited for before the origin changes:
    what it forgets in the meantime is there in one copy, and not in the other."""
    prefix, origin = name.lower(), f"{name}O"
    limited = _origin(random, origin, prefix)
    ask(f"STREAM.CREATE.{origin}", ask.filled(limited))
    _fill(random, ask, origin, prefix)
    picked, end = random.choice(PICKED)
    taken = {"name": origin, **picked}
    config: Config = {"name": name}
    for field in random.sample(OWN, random.randint(0, 3)):
        config[field] = random.choice(OPTIONS[field])
    config |= {"mirror": taken} if random.random() < 0.5 else {"sources": [taken]}
    if not ask.alone:
        config["num_replicas"] = random.choice((1, 3))
    if end:
        ask(f"{prefix}.{end}", ENDS[0])
    if "error" in ask(f"STREAM.CREATE.{name}", ask.filled(config)) or not end:
        return
    _await(ask, name, ENDS[0])
    if not limited.keys() & {"max_msgs", "max_msgs_per_subject"}:
        for _ in range(random.randint(0, 3)):
            ask(f"{prefix}.{random.choice(TOKENS)}", random.choice(PAYLOADS), [("A", "b")])
    ask(f"{prefix}.{end}", ENDS[1])
    found = _await(ask, name, ENDS[1])
    for sequence in range(1, found.get("message", {}).get("seq", 0) + 2):
        ask(f"STREAM.MSG.GET.{name}", {"seq": sequence})
    ask(f"STREAM.INFO.{name}", b"")


def _await(ask: Ask, name: str, end: bytes) -> Any:
    """The copy's last message, when it is this one."""
    data = b64encode(end).decode()

    def ended(answer: Any) -> bool:
        message = answer.get("message", {}) if isinstance(answer, dict) else {}
        return bool(message.get("data") == data)

    return ask.until(f"STREAM.MSG.GET.{name}", {"last_by_subj": ">"}, ended)


def _origin(random: Random, name: str, prefix: str) -> Config:
    config: Config = {"name": name, "subjects": [f"{prefix}.>"]}
    for field in random.sample(ORIGINAL, random.randint(0, 2)):
        config[field] = random.choice(OPTIONS[field])
    if random.random() < 0.5:
        config["allow_rollup_hdrs"] = True
    return config


def _fill(random: Random, ask: Ask, origin: str, prefix: str) -> None:
    """Messages, and gaps between them."""
    for _ in range(random.randint(2, 7)):
        if random.random() < 0.12:
            ask(f"STREAM.MSG.DELETE.{origin}", {"seq": random.randint(1, 6)})
        else:
            headers = []
            if random.random() < 0.4:
                field = random.choice(TAKEN)
                headers.append((field, random.choice(HEADERS[field])))
            ask(f"{prefix}.{random.choice(TOKENS)}", random.choice(PAYLOADS), headers)
