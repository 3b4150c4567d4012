"""`jsctl bench service`: the table of its commands."""

from jsctl.commands.bench.flags import COMMON, HEADER, SUBJECT, THROTTLE, sleep
from jsctl.commands.toolkit.grammar.spec import Command, Group, Kind, Option

GROUP = Group(
    "service",
    "Micro-service mode",
    (
        Command(
            "request",
            "Send a request and wait for a reply",
            "bench.run:service_request",
            (SUBJECT,),
            (
                Option(
                    "payload",
                    "File containing the payload to send",
                    Kind.INPUT,
                    metavar="PAYLOAD",
                ),
                HEADER,
                *THROTTLE,
            ),
            examples=("jsctl bench service request bench --msgs 10000",),
        ),
        Command(
            "serve",
            "Service requests",
            "bench.run:service_serve",
            (SUBJECT,),
            examples=("jsctl bench service serve bench --clients 2",),
        ),
    ),
    options=(sleep("between requests or before replying to the request"), *COMMON),
)
