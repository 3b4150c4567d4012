"""Streams, consumers and buckets that benchmarks write to and read from."""

from dataclasses import replace

from jsctl.api.consumer import ConsumerConfig, ConsumerInfo
from jsctl.api.errors import ApiError
from jsctl.api.stream import StreamConfig, StreamInfo
from jsctl.api.times import SECOND_NS
from jsctl.api.words import AckPolicy, Discard, PersistMode, Retention, Storage
from jsctl.client.buckets.kv import check_bucket, delete_bucket, fresh_bucket, open_bucket
from jsctl.client.manager import Manager
from jsctl.client.reading import INACTIVE_TOO_LONG
from jsctl.client.worded import in_use, worded
from jsctl.commands.bench.kinds import Benchmark
from jsctl.commands.toolkit.assets.failing import told_as
from jsctl.commands.toolkit.assets.picking import check_name
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import JsctlError, Unreachable, UsageError, prefixed

STREAM_IN_USE, CONSUMER_NOT_FOUND, INVALID_CONFIG = 10058, 10014, 10052
BATCHES = (Benchmark.JS_ATOMIC, Benchmark.JS_FAST)
INACTIVE_NS = 10 * SECOND_NS
OWN_CONSUMER, OWN_BUCKET = "nats-bench", "benchbucket"
ATOMIC_LEVEL, FAST_LEVEL = 2, 4
INSTEAD = "specify --async for async publishing instead"


async def prepare_stream(call: Call, kind: Benchmark) -> None:
    """Makes or changes the stream with `--create`, empties it with `--purge`.

    Raises RequestFailed when there is none, JsctlError for servers that are too old.
    """
    name = call.text("stream")
    async with call.manager("") as manager:
        await _check_level(manager, kind)
        if call.flag("create"):
            await _create(call, manager, name, kind)
        else:
            await _existing(manager, name)
        call.output.log(f"Using stream: {name}")
        if call.flag("purge"):
            call.output.log("Purging the stream")
            await manager.purge(name)


async def _check_level(manager: Manager, kind: Benchmark) -> None:
    needs = {
        Benchmark.JS_ATOMIC: (ATOMIC_LEVEL, "Atomic Batch Publishing requires NATS Server 2.12"),
        Benchmark.JS_FAST: (FAST_LEVEL, "Fast Batch Publishing requires NATS Server 2.14"),
    }
    level, sentence = needs.get(kind, (0, ""))
    if level and await manager.server_level() < level:
        raise JsctlError(f"{sentence}, {INSTEAD}")


async def _existing(manager: Manager, name: str) -> StreamInfo:
    what = f"could not access stream {name}"
    check_name(name, "stream", about=what)
    try:
        return await manager.stream_info(name)
    except ApiError as error:
        raise worded(error, what) from None
    except Unreachable as error:
        raise prefixed(error, what) from None


async def stream_of(call: Call) -> StreamInfo:
    """The stream that is read. Raises RequestFailed when there is none."""
    async with call.manager("") as manager:
        return await _existing(manager, call.text("stream"))


async def purge_stream(call: Call) -> None:
    """Empties it, if so asked."""
    if call.flag("purge"):
        async with call.manager("") as manager:
            await _existing(manager, call.text("stream"))
            await manager.purge(call.text("stream"))


async def _create(call: Call, manager: Manager, name: str, kind: Benchmark) -> None:
    subject = call.text("subject") + (".*" if call.flag("multisubject") else "")
    replicas = call.integer("replicas", 1)
    later = call.flag("persistasync") and replicas == 1 and kind is not Benchmark.JS_ATOMIC
    config = StreamConfig(
        name=name,
        subjects=(subject,),
        retention=Retention.LIMITS,
        discard=Discard.NEW,
        storage=Storage(call.text("storage")),
        num_replicas=replicas,
        max_bytes=call.size("maxbytes"),
        duplicate_window=call.duration("dedupwindow"),
        allow_direct=True,
        allow_atomic=not later,
        allow_batched=True,
        persist_mode=PersistMode.ASYNC if later else PersistMode.DEFAULT,
    )
    about = "could not create the stream. If you want to delete and re-define the stream use"
    with told_as(f"{about} `jsctl stream delete {name}`"):
        check_name(name, "stream")
        try:
            await manager.create_stream(config)
        except ApiError as error:
            if error.err_code != INVALID_CONFIG or kind in BATCHES:
                raise
            # The server knows no batches, and this benchmark needs none.
            plain = replace(config, allow_atomic=False, allow_batched=False)
            await manager.create_stream(plain)


async def prepare_consumer(call: Call, manager: Manager, *, ordered: bool) -> str:
    """The name of the consumer that is read from; the benchmark's own one is made.

    Raises RequestFailed when there is no stream, or no consumer of another name.
    """
    stream, name = call.text("stream"), call.text("consumer")
    await _existing(manager, stream)
    filters = call.texts("filter")
    if ordered:
        config = ConsumerConfig(
            ack_policy=AckPolicy.NONE,
            filter_subjects=filters,
            inactive_threshold=INACTIVE_NS,
            num_replicas=1,
            mem_storage=True,
        )
    elif name == OWN_CONSUMER:
        acks = AckPolicy(call.text("acks"))
        pending = call.integer("batch") * call.integer("clients", 1)
        config = ConsumerConfig(
            durable_name=name,
            ack_policy=acks,
            max_ack_pending=pending if acks is not AckPolicy.NONE else 0,
            filter_subjects=filters,
            inactive_threshold=INACTIVE_NS,
        )
    else:
        what = f"getting durable consumer '{name}'"
        check_name(name, "consumer", about=what)
        try:
            return (await manager.consumer_info(stream, name)).name
        except ApiError as error:
            raise worded(error, what) from None
    kind = "ephemeral ordered consumer" if ordered else f"durable consumer '{name}'"
    try:
        return (await _made(manager, stream, config)).name
    except ApiError as error:
        raise worded(error, f"creating the {kind}") from None


async def _made(manager: Manager, stream: str, config: ConsumerConfig) -> ConsumerInfo:
    """The consumer, for as long as its stream allows. Raises ApiError."""
    try:
        return await manager.create_consumer(stream, config, action="")
    except ApiError as error:
        if error.err_code != INACTIVE_TOO_LONG:
            raise
    config = replace(config, inactive_threshold=0)
    return await manager.create_consumer(stream, config, action="")


async def check_bucket_there(call: Call) -> None:
    """Raises NotFound without the bucket that is read."""
    name = call.text("bucket")
    async with call.manager("") as manager:
        try:
            await open_bucket(manager, name)
        except JsctlError as error:
            raise prefixed(error, f"finding kv bucket '{name}'") from None


async def prepare_bucket(call: Call) -> None:
    """Makes the benchmark's own bucket, others are there; `--purge` removes the old one first.

    The server takes it for made if there is one of this very configuration, and refuses another.
    """
    name = call.text("bucket")
    what = f"putting: getting the kv bucket '{name}'"
    try:
        check_bucket(name)
    except UsageError as error:
        raise UsageError(f"{what}: {error}") from None
    async with call.manager("") as manager:
        if call.flag("purge"):
            await delete_bucket(manager, name)
        if name != OWN_BUCKET:
            try:
                await open_bucket(manager, name)
            except JsctlError as error:
                raise prefixed(error, what) from None
            return
        config = fresh_bucket(
            name,
            description="nats bench bucket",
            max_msgs_per_subject=call.integer("history", 1),
            storage=Storage(call.text("storage")),
            num_replicas=call.integer("replicas", 1),
            max_bytes=call.size("maxbytes"),
        )
        try:
            await manager.create_stream(config)
        except ApiError as error:
            raise in_use(name) if error.err_code == STREAM_IN_USE else worded(error) from None
