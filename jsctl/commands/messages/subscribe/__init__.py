"""`jsctl subscribe`: the declaration."""

from jsctl.commands.toolkit.content.bodies import TRANSLATE
from jsctl.commands.toolkit.grammar.spec import Argument, Command, Kind, Option


def _flag(name: str, text: str, short: str = "") -> Option:
    return Option(name, text, Kind.FLAG, short=short)


COMMAND = Command(
    "subscribe",
    "Generic subscription client",
    "messages.subscribe.run:subscribe",
    (Argument("subjects", "Subjects to subscribe to", many=True),),
    (
        Option("queue", "Subscribe to a named queue group"),
        Option("durable", "Use a durable consumer (requires JetStream)"),
        _flag("raw", "Show the raw data received", "r"),
        TRANSLATE,
        Option(
            "ack", ("Acknowledge JetStream message that have the correct metadata"), Kind.SWITCH
        ),
        _flag("match-replies", "Match replies to requests"),
        _flag("inbox", "Subscribes to a generated inbox", "i"),
        Option("count", "Quit after receiving this many messages", Kind.UNSIGNED),
        Option(
            "dump",
            "Dump received messages to files, 1 file per message. "
            "Specify - for null terminated STDOUT for use with xargs -0",
            metavar="DIRECTORY",
        ),
        _flag("headers-only", "Do not render any data, shows only headers"),
        _flag("subjects-only", "Prints only the messages' subjects"),
        Option(
            "start-sequence",
            ("Starts at a specific Stream sequence (requires JetStream)"),
            Kind.UNSIGNED,
            metavar="SEQUENCE",
        ),
        _flag("all", ("Delivers all messages found in the Stream (requires JetStream)")),
        _flag("new", "Delivers only future messages (requires JetStream)"),
        _flag("last", ("Delivers the most recent and all future messages (requires JetStream)")),
        Option(
            "since",
            "Delivers messages received since a duration like 1d3h5m2s (needs JetStream)",
            Kind.DURATION,
            metavar="DURATION",
        ),
        _flag(
            "last-per-subject",
            (
                "Deliver the most recent messages for each subject in the "
                "Stream (requires JetStream)"
            ),
        ),
        _flag(
            "terminate-at-end",
            ("Stops consuming messages from JetStream once all messages were received"),
            "T",
        ),
        Option("stream", "Subscribe to a specific stream (required JetStream)"),
        Option(
            "ignore-subject",
            (
                "Subjects for which corresponding messages will be "
                "ignored and therefore not shown in the output"
            ),
            Kind.LIST,
            short="I",
            metavar="SUBJECT",
        ),
        Option("wait", "Unsubscribe after this amount of time without any traffic", Kind.DURATION),
        _flag(
            "report-subjects",
            (
                "Subscribes to subject patterns and builds a "
                "de-duplicated report of active subjects receiving data"
            ),
        ),
        _flag(
            "report-subscriptions",
            (
                "Subscribes to subject patterns and builds a "
                "de-duplicated report of active subscriptions receiving "
                "data"
            ),
        ),
        Option(
            "report-top",
            "Number of subjects to show when doing 'report-subjects'",
            Kind.INTEGER,
            default="10",
        ),
        _flag("timestamp", "Show timestamps in output", "t"),
        _flag("delta-time", "Show time since start in output", "d"),
        _flag("graph", "Graph the rate of messages received"),
        _flag(
            "direct",
            "Subscribe using batched direct gets instead of a durable consumer "
            "(requires JetStream)",
        ),
        Option(
            "backup",
            "Records every received message into a stream backup in this directory",
            metavar="DIRECTORY",
        ),
        _flag("quiet", "Do not print received messages, only record them with --backup", "q"),
    ),
    examples=(
        "jsctl sub 'orders.>'",
        "jsctl sub orders.new --all --count 10",
        "jsctl sub '>' --report-subjects",
    ),
)
