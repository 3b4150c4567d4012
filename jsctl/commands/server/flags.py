"""Arguments and options that several `server` commands share."""

from jsctl.commands.toolkit.grammar.spec import Argument, Kind, Option

LIMIT = Argument("limit", "How many servers to wait for; no limit on rows", kind=Kind.INTEGER)
FILTERS = (
    Option("host", "Limit the report to a specific NATS server, by its name"),
    Option("cluster", "Limit the report to a specific Cluster"),
    Option("tags", "Limit the report to nodes matching certain tags", Kind.LIST),
)
REVERSE = Option("reverse", "Reverse sort", Kind.FLAG, short="R")
COMPACT = Option("compact", "Compact server names", Kind.SWITCH, default="true")
