"""`jsctl errors`: the table of its commands."""

from jsctl.commands.toolkit.grammar.spec import Argument, Command, Group, Kind, Option

_CODE = Argument("code", "The code to retrieve", required=True)

GROUP = Group(
    "errors",
    "Error code documentation",
    (
        Command(
            "ls",
            "List all known error codes",
            "errors.run:ls",
            (
                Argument("match", "Regular expression match to limit the displayed results"),
                Argument(
                    "sort",
                    "Sorts by a specific field (code, http, description, d, desc)",
                    default="code",
                    choices=("code", "http", "description", "descr", "d"),
                ),
            ),
            (Option("reverse", "Reverse sort", Kind.SWITCH, short="R"),),
            aliases=("list",),
            examples=("jsctl errors ls consumer", "jsctl errors ls -o json"),
        ),
        Command(
            "lookup",
            "Looks up an error by it's code",
            "errors.run:lookup",
            (_CODE,),
            aliases=("find", "get", "l", "view", "show"),
            examples=("jsctl errors lookup 10059",),
        ),
        Command(
            "edit",
            "Edit or add a error code using your EDITOR",
            "errors.edit:edit",
            (
                Argument("file", "The file to edit", required=True, kind=Kind.INPUT),
                Argument("code", "The code to edit"),
            ),
            aliases=("vi", "add", "new"),
        ),
        Command(
            "validate",
            "Validates the validity of the errors definition",
            "errors.edit:validate",
            (Argument("file", "The file to validate", kind=Kind.INPUT),),
        ),
    ),
    (Option("errors", "The errors.json file to use as input", Kind.INPUT, metavar="FILE"),),
    aliases=("err", "error"),
)
