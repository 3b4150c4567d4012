"""Options that commands of `backup` share."""

from jsctl.commands.toolkit.grammar.spec import Kind, Option

PROGRESS = Option("progress", "Enables or disables progress reporting", Kind.SWITCH, default="true")
CONSUMERS = Option("consumers", "Enable or disable consumer backups", Kind.SWITCH, default="true")
CLUSTER = Option("cluster", "Place the stream in a specific cluster")
TAG = Option(
    "tag",
    "Place the stream on servers that has specific tags (pass multiple times)",
    Kind.LIST,
)
