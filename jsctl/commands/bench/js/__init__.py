"""`jsctl bench js`: the table of its commands."""

from jsctl.commands.bench.flags import (
    COMMON,
    MAX_BYTES,
    PUBLISHING,
    PURGE,
    SUBJECT,
    THROTTLE,
    batch,
    sleep,
)
from jsctl.commands.toolkit.grammar.spec import Command, Group, Kind, Option

_STREAM = (
    Option("create", "Create or update the stream first", Kind.FLAG),
    Option(
        "storage",
        'JetStream storage (memory/file) for the "benchstream" stream',
        default="file",
        choices=("memory", "file"),
    ),
    Option(
        "replicas", 'Number of replicas for the "benchstream" stream', Kind.INTEGER, default="1"
    ),
    MAX_BYTES,
    Option("dedup", "Sets a message id in the header to use JS Publish de-duplication", Kind.FLAG),
    Option(
        "dedupwindow",
        "Sets the duration of the stream's deduplication functionality",
        Kind.DURATION,
        default="2m",
    ),
    PURGE,
    Option(
        "persistasync",
        "Set the persistence mode for the steam to asynchronous (only for R1 streams)",
        Kind.FLAG,
    ),
)
_BUFFERED = batch("max number of messages that can be buffered in the client")
_FILTER = Option("filter", "Filter Stream by subjects", Kind.LIST, metavar="SUBJECTS")
_DURABLE = (
    Option("consumer", "Specify the durable consumer name to use", default="nats-bench"),
    _BUFFERED,
    Option(
        "acks",
        "Acknowledgement mode for the consumer",
        default="explicit",
        choices=("explicit", "none", "all"),
        silent=True,
    ),
    Option(
        "doubleack",
        "Synchronously acknowledge messages, waiting for a reply from the server",
        Kind.SWITCH,
    ),
    _FILTER,
    PURGE,
)


def _publish(name: str, kind: str, *options: Option, aliases: tuple[str, ...] = ()) -> Command:
    return Command(
        name,
        f"Use {kind} JetStream publish",
        f"bench.run:js_pub_{name}",
        (SUBJECT,),
        (*options, *PUBLISHING, *_STREAM, *THROTTLE),
        aliases=aliases,
        examples=(f"jsctl bench js pub {name} bench.a --create --msgs 10000",),
    )


_PUB = Group(
    "pub",
    "Publish JetStream messages",
    (
        _publish("sync", "synchronous"),
        _publish("async", "asynchronous", batch("number of asynchronous operations per batch")),
        _publish("atomic", "atomic batch", batch("size of the batches"), aliases=("batch",)),
        _publish(
            "fast",
            "fast batch",
            batch("size of the batches"),
            Option(
                "max-outstanding-acks",
                "Sets the max outstanding acks for fast publishing",
                Kind.UNSIGNED,
                default="1",
                bits=16,
            ),
        ),
    ),
)
_GET = Group(
    "get",
    "Retrieve messages from JetStream using gets",
    (
        Command("sync", "Use synchronous JetStream get", "bench.run:js_get_sync"),
        Command(
            "batch",
            "Use batched JetStream direct get",
            "bench.run:js_get_batch",
            (),
            (_BUFFERED, Option("filter", "Filter for the messages", default=">")),
        ),
    ),
)
_CONSUME = "Consume JetStream messages from a"

GROUP = Group(
    "js",
    "JetStream benchmark commands",
    (
        _PUB,
        Command(
            "ordered",
            f"{_CONSUME} consumer using an ephemeral ordered consumer",
            "bench.run:js_ordered",
            (),
            (_BUFFERED, PURGE, _FILTER),
        ),
        Command(
            "consume",
            f"{_CONSUME} durable consumer using a callback",
            "bench.run:js_consume",
            (),
            _DURABLE,
            examples=("jsctl bench js consume --clients 2",),
        ),
        Command(
            "fetch",
            f"{_CONSUME} durable consumer using fetch",
            "bench.run:js_fetch",
            (),
            _DURABLE,
            examples=("jsctl bench js fetch --batch 100",),
        ),
        _GET,
    ),
    options=(
        *COMMON,
        Option("stream", "The name of the stream to create or use", default="benchstream"),
        sleep("between publications"),
    ),
)
