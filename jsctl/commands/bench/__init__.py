"""`jsctl bench`: the table of its commands."""

from jsctl.commands.toolkit.grammar.spec import Argument, Command, Group, Kind, Option

_SUBJECT = Argument("subject", "Subject to use for the benchmark", required=True)
_COMMON = (
    Option("clients", "Number of concurrent clients", Kind.INTEGER, default="1"),
    Option("msgs", "Number of messages to publish or subscribe to", Kind.INTEGER, default="100000"),
    Option("progress", "Enable or disable the progress bar", Kind.SWITCH, default="true"),
    Option("csv", "Save benchmark data to a CSV file", Kind.FILE),
    Option("size", "Size of the test messages", Kind.SIZE, default="128B"),
)
_SLEEP = Option("sleep", "Sleep between messages", Kind.DURATION, default="0s")
_MULTI = Option("multisubject", "Use a different subject for each message", Kind.FLAG)
_PUBLISHING = (
    _MULTI,
    Option("multisubjectmax", "How many subjects at most", Kind.INTEGER, default="100000"),
    Option("multisubjectrandomize", "Choose the subject by chance", Kind.FLAG),
    Option("payload", "File containing a message payload", Kind.FILE),
    Option("header", "Adds headers to the message", Kind.LIST, short="H", metavar="K:V"),
    Option("throughput", "Messages a second of all clients, 0 for all", Kind.INTEGER, default="0"),
    Option("duration", "How long to run at that throughput", Kind.DURATION, default="0s"),
)
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

_JS_PUB = Group(
    "pub",
    "Publish JetStream messages",
    (
        Command(
            "sync",
            "Publish messages one by one, each after the answer to the last",
            "bench.run:js_pub_sync",
            (_SUBJECT,),
            (*_PUBLISHING, *_STREAM),
            examples=("jsctl bench js pub sync bench.a --create --msgs 10000",),
        ),
        Command(
            "async",
            "Publish messages in batches, answers are awaited for each batch",
            "bench.run:js_pub_async",
            (_SUBJECT,),
            (*_PUBLISHING, *_STREAM, _BATCH),
            examples=("jsctl bench js pub async bench.a --create --replicas 3",),
        ),
    ),
)

GROUP = Group(
    "bench",
    "Benchmark utility",
    (
        Command(
            "pub",
            "Publish Core NATS messages",
            "bench.run:core_pub",
            (_SUBJECT,),
            (*_PUBLISHING, _SLEEP),
            examples=("jsctl bench pub bench --msgs 1000000 --clients 2",),
        ),
        Command(
            "sub",
            "Subscribe to Core NATS messages",
            "bench.run:core_sub",
            (_SUBJECT,),
            (_MULTI,),
            examples=("jsctl bench sub bench --msgs 1000000",),
        ),
        Group(
            "js",
            "JetStream benchmark commands",
            (_JS_PUB,),
            options=(
                Option("stream", "The stream to use", default="benchstream"),
                _SLEEP,
            ),
        ),
    ),
    options=_COMMON,
)
