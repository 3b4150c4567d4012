"""Both servers with the same in them, and what is different in what they say."""

import json
import re
import time
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from jsctl.testing import Broker, Cluster, RealServer
from tests.support.waiting import wait_for
from tests.support.wire_client import Received, WireClient

Headers = list[tuple[str, str]]
VOLATILE = {
    *("created", "ts", "time", "timestamp", "last_ts", "first_ts", "last_active", "active"),
    *("pause_remaining", "limit", "raft_group", "server_id", "leader_since", "pinned_ts", "bytes"),
    *("server", "pinned_client_id"),
}
"""Fields of answers that are not the same twice, whoever is asked: times, ids, and the bytes that
each server's own format takes."""
COPYING = ("state", "mirror", "sources")
"""How far copies of other streams are is another question at every moment."""
TIMES = (b"Nats-Time-Stamp:", b"Nats-UpTo-Time:")
"""Headers that are not the same twice."""
MOMENT_DIGITS = 19
"""Of a time in nanoseconds."""
GROUPS = [frozenset(("name", one)) for one in ("leader", "replicas", "desired")]
"""A group has one of these; while it moves there it may have no leader for a moment."""
MOVING = "is moving"
"""In the place of what will be told when it has ended."""
ALTERNATE = {"name", "cluster"}, {"name", "domain", "cluster"}
HEADERS = b64encode(b"NATS/1").decode()
"""How headers of a message in an answer begin."""
IDENTITY = re.compile(rb"(\nNats-Stream-Source: (?:[^ \r\n]+ ){5})\w{8}\b")
"""The last word of it goes by the time when the origin was made."""
SUBJECT = "Nats-Subject: "
PIN = "Nats-Pin-Id: "
ACCOUNTS = """
accounts {
    A { jetstream: enabled, users: [{ user: a, password: a }] }
    MODEST {
        jetstream { max_mem: 100000, max_file: 100000, max_streams: 3, max_consumers: 4 }
        users: [{ user: m, password: m }]
    }
    SYS { users: [{ user: sys, password: sys }] }
}
system_account: SYS
no_auth_user: a
"""
MODEST = "m:m"
"""Who may not have much."""
CONFIG = f"jetstream {{ domain: D }} {ACCOUNTS}"
TAGGED = f'server_tags: ["here", "rack:1"]\n{CONFIG}'
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
    """One server, or several, and a client of the first."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._main = self.client = WireClient(url)
        self.system = WireClient(url.replace("//", "//sys:sys@"))
        self._asked = 0
        self._ear = WireClient(url)
        self._ears = 0
        self._held: list[bytes] = []

    def ask(self, subject: str, body: bytes, headers: bytes = b"") -> bytes:
        """What it answers; empty if it does not."""
        words = subject.removeprefix("$JS.D.API.").removeprefix("$JS.API.")
        client = self.system if words.startswith(SYSTEM) else self.client
        return client.request(subject.encode(), body, ANSWER_S, headers)

    def acknowledge(self, place: int, body: bytes) -> list[Any]:
        """Answer the message at `place` of those that were delivered, and see what comes of it."""
        return self.ask_all(self._held[place].decode(), body)

    @property
    def delivered(self) -> int:
        """How many messages can be acknowledged."""
        return len(self._held)

    def enter(self, user: str) -> None:
        """Until the case ends another account's client asks."""
        self.client = WireClient(self._url.replace("//", f"//{user}@"))

    def close(self) -> None:
        """Hang up."""
        for client in (self._main, self.system, self._ear):
            client.close()

    def listen(self, subject: str, queue: str) -> None:
        """From here on `heard` tells what comes to it, and to nothing else."""
        if self._ears:
            self._ear.send(b"UNSUB ear%d\r\n" % self._ears)
        self._ears += 1
        self._ear.send(f"SUB {subject} {queue} ear{self._ears}\r\n".encode())
        self._ear.flush()
        self._ear.messages.clear()

    def say(self, subject: str, body: bytes, reply: str, headers: bytes) -> None:
        """Published; what is answered is heard, if it is listened to."""
        self._ear.publish(subject.encode(), body, reply.encode(), headers)
        self._ear.flush()

    def heard(self, silence_s: float) -> list[Any]:
        """What has come, when no more comes."""
        while self._ear.await_messages(len(self._ear.messages) + 1, silence_s):
            pass
        found = [self._told(one) for one in self._ear.messages]
        self._ear.messages.clear()
        return found

    def _told(self, message: Received) -> list[Any]:
        _, subject, reply, headers, payload = message
        if reply.startswith(b"$JS.ACK."):
            self._held.append(reply)
        where = [] if subject.startswith(b"_INBOX") else [subject.decode()]
        return [lines_of(headers), plain(payload), *where, *reply_of(reply)]

    def until(self, subject: str, body: bytes, ready: Callable[[Any], bool]) -> Any:
        """The answer when it is ready; the last one, if it takes too long."""
        end = time.monotonic() + COPIED_S
        while not ready(found := plain(self.ask(subject, body))) and time.monotonic() < end:
            pass
        return found

    def ask_all(self, subject: str, body: bytes) -> list[Any]:
        """Whatever it answers, until it says that this was all, or is silent."""
        self.client.messages.clear()
        self._asked += 1
        inbox = b"_INBOX.all.%d" % self._asked
        self.client.send(b"SUB %s all%d\r\n" % (inbox, self._asked))
        self.client.publish(subject.encode(), body, inbox)
        found: list[Any] = []
        while self.client.await_messages(len(found) + 1, SILENCE_S if found else MESSAGES_S):
            headers = self.client.messages[-1][3]
            found.append(self._told(self.client.messages[-1]))
            if headers.startswith(b"NATS/1.0 ") and not headers.startswith(b"NATS/1.0 100"):
                break
        self.client.send(b"UNSUB all%d\r\n" % self._asked)
        self.client.flush()
        return found

    def clear(self, kept: frozenset[str]) -> None:
        """Take away whatever a case made."""
        self._held.clear()
        answer = wait_for(lambda: self.ask("$JS.API.STREAM.NAMES", b""), "the streams' names")
        for name in json.loads(answer)["streams"] or []:
            if name not in kept:
                self.ask(f"$JS.API.STREAM.DELETE.{name}", b"")
        if self.client is not self._main:
            self.client.close()
            self.client = self._main
        wait_for(self._unconsumed, "streams without consumers")

    def _unconsumed(self) -> bool:
        """Whether nothing consumes the streams that stay. What cases leave there is taken away, and
        so is what their copies had there, which ends only after a while."""
        streams = json.loads(self.ask("$JS.API.STREAM.LIST", b"") or b"{}").get("streams")
        used = [one for one in streams or [{}] if one.get("state", {}).get("consumer_count") != 0]
        for name in [one["config"]["name"] for one in used if one]:
            found = json.loads(self.ask(f"$JS.API.CONSUMER.NAMES.{name}", b"") or b"{}")
            for consumer in found.get("consumers") or []:
                self.ask(f"$JS.API.CONSUMER.DELETE.{name}.{consumer}", b"")
        return not used


COPIED_S = 15.0
"""Mirrors and sources that fail at first are tried again after seconds."""
ANSWER_S = 3.0
"""Some requests are not answered."""
MESSAGES_S = 0.75
"""Who answers with messages does so at once, or waits for some."""
SILENCE_S = 0.25
"""Behind an answer this is all, if it does not say so itself."""
SILENT_S = 0.05
"""The same for who had that long already."""
SYSTEM = ("META.", "SERVER.", "ACCOUNT.")
"""What only the system account may ask."""


class Twins:
    """nats-server and the broker."""

    def __init__(self, real: str, ours: str, *, alone: bool) -> None:
        self.alone = alone
        """Whether they are no clusters."""
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

    def ask(self, subject: str, body: bytes, headers: bytes = b"") -> tuple[Any, Any]:
        """Both answers, without what changes."""
        real, ours = (plain(side.ask(subject, body, headers)) for side in self.sides)
        return real, ours

    def acknowledge(self, place: int, body: bytes) -> tuple[Any, Any] | None:
        """What both say to it; None if there is no such message."""
        if self.sides[0].delivered < -place:
            return None
        real, ours = (side.acknowledge(place, body) for side in self.sides)
        return real, ours

    def listen(self, subject: str, queue: str) -> None:
        """From here on `heard` tells what comes to it."""
        for side in self.sides:
            side.listen(subject, queue)

    def say(self, subject: str, body: bytes, reply: str, headers: Headers) -> None:
        """To both; `heard` tells what they answer."""
        for side in self.sides:
            side.say(subject, body, reply, block_of(headers))

    def until(self, subject: str, body: bytes, ready: Callable[[Any], bool]) -> tuple[Any, Any]:
        """Both answers when they are ready, or as they are when it takes too long."""
        real, ours = (side.until(subject, body, ready) for side in self.sides)
        return real, ours

    def heard(self) -> tuple[Any, Any]:
        """What both have sent there. While the first one was silent, the second one spoke."""
        real, ours = (
            side.heard(silence_s)
            for side, silence_s in zip(self.sides, (SILENCE_S, SILENT_S), strict=True)
        )
        return real, ours

    def ask_all(self, subject: str, body: bytes) -> tuple[Any, Any]:
        """Both answers where there may be several messages."""
        real, ours = (side.ask_all(subject, body) for side in self.sides)
        return real, ours

    def enter(self, user: str) -> None:
        """Until the case ends another account's clients ask."""
        for side in self.sides:
            side.enter(user)

    def settle(self, subject: str) -> None:
        """Wait until both know who leads: nobody answers for it before."""
        for side in self.sides:
            wait_for(partial(has_leader, side, subject), "a leader")

    def catch_up(self, stream: str) -> None:
        """Wait until all replicas have what is stored."""
        for side in self.sides:
            wait_for(partial(all_current, side, stream), "replicas that are current")

    def close(self) -> None:
        """Hang up."""
        for side in self.sides:
            side.close()

    def clear(self) -> None:
        """Both as they were before the case."""
        for side in self.sides:
            side.clear(self._kept)


def block_of(headers: Headers) -> bytes:
    """Headers as they are sent; nothing if there are none."""
    block = "".join(f"{key}: {value}\r\n" for key, value in headers)
    return f"NATS/1.0\r\n{block}\r\n".encode() if block else b""


def has_leader(side: Side, subject: str) -> bool:
    """Whether a stream or a consumer has a leader, or is not there; `subject` asks for its info."""
    found = json.loads(side.ask(subject, b"") or b"{}")
    return "error" in found or bool(found.get("cluster", {}).get("leader"))


def all_current(side: Side, stream: str) -> bool:
    """Whether all replicas of a stream have what it has."""
    found = json.loads(side.ask(f"$JS.API.STREAM.INFO.{stream}", b"") or b"{}")
    others = found.get("cluster", {}).get("replicas", [])
    return all(one["current"] and not one.get("lag") for one in others)


def lines_of(headers: bytes) -> list[str]:
    """A block of headers without what changes."""
    lines = headers.rstrip(b"\r\n").split(b"\r\n")
    found = [line.decode("utf-8", "replace") for line in lines if not line.startswith(TIMES)]
    # Whose ids they are, and below which prefix a request was, is told by each in its own way.
    found = [PIN + "." * (len(line) > len(PIN)) if line.startswith(PIN) else line for line in found]
    found = [line.replace("$JS.D.API.", "$JS.API.") for line in found]
    found = [
        f"{SUBJECT}{reply_of(line.removeprefix(SUBJECT).encode())}"
        if line.startswith(SUBJECT)
        else line
        for line in found
    ]
    # Who asks for none, and gets one, has minus one left there: docs/differences.md.
    return [line.replace("-Messages: -1", "-Messages: 0") for line in found]


def reply_of(subject: bytes) -> list[str]:
    """Where an answer is expected, without times and what is drawn by chance."""
    if not subject:
        return []
    tokens = subject.decode().split(".")
    if tokens[:2] == ["$JS", "FC"]:
        tokens = tokens[:-1]
    return [".".join("." if len(one) == MOMENT_DIGITS else one for one in tokens)]


def plain(answer: bytes) -> Any:
    """The document without volatile fields; text if it is none."""
    try:
        return without(json.loads(answer))
    except ValueError:
        return answer.decode("utf-8", "replace")


def ordered(values: list[Any]) -> list[Any]:
    """In their order, but for alternates of a stream, which have none within one cluster."""
    alike = all([isinstance(one, dict) and one.keys() in ALTERNATE for one in values])
    return sorted(values, key=json.dumps) if alike else values


def _group(value: dict[str, Any]) -> list[Any]:
    """Who leads, and where replicas are, is nobody's to say beforehand; nor how far a move is."""
    if "desired" in value:
        return [value["name"], MOVING, MOVING]
    known = sorted(value.keys() - VOLATILE - {"leader"})
    return [value["name"], known, len(value.get("replicas", ()))]


def _unused(value: dict[str, Any]) -> set[str]:
    """Fields that tell nothing, and are not the same here: docs/differences.md."""
    unused = {"first_seq"} if value.get("last_seq") == 0 else set[str]()  # without a message
    if value.get("deleted") == [0]:  # of a stream that is empty
        unused |= {"deleted", "num_deleted"}
    delivered = value.get("delivered")
    if isinstance(delivered, dict) and not delivered["consumer_seq"]:  # of a consumer in memory
        unused.add("delivered")
    if value.get("mirror"):
        unused.add("duplicate_window")
    return unused


def without(value: Any) -> Any:
    """A document without volatile fields."""
    if isinstance(value, dict):
        if any(value.keys() >= one for one in GROUPS):
            return _group(value)
        if "sources" in value.get("config", ()) or "mirror" in value.get("config", ()):
            value = {**value, **dict.fromkeys(COPYING)}
        if "limits" in value and "api" in value:
            value = {**value, **dict.fromkeys(("api", "consumers", "storage", "memory"))}
        left = value.keys() - VOLATILE - _unused(value)
        return {key: without(one) for key, one in value.items() if key in left}
    if isinstance(value, str) and value.startswith("$JS.SNAPSHOT."):
        return value.rpartition(".")[0]
    if isinstance(value, str) and value.startswith(HEADERS):
        return IDENTITY.sub(rb"\1.", b64decode(value)).decode("utf-8", "replace")
    if isinstance(value, list):
        found = [without(one) for one in ordered(value)]
        for one in found:
            if isinstance(one, dict) and "state" in one:
                one.pop("domain", None)  # Servers alone tell it, clusters do not.
        return found
    return value


def differences(real: Any, ours: Any, where: str = "") -> Iterator[str]:
    """A line for each field that is not the same."""
    if isinstance(real, dict) and isinstance(ours, dict):
        for key in sorted({*real, *ours}):
            yield from differences(real.get(key, ...), ours.get(key, ...), f"{where}.{key}")
    elif isinstance(real, list) and isinstance(ours, list) and len(real) == len(ours):
        for at, (one, other) in enumerate(zip(real, ours, strict=True)):
            yield from differences(one, other, f"{where}[{at}]")
    elif MOVING not in (real, ours) and (real != ours or type(real) is not type(ours)):
        yield f"{where}: {real!r:.300} | {ours!r:.300}"


@contextmanager
def running() -> Iterator[Twins]:
    """One server of each kind, for as long as the block runs."""
    with RealServer(config=CONFIG, name="one") as real, Broker(config=CONFIG, name="one") as ours:
        yield from paired(real.url, ours.url, alone=True)


@contextmanager
def running_clusters() -> Iterator[Twins]:
    """Three of each kind."""
    with Cluster(config=TAGGED, server=RealServer) as real, Cluster(config=TAGGED) as ours:
        yield from paired(real.urls[0], ours.urls[0], alone=False)


def paired(real: str, ours: str, *, alone: bool) -> Iterator[Twins]:
    """Both, as long as they are used."""
    twins = Twins(real, ours, alone=alone)
    try:
        yield twins
    finally:
        twins.close()
