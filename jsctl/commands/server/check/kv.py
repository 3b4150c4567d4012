"""`server check kv`: a bucket, its number of values, and one of its keys."""

from typing import TYPE_CHECKING

from jsctl.api.errors import ApiError
from jsctl.api.stream import RawStreamMsg, StreamInfo
from jsctl.client.buckets.kv import valid_bucket, valid_key
from jsctl.commands.server.check.run import (
    NOT_CONNECTED,
    checked,
    critical_if_it_fails,
    manager_for,
)
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.render.reports.server.check import CheckResult

if TYPE_CHECKING:
    from jsctl.client.manager import Manager

STREAM_NOT_FOUND = 10059
NO_MESSAGE = 10037
_GONE = (b"KV-Operation: DEL", b"KV-Operation: PURGE", b"Nats-Marker-Reason:")


async def kv(call: Call) -> int:
    """Checks a bucket."""
    return await checked(call, "kv", call.text("bucket"), body)


async def body(call: Call, result: CheckResult) -> None:
    """The check itself."""
    bucket, key = call.text("bucket"), call.text("key")
    async with manager_for(call, result, NOT_CONNECTED) as manager:
        info = await _bucket(manager, result, bucket)
        if info is None:
            return
        result.ok(f"bucket {bucket}")
        values = info.state.messages
        warn, critical = call.integer("values-warn"), call.integer("values-critical")
        result.measure(
            "values",
            values,
            warning=max(0, warn),
            critical=max(0, critical),
            help="How many values are stored in the bucket",
        )
        if key:
            await _key(manager, result, info, key)
    _judge_count(result, values, warn, critical)
    result.measure("bytes", info.state.bytes, unit="B", help="Bytes stored in the bucket")
    result.measure("replicas", info.config.num_replicas)


async def _bucket(manager: "Manager", result: CheckResult, bucket: str) -> StreamInfo | None:
    if not valid_bucket(bucket):
        result.critical("could not load bucket: nats: invalid bucket name")
        return None
    with critical_if_it_fails(result, "could not load bucket"):
        try:
            info = await manager.stream_info(f"KV_{bucket}")
        except ApiError as error:
            if error.err_code != STREAM_NOT_FOUND:
                raise
            result.critical(f"bucket {bucket} not found")
            return None
    if info.config.max_msgs_per_subject < 1:
        result.critical("could not load bucket: nats: bucket not valid key-value store")
        return None
    return info


async def _key(manager: "Manager", result: CheckResult, info: StreamInfo, key: str) -> None:
    if not valid_key(key):
        result.critical(f"key {key} not loaded: nats: invalid key")
        return
    origin = info.config.mirror.name if info.config.mirror else info.config.name
    with critical_if_it_fails(result, f"key {key} not loaded"):
        try:
            found = await manager.message(
                info.config.name, last_for=f"$KV.{origin.removeprefix('KV_')}.{key}"
            )
        except ApiError as error:
            if error.err_code != NO_MESSAGE:
                raise
            result.critical(f"key {key} not found")
            return
    if _is_gone(found):
        result.critical(f"key {key} not found")
    else:
        result.ok(f"key {key} found")


def _is_gone(found: RawStreamMsg) -> bool:
    """Whether the last entry of a key says that there is no value any more."""
    return any(line.startswith(_GONE) for line in found.hdrs.split(b"\r\n"))


def _judge_count(result: CheckResult, values: int, warn: int, critical: int) -> None:
    """Too many; too few where the critical threshold is the smaller one."""
    if warn < 0 and critical < 0:
        return
    few = critical < warn

    def beyond(limit: int) -> bool:
        return limit >= 0 and (values <= limit if few else values >= limit)

    if beyond(critical):
        result.critical(f"{values} values")
    elif beyond(warn):
        result.warn(f"{values} values")
    else:
        result.ok(f"{values} values")
