"""The way of a message, as servers tell it, or whoever else can publish to the inbox."""

import json
from collections.abc import Awaitable, Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from jsctl.client.tracing import WAY_LENGTH_MAX, Passage, trace
from jsctl.render.reports.trace import passage_document, passage_lines, summary_lines


def told(hop: str, *hops: str) -> bytes:
    """What a server tells that got a message by a hop, and sent it on."""
    came = {"type": "in", "kind": 1 if hop else 0, "name": hop or "client", "ts": ""}
    left = [{"type": "eg", "kind": 1, "name": one, "hop": one} for one in hops]
    header = {"Nats-Trace-Hop": [hop]} if hop else {}
    whole = {"server": {"id": f"S{hop}", "name": f"s{hop}"}, "request": {"header": header}}
    return json.dumps({**whole, "hops": len(hops), "events": [came, *left]}).encode()


class Fake:
    """A client to which all is told at once."""

    def __init__(self, *answers: bytes) -> None:
        self.answers = answers
        self.heard: Callable[[Any], Awaitable[None]]

    def new_inbox(self) -> str:
        return "_INBOX.a"

    async def subscribe(self, subject: str, cb: Callable[[Any], Awaitable[None]]) -> "Fake":
        self.heard = cb
        return self

    async def unsubscribe(self) -> None:
        """Nothing is left."""

    async def flush(self) -> None:
        """It is there."""

    async def publish(self, subject: str, payload: bytes, headers: object) -> None:
        for answer in self.answers:
            await self.heard(SimpleNamespace(data=answer))


async def way(*answers: bytes, timeout_s: float = 30.0) -> Passage:
    client: Any = Fake(*answers)
    return await trace(client, "a", b"", {}, deliver=False, timeout_s=timeout_s)


def names(passage: Passage) -> Iterator[str]:
    yield str(passage.server.get("name"))
    for link in passage.links.values():
        yield from names(link)


async def test_links_lead_to_servers() -> None:
    found = await way(told("1", "1.1"), b"x", b'{"events": 5}', told("1.1"), told("", "1"))
    assert list(names(found)) == ["s", "s1", "s1.1"]


@pytest.mark.parametrize(
    "answers",
    [(told("1", "1"),), (told("1", "2"), told("2", "1")), (told("1", "2", "2"), told("2"))],
)
async def test_ways_that_lead_back_end(answers: tuple[bytes, ...]) -> None:
    """There is no such way between servers; it was walked for ever."""
    found = await way(*answers, told("", "1"))
    assert list(names(found)) == ["s", *(f"s{number + 1}" for number in range(len(answers)))]


async def test_a_way_without_end_is_cut_off() -> None:
    """It was too long for the interpreter."""
    chain = [told(str(number), str(number + 1)) for number in range(1, 3000)]
    found = await way(*chain, told("", "1"), timeout_s=0.1)
    assert len(list(names(found))) == WAY_LENGTH_MAX + 1
    assert len(list(passage_lines(found, stamped=True))) > WAY_LENGTH_MAX
    assert list(summary_lines(found)) and passage_document(found)
