"""Publishers of fast batches, and what they are to hear: message by message, from every server."""

import json
from collections.abc import Sequence
from typing import Any

from nats.aio.client import Client
from nats.aio.subscription import Subscription

WAIT_S = 30.0
START, APPEND, COMMIT, END, PING = range(5)
Headers = dict[str, str]
Step = tuple[int, int, Headers, list[Any]]
"""(sequence, operation, headers, answers)"""
NONE: Headers = {}
WRONG = {"Nats-Expected-Last-Sequence": "100"}


def flow(seq: int, every: int) -> Any:
    """What is stored so far."""
    return {"type": "ack", "seq": seq, "msgs": every}


def gap(expected: int, seq: int) -> Any:
    """What is missing."""
    return {"type": "gap", "last_seq": expected, "seq": seq}


def wrong(seq: int, last: int) -> Any:
    """A message that is refused."""
    text = f"wrong last sequence: {last}"
    return {
        "type": "err",
        "seq": seq,
        "error": {"code": 400, "err_code": 10071, "description": text},
    }


def done(seq: int, count: int, **more: Any) -> Any:
    """The end of a batch."""
    return {"stream": "NAME", "seq": seq, **more, "batch": "b", "count": count}


def refused(code: int, text: str, status: int = 400) -> Any:
    """An error in place of the end."""
    error = {"code": status, "err_code": code, "description": text}
    return {"error": error, "stream": "NAME", "seq": 0}


class Batch:
    """A publisher's side of a batch."""

    def __init__(self, client: Client, subscription: Subscription, stream: str) -> None:
        self.client = client
        self.subscription = subscription
        self.inbox = subscription.subject[:-2]
        self.stream = stream
        self.name = "b"
        self.flow: int | str = 10
        self.gaps = "fail"

    async def send(self, seq: int | str, operation: int | str, headers: Headers = NONE) -> None:
        """One message."""
        reply = f"{self.inbox}.{self.name}.{self.flow}.{self.gaps}.{seq}.{operation}.$FI"
        payload = b"" if "Nats-Incr" in headers else b"x"
        await self.client.publish(f"{self.stream}.a", payload, reply, headers=headers or None)

    async def heard(self) -> Any:
        """The next answer."""
        message = await self.subscription.next_msg(WAIT_S)
        return json.loads(message.data.decode().replace(self.stream, "NAME"))

    async def play(self, steps: Sequence[Step]) -> None:
        """Messages one by one, each with its answers, and none besides."""
        for seq, operation, headers, answers in steps:
            await self.send(seq, operation, headers)
            found = [await self.heard() for _ in answers]
            assert found == answers, (seq, operation)
        await self.client.request(f"$JS.API.STREAM.INFO.{self.stream}", timeout=WAIT_S)
        await self.client.flush()
        assert self.subscription.pending_msgs == 0


async def begin(client: Client, stream: str) -> Batch:
    """A publisher that listens."""
    return Batch(client, await client.subscribe(f"{client.new_inbox()}.>"), stream)


SCRIPTS: dict[str, tuple[str, int, list[Step], int]] = {
    "one message": ("fail", 10, [(1, COMMIT, NONE, [done(1, 1)])], 1),
    "the last one is stored": (
        "fail",
        2,
        [
            (1, START, NONE, [flow(0, 2)]),
            (2, APPEND, NONE, [flow(2, 2)]),
            (3, APPEND, NONE, []),
            (4, APPEND, NONE, [flow(4, 2)]),
            (5, COMMIT, NONE, [done(5, 5)]),
            (6, APPEND, NONE, [refused(10208, "batch publish ID unknown")]),
        ],
        5,
    ),
    "the end is not stored": (
        "ok",
        10,
        [
            (1, START, NONE, [flow(0, 10)]),
            (2, APPEND, NONE, []),
            (3, END, NONE, [done(2, 2)]),
            (3, PING, NONE, [refused(10208, "batch publish ID unknown")]),
        ],
        2,
    ),
    "told of each": (
        "fail",
        1,
        [
            (1, START, NONE, [flow(0, 1), flow(1, 1)]),
            (2, APPEND, NONE, [flow(2, 1)]),
            (3, COMMIT, NONE, [done(3, 3)]),
        ],
        3,
    ),
    "a gap ends it": (
        "fail",
        10,
        [
            (1, START, NONE, [flow(0, 10)]),
            (3, APPEND, NONE, [gap(2, 3), done(1, 1)]),
            (4, APPEND, NONE, [refused(10208, "batch publish ID unknown")]),
        ],
        1,
    ),
    "a gap is taken": (
        "ok",
        10,
        [
            (1, START, NONE, [flow(0, 10)]),
            (3, APPEND, NONE, [gap(2, 3)]),
            (4, END, NONE, [done(2, 3)]),
        ],
        2,
    ),
    "a gap before the end": (
        "ok",
        10,
        [(1, START, NONE, [flow(0, 10)]), (9, END, NONE, [gap(2, 9), done(1, 8)])],
        1,
    ),
    "a wide gap is told of at once": (
        "ok",
        2,
        [
            (1, START, NONE, [flow(0, 2)]),
            (10, APPEND, NONE, [gap(2, 10), flow(10, 2)]),
            (
                18446744073709551614,
                APPEND,
                NONE,
                [gap(11, 18446744073709551614), flow(18446744073709551614, 2)],
            ),
            (
                18446744073709551615,
                COMMIT,
                NONE,
                [refused(10206, "batch publish pattern is invalid")],
            ),
        ],
        3,
    ),
    "back in the order": (
        "ok",
        10,
        [
            (1, START, NONE, [flow(0, 10)]),
            (5, APPEND, NONE, [gap(2, 5)]),
            (3, APPEND, NONE, [gap(6, 3), done(2, 5)]),
        ],
        2,
    ),
    "refused, and over": (
        "fail",
        10,
        [
            (1, START, NONE, [flow(0, 10)]),
            (2, APPEND, WRONG, [wrong(2, 1), done(1, 1)]),
        ],
        1,
    ),
    "refused, and on": (
        "ok",
        10,
        [
            (1, START, NONE, [flow(0, 10)]),
            (2, APPEND, WRONG, [wrong(2, 1)]),
            (3, END, NONE, [done(1, 2)]),
        ],
        1,
    ),
    "the first is refused": (
        "fail",
        10,
        [(1, START, WRONG, [flow(0, 10), refused(10071, "wrong last sequence: 0")])],
        0,
    ),
    "the first is refused, and on": (
        "ok",
        10,
        [
            (1, START, WRONG, [flow(0, 10), wrong(1, 0)]),
            (2, APPEND, NONE, []),
            (3, COMMIT, NONE, [done(2, 3)]),
        ],
        2,
    ),
    "the only one is refused": (
        "fail",
        10,
        [(1, COMMIT, WRONG, [refused(10071, "wrong last sequence: 0")])],
        0,
    ),
    "the last one is refused": (
        "fail",
        10,
        [
            (1, START, NONE, [flow(0, 10)]),
            (2, COMMIT, WRONG, [wrong(2, 1), done(1, 1)]),
        ],
        1,
    ),
    "the last one is refused behind a gap": (
        "ok",
        10,
        [
            (1, START, NONE, [flow(0, 10)]),
            (3, COMMIT, WRONG, [gap(2, 3), wrong(3, 1), done(1, 2)]),
        ],
        1,
    ),
    "pings": (
        "ok",
        2,
        [
            (1, START, NONE, [flow(0, 2)]),
            (1, PING, NONE, [flow(0, 2)]),
            (2, APPEND, NONE, [flow(2, 2)]),
            (2, PING, NONE, [flow(2, 2)]),
            (3, PING, NONE, [gap(3, 4), flow(2, 2)]),
            (4, APPEND, NONE, [flow(4, 2)]),
            (100, PING, NONE, [gap(5, 101), flow(100, 2)]),
            (101, END, NONE, [done(3, 100)]),
        ],
        3,
    ),
    "a ping finds a gap": (
        "fail",
        1,
        [
            (1, START, NONE, [flow(0, 1), flow(1, 1)]),
            (3, PING, NONE, [gap(2, 4), done(1, 1)]),
        ],
        1,
    ),
    "known messages": (
        "fail",
        3,
        [
            (1, START, {"Nats-Msg-Id": "i"}, [flow(0, 3)]),
            (2, APPEND, {"Nats-Msg-Id": "i"}, []),
            (3, APPEND, {"Nats-Msg-Id": "i"}, [flow(3, 3)]),
            (4, COMMIT, {"Nats-Msg-Id": "i"}, [done(1, 4)]),
            (1, COMMIT, {"Nats-Msg-Id": "i"}, [done(1, 1, duplicate=True)]),
            (1, START, {"Nats-Msg-Id": "i"}, [flow(0, 3)]),
            (2, END, NONE, [done(0, 1)]),
        ],
        1,
    ),
    "a level that nobody has": (
        "fail",
        1,
        [
            (1, START, NONE, [flow(0, 1), flow(1, 1)]),
            (
                2,
                APPEND,
                {"Nats-Required-Api-Level": "99"},
                [refused(10185, "JetStream minimum api level required", 412)],
            ),
            (3, COMMIT, NONE, [refused(10208, "batch publish ID unknown")]),
        ],
        1,
    ),
    "also part of another batch": (
        "fail",
        10,
        [(1, COMMIT, {"Nats-Batch-Id": "x", "Nats-Batch-Sequence": "7"}, [done(1, 1)])],
        1,
    ),
    "unknown": ("fail", 10, [(2, APPEND, NONE, [refused(10208, "batch publish ID unknown")])], 0),
    "a ping begins nothing": (
        "fail",
        10,
        [(1, PING, NONE, [refused(10208, "batch publish ID unknown")])],
        0,
    ),
}
