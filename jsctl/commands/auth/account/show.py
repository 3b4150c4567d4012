"""`auth account info` and `ls`."""

from jsctl.auth.entities import AccountEntity, OperatorEntity
from jsctl.auth.export import account_document
from jsctl.commands.auth.selecting import Auth
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.render.reports.auth.screens import account_screen
from jsctl.render.reports.auth.tables import ACCOUNT_COLUMNS, AccountRow
from jsctl.render.table import safe


def info(call: Call) -> None:
    """One account; as a document with its keys and users."""
    operator, account = Auth(call).account()
    show_account(call, account, operator)


def show_account(call: Call, account: AccountEntity, operator: OperatorEntity | None) -> None:
    """Prints an account as the command line asks for it."""
    if call.as_json:
        call.output.json(account_document(account))
        return
    call.output.details(account_screen(account, operator))
    call.output.print()


def ls(call: Call) -> None:
    """The accounts of an operator."""
    operator = Auth(call).operator(call.text("operator"))
    if not operator.accounts and not call.output.machine:
        call.output.print("No Accounts found")
        return
    if call.flag("names") and not call.output.machine:
        for account in operator.accounts:
            call.output.print(safe(account.name))
        return
    system = operator.claims.nats.system_account
    rows = [AccountRow(one, one.subject == system) for one in operator.accounts]
    call.output.table(rows, ACCOUNT_COLUMNS, "Accounts")
    if not call.output.machine:
        call.output.print()
