"""`consumer find`."""

from jsctl.commands.consumer.query import chosen
from jsctl.commands.toolkit.assets.picking import TO_LOOK_IN, pick_stream
from jsctl.commands.toolkit.invocation.call import Call


async def find(call: Call) -> None:
    """Names of consumers that match."""
    async with call.manager() as manager:
        stream = await pick_stream(call, manager, why=TO_LOOK_IN)
        found = chosen(call, (await manager.consumers(stream)).items)
    call.output.names(info.name for info in found)
