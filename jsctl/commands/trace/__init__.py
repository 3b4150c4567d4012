"""`jsctl trace`: the declaration."""

from jsctl.commands.toolkit.grammar.spec import Argument, Command, Kind, Option

COMMAND = Command(
    "trace",
    "Trace message delivery within an NATS network",
    "trace.run:trace_message",
    (
        Argument("subject", "The subject to publish to", required=True),
        Argument("payload", "The message body to send"),
    ),
    (
        Option("deliver", "Deliver the message to the final destination", Kind.FLAG),
        Option("timestamp", "Show event timestamps", Kind.FLAG, short="T"),
        Option(
            "header",
            "Adds headers to the trace message using K:V format",
            Kind.MAP,
            short="H",
            metavar="HEADER",
        ),
    ),
    examples=("jsctl trace orders.new", "jsctl trace orders.new hello --deliver -T"),
)
