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
        Option("reply", "Sets a custom reply to subject"),
        HEADER,
        Option("atomic", "Publish all messages as one atomic batch", Kind.FLAG),
        Option("count", "Publish multiple messages", Kind.INTEGER, default="1"),
        Option("sleep", "When publishing multiple messages, sleep in between", Kind.DURATION),
        FORCE_STDIN,
        Option("jetstream", "Publish to JetStream and wait for the answer", Kind.FLAG, short="J"),
        Option(
            "jitter",
            "When publishing multiple messages, adds a random delay of up to this duration between "
            "publishes, in addition to --sleep",
            Kind.DURATION,
        ),
        SEND_ON,
        Option("quiet", "Show just the errors", Kind.FLAG, short="q"),
        TEMPLATES,
        Option("schedule-after", "Publish the message after this time", Kind.DURATION),
        Option("schedule-every", "Publish the message again and again", Kind.DURATION),
        Option("schedule-at", "Publish the message at this RFC 3339 time", metavar="TIME"),
        Option("schedule-cron", "Publish the message by a cron expression", metavar="EXPRESSION"),
        Option("schedule-dest", "The subject that scheduled messages go to", metavar="SUBJECT"),
        Option("schedule-source", "Take the body from the last message here", metavar="SUBJECT"),
        Option("schedule-ttl", "How long scheduled messages live", Kind.DURATION),
    ),
    examples=(
        "jsctl pub orders.new 'order {{Count}}' --count 10",
        "tail -f app.log | jsctl pub logs.app --send-on newline -J",
    ),
)
