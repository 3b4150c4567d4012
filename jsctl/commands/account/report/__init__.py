"""`jsctl account report`: the table of its commands."""

from jsctl.commands.toolkit.grammar.live import WATCH
from jsctl.commands.toolkit.grammar.spec import JSON, Command, Group, Kind, Option
from jsctl.commands.toolkit.monitoring.flags import (
    CLOSED_REASON,
    CONNECTION_FILTERS,
    TOP,
    connection_sorts,
)

GROUP = Group(
    "report",
    "Report on account metrics",
    (
        Command(
            "connections",
            "Report on connections",
            "account.report.connections:connections",
            options=(
                Option(
                    "sort",
                    "Sort by a column",
                    default="subs",
                    choices=connection_sorts(True),
                ),
                TOP,
                *CONNECTION_FILTERS,
                Option(
                    "state",
                    "Only those in a state",
                    default="open",
                    choices=("open", "closed", "all"),
                ),
                CLOSED_REASON,
                Option("reverse", "Reverse sort", Kind.FLAG, short="R"),
                JSON,
                WATCH,
            ),
            aliases=("conn", "connz", "conns"),
        ),
        Command(
            "statistics",
            "Report on server statistics",
            "account.report.statistics:statistics",
            options=(WATCH,),
            aliases=("stats", "statsz"),
        ),
    ),
    aliases=("rep",),
)
