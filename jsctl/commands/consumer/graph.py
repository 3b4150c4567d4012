"""`consumer graph`."""

from collections.abc import Mapping

from jsctl.commands.toolkit.assets.picking import consumer_of
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.commands.toolkit.monitoring.graphs import Curve, graph, needs_terminal, rate


async def graph_consumer(call: Call) -> int:
    """Messages delivered, acknowledged, pending and waited for."""
    needs_terminal(call)
    curves = [
        Curve("delivered", "Messages Delivered / second", rate, per_second=True),
        Curve("acknowledged", "Messages Acknowledged / second", rate, per_second=True),
        Curve("pending", "Messages Pending"),
        Curve("waiting", "Messages Waiting for Ack"),
    ]
    async with call.one_connection(), call.manager() as manager:
        found = await consumer_of(call, manager)
        stream, name = found.stream_name, found.name

        async def sample() -> Mapping[str, float]:
            info = await manager.consumer_info(stream, name)
            return {
                "delivered": info.delivered.consumer_seq,
                "acknowledged": info.ack_floor.consumer_seq,
                "pending": info.num_pending,
                "waiting": info.num_ack_pending,
            }

        return await graph(call, f"Consumer Statistics for {stream} > {name}", curves, sample)
