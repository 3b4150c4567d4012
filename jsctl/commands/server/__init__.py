"""`jsctl server`: the table of its commands."""

from jsctl.commands.server.request import (
    FILTERS,
    LIMIT,
    REQUEST_OPTIONS,
    TOP,
    connection_sorts,
    request_commands,
)
from jsctl.commands.toolkit.grammar.spec import FORCE, JSON, Argument, Command, Group, Kind, Option

_SERVER_SORTS = (
    *("name", "cluster", "conns", "conn", "subs", "sub", "routes", "route"),
    *("gw", "gws", "mem", "cpu", "slow", "uptime", "rtt"),
)
_JETSTREAM_SORTS = (
    *("name", "cluster", "streams", "consumers", "msgs", "mbytes", "bytes"),
    *("mem", "file", "store", "api", "err"),
)
_REVERSE = Option("reverse", "Reverse sort", Kind.FLAG, short="R")
_COMPACT = Option("compact", "Compact server names", Kind.SWITCH, default="true")
_EXPECT = Argument("expect", "How many servers to wait for")

_REPORT = Group(
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
                _COMPACT,
                Option("leaders", "Report on asset leaders", Kind.FLAG, short="l"),
            ),
            aliases=("jsz", "js"),
            examples=("jsctl server report jetstream", "jsctl server report jsz --sort msgs -R"),
        ),
        Command(
            "connections",
            "Report on connections",
            "server.report.jetstream:connections",
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
            "server.report.jetstream:accounts",
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
    options=(_REVERSE,),
    aliases=("rep",),
)

_CLUSTER = Group(
    "cluster",
    "Manage JetStream Clustering",
    (
        Command(
            "step-down",
            "Force a new leader election by standing down the current meta leader",
            "server.cluster.meta:step_down",
            options=(
                Option("cluster", "Request placement of the leader in a specific cluster"),
                Option("tags", "Request placement of the leader in nodes with tags", Kind.LIST),
                Option("host", "Request placement of the leader on a specific server"),
                JSON,
                FORCE,
            ),
            aliases=("stepdown", "sd", "elect", "down", "d"),
            examples=("jsctl server raft step-down", "jsctl server raft step-down --host n2"),
        ),
        Command(
            "peer-remove",
            "Removes a server from a JetStream cluster",
            "server.cluster.meta:peer_remove",
            (Argument("name", "The server name or ID to remove", required=True),),
            (JSON, FORCE),
            aliases=("rm", "pr"),
            examples=("jsctl server raft peer-remove n3", "jsctl server raft peer-remove n3 -f"),
        ),
    ),
    aliases=("r", "raft"),
)

GROUP = Group(
    "server",
    "Server information",
    (
        _CLUSTER,
        Command(
            "info",
            "Show information about a single server",
            "server.show:info",
            (Argument("server", "Server ID or Name to inspect"),),
            (JSON,),
            aliases=("i",),
            examples=("jsctl server info", "jsctl server info n1 -j"),
        ),
        Command(
            "list",
            "List known servers",
            "server.show:list_servers",
            (_EXPECT,),
            (
                JSON,
                Option("sort", "Sort servers by a key", default="rtt", choices=_SERVER_SORTS),
                _REVERSE,
                _COMPACT,
            ),
            aliases=("ls",),
            examples=("jsctl server list", "jsctl server ls --sort mem"),
        ),
        Command(
            "ping",
            "Ping all servers",
            "server.show:ping",
            (_EXPECT,),
            (Option("id", "Include the Server ID in the output", Kind.FLAG), JSON),
            examples=("jsctl server ping", "jsctl server ping 3 --id"),
        ),
        _REPORT,
        Group(
            "request",
            "Request monitoring data from a specific server",
            request_commands(),
            options=REQUEST_OPTIONS,
            aliases=("req",),
        ),
    ),
)
