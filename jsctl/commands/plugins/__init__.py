"""`jsctl plugins`: the declaration."""

from jsctl.commands.toolkit.grammar.spec import Argument, Command, Group, Kind, Option

GROUP = Group(
    "plugins",
    "Manage plugins",
    (
        Command(
            "register",
            "Registers a new plugin",
            "plugins.register:register",
            (
                Argument("name", "The top level name to register the command as", required=True),
                Argument(
                    "command",
                    "The command the provides the plugins",
                    required=True,
                    kind=Kind.INPUT,
                ),
            ),
            (Option("force", "Overwrite existing plugins", Kind.FLAG),),
            examples=("jsctl plugins register shop ./shop-tools", "jsctl shop orders --region eu"),
            details=(
                "The program is asked for its commands with --fisk-introspect. They stand where "
                "`nats` looks for plugins, too: each tool has those of the other one.",
            ),
        ),
    ),
)
