"""`jsctl reply`: the declaration."""

from jsctl.commands.toolkit.content.bodies import HEADER
from jsctl.commands.toolkit.grammar.spec import Argument, Command, Kind, Option

COMMAND = Command(
    "reply",
    "Generic service reply utility",
    "messages.reply.run:reply",
    (
        Argument("subject", "Subject to subscribe to", required=True),
        Argument("body", "Reply body"),
    ),
    (
        Option("echo", "Echo back what is received", Kind.FLAG),
        Option(
            "command",
            "Runs a command and responds with its output if its exit code was 0",
            metavar="COMMAND",
        ),
        Option("queue", "Queue group name", short="q", default="NATS-RPLY-22"),
        Option(
            "sleep",
            ("Inject a random sleep delay between replies up to this duration max"),
            Kind.DURATION,
            metavar="MAX",
        ),
        HEADER,
        Option("count", "Quit after receiving this many messages", Kind.UNSIGNED),
    ),
    examples=(
        "jsctl reply help 'ok {{Count}}: {{Request}}'",
        "jsctl reply 'weather.*' --command \"curl -s wttr.in/{{1}}?format=3\"",
    ),
)
