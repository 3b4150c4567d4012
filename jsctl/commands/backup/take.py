"""`backup stream` and `account`."""

from jsctl.commands.toolkit.assets.backups import back_up, back_up_account, backup_target
from jsctl.commands.toolkit.assets.picking import check_name
from jsctl.commands.toolkit.invocation.call import Call


async def stream(call: Call) -> None:
    """One stream."""
    target = backup_target(call)
    async with call.manager() as manager:
        name = check_name(call.text("stream"), "stream")
        done = await back_up(call, manager, name, target)
    if call.output.asked:
        call.output.json(done)


async def account(call: Call) -> None:
    """All streams, each into a directory of its name."""
    await back_up_account(call)
