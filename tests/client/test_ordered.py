"""Feeds of streams: what is there, and what was there and is gone."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import pytest

from jsctl.api.consumer import ConsumerConfig, ConsumerInfo
from jsctl.api.errors import ApiError
from jsctl.api.words import DeliverPolicy
from jsctl.client import ordered
from jsctl.client.headers import Headers
from jsctl.client.ordered import Feed
from jsctl.errors import Unreachable

HEARTBEAT = "NATS/1.0 100 Idle Heartbeat\r\nNats-Last-Consumer: {}\r\n{}\r\n"
STALLED = "Nats-Consumer-Stalled: $JS.FC.1\r\n"


@dataclass
class Message:
    """As the client hands it over."""

    reply: str = ""
    headers: Headers | None = None
    subject: str = "s"
    data: bytes = b""


def heartbeat(last: int, more: str = "") -> Message:
    block = HEARTBEAT.format(last, more)
    lines = (line.split(": ") for line in block.split("\r\n")[1:] if line)
    return Message(headers=Headers(dict(lines), block.encode()))


def stored(seq: int, pending: int) -> Message:
    return Message(f"$JS.ACK.S.C.1.{seq}.{seq}.0.{pending}")


@dataclass
class Server:
    """A client and a manager: tells of so many messages, and sends some of them."""

    pending: int
    sends: list[Message]
    refusals: list[Exception] = field(default_factory=list)
    """Of all but the first consumer."""
    published: list[str] = field(default_factory=list)
    made: list[ConsumerConfig] = field(default_factory=list)

    @property
    def client(self) -> "Server":
        return self

    def new_inbox(self) -> str:
        return "inbox"

    async def subscribe(
        self, _inbox: str, *, cb: Callable[[Message], Awaitable[None]], **_limits: int
    ) -> "Server":
        for message in self.sends:
            await cb(message)
        return self

    async def unsubscribe(self) -> None:
        """Nothing comes any more."""

    async def publish(self, subject: str) -> None:
        self.published.append(subject)

    async def delete_consumer(self, _stream: str, _name: str) -> None:
        """It is gone."""

    async def create_consumer(
        self, _stream: str, config: ConsumerConfig, *, action: str
    ) -> ConsumerInfo:
        del action
        self.made.append(config)
        if len(self.made) > 1 and self.refusals:
            raise self.refusals.pop(0)
        return ConsumerInfo(name="C", num_pending=self.pending)


async def present(server: Server) -> list[int]:
    feed = Feed(server, "S", ConsumerConfig())  # type: ignore[arg-type] # what it needs of one
    await feed.start()
    return [place.stream_seq async for _, place in feed.present()]


async def test_what_goes_away_meanwhile_is_not_waited_for() -> None:
    """A message was told of, and removed before it was delivered."""
    assert await present(Server(2, [stored(1, 1), heartbeat(1)])) == [1]
    assert await present(Server(1, [heartbeat(0)])) == []
    assert await present(Server(3, [stored(1, 0)])) == [1]


async def test_who_is_stalled_still_has_something_to_say() -> None:
    server = Server(2, [stored(1, 1), heartbeat(1, STALLED), stored(2, 0)])
    assert await present(server) == [1, 2]
    assert server.published == ["$JS.FC.1"]


async def test_who_waits_for_ever_outlives_an_absence(monkeypatch: pytest.MonkeyPatch) -> None:
    """The servers go away while a gap is made good, and come back one by one."""
    monkeypatch.setattr(ordered, "AGAIN_S", 0.0)
    away = [Unreachable("nats: timeout"), ApiError(503, 10008, "unavailable")]
    server = Server(1, [stored(1, 0), stored(3, 0)], refusals=away)
    feed = Feed(server, "S", ConsumerConfig())  # type: ignore[arg-type] # what it needs of one
    await feed.start()
    assert (await feed.next())[1].stream_seq == 1
    server.sends = [Message("$JS.ACK.S.C.1.2.1.0.0")]
    assert (await feed.next())[1].stream_seq == 2
    assert (server.refusals, len(server.made)) == ([], 4)


async def test_who_only_looks_is_told_of_an_absence() -> None:
    server = Server(2, [stored(1, 1), stored(3, 0)], refusals=[Unreachable("nats: timeout")])
    with pytest.raises(Unreachable):
        await present(server)


async def test_who_waits_for_what_is_new_misses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is published while the servers are away is new for the next consumer, too."""
    monkeypatch.setattr(ordered, "HEARTBEAT_NS", 0)
    server = Server(0, [])
    new = ConsumerConfig(deliver_policy=DeliverPolicy.NEW)
    feed = Feed(server, "S", new)  # type: ignore[arg-type] # what it needs of one
    await feed.start()
    server.sends = [stored(1, 0)]
    assert (await feed.next())[1].stream_seq == 1
    assert [one.opt_start_seq for one in server.made] == [0, 1]
