"""`jsctl dlq`: the table of its commands."""

from jsctl.commands.toolkit.grammar.spec import FORCE, JSON, Argument, Command, Group, Kind, Option

_DRY_RUN = Option("dry-run", "Only shows what would be done", Kind.FLAG)
_IDS = Argument("id", "Dead letters by their number, as the list shows them", many=True)
_CHOICE = (
    Option("stream", "Only those of a stream"),
    Option("consumer", "Only those of a consumer"),
    Option("subject", "Only those whose message has a subject as 'orders.*'", metavar="PATTERN"),
    Option("why", "Only those for a reason", choices=("max-deliver", "terminated")),
    Option("since", "Only those since a time like 2h", Kind.SPAN),
)
_CHOSEN = (*_CHOICE, Option("all", "All dead letters", Kind.FLAG), _DRY_RUN, FORCE)

GROUP = Group(
    "dlq",
    "Dead letters: messages that consumers gave up, kept to be looked at and sent again",
    (
        Command(
            "setup",
            "Makes the stream that notes dead letters from now on",
            "dlq.setup:setup",
            (),
            (
                Option("max-age", "How long dead letters are noted", Kind.DURATION, default="30d"),
                Option("max-msgs", "How many are noted at most", Kind.INTEGER, default="1000000"),
                Option("replicas", "Replicas of the stream", Kind.INTEGER, default="1"),
                Option(
                    "storage",
                    "Where they are noted (file, memory)",
                    default="file",
                    choices=("file", "memory"),
                ),
                _DRY_RUN,
            ),
            examples=("jsctl dlq setup --replicas 3", "jsctl dlq setup --dlq LOST --max-age 7d"),
        ),
        Command(
            "list",
            "Lists dead letters, the newest last",
            "dlq.show:list_letters",
            (),
            (*_CHOICE, Option("limit", "Shows so many of them", Kind.INTEGER, default="1000")),
            aliases=("ls",),
            examples=("jsctl dlq ls", "jsctl dlq ls --stream ORDERS --since 2h"),
        ),
        Command(
            "inspect",
            "Shows a dead letter with its message",
            "dlq.show:inspect",
            (Argument("id", "The number of the dead letter", required=True),),
            aliases=("show", "info"),
            examples=("jsctl dlq inspect 17",),
        ),
        Command(
            "replay",
            "Stores messages of dead letters again, then forgets the dead letters",
            "dlq.act:replay",
            (_IDS,),
            (
                Option("to", "Sends them to this subject instead of their own", metavar="SUBJECT"),
                Option("remove", "Removes the message that was given up, too", Kind.FLAG),
                *_CHOSEN,
            ),
            examples=(
                "jsctl dlq replay 17 18",
                "jsctl dlq replay --stream ORDERS --consumer BILLING --dry-run",
                "jsctl dlq replay --all --to orders.retry --force",
            ),
            details=(
                "Each message is stored before its dead letter is forgotten, under an id that "
                "makes a second try a duplicate: an interrupted replay is simply run again.",
            ),
        ),
        Command(
            "drop",
            "Forgets dead letters",
            "dlq.act:drop",
            (_IDS,),
            (Option("remove", "Removes the message that was given up, too", Kind.FLAG), *_CHOSEN),
            aliases=("rm",),
            examples=("jsctl dlq drop 17", "jsctl dlq drop --stream ORDERS --since 2h --dry-run"),
        ),
    ),
    options=(
        Option("dlq", "The stream of dead letters, if there are several or none yet"),
        JSON,
    ),
)
