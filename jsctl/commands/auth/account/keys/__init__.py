"""`jsctl auth account keys`: the table of its commands."""

from jsctl.commands.auth.flags import ACCOUNT, REMOVE_FORCE
from jsctl.commands.toolkit.grammar.spec import JSON, Argument, Command, Group, Kind, Option

_OPERATOR = Option("operator", "Operator to act on")

GROUP = Group(
    "keys",
    "Manage Scoped Signing Keys",
    (
        Command(
            "add",
            "Adds a signing key",
            "auth.account.keys.run:add",
            (ACCOUNT, Argument("role", "The role to add a key for")),
            (
                Option("unscoped", "Adds a unscoped signing key", Kind.FLAG),
                _OPERATOR,
                Option("description", "Description for the signing key"),
                Option(
                    "subscriptions", "Maximum allowed subscriptions", Kind.INTEGER, default="-1"
                ),
                Option("payload", "Maximum allowed payload", Kind.SIZE, metavar="BYTES"),
                Option("bearer", "Allows bearer tokens", Kind.SWITCH),
                Option("locale", "Locale for the client"),
                Option(
                    "connection",
                    "Set the allowed connections (nats, ws, wsleaf, mqtt)",
                    Kind.LIST,
                    choices=("nats", "ws", "leaf", "wsleaf", "mqtt"),
                ),
                Option("pub-allow", "Sets subjects where publishing is allowed", Kind.LIST),
                Option("pub-deny", "Sets subjects where publishing is allowed", Kind.LIST),
                Option("sub-allow", "Sets subjects where subscribing is allowed", Kind.LIST),
                Option("sub-deny", "Sets subjects where subscribing is allowed", Kind.LIST),
            ),
            aliases=("new", "a", "n"),
            examples=("jsctl auth account keys add APP reader --sub-allow 'orders.>'",),
        ),
        Command(
            "info",
            "Show information for a Scoped Signing Key",
            "auth.account.keys.run:info",
            (Argument("account", "Account to view"), Argument("key", "The role or key to view")),
            (_OPERATOR, JSON),
            aliases=("i", "show", "view"),
        ),
        Command(
            "ls",
            "List Signing Keys",
            "auth.account.keys.run:ls",
            (ACCOUNT,),
            (_OPERATOR,),
            aliases=("list",),
        ),
        Command(
            "rm",
            "Remove a Signing key",
            "auth.account.keys.run:remove",
            (ACCOUNT,),
            (Option("key", "The key to remove"), _OPERATOR, REMOVE_FORCE),
        ),
    ),
    aliases=("sk", "s"),
)
