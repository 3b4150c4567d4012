"""`jsctl server report`: the table of its commands."""

from jsctl.commands.server.flags import COMPACT, FILTERS, LIMIT, REVERSE
from jsctl.commands.toolkit.grammar.spec import JSON, Argument, Command, Group, Kind, Option
from jsctl.commands.toolkit.monitoring.flags import TOP, connection_sorts

_JETSTREAM_SORTS = (
    *("name", "cluster", "streams", "consumers", "msgs", "mbytes", "bytes"),
    *("mem", "file", "store", "api", "err"),
)

GROUP = Group(
    "report",
    "Report on various server metrics",
    (
        Command(
            "jetstream",
            "Report on JetStream activity",
            "server.report.jetstream:jetstream",
            (LIMIT,),
            (
                Option("account", "Produce the report for a specific account"),
                *FILTERS,
                Option("sort", "Sort by a column", default="cluster", choices=_JETSTREAM_SORTS),
                COMPACT,
                Option("leaders", "Report on asset leaders", Kind.FLAG, short="l"),
            ),
            aliases=("jsz", "js"),
            examples=("jsctl server report jetstream", "jsctl server report jsz --sort msgs -R"),
        ),
        Command(
            "connections",
            "Report on connections",
            "server.report.connections:connections",
            (LIMIT,),
            (
                Option("account", "Limit report to a specific account"),
                *FILTERS,
                Option("sort", "Sort by a column", default="subs", choices=connection_sorts(True)),
                TOP,
                Option("subject", "Limits responses only to those with matching subscriptions"),
                Option("username", "Limits responses only to those of a user"),
                Option(
                    "state",
                    "Limits responses only to those in a state",
                    default="open",
                    choices=("open", "closed", "all"),
                ),
                Option("closed-reason", "Filter results by a closed reason", metavar="REGEX"),
                JSON,
            ),
            aliases=("conn", "connz", "conns"),
            examples=("jsctl server report connections --top 10", "jsctl server report conns -j"),
        ),
        Command(
            "accounts",
            "Report on account activity",
            "server.report.connections:accounts",
            (Argument("account", "Account to produce a report for"), LIMIT),
            (
                *FILTERS,
                Option("sort", "Sort by a column", default="subs", choices=connection_sorts(False)),
                TOP,
                JSON,
            ),
            aliases=("acct",),
            examples=("jsctl server report accounts", "jsctl server report accounts ORDERS"),
        ),
    ),
    options=(REVERSE,),
    aliases=("rep",),
)
