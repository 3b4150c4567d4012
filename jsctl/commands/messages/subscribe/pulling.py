"""`subscribe --durable` of a pull consumer: messages are asked for again and again.

A request goes down with the server that has it, so heartbeats are asked for, too; what asking
again does not cure ends the command, and what may be over soon is not asked for in a hurry.
"""

import asyncio
from typing import TYPE_CHECKING

from jsctl.api.codec import dumps
from jsctl.api.consumer import ConsumerConfig
from jsctl.api.errors import ApiError
from jsctl.api.subjects import api_subject
from jsctl.api.times import SECOND_NS
from jsctl.client.headers import status_of
from jsctl.client.manager import Manager
from jsctl.client.requests import api_prefix
from jsctl.commands.messages.subscribe.show import Arrived
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import JsctlError, Unreachable

if TYPE_CHECKING:
    from nats.aio.msg import Msg

BATCH = 100
EXPIRES_NS = 30 * SECOND_NS
HEARTBEAT_NS = 5 * SECOND_NS
SILENCES_MAX = 2
"""After so many heartbeats that did not come a request is taken for lost."""
AGAIN_S = 1.0
HEARTBEAT, WRONG_REQUEST, OVER = "100", "400", ("404", "408")
NOT_AVAILABLE = frozenset({10008, 10118, 10119})
"""Errors of servers that are about to be there again."""


async def pull(
    call: Call, manager: Manager, stream: str, name: str, config: ConsumerConfig, arrived: Arrived
) -> None:
    """Hands over what comes, no more than will be shown.

    Raises JsctlError for a request that is refused, and ApiError for a consumer that is gone.
    """
    client, prefix = manager.client, api_prefix(call.settings)
    subject = api_subject("consumer_msg_next", stream, name, prefix=prefix).decode()
    replies: asyncio.Queue[Msg] = asyncio.Queue()
    inbox = client.new_inbox()
    await client.subscribe(inbox, cb=replies.put)
    expires = min(EXPIRES_NS, config.max_expires or EXPIRES_NS)
    heartbeat = min(HEARTBEAT_NS, expires // 2)
    patience_s = max(AGAIN_S, SILENCES_MAX * heartbeat / SECOND_NS)
    limit, got = call.integer("count"), 0
    while not limit or got < limit:
        batch = min(BATCH, config.max_batch or BATCH, limit - got if limit else BATCH)
        body = {"batch": batch, "expires": expires, "idle_heartbeat": heartbeat}
        await client.publish(subject, dumps(body), reply=inbox)
        for _ in range(batch):
            message = await _next(replies, patience_s)
            if message is None or not message.reply:
                await _heed(manager, stream, name, message)
                break
            got += 1
            await arrived.put((name, message))


async def _next(replies: "asyncio.Queue[Msg]", patience_s: float) -> "Msg | None":
    """A message, or the end of a request; None where nothing is said any more."""
    while True:
        try:
            async with asyncio.timeout(patience_s):
                found = await replies.get()
        except TimeoutError:
            return None
        if found.reply or status_of(found.headers) != HEARTBEAT:
            return found


async def _heed(manager: Manager, stream: str, name: str, end: "Msg | None") -> None:
    """Why a request ended; that it is over or lost says nothing."""
    status = status_of(end.headers) if end is not None else ""
    if end is None or status in OVER:
        return
    if status == WRONG_REQUEST:
        raise JsctlError(f"no message received: {(end.headers or {}).get('Description', status)}")
    await asyncio.sleep(AGAIN_S)
    try:
        await manager.consumer_info(stream, name)
    except Unreachable:
        return
    except ApiError as error:
        if error.err_code not in NOT_AVAILABLE:
            raise
