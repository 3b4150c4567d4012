"""`jsctl auth account exports`: the table of its commands."""

from jsctl.commands.auth.flags import ACCOUNT, OPERATOR, REMOVE_FORCE
from jsctl.commands.toolkit.grammar.spec import JSON, Argument, Command, Group, Kind, Option

_DESCRIPTION = Option("description", "Friendly description")
_URL = Option("url", "Sets a URL for further information")
_POSITION = Option("token-position", "The position to use for the Account name", Kind.UNSIGNED)

GROUP = Group(
    "exports",
    "Manage account Exports",
    (
        Command(
            "add",
            "Adds an Export",
            "auth.account.exports.run:add",
            (
                Argument("name", "A unique name for the Export", required=True),
                Argument("subject", "The Subject to export", required=True),
                ACCOUNT,
            ),
            (
                OPERATOR,
                _DESCRIPTION,
                _URL,
                _POSITION,
                Option("advertise", "Advertise the Export", Kind.FLAG),
                Option(
                    "service", "Sets the Export to be a Service rather than a Stream", Kind.FLAG
                ),
            ),
            aliases=("new", "a", "n"),
            examples=("jsctl auth account exports add orders 'orders.>' APP",),
        ),
        Command(
            "info",
            "Show information for an Export",
            "auth.account.exports.run:info",
            (Argument("subject", "Export to view by subject"), ACCOUNT),
            (OPERATOR, JSON),
            aliases=("i", "show", "view"),
        ),
        Command(
            "edit",
            "Edits an Export",
            "auth.account.exports.run:edit",
            (Argument("subject", "The Export Subject to edit", required=True), ACCOUNT),
            (
                OPERATOR,
                _DESCRIPTION,
                _URL,
                _POSITION,
                Option("advertise", "Advertise the Export", Kind.SWITCH),
            ),
            aliases=("update",),
        ),
        Command(
            "ls",
            "List Exports",
            "auth.account.exports.run:ls",
            (ACCOUNT,),
            (OPERATOR,),
            aliases=("list",),
        ),
        Command(
            "rm",
            "Removes an Export",
            "auth.account.exports.run:remove",
            (Argument("subject", "Export to remove by subject", required=True), ACCOUNT),
            (OPERATOR, REMOVE_FORCE),
        ),
        Command(
            "kv",
            "Exports a KV bucket",
            "auth.account.exports.run:bucket",
            (Argument("bucket", "The bucket to export", required=True), ACCOUNT),
            (OPERATOR,),
            hidden=True,
        ),
    ),
    aliases=("e", "exp", "export"),
)
