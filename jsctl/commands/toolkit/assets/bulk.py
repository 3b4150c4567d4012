"""One operation on all streams or consumers whose names match a pattern."""

from collections.abc import Awaitable, Callable, Sequence
from fnmatch import fnmatchcase

from jsctl.api.errors import ApiError
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import JsctlError, NotFound, UsageError
from jsctl.render.humanize import counted

NAMED_MAX = 10
"""So many names are in the question."""


def is_bulk(call: Call) -> bool:
    """Whether `--match` was given. Raises UsageError for a dry run of what is named."""
    if call.given("match"):
        return True
    if call.flag("dry-run"):
        raise UsageError("--dry-run shows what --match chooses, and nothing else: give --match")
    return False


async def in_bulk(
    call: Call,
    names: Sequence[str],
    verb: str,
    what: str,
    operate: Callable[[str], Awaitable[object]],
) -> int:
    """Does it to each name that `--match` chooses; 1 when some failed, and those are told.

    With `--dry-run` the names are only printed. Raises NotFound when there are none.
    """
    pattern = call.text("match")
    if call.text(what):
        raise UsageError(f"a {what} and --match cannot be given together")
    chosen = sorted(name for name in names if fnmatchcase(name, pattern))
    if not chosen:
        raise NotFound(f'no {what} matches "{pattern}"')
    if call.flag("dry-run"):
        _tell(call, chosen, {})
        return 0
    shown = ", ".join(chosen[:NAMED_MAX]) + (", ..." if len(chosen) > NAMED_MAX else "")
    if not call.confirm(f"Really {verb} {counted(len(chosen), what)} ({shown})"):
        return 0
    failed: dict[str, str] = {}
    for name in chosen:
        try:
            await operate(name)
        except (ApiError, JsctlError) as error:
            failed[name] = str(error)
            call.output.note(f"{name}: {error}")
    _tell(call, [name for name in chosen if name not in failed], failed)
    return 1 if failed else 0


def _tell(call: Call, names: Sequence[str], failed: dict[str, str]) -> None:
    if call.as_json:
        call.output.json({"names": list(names), "failed": failed})
        return
    call.output.names(names)
