"""Ask a consumer for messages on the wire and see everything that comes, statuses too."""

import json
from dataclasses import dataclass

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import TimeoutError as Late

SECOND_NS = 1_000_000_000
WAIT_S = 30.0


def status_of(message: Msg) -> str:
    """The code of a status message; empty for a message of the stream."""
    return (message.headers or {}).get("Status", "")


async def settled(client: Client) -> None:
    """Wait until the server has everything that a client sent.

    nats-py writes the PING of a flush before what it still holds back, so the first answer says
    nothing about that; when the second is asked for, it has gone out.
    """
    await client.flush()
    await client.flush()


@dataclass(slots=True)
class Puller:
    """An inbox that takes what pull requests bring."""

    client: Client
    stream: str
    consumer: str
    inbox: str
    subscription: Subscription

    @classmethod
    async def open(cls, client: Client, stream: str, consumer: str) -> "Puller":
        """Subscribe to a new inbox."""
        inbox = client.new_inbox()
        return cls(client, stream, consumer, inbox, await client.subscribe(inbox))

    async def ask(self, **request: object) -> None:
        """Send one pull request; the keys are those of the API, times in nanoseconds."""
        subject = f"$JS.API.CONSUMER.MSG.NEXT.{self.stream}.{self.consumer}"
        await self.client.publish(subject, json.dumps(request).encode(), reply=self.inbox)

    async def next(self, timeout_s: float = WAIT_S) -> Msg:
        """The next message or status."""
        return await self.subscription.next_msg(timeout=timeout_s)

    async def take(self, count: int) -> list[Msg]:
        """So many messages or statuses."""
        return [await self.next() for _ in range(count)]

    async def run(self, **request: object) -> tuple[list[bytes], str]:
        """Ask, then all payloads up to the first status that ends the request, and the status."""
        await self.ask(**request)
        payloads: list[bytes] = []
        while True:
            message = await self.next()
            status = status_of(message)
            if status == "100":
                continue
            if status:
                description = (message.headers or {}).get("Description", "")
                return payloads, f"{status} {description}".strip()
            payloads.append(message.data)

    async def nothing(self, timeout_s: float) -> bool:
        """Whether the inbox stays empty for a time."""
        try:
            await self.next(timeout_s)
        except Late:
            return True
        return False
