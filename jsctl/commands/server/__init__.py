"""`jsctl server`: the table of its commands."""

from jsctl.commands.server.cluster import GROUP as CLUSTER
from jsctl.commands.server.flags import COMPACT, REVERSE
from jsctl.commands.server.report import GROUP as REPORT
from jsctl.commands.server.request import GROUP as REQUEST
from jsctl.commands.toolkit.grammar.spec import JSON, Argument, Command, Group, Kind, Option

_SERVER_SORTS = (
    *("name", "cluster", "conns", "conn", "subs", "sub", "routes", "route"),
    *("gw", "gws", "mem", "cpu", "slow", "uptime", "rtt"),
)
_EXPECT = Argument("expect", "How many servers to wait for")

GROUP = Group(
    "server",
    "Server information",
    (
        CLUSTER,
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
                REVERSE,
                COMPACT,
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
        REPORT,
        REQUEST,
    ),
)
