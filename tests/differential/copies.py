"""Mirrors and sources: what becomes of an origin's messages in a stream that takes from it."""

from base64 import b64encode
from random import Random
from typing import Any

from tests.differential.asking import Ask
from tests.differential.messages import OPTIONS, PAYLOADS, TOKENS, drawn_headers

Config = dict[str, Any]
END = "end"
"""The last token of what is published last: when the copy has it, it has all that comes."""
FAVOURED = (
    *("Nats-Msg-Id", "Nats-TTL", "Nats-Rollup", "Nats-Incr", "Nats-Expected-Last-Sequence"),
    *("Nats-Stream-Source", "A", "Nats-Expected-Stream", "KV-Operation", "Nats-Marker-Reason"),
)
ORIGINS = ("allow_msg_ttl", "storage", "compression")
"""Nothing by which messages go before they are taken."""
COPIES = (
    *("storage", "max_msgs", "max_msgs_per_subject", "duplicate_window", "allow_msg_ttl"),
    *("allow_rollup_hdrs", "deny_delete"),
    *("first_seq", "compression", "republish", "allow_direct", "max_age"),
)
TAKEN: tuple[Config, ...] = (
    *({}, {}, {"opt_start_seq": 1}, {"opt_start_seq": 3}, {"filter_subject": "{p}.>"}),
    {"opt_start_time": "2020-01-01T00:00:00Z"},
    {"filter_subject": "{p}.*"},
    {"subject_transforms": [{"src": "{p}.>", "dest": "{p}copy.>"}]},
    {"subject_transforms": [{"src": "{p}.*", "dest": "{p}copy.{{wildcard(1)}}"}]},
    {"subject_transforms": [{"src": "{p}.*", "dest": ""}]},
    {
        "subject_transforms": [
            {"src": "{p}.a", "dest": "{p}copy.first"},
            {"src": "{p}.end", "dest": "{p}copy.end"},
        ]
    },
)


def copied(random: Random, ask: Ask, name: str) -> None:
    """An origin, a stream that takes from it, and what happens to both."""
    prefix, copy = name.lower(), f"{name}-COPY"
    origin: Config = {"name": name, "subjects": [f"{prefix}.>"]}
    origin |= _options(random, ask, ORIGINS)
    counting = {"allow_msg_counter": True} if random.random() < 0.25 else {}
    origin |= counting
    if not ask.alone:
        origin["num_replicas"] = 3
    if "error" in ask(f"STREAM.CREATE.{name}", origin):
        return
    _publish(random, ask, prefix, random.randint(3, 5), counting)
    config: Config = {"name": copy, **_options(random, ask, COPIES), **counting}
    taken = {"name": name, **ask.filled(random.choice(TAKEN))}
    config |= {"mirror": taken} if random.random() < 0.4 else {"sources": [taken]}
    if not ask.alone:
        config["num_replicas"] = random.choice((1, 3))
    if "error" in ask(f"STREAM.CREATE.{copy}", config):
        return
    for number in range(random.randint(1, 3)):
        _publish(random, ask, prefix, random.randint(1, 5), counting)
        _end(ask, prefix, copy, number, counting)
        _meddle(random, ask, prefix, random.choice((name, copy)))
    if random.random() < 0.3:
        _promote(random, ask, config, prefix)


def _promote(random: Random, ask: Ask, config: Config, prefix: str) -> None:
    """The copy takes from nobody any more, and has subjects of its own."""
    left = {key: one for key, one in config.items() if key not in ("mirror", "sources")}
    changed = {**left, "subjects": [f"{prefix}own.>"]}
    if "error" not in ask(f"STREAM.UPDATE.{config['name']}", changed):
        for _ in range(2):
            ask(f"{prefix}own.a", random.choice(PAYLOADS), drawn_headers(random, ("Nats-Msg-Id",)))
        _publish(random, ask, prefix, 1, {})
        ask(f"STREAM.MSG.GET.{config['name']}", {"last_by_subj": f"{prefix}own.a"})


def _options(random: Random, ask: Ask, names: tuple[str, ...]) -> Config:
    drawn = random.sample(names, random.randint(0, 3))
    filled: Config = ask.filled({name: random.choice(OPTIONS[name]) for name in drawn})
    return filled


def _publish(random: Random, ask: Ask, prefix: str, count: int, counting: Config) -> None:
    for _ in range(count):
        headers = drawn_headers(random, FAVOURED) if random.random() < 0.6 else []
        headers = [one for one in headers if not one[0].startswith(("Nats-Batch", "Nats-Sched"))]
        if counting and random.random() < 0.9:
            headers = [("Nats-Incr", random.choice(("1", "+5", "-2")))]
        payload = b"" if counting and headers else random.choice(PAYLOADS)
        ask(f"{prefix}.{random.choice(TOKENS)}", payload, headers)


def _end(ask: Ask, prefix: str, copy: str, number: int, counting: Config) -> None:
    """Wait for the copy, and compare all that it has."""
    marked = b'{"val":"%d"}' % (number + 1) if counting else f"mark {number}".encode()
    headers = [("Nats-Incr", "1")] if counting else []
    if "error" in ask(f"{prefix}.{END}", b"" if counting else marked, headers):
        return
    data = b64encode(marked).decode()

    def ended(answer: Any) -> bool:
        message = answer.get("message", {}) if isinstance(answer, dict) else {}
        return bool(message.get("data") == data)

    found = ask.until(f"STREAM.MSG.GET.{copy}", {"last_by_subj": ">"}, ended)
    for sequence in range(1, found.get("message", {}).get("seq", 0) + 2):
        ask(f"STREAM.MSG.GET.{copy}", {"seq": sequence})


def _meddle(random: Random, ask: Ask, prefix: str, name: str) -> None:
    what = random.choice(("purge", "delete", "none", "publish"))
    if what == "purge":
        ask(f"STREAM.PURGE.{name}", random.choice(({}, {"keep": 1}, {"seq": 3})))
    elif what == "delete":
        ask(f"STREAM.MSG.DELETE.{name}", {"seq": random.randint(1, 6)})
    elif what == "publish":
        ask(f"{prefix}copy.x", b"of its own")
