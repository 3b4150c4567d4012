"""`auth operator info` and `list`."""

from jsctl.auth.entities import OperatorEntity
from jsctl.auth.export import operator_document
from jsctl.commands.auth.selecting import Auth
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.render.reports.auth.screens import operator_screen
from jsctl.render.reports.auth.tables import OPERATOR_COLUMNS
from jsctl.render.table import safe


def info(call: Call) -> None:
    """One operator; as a document with everything it has, secrets too."""
    show_operator(call, Auth(call).operator(call.text("name")))


def show_operator(call: Call, operator: OperatorEntity) -> None:
    """Prints an operator as the command line asks for it."""
    if call.as_json:
        call.output.json(operator_document(operator))
        return
    call.output.details(operator_screen(operator))
    call.output.print()


def list_operators(call: Call) -> None:
    """All operators of the store."""
    operators = Auth(call).operators
    if not operators and not call.output.machine:
        call.output.print("No Operators found")
        return
    if call.flag("names") and not call.output.machine:
        for operator in operators:
            call.output.print(safe(operator.name))
        return
    call.output.table(operators, OPERATOR_COLUMNS, "Operators")
    if not call.output.machine:
        call.output.print()
