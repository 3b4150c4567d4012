"""`stream graph`."""

from collections.abc import Mapping

from jsctl.commands.toolkit.assets.picking import pick_stream
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.commands.toolkit.monitoring.graphs import Curve, graph, needs_terminal, rate


async def graph_stream(call: Call) -> int:
    """Messages held, removed and stored."""
    needs_terminal(call)
    curves = [
        Curve("messages", "Messages Stored"),
        Curve("first", "Messages Removed / second", rate, per_second=True),
        Curve("last", "Messages Stored / second", rate, per_second=True),
    ]
    async with call.one_connection(), call.manager() as manager:
        name = await pick_stream(call, manager)

        async def sample() -> Mapping[str, float]:
            state = (await manager.stream_info(name)).state
            return {"messages": state.messages, "first": state.first_seq, "last": state.last_seq}

        return await graph(call, f"Stream Statistics for {name}", curves, sample)
