"""`jsctl context`: the table of its commands."""

from jsctl.commands.toolkit.grammar.spec import FORCE, JSON, Argument, Command, Group, Kind, Option

_NAME = Argument("name", "The context name to act on", required=True)
_OPTIONAL_NAME = Argument("name", "The context name to act on")
_CONNECT = Option(
    "connect", ("Attempts to connect to NATS using the context while validating"), Kind.FLAG
)
_CHANGE = (
    Option("description", "Set a friendly description for this context"),
    Option("select", "Select the saved context as the default one", Kind.FLAG),
    Option("embed", "Embeds credential content in the body of the context", Kind.FLAG),
)

GROUP = Group(
    "context",
    "Manage nats configuration contexts",
    (
        Command(
            "add",
            "Update or create a context",
            "context.change:add",
            (_NAME,),
            _CHANGE,
            aliases=("create", "save"),
            details=(
                "When using --creds, --nkey, --jwt and --seed the following formats are supported",
                "  - /some/path                  - direct path to a file",
                "  - file://path                 - alternative form for a path",
                "  - op://vault/item/field       - fetch via the 1Password CLI ('op read')",
                "  - nsc://Operator/Account/User - credentials from the store of nsc and nats",
                "  - env://NAME                  - read from environment variable NAME",
                "File paths can also be embedded into the context JSON using --embed",
            ),
            examples=(
                "jsctl context add prod --server nats://n1:4222 --creds prod.creds --select",
                "jsctl context save prod --description 'The big one'",
            ),
        ),
        Command(
            "copy",
            "Copies an existing context",
            "context.change:copy",
            (
                Argument("source", "The name of the context to copy from", required=True),
                Argument("name", "The name of the context to create", required=True),
            ),
            _CHANGE,
            aliases=("cp",),
        ),
        Command(
            "edit",
            "Edit a context in your EDITOR",
            "context.edit:edit",
            (_NAME,),
            aliases=("vi",),
        ),
        Command(
            "ls",
            "List known contexts",
            "context.show:ls",
            options=(
                JSON,
                Option("names", "List just the names of known contexts", Kind.FLAG),
                Option("completion", "Names with descriptions", Kind.FLAG, hidden=True),
            ),
            aliases=("list", "l"),
            examples=("jsctl context ls", "jsctl context ls --names"),
        ),
        Command(
            "rm",
            "Remove a context",
            "context.change:remove",
            (_NAME,),
            (FORCE,),
            aliases=("remove",),
        ),
        Command(
            "select",
            "Select the default context",
            "context.change:select",
            (_OPTIONAL_NAME,),
            aliases=("switch", "set"),
        ),
        Command(
            "unselect",
            "Ensures that no context is the default context",
            "context.change:unselect",
        ),
        Command(
            "info",
            "Display information on the current or named context",
            "context.show:info",
            (_OPTIONAL_NAME,),
            (JSON, _CONNECT),
            aliases=("show", "v", "view"),
            examples=("jsctl context info", "jsctl context info prod --connect"),
        ),
        Command(
            "validate",
            "Validate one or all contexts",
            "context.show:validate",
            (_OPTIONAL_NAME,),
            (_CONNECT,),
        ),
        Command(
            "previous",
            "Switch to the previous context",
            "context.change:previous",
            aliases=("-", "prev"),
        ),
    ),
)
