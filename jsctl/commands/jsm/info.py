"""`jsm info`: the account without a name, a stream with one."""

from jsctl.commands.stream.show import show_stream
from jsctl.commands.toolkit.assets.picking import stream_of
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.render.reports.account.limits import account_screen


async def info(call: Call) -> None:
    """Account or stream."""
    async with call.manager() as manager:
        if call.text("stream"):
            show_stream(call, await stream_of(call, manager), blank=True)
            return
        account = await manager.account_info()
    if call.as_json:
        call.output.json(account)
    else:
        call.output.details(account_screen(account))
