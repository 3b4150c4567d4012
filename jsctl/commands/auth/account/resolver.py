"""`auth account push` and `query`: accounts in the resolver of running servers."""

from pathlib import Path

from jsctl.auth.claims import Account
from jsctl.auth.entities import AccountEntity
from jsctl.auth.keys import KeyKind, from_public, kind_of
from jsctl.auth.token import read_as
from jsctl.client.failures import nobody_there
from jsctl.client.requests import Requester
from jsctl.client.system import NO_RIGHTS, NatsSystem, NoSystemRights, SystemReply
from jsctl.commands.auth.account.show import show_account
from jsctl.commands.auth.selecting import Auth, account_of
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import JsctlError, Unreachable
from jsctl.files import write_whole
from jsctl.render.table import safe

UPDATE = "$SYS.REQ.ACCOUNT.{subject}.CLAIMS.UPDATE"
LOOKUP = "$SYS.REQ.ACCOUNT.{subject}.CLAIMS.LOOKUP"


async def push(call: Call) -> None:
    """Gives the account's JWT to all servers. Raises JsctlError unless all of them took it."""
    _, account = Auth(call).account()
    if call.flag("show"):
        call.output.print(f"Account JWT for {account.name}\n\n{account.token}\n")
    async with call.client() as client:
        system = NatsSystem(client, call.settings)
        try:
            expected = await system.count_servers()
        except (NoSystemRights, Unreachable):
            expected = 0
        where = f"on {expected} server(s)" if expected else "on all servers"
        word = "account" if expected else "Account"
        call.output.print(f"Updating {word} {account.name} ({account.subject}) {where}\n")
        subject = UPDATE.format(subject=account.subject)
        replies = await system.gather_on(subject, account.token.encode(), expected=expected)
    for reply in replies:
        call.output.print(_told(call, reply))
    _summed_up(call, replies, expected)


def _told(call: Call, reply: SystemReply) -> str:
    paint = call.output.theme.paint
    name = safe(reply.server.name)
    if reply.error is None:
        return f"{paint('✓', 'green')} Update completed on {name}"
    return f"{paint('X', 'red')} Update failed on {name}: {safe(reply.error.description)}"


def _summed_up(call: Call, replies: list[SystemReply], expected: int) -> None:
    failed = sum(reply.error is not None for reply in replies)
    updated = len(replies) - failed
    known = f" Expected {expected}" if expected else ""
    call.output.print(f"\nSuccess {updated} Failed {failed}{known}")
    if failed:
        of = f"/{expected}" if expected else ""
        raise JsctlError(f"update failed on {failed}{of} servers")
    if not updated:
        raise JsctlError("no servers were updated")
    if expected and updated != expected:
        raise JsctlError(f"received updated from only {updated} out of {expected} servers")


async def query(call: Call) -> None:
    """What the servers have of an account; its JWT may go to a file."""
    wanted = call.text("account")
    async with call.client() as client:
        subject = wanted
        if kind_of(wanted) is not KeyKind.ACCOUNT:
            operator = Auth(call).operator(call.text("operator"))
            subject = account_of(operator, wanted).subject
        requests = Requester(client, call.settings)
        try:
            reply = await requests.exchange(LOOKUP.format(subject=subject), b"")
        except Unreachable as error:
            if isinstance(error.__cause__, Exception) and nobody_there(error.__cause__):
                raise NoSystemRights(NO_RIGHTS) from None
            raise
        token = reply.decode("utf-8", "replace")
    if not token:
        raise JsctlError("did not receive a valid token from the server")
    claims = read_as(Account, token)
    if claims.head.sub != subject:
        raise JsctlError(f"the server sent the token of {claims.head.sub} for {subject}")
    if call.text("output"):
        write_whole(Path(call.text("output")), token)
    account = AccountEntity(claims.head.name, from_public(claims.head.sub), token, claims)
    show_account(call, account, None)
