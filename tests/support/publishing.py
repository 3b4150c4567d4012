"""Messages for streams that were just made."""

import asyncio
from contextlib import suppress

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import NoRespondersError

WAIT_S = 30.0


async def publish_to_new(client: Client, subject: str) -> None:
    """Until it is stored: a server may not know yet where a new stream listens."""
    await answered_by_new(client, subject, b"m")


async def answered_by_new(
    client: Client, subject: str, payload: bytes, headers: dict[str, str] | None = None
) -> Msg:
    """What is answered once it is known where the stream listens."""
    async with asyncio.timeout(WAIT_S):
        while True:
            with suppress(NoRespondersError):
                return await client.request(subject, payload, timeout=WAIT_S, headers=headers)
