"""`jsctl request`: the declaration."""

from jsctl.commands.toolkit.content.bodies import FORCE_STDIN, HEADER, SEND_ON, TEMPLATES, TRANSLATE
from jsctl.commands.toolkit.grammar.spec import Argument, Command, Kind, Option

COMMAND = Command(
    "request",
    "Generic request-reply utility",
    "messages.request.run:request",
    (
        Argument("subject", "Subject to send the request to", required=True),
        Argument("body", "Message body"),
    ),
    (
        Option("raw", "Show just the output received", Kind.FLAG, short="r"),
        HEADER,
        Option("count", "Send multiple requests", Kind.INTEGER, default="1"),
        Option(
            "replies",
            ("Wait for multiple replies from services. 0 waits until timeout"),
            Kind.INTEGER,
            default="1",
        ),
        Option(
            "reply-timeout",
            ("Maximum time between replies when waiting for more than one"),
            Kind.DURATION,
            default="300ms",
        ),
        Option(
            "wait-for-empty",
            ("Wait for multiple replies until a empty message is received"),
            Kind.FLAG,
        ),
        Option(
            "wait",
            "Wait for a reply from a service",
            Kind.SWITCH,
            short="w",
            default="true",
            hidden=True,
        ),
        TRANSLATE,
        FORCE_STDIN,
        SEND_ON,
        TEMPLATES,
    ),
    examples=("jsctl request help 'hello {{Count}}'", "jsctl req time '' --raw --replies 0"),
)
