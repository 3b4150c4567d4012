"""`object ls`, `info` and `watch`: commands that only read."""

from contextlib import aclosing

from jsctl.api.stream import StreamInfo
from jsctl.client.buckets.kv import buckets_of
from jsctl.client.buckets.objects import PREFIX, ObjectInfo
from jsctl.commands.object.open import opened
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.render.column import sort_rows
from jsctl.render.humanize import moment, number, size
from jsctl.render.reports.objects import (
    OBJECT_COLUMNS,
    STORE_COLUMNS,
    object_screen,
    store_document,
    store_screen,
)
from jsctl.render.table import safe


async def ls(call: Call) -> None:
    """All buckets, smallest first, or the objects of one."""
    if call.text("bucket"):
        await _list_objects(call)
        return
    async with call.manager("") as manager:
        found = buckets_of((await manager.streams()).items, PREFIX)
    if call.flag("names"):
        call.output.names(info.config.name.removeprefix(PREFIX) for info in found)
        return
    if not found and not call.output.machine:
        call.output.print("No Object Store buckets found")
        return
    rows = sort_rows(found, STORE_COLUMNS, "size")
    call.output.report(rows, STORE_COLUMNS, "Object Store Buckets")


async def _list_objects(call: Call) -> None:
    async with opened(call) as (_, store):
        found = await store.objects()
    if call.flag("names"):
        call.output.names(info.name for info in found)
        return
    if not found and not call.output.machine:
        call.output.print("No entries found")
        return
    call.output.report(found, OBJECT_COLUMNS, "Bucket Contents")


async def info(call: Call) -> None:
    """Configuration and state of a bucket, or what an object is."""
    name = call.text("file")
    async with opened(call) as (_, store):
        if name:
            show_object(call, await store.info(name))
        else:
            show_store(call, await store.status())


def show_store(call: Call, found: StreamInfo) -> None:
    """The info screen of a bucket, or a document."""
    if call.as_json:
        call.output.json(store_document(found))
        return
    call.output.details(store_screen(found))


def show_object(call: Call, found: ObjectInfo) -> None:
    """The info screen of an object, or a document."""
    if call.as_json:
        call.output.json(found.document())
        return
    call.output.details(object_screen(found))


async def watch(call: Call) -> None:
    """Changes as they come, those that are kept first."""
    async with opened(call) as (_, store), aclosing(store.changes()) as changes:
        async for one in changes:
            _print_change(call, one)


def _print_change(call: Call, found: ObjectInfo) -> None:
    out = call.output
    if out.machine:
        out.json_line(found.document(), varied=True)
    else:
        word = out.theme.paint("DEL", "red") if found.deleted else out.theme.paint("PUT", "green")
        text = f"[{moment(found.modified)}] {word} {safe(found.bucket)} > {safe(found.name)}"
        if not found.deleted:
            text += f": {size(found.size)} bytes in {number(found.chunks)} chunks"
        out.print(text)
    out.stdout.flush()
