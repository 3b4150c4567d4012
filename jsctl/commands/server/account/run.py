"""`server account info` and `purge`."""

from time import time_ns

from jsctl.api.monitoring.accountz import Accountz
from jsctl.api.server import EventFilterOptions
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import JsctlError, NotFound, UsageError
from jsctl.render.reports.server.account import account_screen

NO_RESPONSES = (
    "no responses received, ensure the account used has system privileges and "
    "appropriate permissions"
)


async def info(call: Call) -> None:
    """An account as a server knows it."""
    name, host = call.text("account"), call.text("host")
    where = EventFilterOptions(server_name=host, exact_match=bool(host))
    async with call.system() as system:
        replies = await system.gather("ACCOUNTZ", {"account": name}, where=where, expected=1)
    if not replies and call.text("archive"):
        place = f' on host "{host}"' if host else ""
        text = f'no captured data for account "{name}"{place} in {call.text("archive")}'
        raise NotFound(text)
    if not replies:
        raise NotFound(NO_RESPONSES)
    if replies[0].error is not None:
        raise JsctlError(replies[0].error.description)
    detail = replies[0].as_(Accountz).account_detail
    if detail is None:
        raise NotFound("no account information received")
    if call.as_json:
        call.output.json(detail)
        return
    call.output.details(account_screen(detail, time_ns()))


async def purge(call: Call) -> None:
    """Everything that JetStream keeps for an account is deleted."""
    name = call.text("account")
    if not name:
        raise UsageError("account is required")
    if not call.flag("force"):
        call.output.note(
            f"This operation deletes all data from the {name} account and cannot be reversed.\n"
        )
        if not call.prompts.confirm(f"Really purge account {name}", prefix=""):
            return
    async with call.manager() as manager:
        await manager.purge_account(name)
    sentence = f"Purge operation on account {name} initiated"
    if call.as_json:
        call.output.json({"account": name, "initiated": True})
    else:
        call.output.print(sentence)
