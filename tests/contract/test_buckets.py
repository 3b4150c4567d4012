"""Key-value and object buckets of nats-py: both lean on many rules of streams at once."""

import pytest
from nats.js import JetStreamContext
from nats.js.errors import (
    BucketNotFoundError,
    KeyNotFoundError,
    KeyWrongLastSequenceError,
    NotFoundError,
)
from nats.js.kv import KeyValue

from tests.support.waiting import eventually

WAIT_S = 30.0


async def test_values_and_revisions(js: JetStreamContext, fresh: str) -> None:
    bucket = await js.create_key_value(bucket=fresh, history=5)
    assert await bucket.put("k", b"1") == 1
    assert await bucket.put("k", b"2") == 2
    entry = await bucket.get("k")
    assert (entry.value, entry.revision) == (b"2", 2)
    assert (await bucket.get("k", revision=1)).value == b"1"
    with pytest.raises(KeyNotFoundError):
        await bucket.get("none")
    assert [one.value for one in await bucket.history("k")] == [b"1", b"2"]


async def test_changes_only_if_nobody_was_faster(js: JetStreamContext, fresh: str) -> None:
    bucket = await js.create_key_value(bucket=fresh)
    first = await bucket.create("k", b"1")
    with pytest.raises(KeyWrongLastSequenceError):
        await bucket.create("k", b"again")
    second = await bucket.update("k", b"2", last=first)
    with pytest.raises(KeyWrongLastSequenceError):
        await bucket.update("k", b"3", last=first)
    assert (first, second) == (1, 2)


async def test_deleted_and_purged(js: JetStreamContext, fresh: str) -> None:
    bucket = await js.create_key_value(bucket=fresh, history=5)
    await bucket.put("a", b"1")
    await bucket.put("b", b"1")
    await bucket.delete("a")
    with pytest.raises(KeyNotFoundError):
        await bucket.get("a")
    assert await bucket.create("a", b"new") == 4
    await bucket.purge("b")
    assert len(await bucket.history("b")) == 1
    assert await bucket.keys() == ["a"]


async def changes(watcher: KeyValue.KeyWatcher, count: int) -> list[tuple[str, bytes | None]]:
    found: list[tuple[str, bytes | None]] = []
    while len(found) < count:
        entry = await watcher.updates(timeout=WAIT_S)  # type: ignore[no-untyped-call] # theirs
        if entry is not None:
            found.append((entry.key, entry.value))
    return found


async def test_watching(js: JetStreamContext, fresh: str) -> None:
    bucket = await js.create_key_value(bucket=fresh)
    await bucket.put("x.1", b"old")
    watcher = await bucket.watch("x.*")
    assert await changes(watcher, 1) == [("x.1", b"old")]
    await bucket.put("y.1", b"no")
    await bucket.put("x.2", b"new")
    await bucket.delete("x.1")
    found = await changes(watcher, 2)
    assert found[0] == ("x.2", b"new")
    assert found[1][0] == "x.1"
    await watcher.stop()  # type: ignore[no-untyped-call] # as nats-py has it


async def test_values_grow_old(js: JetStreamContext, fresh: str) -> None:
    bucket = await js.create_key_value(bucket=fresh, ttl=0.5)
    await bucket.put("k", b"1")

    async def gone() -> bool:
        try:
            await bucket.get("k")
        except KeyNotFoundError:
            return True
        return False

    await eventually(gone, "the value to expire")


async def test_status_and_removal(js: JetStreamContext, fresh: str) -> None:
    bucket = await js.create_key_value(bucket=fresh, history=3)
    await bucket.put("k", b"1")
    status = await bucket.status()
    assert (status.values, status.history) == (1, 3)
    assert await js.delete_key_value(fresh)
    with pytest.raises(BucketNotFoundError):
        await js.key_value(fresh)


async def test_objects(js: JetStreamContext, fresh: str) -> None:
    store = await js.create_object_store(bucket=fresh)
    body = bytes(range(256)) * 2048
    info = await store.put("file", body)
    assert (info.size, (info.chunks or 0) > 1) == (len(body), True)
    assert (await store.get("file")).data == body
    await store.put("file", b"small")
    assert (await store.get("file")).data == b"small"
    await store.delete("file")
    with pytest.raises(NotFoundError):
        await store.list(ignore_deletes=True)
