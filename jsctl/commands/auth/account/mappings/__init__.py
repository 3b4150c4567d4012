"""`jsctl auth account mappings`: the table of its commands."""

from jsctl.commands.toolkit.grammar.spec import JSON, Argument, Command, Group, Kind, Option

_OPERATOR = Option("operator", "Operator to act on")
_SOURCE = Argument("source", "The source subject of the mapping")

GROUP = Group(
    "mappings",
    "Manage account level subject mapping and partitioning",
    (
        Command(
            "add",
            "Add a new mapping",
            "auth.account.mappings.run:add",
            (
                Argument("account", "Account to create the mappings on"),
                _SOURCE,
                Argument("target", "The target subject of the mapping"),
                Argument(
                    "weight", "The weight (%) of the mapping", default="100", kind=Kind.UNSIGNED
                ),
                Argument("cluster", "Limit the mappings to a specific cluster"),
            ),
            (
                _OPERATOR,
                Option("config", "json or yaml file to read configuration from", Kind.INPUT),
            ),
            aliases=("new", "a"),
            examples=(
                "jsctl auth account mappings add APP orders.new orders.next 10",
                "jsctl auth account mappings add APP --config mappings.yaml",
            ),
        ),
        Command(
            "ls",
            "List mappings",
            "auth.account.mappings.run:ls",
            (Argument("account", "Account to list the mappings from"),),
            (_OPERATOR,),
            aliases=("list",),
        ),
        Command(
            "rm",
            "Remove a mapping",
            "auth.account.mappings.run:remove",
            (Argument("account", "Account to remove the mappings from"), _SOURCE),
            (_OPERATOR,),
        ),
        Command(
            "info",
            "Show information about a mapping",
            "auth.account.mappings.run:info",
            (Argument("account", "Account to inspect the mappings from"), _SOURCE),
            (_OPERATOR, JSON),
            aliases=("i", "show", "view"),
        ),
    ),
    aliases=("m", "mapping", "map"),
)
