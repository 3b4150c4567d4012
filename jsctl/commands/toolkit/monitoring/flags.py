"""Options that the reports on connections share."""

from jsctl.commands.toolkit.grammar.spec import Kind, Option

ARCHIVE = Option("archive", "Read data from an archive file")
TOP = Option("top", "Limit results to the top results", Kind.INTEGER, default="1000")
CONNECTION_FILTERS = (
    Option(
        "subject",
        "Limits responses only to those connections with matching subscription interest",
    ),
    Option(
        "username",
        "Limits responses only to those connections for a specific authentication username",
    ),
)
CLOSED_REASON = Option("closed-reason", "Filter results based on a closed reason", metavar="REASON")


def connection_sorts(single: bool) -> tuple[str, ...]:
    """Sort keys of the reports on connections, or on accounts when not `single`."""
    shared = ("in-bytes", "out-bytes", "in-msgs", "out-msgs")
    return (*shared, "uptime", "cid", "subs") if single else (*shared, "conns", "subs")
