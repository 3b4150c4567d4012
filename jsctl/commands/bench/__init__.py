"""`jsctl bench`: the table of its commands."""

from jsctl.commands.bench.flags import MULTI, PUBLISHING, SLEEP, SUBJECT
from jsctl.commands.bench.js import GROUP as JETSTREAM
from jsctl.commands.toolkit.grammar.spec import Command, Group, Kind, Option

_COMMON = (
    Option("clients", "Number of concurrent clients", Kind.INTEGER, default="1"),
    Option("msgs", "Number of messages to publish or subscribe to", Kind.INTEGER, default="100000"),
    Option("progress", "Enable or disable the progress bar", Kind.SWITCH, default="true"),
    Option("csv", "Save benchmark data to a CSV file", Kind.FILE),
    Option("size", "Size of the test messages", Kind.SIZE, default="128B"),
)

GROUP = Group(
    "bench",
    "Benchmark utility",
    (
        Command(
            "pub",
            "Publish Core NATS messages",
            "bench.run:core_pub",
            (SUBJECT,),
            (*PUBLISHING, SLEEP),
            examples=("jsctl bench pub bench --msgs 1000000 --clients 2",),
        ),
        Command(
            "sub",
            "Subscribe to Core NATS messages",
            "bench.run:core_sub",
            (SUBJECT,),
            (MULTI,),
            examples=("jsctl bench sub bench --msgs 1000000",),
        ),
        JETSTREAM,
    ),
    options=_COMMON,
)
