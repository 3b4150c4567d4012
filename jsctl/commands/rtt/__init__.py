"""`jsctl rtt`: the declaration."""

from jsctl.commands.toolkit.grammar.spec import JSON, Argument, Command, Kind

COMMAND = Command(
    "rtt",
    "Compute round-trip time to NATS server",
    "rtt.run:rtt",
    (
        Argument(
            "iterations", "How many round trips to do when testing", default="5", kind=Kind.INTEGER
        ),
    ),
    (JSON,),
    examples=("jsctl rtt", "jsctl rtt 20 -j"),
)
