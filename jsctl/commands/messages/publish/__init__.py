"""`jsctl publish`: messages from the command line or from stdin."""

from jsctl.commands.toolkit.content.bodies import FORCE_STDIN, HEADER, SEND_ON, TEMPLATES
from jsctl.commands.toolkit.grammar.spec import Argument, Command, Kind, Option

COMMAND = Command(
    "publish",
    "Generic data publish utility",
    "messages.publish.run:publish",
    (
        Argument("subject", "Subject to publish to", required=True),
        Argument("body", "Message body"),
    ),
    (
        Option("reply", "Sets a custom reply to subject", metavar="SUBJECT"),
        HEADER,
        Option("atomic", "Atomic batch publish to JetStream (implies --jetstream)", Kind.FLAG),
        Option("count", "Publish multiple messages", Kind.INTEGER, default="1"),
        Option(
            "sleep", ("When publishing multiple messages, sleep between publishes"), Kind.DURATION
        ),
        FORCE_STDIN,
        Option("jetstream", "Publish messages to JetStream", Kind.FLAG, short="J"),
        Option(
            "jitter",
            "When publishing multiple messages, adds a random delay of up to this duration between "
            "publishes, in addition to --sleep",
            Kind.DURATION,
            metavar="DURATION",
        ),
        SEND_ON,
        Option("quiet", "Show just the errors", Kind.FLAG, short="q"),
        TEMPLATES,
        Option(
            "schedule-after",
            ("Schedule the message after a certain duration (implies --jetstream)"),
            Kind.DURATION,
            metavar="DURATION",
        ),
        Option(
            "schedule-every",
            ("Schedules the message every interval (implies --jetstream)"),
            Kind.DURATION,
            metavar="DURATION",
        ),
        Option(
            "schedule-at",
            ("Schedule the message at a certain RFC3339 time (implies --jetstream)"),
            metavar="TIME",
        ),
        Option(
            "schedule-cron",
            ("Cron definition for a scheduled message (implies --jetstream)"),
            metavar="CRON",
        ),
        Option(
            "schedule-dest",
            ("Subject the message will publish to when the schedule fires (implies --jetstream)"),
            metavar="SUBJECT",
        ),
        Option(
            "schedule-source",
            ("Reads a specific subject when scheduling (implies --jetstream)"),
            metavar="SUBJECT",
        ),
        Option(
            "schedule-ttl",
            "How long generated messages should live in the stream",
            Kind.DURATION,
            metavar="DURATION",
        ),
    ),
    examples=(
        "jsctl pub orders.new 'order {{Count}}' --count 10",
        "tail -f app.log | jsctl pub logs.app --send-on newline -J",
    ),
)
