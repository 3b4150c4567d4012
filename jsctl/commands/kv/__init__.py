"""`jsctl kv`: the table of its commands."""

from jsctl.commands.toolkit.grammar.spec import ACT_FORCED, Argument, Command, Group, Kind, Option

_BUCKET = Argument("bucket", "The bucket to act on", required=True)
_KEY = Argument("key", "The key to act on", required=True)
_VALUE = Argument("value", "The value to store, when empty reads STDIN")
_HEAD = (
    Option("description", "A description for the bucket"),
    Option("history", "How many historic values to keep per key", Kind.INTEGER, default="1"),
)
_STORAGE = Option(
    "storage", "Storage backend to use (file, memory)", choices=("file", "f", "memory", "m")
)
_SETTINGS = (
    Option("ttl", "How long to keep values for", Kind.DURATION, metavar="DURATION"),
    Option(
        "marker-ttl", "Enables Per-Key TTLs and Limit Markers", Kind.DURATION, metavar="DURATION"
    ),
    Option("replicas", "How many replicas of the data to store", Kind.UNSIGNED, default="1"),
    Option("max-value-size", "Maximum size for any single value", Kind.SIZE, metavar="BYTES"),
    Option("max-bucket-size", "Maximum size for the bucket", Kind.SIZE, metavar="BYTES"),
    Option("tags", "Place the bucket on servers that has specific tags", Kind.LIST),
    Option("cluster", "Place the bucket on a specific cluster"),
    Option("compress", "Compress the bucket data", Kind.SWITCH),
    Option("metadata", "Adds metadata to the stream", Kind.MAP, metavar="META"),
    Option("republish-source", "Republish messages to --republish-destination", metavar="SRC"),
    Option(
        "republish-destination",
        "Republish destination for messages in --republish-source",
        metavar="DEST",
    ),
    Option("republish-headers", "Republish only message headers, no bodies", Kind.FLAG),
)
_SOURCE = Option("source", "Source from a different bucket", Kind.LIST, metavar="BUCKET")

GROUP = Group(
    "kv",
    "Interacts with a JetStream based Key-Value store\n\n"
    "The JetStream Key-Value store uses streams to store key-value pairs for an indefinite period "
    "or a per-bucket configured TTL.",
    (
        Command(
            "add",
            "Adds a new KV Store Bucket",
            "kv.config:add",
            (_BUCKET,),
            (
                *_HEAD,
                _STORAGE,
                *_SETTINGS,
                Option("mirror", "Creates a mirror of a different bucket"),
                Option("mirror-domain", "When mirroring find the bucket in a different domain"),
                _SOURCE,
            ),
            aliases=("new",),
            examples=("jsctl kv add CONFIG --history 5 --replicas 3",),
        ),
        Command(
            "edit",
            "Edits an existing KV Store Bucket",
            "kv.config:edit",
            (_BUCKET,),
            (
                *_HEAD,
                *_SETTINGS,
                Option("no-mirror", "Removes mirror configuration from a bucket", Kind.SWITCH),
                _SOURCE,
            ),
            examples=("jsctl kv edit CONFIG --ttl 1h",),
        ),
        Command(
            "put",
            "Puts a value into a key",
            "kv.keys:put",
            (_BUCKET, _KEY, _VALUE),
            examples=("jsctl kv put CONFIG username bob", "cat logo.png | jsctl kv put FILES logo"),
        ),
        Command(
            "get",
            "Gets a value for a key",
            "kv.keys:get",
            (_BUCKET, _KEY),
            (
                Option("revision", "Gets a specific revision", Kind.UNSIGNED, metavar="REVISION"),
                Option("raw", "Show only the value string", Kind.FLAG),
            ),
            examples=("jsctl kv get CONFIG username --raw",),
        ),
        Command(
            "create",
            "Puts a value into a key only if the key is new or it's last operation was a delete",
            "kv.keys:create",
            (_BUCKET, _KEY, _VALUE),
            (Option("ttl", "Sets a TTL for the key", Kind.DURATION, metavar="DURATION"),),
        ),
        Command(
            "update",
            "Updates a key with a new value if the previous value matches the given revision",
            "kv.keys:update",
            (
                _BUCKET,
                _KEY,
                Argument("value", "The value to store", required=True),
                Argument(
                    "revision",
                    "The revision of the previous value in the bucket",
                    required=True,
                    kind=Kind.UNSIGNED,
                ),
            ),
            examples=("jsctl kv update CONFIG username alice 1",),
        ),
        Command(
            "del",
            "Deletes a key or the entire bucket",
            "kv.keys:delete",
            (_BUCKET, Argument("key", "The key to act on")),
            (ACT_FORCED,),
            aliases=("rm",),
            examples=("jsctl kv del CONFIG username", "jsctl kv del CONFIG -f"),
        ),
        Command(
            "purge",
            "Deletes a key from the bucket, clearing history before creating a delete marker",
            "kv.keys:purge",
            (_BUCKET, _KEY),
            (
                ACT_FORCED,
                Option("ttl", "Sets a TTL for the purge marker", Kind.DURATION, metavar="DURATION"),
            ),
        ),
        Command(
            "history",
            "Shows the full history for a key",
            "kv.show:history",
            (_BUCKET, _KEY),
        ),
        Command(
            "revert",
            "Reverts a value to a previous revision using put",
            "kv.keys:revert",
            (
                _BUCKET,
                _KEY,
                Argument(
                    "revision", "The revision to revert to", required=True, kind=Kind.UNSIGNED
                ),
            ),
            (Option("force", "Force reverting without prompting", Kind.SWITCH),),
        ),
        Command(
            "info",
            "View the status of a KV store",
            "kv.show:info",
            (Argument("bucket", "The bucket to act on"),),
            aliases=("view", "status"),
        ),
        Command(
            "watch",
            "Watch the bucket or a specific key for updated",
            "kv.show:watch",
            (_BUCKET, Argument("key", "The key to act on", default=">")),
            (
                Option("history", "Includes historic values", Kind.FLAG),
                Option(
                    "deletes", "Includes deletes in watched values", Kind.SWITCH, default="true"
                ),
                Option("updates", "Only show new values written", Kind.FLAG),
                Option(
                    "revision", "Starts from a certain revision", Kind.UNSIGNED, metavar="REVISION"
                ),
            ),
            examples=("jsctl kv watch CONFIG 'users.>'",),
        ),
        Command(
            "ls",
            "List available buckets or the keys in a bucket",
            "kv.show:ls",
            (
                Argument("bucket", "The bucket to list the keys"),
                Argument("key", "The key to act on"),
            ),
            (
                Option("names", "Show just the bucket names", Kind.FLAG, short="n"),
                Option("verbose", "Show detailed info about the key", Kind.FLAG, short="v"),
                Option(
                    "display-value",
                    "Display value in verbose output (has no effect without 'verbose')",
                    Kind.FLAG,
                ),
            ),
            aliases=("list",),
            examples=("jsctl kv ls", "jsctl kv ls CONFIG -v --display-value"),
        ),
        Command(
            "compact",
            "Reclaim space used by deleted keys",
            "kv.keys:compact",
            (_BUCKET,),
            (ACT_FORCED,),
        ),
    ),
)
