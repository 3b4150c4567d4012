"""`jsctl events`: the declaration."""

from jsctl.commands.toolkit.grammar.spec import JSON, Command, Kind, Option

COMMAND = Command(
    "events",
    "Show Advisories and Events",
    "events.run:events",
    (),
    (
        Option("all", "Show all events", Kind.FLAG, short="a"),
        JSON,
        Option("cloudevent", "Produce CloudEvents v1 output", Kind.FLAG),
        Option("short", "Short event format", Kind.FLAG),
        Option("filter", "Filter across the entire event using regular expressions", default="."),
        Option("js-metric", "Shows JetStream metric events (false)", Kind.FLAG),
        Option("js-advisory", "Shows advisory events (false)", Kind.FLAG),
        Option("srv-advisory", "Shows NATS Server advisories (true)", Kind.SWITCH, default="true"),
        Option("subjects", "Show Advisories and Metrics received on specific subjects", Kind.LIST),
        Option("stream", "Reads events from a Stream only"),
        Option(
            "since",
            "When reading a Stream reads from a certain duration ago",
            Kind.DURATION,
            metavar="DURATION",
        ),
    ),
    aliases=("event", "e"),
    examples=(
        "jsctl --context system events",
        "jsctl events --js-advisory --no-srv-advisory --short",
    ),
)
