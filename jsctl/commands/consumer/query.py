"""Which consumers `find` and `cluster balance` are about."""

from collections.abc import Callable, Sequence
from time import time_ns

from jsctl.api.codec import encode
from jsctl.api.consumer import ConsumerConfig, ConsumerInfo
from jsctl.api.times import parse_time
from jsctl.api.words import PriorityPolicy
from jsctl.commands.toolkit.content.expressions import OF_ASSETS, compiled
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import UsageError

LEVEL_KEY = "_nats.req.level"
Test = Callable[[ConsumerInfo], bool | None]
"""None: neither so nor not so, as the idleness of a consumer that never delivered."""


def chosen(call: Call, infos: Sequence[ConsumerInfo]) -> list[ConsumerInfo]:
    """Consumers that pass every test asked for; with `--invert` those that fail every one.

    Raises UsageError for what contradicts itself.
    """
    if call.flag("pull") and call.flag("push"):
        raise UsageError("cannot match pull and push concurrently")
    wanted = not call.flag("invert")
    found = list(infos)
    if call.text("expression"):
        matches = compiled(call.text("expression"), names=OF_ASSETS)
        found = [info for info in found if matches(_environment(info))]
    for test in (*_kinds(call), *_counts(call), *_places(call)):
        found = [info for info in found if test(info) is wanted]
    return found


def _environment(info: ConsumerInfo) -> dict[str, object]:
    document = encode(info)
    return {"config": document.get("config", {}), "state": document, "info": document}


def _config(info: ConsumerInfo) -> ConsumerConfig:
    return info.config or ConsumerConfig()


def _kinds(call: Call) -> list[Test]:
    found: list[Test] = []
    if call.flag("pull"):
        found.append(lambda info: not _config(info).deliver_subject)
    if call.flag("push"):
        found.append(lambda info: bool(_config(info).deliver_subject))
    if call.flag("bound"):
        found.append(lambda info: info.push_bound or info.num_waiting > 0)
    if call.flag("pinned"):
        found.append(_is_pinned)
    return found


def _is_pinned(info: ConsumerInfo) -> bool | None:
    config = _config(info)
    if config.priority_policy is not PriorityPolicy.PINNED_CLIENT:
        return None
    pinned = sum(bool(group.pinned_client_id) for group in info.priority_groups)
    return pinned == len(config.priority_groups)


def _fewer(value: int, limit: int) -> bool | None:
    """None for none at all, and for just as many."""
    if not value or value == limit:
        return None
    return value < limit


def _counts(call: Call) -> list[Test]:
    found: list[Test] = []
    if (most_acks := call.integer("ack-pending")) > 0:
        found.append(lambda info: _fewer(info.num_ack_pending, most_acks))
    if (most_waiting := call.integer("waiting")) > 0:
        found.append(lambda info: _fewer(info.num_waiting, most_waiting))
    if most_pending := call.integer("pending"):
        found.append(lambda info: _fewer(info.num_pending, most_pending))
    if replicas := call.integer("replicas"):
        found.append(lambda info: _config(info).num_replicas <= replicas)
    if level := call.integer("api-level"):
        found.append(lambda info: _level(info) >= level)
    return found


def _level(info: ConsumerInfo) -> int:
    text = _config(info).metadata.get(LEVEL_KEY, "")
    return int(text) if text.isascii() and text.isdigit() else 0


def _places(call: Call) -> list[Test]:
    now = time_ns()
    found: list[Test] = []
    if (age := call.duration("created")) > 0:
        found.append(lambda info: now - parse_time(info.created) >= age)
    if (idle := call.duration("idle")) > 0:
        found.append(
            lambda info: (
                now - parse_time(info.delivered.last_active) < idle
                if info.delivered.last_active
                else None
            )
        )
    if leader := call.text("leader"):
        found.append(lambda info: info.cluster.leader == leader if info.cluster else None)
    return found
