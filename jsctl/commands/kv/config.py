"""`kv add` and `kv edit`."""

from dataclasses import replace

from jsctl.api.errors import ApiError
from jsctl.api.stream import (
    ExternalStream,
    Republish,
    StreamConfig,
    StreamSource,
    SubjectTransform,
)
from jsctl.api.words import Compression, Storage
from jsctl.client.buckets.kv import DUPLICATES_NS, PREFIX, check_bucket, fresh_bucket, open_bucket
from jsctl.client.manager import without_server_metadata
from jsctl.client.worded import in_use, not_found, refused, worded
from jsctl.commands.kv.show import show_bucket
from jsctl.commands.toolkit.assets.buckets import placement_of
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import UsageError

HISTORY_MAX = 64
STREAM_NOT_FOUND, STREAM_IN_USE = 10059, 10058


async def add(call: Call) -> None:
    """Makes a bucket and shows it."""
    name = call.text("bucket")
    _check_history(call)
    async with call.manager("") as manager:
        check_bucket(name)
        config = replace(
            _with_flags(call, fresh_bucket(name)),
            storage=Storage.MEMORY if call.text("storage").startswith("m") else Storage.FILE,
            num_replicas=call.integer("replicas") or 1,
        )
        if call.text("mirror"):
            config = replace(config, mirror=_mirror(call), mirror_direct=True, sources=())
            config = replace(config, subjects=())
        try:
            if config.subject_delete_marker_ttl and await manager.server_level() < 1:
                raise refused("limit marker TTLs not supported by server")
            await manager.create_stream(config)
        except ApiError as error:
            if error.err_code != STREAM_IN_USE:
                raise worded(error) from None
            raise in_use(name) from None
        made = await (await open_bucket(manager, name)).status()
    show_bucket(call, made)


async def edit(call: Call) -> None:
    """Changes what is given, and shows the bucket."""
    name = call.text("bucket")
    _check_history(call)
    async with call.manager("") as manager:
        bucket = await open_bucket(manager, name)
        config = _with_flags(call, bucket.info.config)
        config = replace(config, metadata=without_server_metadata(config.metadata))
        if call.given("replicas"):
            config = replace(config, num_replicas=call.integer("replicas") or 1)
        if call.flag("no-mirror"):
            config = replace(config, mirror=None, subjects=(f"$KV.{name}.>",))
        try:
            await manager.update_stream(config)
        except ApiError as error:
            if error.err_code == STREAM_NOT_FOUND:
                raise not_found(f"bucket not found: {name}") from None
            raise worded(error) from None
        made = await bucket.status()
    show_bucket(call, made)


def _check_history(call: Call) -> None:
    kept = call.integer("history")
    if kept > HISTORY_MAX:
        raise UsageError(f"history: must be less than or equal to {HISTORY_MAX}")
    if kept < 1:
        raise UsageError("history: must be greater than or equal to 1")


def _with_flags(call: Call, config: StreamConfig) -> StreamConfig:
    """The configuration with what was given on the command line."""
    if call.given("description"):
        config = replace(config, description=call.text("description"))
    if call.given("history"):
        config = replace(config, max_msgs_per_subject=call.integer("history"))
    if call.given("ttl"):
        ttl_ns = call.duration("ttl")
        window_ns = min(ttl_ns, DUPLICATES_NS) if ttl_ns > 0 else DUPLICATES_NS
        config = replace(config, max_age=ttl_ns, duplicate_window=window_ns)
    config = replace(config, placement=placement_of(call, config.placement))
    if call.given("compress"):
        form = Compression.S2 if call.flag("compress") else Compression.NONE
        config = replace(config, compression=form)
    if call.given("metadata"):
        config = replace(config, metadata=call.mapping("metadata"))
    more = tuple(_source(name, config.name) for name in call.texts("source"))
    return _with_limits(call, replace(config, sources=(*config.sources, *more)))


def _with_limits(call: Call, config: StreamConfig) -> StreamConfig:
    if call.given("max-value-size"):
        config = replace(config, max_msg_size=call.size("max-value-size") or -1)
    if call.given("max-bucket-size"):
        config = replace(config, max_bytes=call.size("max-bucket-size") or -1)
    if call.given("marker-ttl"):
        marker_ns = call.duration("marker-ttl")
        config = replace(config, allow_msg_ttl=bool(marker_ns), subject_delete_marker_ttl=marker_ns)
    if call.text("republish-destination"):
        config = replace(config, republish=_republish(call))
    return config


def _republish(call: Call) -> Republish:
    return Republish(
        src=call.text("republish-source"),
        dest=call.text("republish-destination"),
        headers_only=call.flag("republish-headers"),
    )


def _mirror(call: Call) -> StreamSource:
    name = PREFIX + call.text("mirror").removeprefix(PREFIX)
    domain = call.text("mirror-domain")
    external = ExternalStream(api=f"$JS.{domain}.API") if domain else None
    return StreamSource(name=name, external=external)


def _source(given: str, stream: str) -> StreamSource:
    """Another bucket's keys, under the subjects of this one."""
    name = given.removeprefix(PREFIX)
    move = SubjectTransform(src=f"$KV.{name}.>", dest=f"$KV.{stream.removeprefix(PREFIX)}.>")
    return StreamSource(name=PREFIX + name, subject_transforms=(move,))
