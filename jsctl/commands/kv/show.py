"""`kv ls`, `info`, `history` and `watch`: commands that only read."""

from collections.abc import Sequence

from jsctl.api.stream import StreamInfo
from jsctl.api.times import format_time
from jsctl.client.buckets.kv import (
    PREFIX,
    Entry,
    Operation,
    Watched,
    buckets_of,
    open_bucket,
)
from jsctl.commands.kv.open import opened
from jsctl.commands.toolkit.grammar.values import is_count
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import JsctlError, UsageError, prefixed
from jsctl.render.column import sort_rows
from jsctl.render.humanize import moment_ns
from jsctl.render.reports.buckets import (
    CONTENT_COLUMNS,
    HISTORY_COLUMNS,
    KV_COLUMNS,
    VALUE_COLUMN,
    bucket_document,
    bucket_screen,
    entry_document,
)
from jsctl.render.table import safe

NEW_AND_OLD = "nats: invalid jetstream option: updates only cannot be used with include history"


async def ls(call: Call) -> None:
    """All buckets, smallest first, or the keys of one."""
    if call.text("bucket"):
        await _list_keys(call)
        return
    async with call.manager("") as manager:
        found = buckets_of((await manager.streams()).items, PREFIX)
    if call.flag("names"):
        call.output.names(info.config.name.removeprefix(PREFIX) for info in found)
        return
    if not found and not call.output.machine:
        call.output.print("No Key-Value buckets found")
        return
    call.output.report(sort_rows(found, KV_COLUMNS, "size"), KV_COLUMNS, "Key-Value Buckets")


async def _list_keys(call: Call) -> None:
    async with call.manager("") as manager:
        try:
            bucket = await open_bucket(manager, call.text("bucket"))
        except JsctlError as error:
            raise prefixed(error, "unable to load bucket") from None
        pattern = call.text("key") or ">"
        entries = await bucket.values(pattern) if _verbose(call) else []
        keys = [one.key for one in entries] if _verbose(call) else await bucket.keys(pattern)
    if _verbose(call):
        columns = CONTENT_COLUMNS
        if call.flag("display-value") or call.output.machine:
            columns = (*columns, VALUE_COLUMN)
        call.output.report(entries, columns, f"Contents for bucket '{bucket.name}'")
    else:
        call.output.names(keys)
    if not keys and not call.flag("names") and not call.output.machine:
        call.output.print("No keys found in bucket")


def _verbose(call: Call) -> bool:
    return call.flag("verbose") or call.output.form != "table"


async def info(call: Call) -> None:
    """Configuration and state of a bucket."""
    async with opened(call) as (_, bucket):
        found = await bucket.status()
    show_bucket(call, found)


def show_bucket(call: Call, found: StreamInfo) -> None:
    """The info screen, or a document."""
    if call.as_json:
        call.output.json(bucket_document(found))
        return
    call.output.details(bucket_screen(found))


async def history(call: Call) -> None:
    """All revisions of a key that are kept."""
    key = call.text("key")
    async with opened(call) as (_, bucket):
        found = await bucket.history(key)
    print_history(call, bucket.name, key, found)


def print_history(call: Call, bucket: str, key: str, found: Sequence[Entry]) -> None:
    """The table of revisions."""
    call.output.report(found, HISTORY_COLUMNS, f"History for {bucket} > {key}")


async def watch(call: Call) -> None:
    """Revisions as they come."""
    revision = call.text("revision") or "0"
    if not is_count(revision):
        raise UsageError(f'strconv.ParseUint: parsing "{revision}": invalid syntax', show_help=True)
    wanted = Watched(
        pattern=call.text("key"),
        history=call.flag("history"),
        deletes=call.flag("deletes"),
        only_new=call.flag("updates"),
        from_revision=int(revision),
    )
    async with opened(call) as (_, bucket):
        if wanted.history and wanted.only_new:
            raise UsageError(NEW_AND_OLD)
        async with bucket.watch(wanted) as watching:
            async for entry in watching.all():
                _print_change(call, bucket.name, entry)


def _print_change(call: Call, bucket: str, entry: Entry) -> None:
    out = call.output
    if out.machine:
        document = {**entry_document(bucket, entry), "time": format_time(entry.created_ns)}
        out.json_line(document, varied=True)
    else:
        added = entry.operation is Operation.PUT
        word = out.theme.paint(entry.operation.value, "green" if added else "red")
        text = f"[{moment_ns(entry.created_ns)}] {word} {bucket} > {safe(entry.key)}"
        if added:
            text += f": {entry.value.decode('utf-8', 'replace')}"
        out.print(text)
    out.stdout.flush()
