"""`jsctl cheat`: the declaration."""

from jsctl.commands.toolkit.grammar.spec import Argument, Command, Kind, Option

COMMAND = Command(
    "cheat",
    "Shows examples of all commands",
    "cheat.run:cheat",
    (Argument("label", "The command whose examples are shown"),),
    (
        Option("list", "List what there are examples of", Kind.FLAG),
        Option("save", "Writes the examples into a directory, a file each", metavar="DIRECTORY"),
    ),
    examples=("jsctl cheat stream", "jsctl cheat --save ~/.config/cheat/cheatsheets/jsctl"),
    details=("The files are those of the `cheat` program, https://github.com/cheat/cheat.",),
)
