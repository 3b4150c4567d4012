"""Arguments and options that several benchmarks share."""

from jsctl.commands.toolkit.grammar.spec import Argument, Kind, Option

SUBJECT = Argument("subject", "Subject to use for the benchmark", required=True)
COMMON = (
    Option("clients", "Number of concurrent clients", Kind.INTEGER, default="1"),
    Option("msgs", "Number of messages to publish or subscribe to", Kind.INTEGER, default="100000"),
    Option("progress", "Enable or disable the progress bar", Kind.SWITCH, default="true"),
    Option("csv", "Save benchmark data to CSV file", Kind.FILE, metavar="CSV"),
    Option("size", "Size of the test messages", default="128B"),
)
MULTI = Option(
    "multisubject",
    "Multi-subject mode, each message is published on a subject that includes the publisher's "
    "message sequence number as a token",
    Kind.FLAG,
)
HEADER = Option("header", "Adds headers to the message using K:V format", Kind.LIST, short="H")
PUBLISHING = (
    MULTI,
    Option(
        "multisubjectmax",
        "The maximum number of subjects to use in multi-subject mode (0 means no max)",
        Kind.INTEGER,
        default="100000",
    ),
    Option(
        "multisubjectrandomize",
        "Randomize which subjects are being used when in multisubject mode",
        Kind.FLAG,
    ),
    Option("payload", "File containing a message payload to send", Kind.INPUT, metavar="PAYLOAD"),
    HEADER,
)
THROTTLE = (
    Option(
        "throughput",
        "If set > 0, throttle aggregate message send throughput to approximately THROUGHPUT "
        "messages/second across all clients (0 disables). If --sleep is set, the achieved rate "
        "may be lower",
        Kind.INTEGER,
        metavar="THROUGHPUT",
    ),
    Option(
        "duration",
        "Run for approximately this long instead of a fixed message count, deriving the number "
        "of messages from --throughput and taking precedence over --msgs (requires --throughput)",
        Kind.DURATION,
    ),
)
PURGE = Option("purge", "Purge the stream before running", Kind.FLAG)
MAX_BYTES = Option(
    "maxbytes",
    "The maximum size of the stream or KV bucket in bytes",
    default="1GB",
)


def sleep(text: str) -> Option:
    """`--sleep`, and between what."""
    return Option(
        "sleep", f"Sleep for the specified interval {text}", Kind.DURATION, metavar="DURATION"
    )


def batch(text: str) -> Option:
    """`--batch`, and what that is."""
    return Option("batch", f"Sets the {text}", Kind.INTEGER, default="500")
