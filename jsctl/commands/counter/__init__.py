"""`jsctl counter`: the table of its commands."""

from jsctl.commands.toolkit.grammar.spec import Argument, Command, Group, Kind, Option

_SUBJECT = Argument("subject", "Subject to get counter for", required=True)
_STREAM = Option("stream", "The stream name to fetch the value from")

GROUP = Group(
    "counter",
    "Access distributed Counters\n\n"
    "This is an experimental command and will undergo changes in later versions",
    (
        Command(
            "get",
            "Gets the current value for a counter",
            "counter.run:get",
            (_SUBJECT,),
            (_STREAM,),
            aliases=("g",),
            examples=("jsctl counter get visits.home",),
        ),
        Command(
            "view",
            "View the full counter metadata",
            "counter.run:view",
            (_SUBJECT,),
            (_STREAM,),
            aliases=("v",),
        ),
        Command(
            "increment",
            "Increment the value of a counter",
            "counter.run:increment",
            (_SUBJECT, Argument("value", "The value to increment", required=True)),
            aliases=("incr", "inc", "i"),
            examples=("jsctl counter increment visits.home 1",),
        ),
        Command(
            "decrement",
            "Decrement the value of a counter",
            "counter.run:decrement",
            (_SUBJECT, Argument("value", "The value to decrement", required=True)),
            aliases=("decr", "dec", "d"),
        ),
        Command(
            "list",
            "List Counters in a stream",
            "counter.run:ls",
            (Argument("subject", "Subject pattern to get counters for"),),
            (_STREAM, Option("json", "Produce JSON output", Kind.FLAG)),
            aliases=("l", "ls"),
            examples=("jsctl counter list 'visits.>'",),
        ),
    ),
)
