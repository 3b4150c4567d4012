"""`account backup` and `restore`: old words for `backup account` and `backup restore account`."""

from jsctl.commands.toolkit.assets.backups import (
    back_up_account,
    restore_account,
    warn_of_old_words,
)
from jsctl.commands.toolkit.grammar.spec import Kind
from jsctl.commands.toolkit.grammar.values import must_be_there
from jsctl.commands.toolkit.invocation.call import Call


async def backup(call: Call) -> None:
    """All streams, each into a directory of its name."""
    warn_of_old_words(call, "account backup", "backup account")
    await back_up_account(call)


async def restore(call: Call) -> None:
    """Every stream of a directory."""
    warn_of_old_words(call, "account restore", "backup restore account")
    must_be_there(call.text("directory"), Kind.FOLDER)
    await restore_account(call)
