"""Clients that note what they hear, and waiting until all that was said has been."""

from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress

import nats
from nats.aio.client import Client
from nats.aio.msg import Msg

from jsctl.testing import Broker, RealServer
from tests.support.waiting import eventually

WAIT_S = 30
ROUND_TRIPS = 30
"""Servers take turns in a few of them, however busy the machine is."""
STARVED_MAX = 2
"""A nats-server that had no processor for two seconds finds first that the time for a login is
over, and closes the connection of who spoke meanwhile: so often that is not the end of a test."""
LAST_WORD = b"the last of the early ones"


class Heard(list[Msg]):
    """What a subscription has heard; `queue` is its group, if it has one."""

    def __init__(self, queue: str = "") -> None:
        super().__init__()
        self.queue = queue

    async def note(self, message: Msg) -> None:
        """One more."""
        self.append(message)

    async def reach(self, wanted: int) -> "Heard":
        """Wait for so many."""

        async def there() -> bool:
            return len(self) >= wanted

        await eventually(there, f"{wanted} messages, not {len(self)}", WAIT_S)
        return self


async def listen(client: Client, subject: str, queue: str = "") -> Heard:
    """Note what comes."""
    heard = Heard(queue)
    await client.subscribe(subject, queue=queue, cb=heard.note)
    await client.flush()
    return heard


async def settle(*clients: Client) -> None:
    """What was published has gone wherever it goes within a few round trips."""
    for _ in range(ROUND_TRIPS):
        for client in clients:
            await client.flush()


async def connected(
    stack: AsyncExitStack, server: Broker, user: str = "", password: str = "p", **more: object
) -> Client:
    """A client of a server, until the stack ends."""
    login = {"user": user, "password": password} if user else {}

    async def begin() -> Client:
        client = await nats.connect(
            server.url,
            connect_timeout=WAIT_S,
            allow_reconnect=False,
            **login,
            **more,
        )
        stack.push_async_callback(client.close)
        return client

    for _ in range(STARVED_MAX if isinstance(server, RealServer) else 0):
        with suppress(ConnectionResetError, nats.errors.Error):
            return await begin()
    return await begin()


async def known(publisher: Client, subject: str, *listeners: Heard) -> None:
    """Publish until all listeners have heard something, wait for the last of it, and forget it."""

    async def arrives() -> bool:
        await publisher.publish(subject, b"early")
        await settle(publisher)
        return all(listeners)

    await eventually(arrives, f"interest in {subject} is known", WAIT_S)
    await publisher.publish(subject, LAST_WORD)
    # Each hears them in the order in which they were published, and a group shares them.
    alone = [one for one in listeners if not one.queue]

    async def over() -> bool:
        return all(one[-1].data == LAST_WORD for one in alone)

    await eventually(over, "the last of the early messages", WAIT_S)
    if len(alone) < len(listeners):
        await _quiet(publisher, listeners)
    for one in listeners:
        one.clear()


async def _quiet(publisher: Client, listeners: Sequence[Heard]) -> None:
    """Wait until nobody hears any more; which member of a group hears the last word is open."""
    before: list[int] = []

    async def fact() -> bool:
        nonlocal before
        await settle(publisher)
        last, before = before, [len(one) for one in listeners]
        return last == before

    await eventually(fact, "the last of the early messages", WAIT_S)
