"""`kv put`, `get`, `create`, `update`, `del`, `purge`, `revert` and `compact`: values of keys."""

import sys

from jsctl.client.buckets.kv import Entry, delete_bucket
from jsctl.commands.kv.open import opened
from jsctl.commands.kv.show import print_history
from jsctl.commands.toolkit.content.bodies import write_bytes
from jsctl.commands.toolkit.grammar.values import is_count
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.commands.toolkit.invocation.reading import interruptible
from jsctl.errors import JsctlError, UsageError
from jsctl.render.humanize import moment_ns, number
from jsctl.render.reports.buckets import entry_document, readable, shortened

SHOWN_MAX = 120
"""Bytes of a value that people are shown without asking for all."""


def _value(call: Call) -> bytes:
    """The argument, or what comes in when there is none and no terminal."""
    text = call.text("value")
    if text or sys.stdin is None or sys.stdin.isatty():
        return text.encode("utf-8", "surrogateescape")
    return interruptible(lambda: sys.stdin.buffer.read())


def _revision(call: Call) -> int:
    """A revision argument or option; raises UsageError."""
    text = call.text("revision")
    if not text:
        return 0
    if not is_count(text):
        raise UsageError(f'strconv.ParseUint: parsing "{text}": invalid syntax', show_help=True)
    return int(text)


async def put(call: Call) -> None:
    """Sets a value and prints it."""
    async with opened(call) as (_, bucket):
        revision = await bucket.put(call.text("key"), _value(call))
    _told(call, revision)


async def create(call: Call) -> None:
    """Sets the value of a new key and prints it."""
    async with opened(call) as (_, bucket):
        made = await bucket.create(call.text("key"), _value(call), ttl_ns=call.duration("ttl"))
    _told(call, made)


async def update(call: Call) -> None:
    """Sets a value that nobody else has changed meanwhile, and prints it."""
    revision = _revision(call)
    async with opened(call) as (_, bucket):
        made = await bucket.update(call.text("key"), _value(call), revision)
    _told(call, made)


def _told(call: Call, revision: int) -> None:
    """The value that was given, or where it is now."""
    document = {"bucket": call.text("bucket"), "key": call.text("key"), "revision": revision}
    call.output.tell(call.text("value"), document)


async def get(call: Call) -> None:
    """A value, the beginning of it unless `--raw` asks for the bytes."""
    revision = _revision(call)
    async with opened(call) as (_, bucket):
        entry = await bucket.get(call.text("key"), revision)
    if call.flag("raw"):
        write_bytes(call, entry.value)
    elif call.as_data:
        call.output.json(entry_document(bucket.name, entry))
    else:
        _print_entry(call, bucket.name, entry)


def _print_entry(call: Call, bucket: str, entry: Entry) -> None:
    out = call.output
    created = moment_ns(entry.created_ns)
    out.print(f"{bucket} > {entry.key} revision: {entry.revision} created @ {created}\n")
    value = readable(entry.value)
    length = len(value.encode())
    if length > SHOWN_MAX:
        out.print(f"Showing first {SHOWN_MAX} bytes of {number(length)}, use --raw for full data\n")
        value = value.encode()[:SHOWN_MAX].decode("utf-8", "replace")
    out.print(value)
    out.print()


async def delete(call: Call) -> None:
    """Marks a key as deleted, or removes a bucket when no key is named."""
    name, key = call.text("bucket"), call.text("key")
    if not key:
        await _delete_bucket(call, name)
        return
    async with opened(call) as (_, bucket):
        if not call.confirm(f"Delete key {name} > {key}?", prefix=""):
            call.output.print("Skipping delete")
            return
        await bucket.delete(key)


async def _delete_bucket(call: Call, name: str) -> None:
    if not call.confirm(f"Delete bucket {name}?", prefix=""):
        call.output.print("Skipping delete")
        return
    async with call.manager("") as manager:
        await delete_bucket(manager, name)


async def purge(call: Call) -> None:
    """Removes a key with its history."""
    name, key = call.text("bucket"), call.text("key")
    async with opened(call) as (_, bucket):
        if not call.confirm(f"Purge key {name} > {key}?", prefix=""):
            call.output.print("Skipping purge")
            return
        await bucket.purge(key, ttl_ns=call.duration("ttl"))


async def revert(call: Call) -> None:
    """Sets the value that a key had at a revision, unless it changes meanwhile."""
    revision, key = _revision(call), call.text("key")
    async with opened(call) as (_, bucket):
        history = await bucket.history(key)
        if len(history) <= 1:
            raise JsctlError("cannot revert key in a bucket where history=1")
        old = await bucket.get(key, revision)
        if not call.flag("force"):
            call.output.print(f"Revision: {old.revision}\n\n{shortened(old.value)}\n")
            if not call.confirm(f"Really revert to revision {revision}"):
                return
        await bucket.update(key, old.value, history[-1].revision)
        print_history(call, bucket.name, key, await bucket.history(key))


async def compact(call: Call) -> None:
    """Reclaims what deleted keys hold."""
    name = call.text("bucket")
    question = f"Purge all historic values and audit trails for deleted keys in bucket {name}?"
    async with opened(call) as (_, bucket):
        if not call.confirm(question, prefix=""):
            call.output.print("Skipping delete")
            return
        await bucket.compact()
