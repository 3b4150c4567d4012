"""`auth user info` and `ls`."""

from jsctl.auth.entities import AccountEntity, UserEntity
from jsctl.auth.export import user_document
from jsctl.commands.auth.selecting import Auth
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.render.reports.auth.screens import user_screen
from jsctl.render.reports.auth.tables import USER_COLUMNS, UserRow
from jsctl.render.table import safe


def info(call: Call) -> None:
    """One user; as a document with its seed."""
    auth = Auth(call)
    _, account = auth.account()
    show_user(call, auth.user(account, "user {name} not found"), account)


def show_user(call: Call, user: UserEntity, account: AccountEntity) -> None:
    """Prints a user as the command line asks for it."""
    if call.as_json:
        call.output.json(user_document(user))
        return
    call.output.details(user_screen(user, account))
    call.output.print()


def ls(call: Call) -> None:
    """The users of an account."""
    _, account = Auth(call).account()
    if not account.users and not call.output.machine:
        call.output.print("No users found")
        return
    if call.flag("names") and not call.output.machine:
        for user in account.users:
            call.output.print(safe(user.claims.head.name))
        return
    rows = [_row(user, account) for user in account.users]
    call.output.table(rows, USER_COLUMNS, f"Users in account {account.name}")
    if not call.output.machine:
        call.output.print()


def _row(user: UserEntity, account: AccountEntity) -> UserRow:
    if not account.is_scoped(user):
        return UserRow(user, False, user.claims.nats.rules)
    scope = account.scope_of(user)
    return UserRow(user, True, scope.template if scope else None)
