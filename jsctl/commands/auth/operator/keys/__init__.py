"""`jsctl auth operator keys`: the table of its commands."""

from jsctl.commands.toolkit.grammar.spec import Argument, Command, Group, Kind, Option

_NAME = Argument("name", "Operator to act on")

GROUP = Group(
    "keys",
    "Manage Operator Signing Keys",
    (
        Command(
            "list",
            "List Signing Keys",
            "auth.operator.keys.run:list_keys",
            (_NAME,),
            aliases=("ls",),
        ),
        Command(
            "add",
            "Adds a new Signing Key",
            "auth.operator.keys.run:add",
            (_NAME,),
            aliases=("new", "create"),
        ),
        Command(
            "rm",
            "Removes a Signing Key",
            "auth.operator.keys.run:remove",
            (_NAME, Argument("key", "The public key to remove")),
            (Option("force", "Remove without prompting", Kind.FLAG, short="f"),),
            aliases=("delete",),
        ),
    ),
    aliases=("sk", "s"),
)
