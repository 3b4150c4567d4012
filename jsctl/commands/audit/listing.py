"""`audit checks`."""

from jsctl.commands.audit.catalog import CHECKS, Check
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.render.column import Column

_COLUMNS: tuple[Column[Check], ...] = (
    Column("suite", "Suite", lambda check: check.suite),
    Column("code", "Code", lambda check: check.code),
    Column("description", "Description", lambda check: check.description),
    Column("configuration", "Configuration", lambda check: check.configuration),
)


def checks(call: Call) -> None:
    """All checks and their thresholds."""
    if call.as_json:
        call.output.json([check.document() for check in CHECKS])
        return
    named = call.output.form == "names"  # By its code, not by its suite.
    call.output.report(CHECKS, _COLUMNS[named:], "Audit Checks")
