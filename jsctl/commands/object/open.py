"""Which bucket a command is about."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from jsctl.client.buckets.objects import PREFIX, Store, open_store
from jsctl.client.manager import Manager
from jsctl.commands.toolkit.assets.buckets import pick_bucket
from jsctl.commands.toolkit.invocation.call import Call


@asynccontextmanager
async def opened(call: Call) -> AsyncIterator[tuple[Manager, Store]]:
    """A connection and the bucket argument on it, or one picked from a list."""
    async with call.manager("") as manager:
        name = call.text("bucket") or await pick_bucket(call, manager, PREFIX, "Object")
        yield manager, await open_store(manager, name)
