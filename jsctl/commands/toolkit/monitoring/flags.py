"""Options that the reports on connections share."""

from jsctl.commands.toolkit.grammar.spec import Kind, Option

ARCHIVE = Option("archive", "Read data from an archive file")
TOP = Option("top", "Limit results to the top results", Kind.INTEGER, default="1000")


def connection_sorts(single: bool) -> tuple[str, ...]:
    """Sort keys of the reports on connections, or on accounts when not `single`."""
    shared = ("in-bytes", "out-bytes", "in-msgs", "out-msgs")
    return (*shared, "uptime", "cid", "subs") if single else (*shared, "conns", "subs")
