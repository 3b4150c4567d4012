"""`jsctl bench`: the table of its commands."""

from jsctl.commands.bench.flags import COMMON, MULTI, PUBLISHING, SUBJECT, THROTTLE, sleep
from jsctl.commands.bench.js import GROUP as JETSTREAM
from jsctl.commands.bench.kv import GROUP as KV
from jsctl.commands.bench.oldjs import GROUP as OLD_JETSTREAM
from jsctl.commands.bench.service import GROUP as SERVICE
from jsctl.commands.toolkit.grammar.spec import Command, Group

GROUP = Group(
    "bench",
    "Benchmark utility",
    (
        Command(
            "pub",
            "Publish Core NATS messages",
            "bench.run:core_pub",
            (SUBJECT,),
            (sleep("between publications"), *COMMON, *PUBLISHING, *THROTTLE),
            examples=("jsctl bench pub bench --msgs 1000000 --clients 2",),
        ),
        Command(
            "sub",
            "Subscribe to Core NATS messages",
            "bench.run:core_sub",
            (SUBJECT,),
            (MULTI, *COMMON),
            examples=("jsctl bench sub bench --msgs 1000000",),
        ),
        SERVICE,
        JETSTREAM,
        KV,
        OLD_JETSTREAM,
    ),
)
