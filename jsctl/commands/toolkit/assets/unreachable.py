"""Assets that did not answer a list, below the list."""

from collections.abc import Mapping, Sequence

from jsctl.commands.toolkit.invocation.call import Call
from jsctl.render.reports.assets.parts import inaccessible_table, offline_table


def print_unreachable(
    call: Call, kind: str, missing: Sequence[str], offline: Mapping[str, str]
) -> None:
    """A table each of the names that were missing and of those that are offline, and why."""
    out = call.output
    if missing:
        out.print("\n" + inaccessible_table(kind, missing, out.theme, out.width))
    if offline:
        out.print("\n" + offline_table(kind, offline, out.theme, out.width))
