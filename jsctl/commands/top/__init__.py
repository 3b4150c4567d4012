"""`jsctl top`: the declaration."""

from jsctl.commands.toolkit.grammar.spec import Argument, Command, Kind, Option

SORTS = (
    *("cid", "start", "subs", "pending", "msgs_to", "msgs_from", "bytes_to", "bytes_from"),
    *("last", "idle", "uptime", "stop", "reason", "rtt"),
)

COMMAND = Command(
    "top",
    "Shows top-like statistic for connections on a specific server",
    "top.run:top",
    (Argument("name", "The server name to gather statistics for", required=True),),
    (
        Option("conns", "Maximum number of connections to show", Kind.INTEGER, "n", default="1024"),
        Option("interval", "Refresh interval", Kind.INTEGER, short="d", default="1"),
        Option("sort", "Sort connections by", default="cid", choices=SORTS, silent=True),
        Option("lookup", "Looks up client addresses in DNS", Kind.FLAG),
        Option("output", "Saves the first snapshot to a file", short="o"),
        Option("delimiter", "Specifies a output delimiter, defaults to grid-like text"),
        Option("raw", "Show raw bytes", Kind.FLAG, short="b"),
        Option("max-refresh", "Maximum refreshes", Kind.INTEGER, short="r", default="-1"),
        Option("subs", "Shows the subscriptions column", Kind.FLAG),
    ),
    examples=("jsctl --context system top n1", "jsctl --context system top n1 -o n1.txt"),
)
