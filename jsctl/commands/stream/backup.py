"""`stream backup`: a stream into a directory."""

from pathlib import Path

from jsctl.api.errors import ApiError
from jsctl.api.times import SECOND_NS, format_duration
from jsctl.client.backup import CHUNK_BYTES, WINDOW_BYTES, backup_stream
from jsctl.commands.toolkit.assets.picking import pick_stream
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import RequestFailed
from jsctl.render.humanize import counted, size


async def backup(call: Call) -> None:
    """Copy a stream with its data; an `nats stream restore` can read it."""
    directory = Path(call.text("target")).expanduser()
    async with call.manager() as manager:
        name = await pick_stream(call, manager)
        held = (await manager.stream_info(name)).state.bytes
        call.output.print(f'Starting backup of Stream "{name}" with {size(held)}')
        try:
            done = await backup_stream(
                manager,
                name,
                directory,
                consumers=call.switch("consumers") is not False,
                check=call.flag("check"),
                chunk_bytes=call.size("chunk-size", CHUNK_BYTES),
                window_bytes=call.size("window-size", WINDOW_BYTES),
            )
        except ApiError as error:
            raise RequestFailed(error, prefix=f"could not back up stream {name}") from None
    took = format_duration(round(done.seconds * SECOND_NS))
    call.output.print(
        f"Received {size(done.bytes)} compressed data in {counted(done.chunks, 'chunk')} for "
        f'stream "{name}" in {took}, {size(done.stream_bytes)} uncompressed'
    )
