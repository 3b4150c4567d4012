"""`backup restore stream` and `account`."""

from pathlib import Path

from jsctl.commands.toolkit.assets.backups import restore, restore_account
from jsctl.commands.toolkit.invocation.call import Call


async def stream(call: Call) -> None:
    """A stream from its directory."""
    directory = Path(call.text("file")).expanduser()
    async with call.manager() as manager:
        restored = await restore(call, manager, directory)
    if call.output.asked:
        call.output.json(restored)


async def account(call: Call) -> None:
    """Every stream of a directory."""
    await restore_account(call)
