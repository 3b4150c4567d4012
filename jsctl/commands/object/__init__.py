"""`jsctl object`: the table of its commands."""

from jsctl.commands.toolkit.grammar.spec import ACT_FORCED, Argument, Command, Group, Kind, Option

_BUCKET = Argument("bucket", "The bucket to act on", required=True)
_MAYBE_BUCKET = Argument("bucket", "The bucket to act on")
_FILE = Argument("file", "The file to retrieve")
_PROGRESS = Option("progress", "Disable progress bars", Kind.SWITCH, default="true")
_HEAD = (
    Option("ttl", "How long to keep objects for", Kind.DURATION, metavar="TTL"),
    Option("replicas", "How many replicas of the data to store", Kind.UNSIGNED, default="1"),
    Option("max-bucket-size", "Maximum size for the bucket", Kind.SIZE, metavar="MAX-BUCKET-SIZE"),
    Option("description", "A description for the bucket"),
)
_STORAGE = Option(
    "storage", "Storage backend to use (file, memory)", choices=("file", "f", "memory", "m")
)
_SETTINGS = (
    Option("tags", "Place the store on servers that has specific tags", Kind.LIST),
    Option("cluster", "Place the store on a specific cluster"),
    Option("metadata", "Adds metadata to the bucket", Kind.MAP, metavar="META"),
    Option("compress", "Compress the bucket data", Kind.SWITCH),
)

GROUP = Group(
    "object",
    "Interacts with a JetStream based Object store\n\n"
    "The JetStream Object store uses streams to store large objects for an indefinite period or a "
    "per-bucket configured TTL.",
    (
        Command(
            "add",
            "Adds a new Object Store Bucket",
            "object.config:add",
            (_BUCKET,),
            (*_HEAD, _STORAGE, *_SETTINGS),
            examples=("jsctl object add FILES --replicas 3",),
        ),
        Command(
            "edit",
            "Edit an existing Object Store Bucket",
            "object.config:edit",
            (_BUCKET,),
            (*_HEAD, *_SETTINGS),
            examples=("jsctl object edit FILES --ttl 30d",),
        ),
        Command(
            "put",
            "Puts a file into the store",
            "object.files:put",
            (_BUCKET, Argument("file", "The file to put", kind=Kind.INPUT)),
            (
                Option("name", "Override the name supplied to the object store"),
                Option("description", "Sets an optional description for the object"),
                Option(
                    "header",
                    "Adds headers to the object using K:V format",
                    Kind.LIST,
                    short="H",
                ),
                Option(
                    "chunk-size",
                    "Sets the chunk size for the file",
                    Kind.UNSIGNED,
                    metavar="CHUNK-SIZE",
                    bits=32,
                ),
                _PROGRESS,
                ACT_FORCED,
            ),
            examples=(
                "jsctl object put FILES image.iso",
                "tar c . | jsctl object put FILES --name all.tar",
            ),
        ),
        Command(
            "del",
            "Deletes a file or bucket from the store",
            "object.files:delete",
            (_BUCKET, _FILE),
            (ACT_FORCED,),
            aliases=("rm",),
        ),
        Command(
            "get",
            "Retrieves a file from the store",
            "object.files:get",
            (_BUCKET, Argument("file", "The file to retrieve", required=True)),
            (
                Option(
                    "output",
                    "Override the output file name",
                    Kind.FILE,
                    short="O",
                    metavar="OUTPUT",
                ),
                _PROGRESS,
                ACT_FORCED,
            ),
            examples=("jsctl object get FILES image.iso -O /tmp/image.iso",),
        ),
        Command(
            "info",
            "Get information about a bucket or object",
            "object.show:info",
            (_MAYBE_BUCKET, _FILE),
            aliases=("show", "i"),
        ),
        Command(
            "ls",
            "List buckets or contents of a specific bucket",
            "object.show:ls",
            (_MAYBE_BUCKET,),
            (Option("names", "When listing buckets, show just the bucket names", Kind.FLAG, "n"),),
            examples=("jsctl object ls", "jsctl object ls FILES"),
        ),
        Command(
            "seal",
            "Seals a bucket preventing further updates",
            "object.config:seal",
            (_BUCKET,),
            (Option("force", "Force sealing without prompting", Kind.FLAG, short="f"),),
        ),
        Command("watch", "Watch a bucket for changes", "object.show:watch", (_BUCKET,)),
    ),
)
