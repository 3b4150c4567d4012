"""`jsctl auth operator`: the table of its commands."""

from jsctl.commands.auth.flags import tags_of
from jsctl.commands.auth.operator.keys import GROUP as KEYS
from jsctl.commands.toolkit.grammar.spec import JSON, Argument, Command, Group, Kind, Option

_SERVER = Option("account-server", "URL for the account server", metavar="URL")
_SERVICE = Option("service", "URLs for the Operator services", Kind.LIST, metavar="URL")
_NAME = Argument("name", "Operator to act on", required=True)

GROUP = Group(
    "operator",
    "Manage NATS Operators",
    (
        Command(
            "add",
            "Adds a new Operator",
            "auth.operator.change:add",
            (Argument("name", "Unique name for this Operator"),),
            (
                _SERVICE,
                _SERVER,
                Option(
                    "signing-key",
                    "Creates a signing key for this Operator",
                    Kind.SWITCH,
                    default="true",
                ),
                tags_of("Operator"),
            ),
            examples=(
                "jsctl auth operator add ACME",
                "jsctl auth operator add ACME --service nats://n1:4222 --no-signing-key",
            ),
        ),
        Command(
            "info",
            "Show Operator information",
            "auth.operator.show:info",
            (Argument("name", "Operator to view"),),
            (JSON,),
            aliases=("i", "show", "view"),
        ),
        Command(
            "list",
            "List Operators",
            "auth.operator.show:list_operators",
            options=(Option("names", "Show just the Operator names", Kind.FLAG),),
            aliases=("ls",),
        ),
        Command(
            "edit",
            "Edit an Operator",
            "auth.operator.change:edit",
            (Argument("name", "Operator to edit"),),
            (
                _SERVER,
                _SERVICE,
                Option("tags", "Tags to add to this Operator", Kind.LIST),
                Option("no-tags", "Tags to remove from the Operator", Kind.LIST),
            ),
            aliases=("update",),
        ),
        Command(
            "import",
            "Imports an operator",
            "auth.operator.change:import_operator",
            (
                Argument(
                    "token",
                    "The JWT file containing the account to import",
                    required=True,
                    kind=Kind.INPUT,
                ),
                Argument("key", "List of keys to import", many=True, kind=Kind.INPUT),
            ),
        ),
        Command(
            "select",
            "Selects the default operator",
            "auth.operator.change:select",
            (Argument("name", "Operator to select"),),
        ),
        Command(
            "backup",
            "Creates a backup of an operator",
            "auth.operator.backup:backup",
            (_NAME, Argument("output", "File to write backup to", required=True)),
            (Option("key", "Curve or X25519 NKey to encrypt with"),),
            examples=("jsctl auth operator backup ACME acme.json --key curve.nk",),
        ),
        Command(
            "restore",
            "Restores an operator from a backup",
            "auth.operator.backup:restore",
            (_NAME, Argument("input", "File to read backup from", required=True)),
            (Option("key", "Curve or X25519 NKey to decrypt with"),),
        ),
        KEYS,
    ),
    aliases=("o", "op"),
)
