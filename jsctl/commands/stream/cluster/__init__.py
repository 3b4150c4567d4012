"""`jsctl stream cluster`: the table of its commands."""

from jsctl.commands.stream.flags import QUERY
from jsctl.commands.toolkit.assets.flags import PREFERRED, STREAM, WAIT
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
            (PREFERRED, WAIT, FORCE, JSON),
            aliases=("stepdown", "sd", "elect", "down", "d"),
        ),
        Command(
            "balance",
            "Balance stream leaders",
            "stream.cluster.leaders:balance_leaders",
            options=QUERY,
            examples=("jsctl stream cluster balance --subject 'orders.>' --leader n1",),
        ),
        Command(
            "cancel-move",
            "Cancels an in-progress stream move",
            "stream.cluster.peers:cancel_move",
            (STREAM,),
            (FORCE, JSON),
            examples=("jsctl stream cluster cancel-move ORDERS",),
        ),
        Command(
            "evacuate",
            "Evacuates a stream from a specific peer",
            "stream.cluster.peers:evacuate_peer",
            (STREAM, Argument("peer", "The name of the peer to evacuate")),
            (FORCE, JSON, WAIT),
            examples=("jsctl stream cluster evacuate ORDERS n3 --force --wait 10m",),
        ),
        Command(
            "peer-remove",
            "Removes a peer from the stream cluster",
            "stream.cluster.peers:peer_remove",
            (STREAM, Argument("peer", "The name of the peer to remove")),
            (FORCE, WAIT),
            aliases=("pr",),
        ),
        Command(
            "rescue",
            "Go on with one replica of a stream that has lost its majority for good",
            "stream.cluster.rescue:rescue",
            (STREAM,),
            (
                Option("host", "The server whose replica is kept; by default the one with most"),
                FORCE,
                JSON,
            ),
        ),
    ),
    aliases=("c",),
)
