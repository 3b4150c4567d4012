"""`jsctl server config`: the table of its commands."""

from jsctl.commands.toolkit.grammar.spec import Argument, Command, Group, Kind, Option

GROUP = Group(
    "config",
    "Interact with server configuration",
    (
        Command(
            "reload",
            "Reloads the runtime configuration",
            "server.config.change:reload",
            (Argument("id", "The server ID to trigger a reload for", required=True),),
            (Option("force", "Force reload without prompting", Kind.SWITCH, short="f"),),
            examples=("jsctl server config reload NBK7... --force",),
        ),
    ),
)
