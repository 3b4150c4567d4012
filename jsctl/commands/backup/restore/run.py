"""`backup restore stream` and `account`."""

from jsctl.commands.toolkit.assets.backups import directory_of, restore, restore_account
from jsctl.commands.toolkit.invocation.call import Call


async def stream(call: Call) -> None:
    """A stream from its directory."""
    directory = directory_of(call, "file")
    async with call.manager() as manager:
        await restore(call, manager, directory)


async def account(call: Call) -> None:
    """Every stream of a directory."""
    await restore_account(call)
