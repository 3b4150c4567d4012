"""Options that several `consumer` commands share."""

from jsctl.commands.toolkit.grammar.spec import Kind, Option

QUERY = (
    Option("pull", "Display only pull based consumers", Kind.FLAG),
    Option("push", "Display only push based consumers", Kind.FLAG),
    Option("bound", "Display push-bound or pull consumers with waiting pulls", Kind.FLAG),
    Option("waiting", "Display consumers with fewer waiting pulls", Kind.INTEGER),
    Option("ack-pending", "Display consumers with fewer pending acks", Kind.INTEGER),
    Option("pending", "Display consumers with fewer unprocessed messages", Kind.UNSIGNED),
    Option("idle", "Display consumers with deliveries within a period", Kind.DURATION),
    Option(
        "created",
        "Display consumers created longer ago than duration",
        Kind.DURATION,
        metavar="DURATION",
    ),
    Option(
        "replicas", "Display consumers with fewer or equal replicas than the value", Kind.UNSIGNED
    ),
    Option("leader", "Display only clustered consumers with a specific leader", metavar="SERVER"),
    Option(
        "pinned",
        "Finds Pinned Client priority group consumers that are fully pinned",
        Kind.FLAG,
    ),
    Option("invert", "Invert the check - before becomes after, with becomes without", Kind.SWITCH),
    Option("expression", "Match consumers using an expression language"),
)
API_LEVEL = Option(
    "api-level", "Match consumers that support at least the given api level", Kind.INTEGER
)
