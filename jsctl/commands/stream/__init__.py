"""`jsctl stream`: the table of its commands."""

from jsctl.commands.stream.cluster import GROUP as CLUSTER
from jsctl.commands.toolkit.assets.flags import ADDING, CONFIG_FILE, STREAM
from jsctl.commands.toolkit.grammar.spec import (
    FORCE,
    JSON,
    NO_SELECT,
    Argument,
    Command,
    Group,
    Kind,
    Option,
)

_SUBJECT = Option("subject", "Limit the list to streams with matching subjects")
_EDIT_ONLY = (
    CONFIG_FILE,
    FORCE,
    Option("interactive", "Edit the configuring using your editor", Kind.SWITCH, short="i"),
    Option("dry-run", "Only shows differences, do not edit the stream", Kind.FLAG),
    JSON,
)

GROUP = Group(
    "stream",
    "JetStream stream management",
    (
        Command(
            "add",
            "Create a new stream",
            "stream.config:add",
            (Argument("stream", "Stream name"),),
            ADDING,
            more_options="stream.config:create_options",
            aliases=("create", "new"),
            examples=(
                "jsctl stream add ORDERS --subjects 'orders.>' --replicas 3 --defaults",
                "jsctl stream add --config orders.json",
            ),
        ),
        Command(
            "ls",
            "List all known streams",
            "stream.show:ls",
            options=(
                _SUBJECT,
                Option("names", "Show just the stream names", Kind.FLAG, short="n"),
                JSON,
            ),
            aliases=("list", "l"),
            examples=("jsctl stream ls", "jsctl stream ls --subject 'orders.*' -n"),
        ),
        Command(
            "report",
            "Reports on stream statistics",
            "stream.show:report",
            options=(
                Option("subject", "Limit the report to streams with matching subjects"),
                Option("cluster", "Limit report to streams within a specific cluster"),
                Option("consumers", "Sort by number of Consumers", Kind.FLAG, short="o"),
                Option("messages", "Sort by number of Messages", Kind.FLAG, short="m"),
                Option("name", "Sort by stream name", Kind.FLAG, short="n"),
                Option("storage", "Sort by Storage type", Kind.FLAG, short="t"),
                Option("raw", "Show un-formatted numbers", Kind.FLAG, short="r"),
                Option("dot", "Produce a GraphViz graph of replication topology", Kind.FILE),
                Option("leaders", "Show details about cluster leaders", Kind.FLAG, short="l"),
            ),
            examples=("jsctl stream report -l", "jsctl stream report --output json"),
        ),
        Command(
            "info",
            "Stream information",
            "stream.show:info",
            (STREAM,),
            (JSON, Option("state", "Shows only the stream state", Kind.FLAG), NO_SELECT),
            aliases=("nfo", "i"),
            examples=("jsctl stream info ORDERS", "jsctl stream info ORDERS -j"),
        ),
        Command("state", "Stream state", "stream.show:state", (STREAM,), (JSON, NO_SELECT)),
        Command(
            "subjects",
            "Query subjects held in a stream",
            "stream.show:subjects",
            (STREAM, Argument("filter", "Limit the subjects", default=">")),
            (
                JSON,
                Option(
                    "sort",
                    "Adjusts the sorting order",
                    default="messages",
                    choices=("name", "subjects", "messages", "count"),
                ),
                Option("reverse", "Reverse sort servers", Kind.FLAG, short="R"),
                Option("names", "List only subject names", Kind.FLAG),
            ),
            aliases=("subj",),
        ),
        Command(
            "edit",
            "Edits an existing stream",
            "stream.config:edit",
            (STREAM,),
            _EDIT_ONLY,
            more_options="stream.config:edit_options",
            aliases=("update",),
            examples=("jsctl stream edit ORDERS --max-age 7d --dry-run",),
        ),
        Command(
            "rm",
            "Removes a stream",
            "stream.change:rm",
            (STREAM,),
            (FORCE,),
            aliases=("delete", "del"),
        ),
        Command(
            "purge",
            "Bulk removes messages from a stream",
            "stream.change:purge",
            (STREAM,),
            (
                JSON,
                FORCE,
                Option("subject", "Limits the purge to a specific subject"),
                Option("seq", "Purge up to but not including a message sequence", Kind.INTEGER),
                Option("keep", "Keeps a certain number of messages", Kind.INTEGER),
            ),
            examples=("jsctl stream purge ORDERS --keep 1000 -f",),
        ),
        Command(
            "copy",
            "Creates a new stream based on the configuration of another, does not copy data",
            "stream.config:copy",
            (
                Argument("source", "Source stream to copy", required=True),
                Argument("destination", "New stream to create", required=True),
            ),
            (JSON,),
            more_options="stream.config:copy_options",
            aliases=("cp",),
        ),
        Command(
            "rmm",
            "Securely removes an individual message from a stream",
            "stream.change:rmm",
            (STREAM, Argument("id", "Message sequence to remove")),
            (FORCE,),
        ),
        Command(
            "view",
            "View messages in a stream",
            "stream.show:view",
            (STREAM, Argument("size", "Page size", default="10")),
            (
                Option("id", "Start at a specific message sequence", Kind.INTEGER),
                Option("raw", "Show the raw data received", Kind.FLAG),
                Option("subject", "Filter the stream using a subject"),
            ),
        ),
        Command(
            "get",
            "Retrieves a specific message from a Stream",
            "stream.show:get",
            (STREAM, Argument("id", "Message sequence to retrieve")),
            (Option("last-for", "Retrieves the message for a subject", short="S"), JSON),
        ),
        Command(
            "backup",
            "Creates a backup of a stream in a directory",
            "stream.backup:backup",
            (
                Argument("stream", "Stream to back up", required=True),
                Argument("target", "Directory to create the backup in", required=True),
            ),
            (
                Option("check", "Checks the stream for integrity before the backup", Kind.FLAG),
                Option("consumers", "Includes the consumers, the default", Kind.SWITCH),
                Option("chunk-size", "Size of the parts that are sent", Kind.SIZE),
                Option("window-size", "What may be sent ahead of acknowledgements", Kind.SIZE),
            ),
            aliases=("snapshot",),
            examples=("jsctl stream backup ORDERS /backup/orders",),
        ),
        Command(
            "seal",
            "Seals a stream preventing further updates",
            "stream.change:seal",
            (Argument("stream", "The stream to seal", required=True),),
            (FORCE, JSON),
        ),
        CLUSTER,
    ),
    options=(
        Option(
            "all",
            "When listing or selecting streams show all streams including system ones",
            Kind.FLAG,
            short="a",
        ),
    ),
    aliases=("str", "st", "ms", "s"),
)
