"""`object add`, `edit` and `seal`."""

from dataclasses import replace

from jsctl.api.errors import ApiError
from jsctl.api.stream import StreamConfig
from jsctl.api.words import Compression, Discard, Storage
from jsctl.client.buckets.objects import PREFIX, check_store, open_store
from jsctl.client.manager import without_server_metadata
from jsctl.client.worded import in_use, library_words, worded
from jsctl.commands.object.open import opened
from jsctl.commands.object.show import show_store
from jsctl.commands.toolkit.assets.buckets import placement_of
from jsctl.commands.toolkit.invocation.call import Call

STREAM_IN_USE = 10058


async def add(call: Call) -> None:
    """Makes a bucket and shows it."""
    name = call.text("bucket")
    config = StreamConfig(
        name=PREFIX + name,
        subjects=(f"$O.{name}.C.>", f"$O.{name}.M.>"),
        max_bytes=-1,
        storage=Storage.MEMORY if call.text("storage").startswith("m") else Storage.FILE,
        num_replicas=call.integer("replicas") or 1,
        discard=Discard.NEW,
        allow_rollup_hdrs=True,
        allow_direct=True,
    )
    async with call.manager("") as manager:
        check_store(name)
        try:
            await manager.create_stream(_with_flags(call, config))
        except ApiError as error:
            if error.err_code != STREAM_IN_USE:
                raise worded(error) from None
            raise in_use(name) from None
        made = await (await open_store(manager, name)).status()
    show_store(call, made)


async def edit(call: Call) -> None:
    """Changes what is given, and shows the bucket."""
    async with call.manager("") as manager:
        store = await open_store(manager, call.text("bucket"))
        config = _with_flags(call, store.stream.config)
        config = replace(config, metadata=without_server_metadata(config.metadata))
        if call.given("replicas"):
            config = replace(config, num_replicas=call.integer("replicas") or 1)
        with library_words():
            # A sealed one stays as it is, and the server says so when it is asked to open it.
            await manager.update_stream(replace(config, sealed=False))
        made = await store.status()
    show_store(call, made)


def _with_flags(call: Call, config: StreamConfig) -> StreamConfig:
    """The configuration with what was given on the command line."""
    if call.given("ttl"):
        # The server chooses a window of duplicates again, which is no longer than what is kept.
        config = replace(config, max_age=call.duration("ttl"), duplicate_window=0)
    if call.given("max-bucket-size"):
        config = replace(config, max_bytes=call.size("max-bucket-size") or -1)
    if call.given("description"):
        config = replace(config, description=call.text("description"))
    config = replace(config, placement=placement_of(call, config.placement))
    if call.given("metadata"):
        config = replace(config, metadata=call.mapping("metadata"))
    if call.given("compress"):
        form = Compression.S2 if call.flag("compress") else Compression.NONE
        config = replace(config, compression=form)
    return config


async def seal(call: Call) -> None:
    """Lets nobody change a bucket any more."""
    name = call.text("bucket")
    question = f"Really seal Bucket {name}, sealed buckets can not be unsealed or modified"
    if not call.confirm(question):
        return
    async with opened(call) as (_, store):
        await store.seal()
        found = await store.status()
    call.output.say(f"{name} has been sealed")
    show_store(call, found)
