"""`jsctl auth nuid`: the table of its commands."""

from jsctl.commands.toolkit.grammar.spec import Command, Group

GROUP = Group(
    "nuid",
    "Create NUIDs",
    (Command("gen", "Generates NUIDs", "auth.nuid.run:gen"),),
)
