"""`jsctl account`: the table of its commands."""

from jsctl.commands.account.report import GROUP as REPORT
from jsctl.commands.toolkit.grammar.spec import JSON, Command, Group

GROUP = Group(
    "account",
    "Account information and status",
    (
        Command(
            "info",
            "Account information",
            "account.info:info",
            options=(JSON,),
            aliases=("nfo",),
            examples=("jsctl account info", "jsctl account info --context prod -j"),
        ),
        REPORT,
    ),
)
