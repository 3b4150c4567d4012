"""`jsctl bench oldjs`: the table of its commands."""

from jsctl.commands.bench.flags import COMMON, MULTI, SUBJECT, batch, sleep
from jsctl.commands.toolkit.grammar.spec import Command, Group, Kind, Option

_CONSUME = "Consume JetStream messages from a consumer using an old JS API's"
_CONSUMER = Option("consumer", "Specify the durable consumer name to use", default="nats-bench")
_ACKS = (
    Option(
        "ack",
        "Uses explicit message acknowledgement or not for the consumer",
        Kind.SWITCH,
        default="true",
    ),
    Option(
        "doubleack",
        "Synchronously acknowledge messages, waiting for a reply from the server",
        Kind.SWITCH,
    ),
)

GROUP = Group(
    "oldjs",
    "JetStream benchmark commands using the old JS API",
    (
        Command(
            "ordered",
            f"{_CONSUME} ephemeral ordered consumer",
            "bench.oldjs.run:ordered",
            (SUBJECT,),
            (MULTI,),
            examples=("jsctl bench oldjs ordered bench.a",),
        ),
        Command(
            "push",
            f"{_CONSUME} durable push consumer",
            "bench.oldjs.run:push",
            (SUBJECT,),
            (
                _CONSUMER,
                Option(
                    "maxacks",
                    "Sets the max ack pending value, adjusts for the number of clients",
                    Kind.INTEGER,
                    default="500",
                ),
                *_ACKS,
            ),
            examples=("jsctl bench oldjs push bench.a --clients 2",),
        ),
        Command(
            "pull",
            f"{_CONSUME} durable pull consumer",
            "bench.oldjs.run:pull",
            (SUBJECT,),
            (_CONSUMER, batch("fetch size for the consumer"), *_ACKS),
            examples=("jsctl bench oldjs pull bench.a --batch 100",),
        ),
    ),
    options=(
        *COMMON,
        Option("stream", "The name of the stream to create or use", default="benchstream"),
        sleep("between publications"),
    ),
    hidden=True,
)
