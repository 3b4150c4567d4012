"""`jsctl auth account imports`: the table of its commands."""

from jsctl.commands.auth.flags import ACCOUNT, OPERATOR, REMOVE_FORCE
from jsctl.commands.toolkit.grammar.spec import JSON, Argument, Command, Group, Kind, Option

_LOCAL = Option("local", "The local Subject to use for the import")
_SHARE = Option("share", "Shares connection information with the exporter", Kind.FLAG)
_TRACE = Option("traceable", "Enable tracing messages across Stream imports", Kind.FLAG)

GROUP = Group(
    "imports",
    "Manage account Imports",
    (
        Command(
            "add",
            "Adds an Import",
            "auth.account.imports.run:add",
            (
                Argument("name", "A unique name for the import", required=True),
                Argument("subject", "The Subject to import", required=True),
                Argument("account", "Account to import into"),
            ),
            (
                Option("source", "The account public key to import from"),
                _LOCAL,
                _SHARE,
                _TRACE,
                Option(
                    "service", "Sets the import to be a Service rather than a Stream", Kind.FLAG
                ),
                OPERATOR,
            ),
            aliases=("new", "a", "n"),
            examples=("jsctl auth account imports add orders 'orders.>' BILLING --source APP",),
        ),
        Command(
            "info",
            "Show information for an Import",
            "auth.account.imports.run:info",
            (Argument("subject", "Export to view by subject"), ACCOUNT),
            (OPERATOR, JSON),
            aliases=("i", "show", "view"),
        ),
        Command(
            "edit",
            "Edits an Import",
            "auth.account.imports.run:edit",
            (Argument("subject", "The Local import Subject to edit", required=True), ACCOUNT),
            (_LOCAL, _SHARE, _TRACE, OPERATOR),
            aliases=("update",),
        ),
        Command(
            "ls",
            "List Imports",
            "auth.account.imports.run:ls",
            (ACCOUNT, Argument("operator", "Operator to act on")),
            aliases=("list",),
        ),
        Command(
            "rm",
            "Removes an Import",
            "auth.account.imports.run:remove",
            (Argument("subject", "Import to remove by local subject", required=True), ACCOUNT),
            (OPERATOR, REMOVE_FORCE),
        ),
        Command(
            "kv",
            "Imports a KV bucket",
            "auth.account.imports.run:bucket",
            (
                Argument("bucket", "The bucket to export", required=True),
                Argument("prefix", "The prefix to mount the bucket on", required=True),
                Argument("source", "The account public key to import from", required=True),
                ACCOUNT,
            ),
            (OPERATOR,),
            hidden=True,
        ),
    ),
    aliases=("i", "imp", "import"),
)
