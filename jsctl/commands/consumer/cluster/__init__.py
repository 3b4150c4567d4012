"""`jsctl consumer cluster`: the table of its commands."""

from jsctl.commands.toolkit.assets.flags import BOTH, OF_STREAM, PREFERRED
from jsctl.commands.toolkit.grammar.spec import FORCE, JSON, Command, Group

GROUP = Group(
    "cluster",
    "Manages a clustered consumer",
    (
        Command(
            "step-down",
            "Force a new leader election by standing down the current leader",
            "consumer.cluster.leaders:step_down",
            BOTH,
            (PREFERRED, FORCE, JSON),
            aliases=("stepdown", "sd", "elect", "down", "d"),
        ),
        Command(
            "balance",
            "Balance consumer leaders",
            "consumer.cluster.leaders:balance_leaders",
            (OF_STREAM,),
        ),
    ),
    aliases=("c",),
)
