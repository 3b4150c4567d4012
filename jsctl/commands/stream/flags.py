"""Options that several `stream` commands share."""

from jsctl.commands.toolkit.grammar.spec import Kind, Option

QUERY = (
    Option("server-name", "Display streams present on a regular expression matched server"),
    Option("cluster", "Display streams present on a regular expression matched cluster"),
    Option("empty", "Display streams with no messages", Kind.FLAG),
    Option(
        "idle",
        "Display streams with no new messages for a period",
        Kind.DURATION,
        metavar="DURATION",
    ),
    Option(
        "created",
        "Display streams created longer ago than duration",
        Kind.DURATION,
        metavar="DURATION",
    ),
    Option(
        "consumers",
        "Display streams with fewer consumers than threshold",
        Kind.INTEGER,
        metavar="THRESHOLD",
    ),
    Option("subject", "Filters streams by those with interest matching a subject or wildcard"),
    Option(
        "replicas", "Display streams with fewer or equal replicas than the value", Kind.UNSIGNED
    ),
    Option("sourced", "Display that sources data from other streams", Kind.FLAG),
    Option("mirrored", "Display that mirrors data from other streams", Kind.FLAG),
    Option("leader", "Display only clustered streams with a specific leader", metavar="SERVER"),
    Option("invert", "Invert the check - before becomes after, with becomes without", Kind.SWITCH),
    Option("expression", "Match streams using an expression language"),
)
API_LEVEL = Option(
    "api-level", "Match streams that support at least the given api level", Kind.INTEGER
)
TRANSLATE = Option("translate", "Translate the message data by a command", metavar="TRANSLATE")
