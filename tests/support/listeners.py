"""Clients that note what they hear, and waiting until all that was said has been."""

from contextlib import AsyncExitStack

import nats
from nats.aio.client import Client
from nats.aio.msg import Msg

from jsctl.testing import Broker
from tests.support.waiting import eventually

WAIT_S = 30
ROUND_TRIPS = 30
"""Servers take turns in a few of them, however busy the machine is."""


class Heard(list[Msg]):
    """What a subscription has heard."""

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
    heard = Heard()
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
    client = await nats.connect(
        server.url,
        connect_timeout=WAIT_S,
        allow_reconnect=False,
        **login,
        **more,
    )
    stack.push_async_callback(client.close)
    return client


async def known(publisher: Client, subject: str, *listeners: Heard) -> None:
    """Publish until all listeners have heard something, wait for the last of it, and forget it."""

    async def arrives() -> bool:
        await publisher.publish(subject, b"early")
        await settle(publisher)
        return all(listeners)

    await eventually(arrives, f"interest in {subject} is known", WAIT_S)
    before: list[int] = []

    async def quiet() -> bool:
        nonlocal before
        await settle(publisher)
        last, before = before, [len(one) for one in listeners]
        return last == before

    await eventually(quiet, "the last of the early messages", WAIT_S)
    for one in listeners:
        one.clear()
