"""`stream backup` and `restore`: the old words for `backup stream` and `backup restore stream`."""

from pathlib import Path

from jsctl.commands.toolkit.assets.backups import (
    back_up,
    restore,
    warn_of_old_words,
)
from jsctl.commands.toolkit.assets.picking import pick_stream
from jsctl.commands.toolkit.grammar.spec import Kind
from jsctl.commands.toolkit.grammar.values import must_be_there
from jsctl.commands.toolkit.invocation.call import Call


async def backup(call: Call) -> None:
    """Copy a stream with its data into a directory."""
    warn_of_old_words(call, "stream backup", "backup stream")
    directory = Path(call.text("target")).expanduser()
    async with call.manager() as manager:
        name = await pick_stream(call, manager)
        done = await back_up(call, manager, name, directory)
    if call.output.asked:
        call.output.json(done)


async def restore_stream(call: Call) -> None:
    """A stream from its directory."""
    warn_of_old_words(call, "stream restore", "backup restore stream")
    must_be_there(call.text("file"), Kind.FOLDER)
    directory = Path(call.text("file")).expanduser()
    async with call.manager() as manager:
        restored = await restore(call, manager, directory)
    if call.output.asked:
        call.output.json(restored)
