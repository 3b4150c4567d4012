"""`jsctl bench js`: the table of its commands."""

from jsctl.commands.bench.flags import PUBLISHING, SLEEP, SUBJECT
from jsctl.commands.toolkit.grammar.spec import Command, Group, Kind, Option

_STREAM = (
    Option("create", "Create or update the stream first", Kind.FLAG),
    Option("storage", "Storage of the stream", default="file", choices=("memory", "file")),
    Option("replicas", "Number of stream replicas", Kind.INTEGER, default="1"),
    Option("maxbytes", "The maximum size of the stream", Kind.SIZE, default="1GB"),
    Option("dedup", "Send a message id with every message", Kind.FLAG),
    Option("dedupwindow", "The duplicate window of the stream", Kind.DURATION, default="2m"),
    Option("purge", "Purge the stream before running", Kind.FLAG),
    Option("persistasync", "The stream may answer before it is on disk", Kind.FLAG),
)
_BATCH = Option("batch", "How many messages are in flight", Kind.INTEGER, default="500")

_PUB = Group(
    "pub",
    "Publish JetStream messages",
    (
        Command(
            "sync",
            "Publish messages one by one, each after the answer to the last",
            "bench.run:js_pub_sync",
            (SUBJECT,),
            (*PUBLISHING, *_STREAM),
            examples=("jsctl bench js pub sync bench.a --create --msgs 10000",),
        ),
        Command(
            "async",
            "Publish messages in batches, answers are awaited for each batch",
            "bench.run:js_pub_async",
            (SUBJECT,),
            (*PUBLISHING, *_STREAM, _BATCH),
            examples=("jsctl bench js pub async bench.a --create --replicas 3",),
        ),
    ),
)

GROUP = Group(
    "js",
    "JetStream benchmark commands",
    (_PUB,),
    options=(
        Option("stream", "The stream to use", default="benchstream"),
        SLEEP,
    ),
)
