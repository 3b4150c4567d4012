"""`jsctl consumer`: the table of its commands."""

from dataclasses import replace

from jsctl.commands.consumer.cluster import GROUP as CLUSTER
from jsctl.commands.consumer.flags import API_LEVEL, QUERY
from jsctl.commands.toolkit.assets.flags import ADDING, BOTH, BULK, CONFIG_FILE, OF_STREAM
from jsctl.commands.toolkit.grammar.live import PICTURE, WATCH
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

BOTH_REQUIRED = tuple(replace(one, required=True) for one in BOTH)

GROUP = Group(
    "consumer",
    "JetStream consumer management",
    (
        Command(
            "add",
            "Creates a new consumer",
            "consumer.config:add",
            BOTH,
            ADDING,
            more_options="consumer.options:create_options",
            aliases=("create", "new"),
            examples=("jsctl consumer add ORDERS NEW --pull --filter orders.new --defaults",),
        ),
        Command(
            "edit",
            "Edits the configuration of a consumer",
            "consumer.config:edit",
            BOTH,
            (
                CONFIG_FILE,
                FORCE,
                Option("interactive", "Edit the configuring using your editor", Kind.SWITCH, "i"),
                Option("dry-run", "Only shows differences, do not edit", Kind.FLAG),
                JSON,
            ),
            more_options="consumer.options:edit_options",
            aliases=("update",),
        ),
        Command(
            "ls",
            "List known consumers",
            "consumer.show:ls",
            (OF_STREAM,),
            (
                JSON,
                Option("names", "Show just the consumer names", Kind.FLAG, short="n"),
                NO_SELECT,
            ),
            aliases=("list",),
            examples=("jsctl consumer ls ORDERS",),
        ),
        Command(
            "find",
            "Finds consumers matching certain criteria",
            "consumer.find:find",
            (OF_STREAM,),
            (*QUERY, API_LEVEL),
            aliases=("query",),
            examples=(
                "jsctl consumer find ORDERS --pull --pending 100",
                "jsctl consumer find ORDERS --expression 'state.num_ack_pending > 10'",
            ),
        ),
        Command(
            "info",
            "Consumer information",
            "consumer.show:info",
            BOTH,
            (JSON, NO_SELECT),
            aliases=("nfo",),
            examples=("jsctl consumer info ORDERS NEW -j",),
        ),
        Command("state", "Consumer state", "consumer.show:state", BOTH, (JSON, NO_SELECT)),
        Command(
            "rm",
            "Removes a consumer",
            "consumer.change:rm",
            BOTH,
            (FORCE, *BULK),
            examples=("jsctl consumer rm ORDERS --match 'test-*' --force",),
            aliases=("delete", "del"),
        ),
        Command(
            "reset",
            "Resets the consumer to a previous state",
            "consumer.change:reset",
            BOTH,
            (Option("sequence", "Sequence to reset to", Kind.UNSIGNED), FORCE, JSON),
        ),
        Command(
            "copy",
            "Creates a new consumer based on the configuration of another",
            "consumer.config:copy",
            (
                BOTH_REQUIRED[0],
                Argument("source", "Source consumer name", required=True),
                Argument("destination", "Destination consumer name", required=True),
            ),
            (JSON,),
            more_options="consumer.options:create_options",
            aliases=("cp",),
        ),
        Command(
            "next",
            ("Retrieves messages from Pull consumers without interactive prompts"),
            "consumer.messages:next_messages",
            BOTH_REQUIRED,
            (
                Option("ack", "Acknowledge received message", Kind.SWITCH, default="true"),
                Option("nak", "Perform a Negative Acknowledgement on the message", Kind.FLAG),
                Option("term", "Terms the message", Kind.FLAG),
                Option("raw", "Show only the message", Kind.FLAG, short="r"),
                Option("wait", "Wait up to this period to acknowledge messages", Kind.DURATION),
                Option(
                    "count",
                    ("Number of messages to try to fetch from the pull consumer"),
                    Kind.INTEGER,
                    default="1",
                ),
            ),
            examples=("jsctl consumer next ORDERS NEW --count 10 --raw",),
        ),
        Command(
            "sub",
            "Retrieves messages from consumers",
            "consumer.messages:subscribe",
            BOTH,
            (
                Option("ack", "Acknowledge received message", Kind.SWITCH, default="true"),
                Option("raw", "Show only the message", Kind.FLAG, short="r"),
                Option("deliver-group", "Deliver group of the consumer", metavar="GROUP"),
            ),
            hidden=True,
        ),
        Command(
            "graph",
            "View a graph of consumer activity",
            "consumer.graph:graph_consumer",
            BOTH,
            PICTURE,
            examples=("jsctl consumer graph ORDERS NEW",),
        ),
        Command(
            "pause",
            "Pause a consumer until a later time",
            "consumer.change:pause",
            (*BOTH, Argument("until", "Pause until a specific time or for a duration")),
            (FORCE,),
        ),
        Command(
            "unpin",
            "Unpin the current Pinned Client from a Priority Group",
            "consumer.change:unpin",
            (*BOTH, Argument("group", "The group to unpin")),
            (FORCE,),
        ),
        Command("resume", "Resume a paused consumer", "consumer.change:resume", BOTH, (FORCE,)),
        Command(
            "report",
            "Reports on consumer statistics",
            "consumer.show:report",
            (OF_STREAM,),
            (
                Option("raw", "Show un-formatted numbers", Kind.FLAG, short="r"),
                Option("leaders", "Show details about cluster leaders", Kind.FLAG, short="l"),
                WATCH,
            ),
            examples=("jsctl consumer report ORDERS",),
        ),
        CLUSTER,
    ),
    options=(Option("all", "Operate on all streams including system ones", Kind.FLAG, short="a"),),
    aliases=("con", "obs", "c"),
)
