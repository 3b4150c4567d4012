"""The examples that commands declare, as cheat sheets: what each is for, and its lines."""

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from jsctl.commands import REGISTRY
from jsctl.commands.toolkit.assets.picking import near_names
from jsctl.commands.toolkit.grammar.spec import Command, Group
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.commands.toolkit.invocation.files import SHARED_MODE, save
from jsctl.errors import NotFound
from jsctl.files import make_folder

_NAMES_OF_NATS = {"schemas": "schema"}


def cheat(call: Call) -> None:
    """Shows a sheet, lists them, or writes all of them."""
    sheets = {name: text for name, text in _sheets() if text}
    label = call.text("label")
    if call.text("save"):
        _save(call, sheets, Path(call.text("save")).expanduser())
    elif call.flag("list") or not label:
        names = "\n    ".join(sheets)
        call.output.print(f"Available Cheats:\n\n    {names}")
    elif (label := _NAMES_OF_NATS.get(label, label)) not in sheets:
        hints = near_names(label, list(sheets)) or ("see jsctl cheat --list",)
        raise NotFound(f'no cheats for "{label}"', hints=hints)
    else:
        call.output.print(sheets[label].rstrip())


def _sheets() -> Iterator[tuple[str, str]]:
    for row in REGISTRY:
        if row.attribute != "main" and not row.hidden:
            node = getattr(import_module(row.module), row.attribute)
            assert isinstance(node, Command | Group)
            yield row.name, "".join(_parts(node))


def _parts(node: Command | Group) -> Iterator[str]:
    if isinstance(node, Group):
        for one in node.commands:
            yield from _parts(one)
    elif node.examples and not node.hidden:
        first = node.help.partition("\n")[0]
        yield "\n".join((f"# {first}", *node.examples, "", ""))


def _save(call: Call, sheets: dict[str, str], folder: Path) -> None:
    make_folder(folder)
    for name, text in sheets.items():
        path = folder / name
        save(path, f"---\ntags: [ jsctl, {name} ]\n---\n{text}", mode=SHARED_MODE)
        call.output.print(f"Saved cheat to {path}")
