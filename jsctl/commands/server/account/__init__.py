"""`jsctl server account`: the table of its commands."""

from jsctl.commands.toolkit.grammar.spec import FORCE, JSON, Argument, Command, Group, Option
from jsctl.commands.toolkit.monitoring.flags import ARCHIVE

GROUP = Group(
    "account",
    "Interact with accounts",
    (
        Command(
            "info",
            "Shows information for an account",
            "server.account.run:info",
            (Argument("account", "The name of the account to view", required=True),),
            (Option("host", "Request information from a specific server"), ARCHIVE),
            aliases=("i",),
            examples=("jsctl server account info APP", "jsctl server account info APP -j"),
        ),
        Command(
            "purge",
            "Purge assets from JetStream clusters",
            "server.account.run:purge",
            (Argument("account", "The name of the account to purge", required=True),),
            (FORCE,),
            examples=("jsctl server account purge APP",),
        ),
    ),
    options=(JSON,),
    aliases=("acct",),
)
