"""`account backup` and `restore`: old words for `backup account` and `backup restore account`."""

from jsctl.commands.toolkit.assets.backups import back_up_account, restore_account
from jsctl.commands.toolkit.invocation.call import Call

DEPRECATED = (
    'WARNING: "jsctl {old}" is deprecated and will be removed in a future release, '
    'use "jsctl {new}" instead\n'
)


async def backup(call: Call) -> None:
    """All streams, each into a directory of its name."""
    call.output.note(DEPRECATED.format(old="account backup", new="backup account"))
    await back_up_account(call)


async def restore(call: Call) -> None:
    """Every stream of a directory."""
    call.output.note(DEPRECATED.format(old="account restore", new="backup restore account"))
    await restore_account(call)
