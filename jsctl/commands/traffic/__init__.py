"""`jsctl traffic`: the declaration."""

from jsctl.commands.toolkit.grammar.spec import Argument, Command

COMMAND = Command(
    "traffic",
    "Monitor NATS network traffic",
    "traffic.run:traffic",
    (Argument("subjects", "Subjects to monitor, defaults to all", default=">"),),
    examples=("jsctl --context system traffic",),
    hidden=True,
)
