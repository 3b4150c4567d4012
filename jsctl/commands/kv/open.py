"""Which bucket a command is about."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from jsctl.client.buckets.kv import PREFIX, Bucket, open_bucket
from jsctl.client.manager import Manager
from jsctl.commands.toolkit.assets.buckets import pick_bucket
from jsctl.commands.toolkit.invocation.call import Call


@asynccontextmanager
async def opened(call: Call) -> AsyncIterator[tuple[Manager, Bucket]]:
    """A connection and the bucket argument on it, or one picked from a list."""
    async with call.manager("") as manager:
        name = call.text("bucket") or await pick_bucket(call, manager, PREFIX, "KV")
        yield manager, await open_bucket(manager, name)
