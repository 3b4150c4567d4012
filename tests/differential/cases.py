"""A case is a seed: requests one after the other, drawn with what came back in mind."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from random import Random
from typing import Any

from tests.differential.archives import archived
from tests.differential.asking import Apart, Ask, Found
from tests.differential.assets import (
    CONSUMER,
    STREAM,
    Config,
    changed,
    sensible_consumer,
    sensible_stream,
)
from tests.differential.batches import batches, fast
from tests.differential.bodies import (
    DIRECT,
    OPERATORS,
    PULL,
    WHO,
    WORDS,
    Fields,
    drawn_body,
)
from tests.differential.copies import copied
from tests.differential.limits import limited
from tests.differential.messages import delivered, published, pushed, spread
from tests.differential.strictness import strict
from tests.differential.texts import texts
from tests.differential.twins import Twins
from tests.differential.values import filled
from tests.differential.waiting import waiting

STREAMS = (
    *("ORIGIN", "ORIGIN", "QUEUE", "INTEREST", "SEALED", "LIMITED", "MIRROR", "WIDE", "NOBODY"),
)
UPDATED = {field: draw for field, draw in STREAM.items() if field != "first_seq"}
"""An update shows the first sequence as it is: docs/differences.md."""
CARELESS = ("PURGE", "RESET", "UNPIN")
ACTIONS = ("", "", "create", "update", "other", None, 1)


def played(
    twins: Twins, seed: int, case: Callable[[Random, Ask, str], None], mark: str = ""
) -> list[Found]:
    """Play one case on both servers, up to the first answer that differs; what did."""
    random = Random(seed)
    ask = Ask(twins, f"C{seed}{mark}", random)
    with suppress(Apart):
        case(random, ask, f"C{seed}{mark}")
    twins.clear()
    return ask.found


def differing(
    twins: Twins, name: str, seeds: Iterable[int], mark: str = ""
) -> dict[int, list[Found]]:
    """Seeds of a case for which something is not the same, and what."""
    played_all = {seed: played(twins, seed, CASES[name], mark) for seed in seeds}
    return {seed: found for seed, found in played_all.items() if found}


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
    if not ask.alone:  # Empty lists are another config there: docs/differences.md.
        config = {key: value for key, value in config.items() if value != []}
    ask(f"STREAM.CREATE.{name}", config)
    ask("INFO", b"")


def consumers(random: Random, ask: Ask, name: str) -> None:
    """The same for a consumer of one of the streams that are there."""
    stream = random.choice(STREAMS)
    prefix = stream.lower()
    config = sensible_consumer(random, name, prefix)
    for number in range(random.randint(2, 5)):
        drawn = changed(random, config, CONSUMER, prefix) if number != 1 else config
        if SPREAD in name:
            drawn.pop("sourcing", None)  # Answered as a reset there: docs/differences.md.
        answer = ask(*consumer_request(random, stream, name, drawn))
        if "error" not in answer:
            config = drawn
    ask(f"CONSUMER.INFO.{stream}.{name}", b"")
    ask(f"CONSUMER.DELETE.{stream}.{name}", b"")


def consumer_request(random: Random, stream: str, name: str, config: Config) -> tuple[str, Config]:
    """Subject and body: there are four ways to ask."""
    body: Config = {"stream_name": stream, "config": config}
    chance = random.random()
    if chance < 0.05:
        body["stream_name"] = random.choice(("ORIGIN", "", "x", None))
    if random.random() < 0.5:
        body["action"] = random.choice(ACTIONS)
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
    replicas = random.choice((1, 3)) if SPREAD in name else 1
    config = {"name": name, "subjects": [f"{prefix}.>"], "num_replicas": replicas}
    ask(f"STREAM.CREATE.{name}", config)
    for _ in range(3):
        ask(f"{prefix}.a", b"message")
    config = {"name": "c", "durable_name": "c", "ack_policy": "explicit"}
    ask(f"CONSUMER.CREATE.{name}.c", {"stream_name": name, "config": config})
    for _ in range(8):
        subject, fields = random.choice(list(WORDS.items()))
        if SPREAD in name and "UNPIN" in subject:
            continue
        ask(*request(random, subject, fields, name))


def request(random: Random, subject: str, fields: Fields, name: str) -> tuple[str, Any]:
    """One of them: names and a body."""
    names = {
        "r": name,
        "p": name,
        "s": random.choice((name, name, *(THERE if SPREAD in name else WHO))),
        "c": random.choice(("c", "c", *WHO)),
        "a": random.choice(("A", "A", "SYS", "NOBODY")),
        "x": random.choice(("NOBODY", "a", "b")),
    }
    # Broken bodies of these are taken for none there: docs/differences.md.
    careless = any(word in subject for word in CARELESS)
    careless = careless or (SPREAD in name and any(word in subject for word in ELSEWHERE))
    if SPREAD in name:
        hidden = {"offset", "subject"} if "NAMES" in subject else {"offset"}
        fields = {key: some for key, some in fields.items() if key not in hidden}
    body = filled(drawn_body(random, fields, junk=not careless), name.lower())
    return subject.format(**names), body


def operators(random: Random, ask: Ask, name: str) -> None:
    """What only operators may ask; nothing that would be done in a cluster."""
    ask(f"STREAM.CREATE.{name}", {"name": name, "subjects": [f"{name.lower()}.>"]})
    words = [one for one in OPERATORS if SPREAD in name or one.startswith(ALONE)]
    for _ in range(8):
        subject = random.choice(words)
        fields = OPERATORS[subject]
        asked, body = request(random, subject, fields, name)
        if asked.startswith(FATAL) and not (isinstance(body, dict) and forbids(body)):
            continue
        ask(asked, body)


def forbids(body: Config) -> bool:
    """Whether nobody fits."""
    return "nobody" in str(body) or "nowhere" in str(body)


def direct(random: Random, ask: Ask, name: str) -> None:
    """Direct gets of one message and of many."""
    prefix = name.lower()
    config = {"name": name, "subjects": [f"{prefix}.>"], "allow_direct": True}
    ask(f"STREAM.CREATE.{name}", config)
    for token in "abcab":
        ask(f"{prefix}.{token}", b"message of " + token.encode())
    for _ in range(5):
        subject, fields = random.choice(list(DIRECT.items()))
        asked, body = request(random, subject, fields, name)
        ask.several(asked, body)


def pulls(random: Random, ask: Ask, name: str) -> None:
    """Requests for a consumer's next messages."""
    prefix = name.lower()
    made = {"name": name, "subjects": [f"{prefix}.>"], **spread(random, ask)}
    ask(f"STREAM.CREATE.{name}", made)
    for token in "abcab":
        ask(f"{prefix}.{token}", b"message")
    config: Config = {"durable_name": "c", "ack_policy": "explicit", "ack_wait": 10**12}
    config |= random.choice(PULLED)
    answer = ask(f"CONSUMER.CREATE.{name}.c", {"stream_name": name, "config": config})
    if "error" not in answer:
        for _ in range(3):
            body = drawn_body(random, PULL)
            if isinstance(body, dict) and not ask.alone:
                body.pop("max_bytes", None)  # Told too soon there: docs/differences.md.
            ask.several(f"CONSUMER.MSG.NEXT.{name}.c", body)


PULLED: tuple[Config, ...] = (
    *({}, {}, {"max_batch": 2}, {"max_expires": 150_000_000}, {"max_bytes": 100}),
    *({"max_ack_pending": 2}, {"filter_subject": "nothing.here"}, {"headers_only": True}),
    *(
        {"priority_groups": ["g"], "priority_policy": policy}
        for policy in ("overflow", "pinned_client", "prioritized")
    ),
)
SPREAD = "_3"
"""In names of cases of three servers."""
ALONE = ("INFO", "ACCOUNT.PURGE")
"""What a server outside a cluster answers; silence is nats-server's for all else of operators."""
ELSEWHERE = ("MSG.GET", "MSG.DELETE", "PURGE", "SNAPSHOT", "RESET")
"""What clusters look at in another order, when more than one thing is wrong."""
THERE = ("ORIGIN", "DENIED")
"""In clusters nobody answers some requests for a stream that is not there: docs/differences.md."""
FATAL = ("META.LEADER.STEPDOWN", "ACCOUNT.STREAM.MOVE")
"""What happens, if its body does not forbid it: leaders and streams go elsewhere."""
CASES = {
    "streams": streams,
    "consumers": consumers,
    "others": others,
    "operators": operators,
    "direct": direct,
    "pulls": pulls,
    "published": published,
    "delivered": delivered,
    "pushed": pushed,
    "batches": batches,
    "fast": fast,
    "copied": copied,
    "waiting": waiting,
    "texts": texts,
    "strict": strict,
    "limited": limited,
    "archived": archived,
}
ABOUT_MESSAGES = (
    *("archived", "batches", "copied", "delivered", "fast", "published", "pushed"),
    *("texts", "waiting"),
)
"""What no request of the API asks for alone."""
