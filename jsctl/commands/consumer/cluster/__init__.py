"""`jsctl consumer cluster`: the table of its commands."""

from jsctl.commands.consumer.flags import QUERY
from jsctl.commands.toolkit.assets.flags import BOTH, OF_STREAM, PREFERRED, WAIT
from jsctl.commands.toolkit.grammar.spec import FORCE, JSON, Argument, Command, Group

GROUP = Group(
    "cluster",
    "Manages a clustered consumer",
    (
        Command(
            "step-down",
            "Force a new leader election by standing down the current leader",
            "consumer.cluster.leaders:step_down",
            BOTH,
            (PREFERRED, WAIT, FORCE, JSON),
            aliases=("stepdown", "sd", "elect", "down", "d"),
        ),
        Command(
            "balance",
            "Balance consumer leaders",
            "consumer.cluster.leaders:balance_leaders",
            (OF_STREAM,),
            QUERY,
            examples=("jsctl consumer cluster balance ORDERS --leader n1",),
        ),
        Command(
            "evacuate",
            "Evacuates a consumer from a specific peer",
            "consumer.cluster.peers:evacuate_peer",
            (*BOTH, Argument("peer", "The name of the peer to evacuate")),
            (WAIT, FORCE, JSON),
            examples=("jsctl consumer cluster evacuate ORDERS NEW n3 --force",),
        ),
    ),
    aliases=("c",),
)
