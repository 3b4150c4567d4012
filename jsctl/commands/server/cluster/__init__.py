"""`jsctl server cluster`: the table of its commands."""

from jsctl.commands.toolkit.assets.flags import WAIT
from jsctl.commands.toolkit.grammar.spec import FORCE, JSON, Argument, Command, Group, Kind, Option

_WAIT = Option(
    "wait",
    "Waits until other servers have all streams and consumers, for so long at most",
    Kind.SPAN,
)

GROUP = Group(
    "cluster",
    "Manage JetStream Clustering",
    (
        Command(
            "balance",
            "Balance cluster connections",
            "server.cluster.balance:balance",
            (
                Argument(
                    "duration",
                    "Spread balance requests over a certain duration",
                    default="2m",
                    kind=Kind.DURATION,
                ),
            ),
            (
                Option("server-name", "Restrict balancing to a specific server", metavar="NAME"),
                Option(
                    "cluster", "Restrict balancing to servers in a specific cluster", metavar="NAME"
                ),
                Option(
                    "idle",
                    "Balance connections that has been idle for a period",
                    Kind.DURATION,
                    metavar="DURATION",
                ),
                Option("account", "Balance connections in a certain account only"),
                Option("subject", "Balance connections interested in certain subjects"),
                Option(
                    "kind",
                    ("Balance only certain kinds of connection (*Client, Leafnode)"),
                    Kind.LIST,
                    choices=("Client", "Leafnode"),
                ),
                FORCE,
                JSON,
            ),
            examples=("jsctl server cluster balance 5m --cluster C1 --idle 1m",),
        ),
        Command(
            "evacuate",
            "Move all JetStream assets for a peer to other peers",
            "server.cluster.meta:evacuate",
            (Argument("peer", "The name of the peer to evacuate"),),
            (_WAIT, FORCE, JSON),
            examples=("jsctl server cluster evacuate n3",),
        ),
        Command(
            "step-down",
            "Force a new leader election by standing down the current meta leader",
            "server.cluster.meta:step_down",
            options=(
                Option("cluster", "Request placement of the leader in a specific cluster"),
                Option(
                    "tags",
                    ("Request placement of the leader on nodes with specific tag(s)"),
                    Kind.LIST,
                ),
                Option("host", "Request placement of the leader on a specific node"),
                WAIT,
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
            (
                Argument(
                    "name",
                    ("The Server Name or ID to remove from the JetStream cluster"),
                    required=True,
                ),
            ),
            (_WAIT, JSON, FORCE),
            aliases=("rm", "pr"),
            examples=("jsctl server raft peer-remove n3", "jsctl server raft peer-remove n3 -f"),
        ),
        Command(
            "rescue",
            "Perform a cluster rescue operation",
            "server.cluster.rescue:rescue",
            options=(JSON, FORCE),
            examples=("jsctl server raft rescue", "jsctl server raft rescue -f"),
        ),
    ),
    aliases=("r", "raft"),
)
