"""The flags of stream configurations; completion loads nothing else of these commands."""

from jsctl.api.stream import StreamConfig
from jsctl.commands.toolkit.assets.config_flags import options_for
from jsctl.commands.toolkit.grammar.spec import Kind, Option

_COMPOSITE = (
    Option(
        "tag",
        ("Place the stream on servers that has specific tags (pass multiple times)"),
        Kind.LIST,
        aliases=("tags",),
    ),
    Option("cluster", "Place the stream on a specific cluster"),
    Option("mirror", "Completely mirror another stream, a name or JSON"),
    Option(
        "source",
        "Source data from other streams, a name or JSON",
        Kind.LIST,
        key="sources",
        metavar="STREAM",
    ),
    Option("transform-source", "Stream subject transform source", metavar="SOURCE"),
    Option("transform-destination", "Stream subject transform destination", metavar="DEST"),
    Option("republish-source", "Republish messages to --republish-destination", metavar="SOURCE"),
    Option(
        "republish-destination",
        "Republish destination for messages in --republish-source",
        metavar="DEST",
    ),
    Option("republish-headers", "Republish only message headers, no bodies", Kind.FLAG),
    Option(
        "limit-consumer-inactive",
        ("The maximum Consumer inactive threshold the stream allows"),
        Kind.DURATION,
        metavar="THRESHOLD",
    ),
    Option(
        "limit-consumer-max-pending",
        "The maximum Consumer Ack Pending the stream Allows",
        Kind.INTEGER,
        metavar="PENDING",
    ),
)
_REMOVALS = (
    Option("no-mirror", "Clears the mirror configuration and promotes the stream", Kind.FLAG),
    Option("no-republish", "Removes current republish configuration", Kind.FLAG),
    Option("no-transform", "Removes current subject transform configuration", Kind.FLAG),
)


def create_options() -> tuple[Option, ...]:
    """Flags of add."""
    return (*options_for(StreamConfig), *_COMPOSITE)


def edit_options() -> tuple[Option, ...]:
    """Flags of edit."""
    return (*options_for(StreamConfig, editing=True), *_COMPOSITE, *_REMOVALS)


_DATA = (
    Option("data", "Copies the messages, too; the same words go on where a copy ended", Kind.FLAG),
    Option("to", "Makes the copy in another context", metavar="CONTEXT"),
    Option("prefix", "Puts this and a dot in front of all subjects of the copy", metavar="SUBJECT"),
    Option("progress", "Enables or disables progress reporting", Kind.SWITCH, default="true"),
)


def copy_options() -> tuple[Option, ...]:
    """Flags of add, and what is copied where."""
    return (*create_options(), *_DATA)
