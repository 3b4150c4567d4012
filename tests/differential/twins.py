"""Both servers with the same in them, and what is different in what they say."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from jsctl.testing import Broker, RealServer
from tests.support.wire_client import WireClient

VOLATILE = {
    *("created", "ts", "time", "timestamp", "last_ts", "first_ts", "last_active", "active"),
    *("pause_remaining", "limit", "raft_group", "server_id", "leader_since", "pinned_ts", "bytes"),
}
"""Fields of answers that are not the same twice, whoever is asked: times, ids, and the bytes that
each server's own format takes."""
COPYING = ("state", "mirror", "sources")
"""How far copies of other streams are is another question at every moment."""
CONFIG = """
jetstream { domain: D }
accounts {
    A { jetstream: enabled, users: [{ user: a, password: a }] }
    SYS { users: [{ user: sys, password: sys }] }
}
system_account: SYS
no_auth_user: a
"""
STANDING: tuple[dict[str, Any], ...] = (
    {"name": "ORIGIN", "subjects": ["origin.>"]},
    {"name": "QUEUE", "subjects": ["queue.>"], "retention": "workqueue"},
    {"name": "INTEREST", "subjects": ["interest.>"], "retention": "interest", "storage": "memory"},
    {"name": "SEALED", "subjects": ["sealed.>"], "sealed": False},
    {
        "name": "LIMITED",
        "subjects": ["limited.>"],
        "max_consumers": 3,
        "consumer_limits": {"inactive_threshold": 60_000_000_000, "max_ack_pending": 100},
    },
    {"name": "MIRROR", "mirror": {"name": "ORIGIN"}},
    {"name": "DENIED", "subjects": ["denied.>"], "deny_delete": True, "deny_purge": True},
    {"name": "WIDE", "subjects": ["wide.a", "wide.b.*", "wide.c.>"], "allow_direct": True},
)
"""Streams that every case finds."""


class Side:
    """One server and a client of it."""

    def __init__(self, server: Broker) -> None:
        self.server = server
        self.client = WireClient(server.url)
        self.system = WireClient(server.url.replace("//", "//sys:sys@"))

    def ask(self, subject: str, body: bytes) -> bytes:
        """What it answers; empty if it does not."""
        words = subject.removeprefix("$JS.D.API.").removeprefix("$JS.API.")
        client = self.system if words.startswith(SYSTEM) else self.client
        return client.request(subject.encode(), body, ANSWER_S)

    def clear(self, kept: frozenset[str]) -> None:
        """Take away whatever a case made."""
        names = json.loads(self.ask("$JS.API.STREAM.NAMES", b""))["streams"] or []
        for name in names:
            if name not in kept:
                self.ask(f"$JS.API.STREAM.DELETE.{name}", b"")


ANSWER_S = 3.0
"""Some requests are not answered."""
SYSTEM = ("META.", "SERVER.", "ACCOUNT.")
"""What only the system account may ask."""


class Twins:
    """nats-server and the broker."""

    def __init__(self, real: Broker, ours: Broker) -> None:
        self.sides = Side(real), Side(ours)
        for one in STANDING:
            self.ask(f"$JS.API.STREAM.CREATE.{one['name']}", json.dumps(one).encode())
        self.ask(
            "$JS.API.STREAM.UPDATE.SEALED", json.dumps({**STANDING[3], "sealed": True}).encode()
        )
        for side in self.sides:
            for number in range(5):
                for word in ("origin", "wide", "queue", "denied"):
                    side.ask(f"{word}.a", b"m%d" % number)
        self._kept = frozenset(str(one["name"]) for one in STANDING)

    def ask(self, subject: str, body: bytes) -> tuple[Any, Any]:
        """Both answers, without what changes."""
        real, ours = (plain(side.ask(subject, body)) for side in self.sides)
        return real, ours

    def close(self) -> None:
        """Hang up."""
        for side in self.sides:
            side.client.close()
            side.system.close()

    def clear(self) -> None:
        """Both as they were before the case."""
        for side in self.sides:
            side.clear(self._kept)


def plain(answer: bytes) -> Any:
    """The document without volatile fields; text if it is none."""
    try:
        return without(json.loads(answer))
    except ValueError:
        return answer.decode("utf-8", "replace")


def without(value: Any) -> Any:
    """A document without volatile fields."""
    if isinstance(value, dict):
        if "sources" in value.get("config", ()) or "mirror" in value.get("config", ()):
            value = {**value, **dict.fromkeys(COPYING)}
        unused = {"first_seq"} if value.get("last_seq") == 0 else set()
        """A stream without a message begins at 0 here: docs/differences.md."""
        left = value.keys() - VOLATILE - unused
        return {key: without(one) for key, one in value.items() if key in left}
    if isinstance(value, str) and value.startswith("$JS.SNAPSHOT."):
        return value.rpartition(".")[0]
    if isinstance(value, list):
        return [without(one) for one in value]
    return value


def differences(real: Any, ours: Any, where: str = "") -> Iterator[str]:
    """A line for each field that is not the same."""
    if isinstance(real, dict) and isinstance(ours, dict):
        for key in sorted({*real, *ours}):
            yield from differences(real.get(key, ...), ours.get(key, ...), f"{where}.{key}")
    elif isinstance(real, list) and isinstance(ours, list) and len(real) == len(ours):
        for at, (one, other) in enumerate(zip(real, ours, strict=True)):
            yield from differences(one, other, f"{where}[{at}]")
    elif real != ours or type(real) is not type(ours):
        yield f"{where}: {real!r:.300} | {ours!r:.300}"


@contextmanager
def running() -> Iterator[Twins]:
    """One server of each kind, for as long as the block runs."""
    with RealServer(config=CONFIG, name="one") as real, Broker(config=CONFIG, name="one") as ours:
        twins = Twins(real, ours)
        try:
            yield twins
        finally:
            twins.close()
