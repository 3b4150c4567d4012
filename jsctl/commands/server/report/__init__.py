"""`jsctl server report`: the table of its commands."""

from jsctl.commands.server.flags import COMPACT, FILTERS, LIMIT, REVERSE
from jsctl.commands.toolkit.grammar.live import WATCH
from jsctl.commands.toolkit.grammar.spec import JSON, Argument, Command, Group, Kind, Option
from jsctl.commands.toolkit.monitoring.flags import (
    ARCHIVE,
    CLOSED_REASON,
    CONNECTION_FILTERS,
    TOP,
    connection_sorts,
)

_WHERE = (*FILTERS, WATCH, ARCHIVE)
_TRAFFIC_SORTS = ("subs", "in-bytes", "out-bytes")
_JETSTREAM_SORTS = (
    *("name", "cluster", "streams", "consumers", "msgs", "mbytes", "bytes"),
    *("mem", "file", "store", "api", "err"),
)


def _network_reports() -> tuple[Command, ...]:
    return (
        Command(
            "gateways",
            "Report on Gateway (Super Cluster) connections",
            "server.report.network:gateways",
            (LIMIT,),
            (
                Option("filter-name", "Limits responses to a certain name"),
                Option(
                    "sort", "Sort by a column", default="cluster", choices=("server", "cluster")
                ),
                *_WHERE,
            ),
            aliases=("super", "gateway"),
            examples=("jsctl server report gateways", "jsctl server report super --watch 2"),
        ),
        Command(
            "leafnodes",
            "Report on Leafnode connections",
            "server.report.network:leafnodes",
            (LIMIT,),
            (
                Option("account", "Produce the report for a specific account"),
                Option(
                    "sort",
                    "Sort by a column",
                    choices=("server", "name", "account", *_TRAFFIC_SORTS, "in-msgs", "out-msgs"),
                ),
                *_WHERE,
            ),
            aliases=("leaf", "leafz"),
            examples=("jsctl server report leafnodes --sort in-bytes -R",),
        ),
        Command(
            "routes",
            "Report on Route (Cluster) connections",
            "server.report.network:routes",
            (LIMIT,),
            (
                Option(
                    "sort",
                    "Sort by a column",
                    choices=("server", "cluster", "name", "account", *_TRAFFIC_SORTS),
                ),
                *_WHERE,
            ),
            aliases=("route",),
            examples=("jsctl server report routes", "jsctl server report route --sort out-bytes"),
        ),
    )


def _server_reports() -> tuple[Command, ...]:
    return (
        Command(
            "cpu",
            "Report on CPU usage",
            "server.report.load:cpu",
            (LIMIT,),
            (*_WHERE, JSON),
            examples=("jsctl server report cpu", "jsctl server report cpu --watch 1"),
        ),
        Command(
            "mem",
            "Report on Memory usage",
            "server.report.load:mem",
            (LIMIT,),
            (*_WHERE, JSON),
            examples=("jsctl server report mem --cluster C1", "jsctl server report mem -j"),
        ),
        Command(
            "health",
            "Report on Server health",
            "server.report.health:health",
            (LIMIT,),
            (
                Option(
                    "js-enabled",
                    "Checks that JetStream should be enabled on all servers",
                    Kind.SWITCH,
                    short="J",
                ),
                Option(
                    "server-only",
                    "Restricts the health check to the JetStream server only, "
                    "do not check streams and consumers",
                    Kind.SWITCH,
                    short="S",
                ),
                Option("account", "Check only a specific Account"),
                Option("stream", "Check only a specific Stream"),
                Option("consumer", "Check only a specific Consumer"),
                *_WHERE,
            ),
            examples=("jsctl server report health", "jsctl server report health -S"),
        ),
        Command(
            "downgrade",
            "List assets incompatible with the specified API level",
            "server.report.downgrade:downgrade",
            (
                Argument(
                    "api",
                    "Target API level to check compatibility against",
                    required=True,
                    kind=Kind.UNSIGNED,
                ),
            ),
            (
                ARCHIVE,
                WATCH,
                Option("json", "Output the downgrade report in JSON format", Kind.FLAG),
                Option(
                    "all",
                    "Include consumers whose associated streams are incompatible with the "
                    "selected API level",
                    Kind.FLAG,
                ),
            ),
            examples=("jsctl server report downgrade 1",),
        ),
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
                *_WHERE,
                Option("sort", "Sort by a column", default="cluster", choices=_JETSTREAM_SORTS),
                COMPACT,
                Option("leaders", "Show details about cluster leaders", Kind.FLAG, short="l"),
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
                *_WHERE,
                Option("sort", "Sort by a column", default="subs", choices=connection_sorts(True)),
                TOP,
                *CONNECTION_FILTERS,
                Option(
                    "state",
                    "Limits responses only to those in a state",
                    default="open",
                    choices=("open", "closed", "all"),
                ),
                CLOSED_REASON,
                Option("filter", "Expression based filter for connections"),
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
                *_WHERE,
                Option("sort", "Sort by a column", default="subs", choices=connection_sorts(False)),
                TOP,
                JSON,
            ),
            aliases=("acct",),
            examples=("jsctl server report accounts", "jsctl server report accounts ORDERS"),
        ),
        *_network_reports(),
        *_server_reports(),
    ),
    options=(REVERSE,),
    aliases=("rep",),
)
