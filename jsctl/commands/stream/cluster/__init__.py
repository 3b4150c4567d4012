"""`jsctl stream cluster`: the table of its commands."""

from jsctl.commands.toolkit.assets.flags import PREFERRED, STREAM
from jsctl.commands.toolkit.grammar.spec import FORCE, JSON, Argument, Command, Group, Option

GROUP = Group(
    "cluster",
    "Manages a clustered stream",
    (
        Command(
            "step-down",
            "Force a new leader election by standing down the current leader",
            "stream.cluster.leaders:step_down",
            (STREAM,),
            (PREFERRED, FORCE, JSON),
            aliases=("stepdown", "sd", "elect", "down", "d"),
        ),
        Command(
            "balance",
            "Balance stream leaders",
            "stream.cluster.leaders:balance_leaders",
            options=(Option("subject", "Limit the list to streams with matching subjects"),),
        ),
        Command(
            "peer-remove",
            "Removes a peer from the stream cluster",
            "stream.cluster.peers:peer_remove",
            (STREAM, Argument("peer", "The name of the peer to remove")),
            (FORCE,),
            aliases=("pr",),
        ),
    ),
    aliases=("c",),
)
