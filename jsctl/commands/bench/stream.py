"""The stream that a JetStream benchmark writes to."""

from jsctl.api.errors import ApiError
from jsctl.api.stream import StreamConfig
from jsctl.api.words import Discard, PersistMode, Retention, Storage
from jsctl.client.manager import Manager
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import RequestFailed

STREAM_NOT_FOUND = 10059


async def prepare_stream(call: Call) -> None:
    """Makes or changes the stream with `--create`, empties it with `--purge`.

    Raises RequestFailed when there is none.
    """
    name = call.text("stream")
    async with call.manager() as manager:
        if call.flag("create"):
            await _create(call, manager, name)
        else:
            try:
                await manager.stream_info(name)
            except ApiError as error:
                raise RequestFailed(
                    error,
                    prefix=f"could not access stream {name}",
                    hints=("--create makes the stream",),
                ) from None
        call.output.log(f"Using stream: {name}")
        if call.flag("purge"):
            call.output.log("Purging the stream")
            await manager.purge(name)


async def _create(call: Call, manager: Manager, name: str) -> None:
    subject = call.text("subject") + (".*" if call.flag("multisubject") else "")
    config = StreamConfig(
        name=name,
        subjects=(subject,),
        retention=Retention.LIMITS,
        discard=Discard.NEW,
        storage=Storage(call.text("storage")),
        num_replicas=call.integer("replicas", 1),
        max_bytes=call.size("maxbytes"),
        duplicate_window=call.duration("dedupwindow"),
        allow_direct=True,
        persist_mode=PersistMode.ASYNC if call.flag("persistasync") else PersistMode.DEFAULT,
    )
    try:
        await manager.stream_info(name)
    except ApiError as error:
        if error.err_code != STREAM_NOT_FOUND:
            raise
        await manager.create_stream(config)
        return
    await manager.update_stream(config)
