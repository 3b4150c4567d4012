"""Arguments and options that several benchmarks share."""

from jsctl.commands.toolkit.grammar.spec import Argument, Kind, Option

SUBJECT = Argument("subject", "Subject to use for the benchmark", required=True)
SLEEP = Option("sleep", "Sleep between messages", Kind.DURATION, default="0s")
MULTI = Option("multisubject", "Use a different subject for each message", Kind.FLAG)
PUBLISHING = (
    MULTI,
    Option("multisubjectmax", "How many subjects at most", Kind.INTEGER, default="100000"),
    Option("multisubjectrandomize", "Choose the subject by chance", Kind.FLAG),
    Option("payload", "File containing a message payload", Kind.FILE),
    Option("header", "Adds headers to the message", Kind.LIST, short="H", metavar="K:V"),
    Option("throughput", "Messages a second of all clients, 0 for all", Kind.INTEGER, default="0"),
    Option("duration", "How long to run at that throughput", Kind.DURATION, default="0s"),
)
