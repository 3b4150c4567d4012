"""`jsctl server cluster`: the table of its commands."""

from jsctl.commands.toolkit.grammar.spec import FORCE, JSON, Argument, Command, Group, Kind, Option

GROUP = Group(
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
