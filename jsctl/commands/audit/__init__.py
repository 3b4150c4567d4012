"""`jsctl audit`: the table of its commands."""

from jsctl.commands.toolkit.grammar.spec import FORCE, JSON, Argument, Command, Group, Kind, Option


def _part(name: str, text: str) -> Option:
    return Option(name, text, Kind.SWITCH, default="true")


GROUP = Group(
    "audit",
    "Audit a NATS deployment",
    (
        Command(
            "analyze",
            "perform checks against an archive created by the 'gather' subcommand",
            "audit.analyze:analyze",
            (Argument("archive", "path to input archive to analyze", kind=Kind.INPUT),),
            (
                Option(
                    "max-examples",
                    "How many example issues to display for each failed check (0 for unlimited)",
                    Kind.UNSIGNED,
                    default="5",
                ),
                Option(
                    "skip", "Prevents checks from running by check code", Kind.LIST, metavar="CODE"
                ),
                Option("load", "Loads a saved report", metavar="FILE"),
                Option("save", "Stores the analyze result to a file", metavar="FILE"),
                FORCE,
                JSON,
                Option("markdown", "Output Markdown format", Kind.FLAG),
                Option("verbose", "Log what each check reads, lacks and finds", Kind.FLAG),
            ),
            examples=("jsctl audit analyze audit.zip", "jsctl audit analyze audit.zip --markdown"),
        ),
        Command(
            "checks",
            "List configured audit checks",
            "audit.listing:checks",
            (),
            (JSON,),
            aliases=("ls",),
            examples=("jsctl audit checks",),
        ),
        Command(
            "gather",
            "capture a variety of data from a deployment into an archive file",
            "audit.gather:gather",
            (),
            (
                Option("output", "output file path of generated archive", short="o"),
                _part("progress", "Display progress messages during gathering"),
                Option("cluster", "Limit audit to servers from the named cluster"),
                _part("server-endpoints", "Capture monitoring endpoints for each server"),
                _part("server-profiles", "Capture profiles for each server"),
                Option(
                    "cpu-profile-duration",
                    "Duration of the CPU profile captured from each server (max 15s)",
                    Kind.DURATION,
                    default="5s",
                ),
                _part("account-endpoints", "Capture monitoring endpoints for each account"),
                _part("streams", "Capture state of each stream"),
                _part("consumers", "Capture state of each stream consumers"),
                _part("details", "Capture detailed server information from the audit"),
            ),
            aliases=("capture", "cap"),
            examples=("jsctl audit gather -o audit.zip --no-server-profiles",),
        ),
    ),
)
