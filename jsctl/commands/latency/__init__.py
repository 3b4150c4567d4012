"""`jsctl latency`: the declaration."""

from jsctl.commands.toolkit.grammar.spec import Command, Kind, Option

COMMAND = Command(
    "latency",
    "Perform latency tests between two NATS servers",
    "latency.run:latency",
    (),
    (
        Option("server-b", "The second server to subscribe on", required=True),
        Option("size", "Message size", Kind.INTEGER, default="8"),
        Option("rate", "Rate of messages per second", Kind.INTEGER, default="1000"),
        Option("duration", "Test duration", Kind.DURATION, default="5s"),
        Option("histogram", "Output file to store the histogram in"),
    ),
    aliases=("lat",),
    examples=("jsctl latency --server n1:4222 --server-b n2:4222 --rate 500",),
)
