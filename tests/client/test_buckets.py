"""Buckets of keys and of objects: what others do meanwhile, and answers that never come."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from jsctl.api.stream import StreamConfig
from jsctl.api.words import Storage
from jsctl.client.buckets import kv
from jsctl.client.buckets.kv import Bucket, Entry, Watched, fresh_bucket, open_bucket
from jsctl.client.buckets.objects import ObjectInfo, Store, delete_store, open_store
from jsctl.client.manager import Manager, open_manager
from jsctl.errors import JsctlError, Unreachable
from jsctl.settings import Context, Settings
from jsctl.testing import BrokerFactory

pytestmark = pytest.mark.processes


@pytest.fixture
def settings(jsctl_session_broker: BrokerFactory) -> Settings:
    return Settings(connection=Context(url=jsctl_session_broker("-js").url))


@asynccontextmanager
async def bucket_of(manager: Manager, name: str) -> AsyncIterator[Bucket]:
    config = fresh_bucket(name, max_msgs_per_subject=5, storage=Storage.MEMORY)
    await manager.create_stream(config)
    yield await open_bucket(manager, name)
    await kv.delete_bucket(manager, name)


async def test_a_value_that_comes_while_a_bucket_is_compacted_stays(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kv, "MARKERS_KEPT_NS", 0)  # all marks are old
    entries = Bucket.entries

    async def late(self: Bucket, wanted: Watched) -> list[Entry]:
        found = await entries(self, wanted)
        monkeypatch.setattr(Bucket, "entries", entries)
        await self.put("back", b"again")
        return found

    async with open_manager(settings) as manager, bucket_of(manager, "COMPACTED") as bucket:
        for key in ("back", "gone"):
            await bucket.put(key, b"1")
            await bucket.delete(key)
        monkeypatch.setattr(Bucket, "entries", late)
        await bucket.compact()
        assert (await bucket.get("back")).value == b"again"
        assert [entry.key for entry in await bucket.entries(Watched(history=True))] == ["back"]


async def test_keys_and_their_values_are_those_of_one_moment(settings: Settings) -> None:
    async with open_manager(settings) as manager, bucket_of(manager, "LISTED") as bucket:
        await bucket.put("a", b"1")
        await bucket.put("b", b"2")
        await bucket.put("a", b"3")
        await bucket.put("c", b"4")
        await bucket.delete("c")
        found = [(entry.key, entry.value, entry.revision) for entry in await bucket.values()]
        assert found == [("b", b"2", 2), ("a", b"3", 3)]
        assert await bucket.keys() == ["b", "a"]


@asynccontextmanager
async def store_of(manager: Manager, name: str) -> AsyncIterator[Store]:
    config = StreamConfig(
        name=f"OBJ_{name}",
        subjects=(f"$O.{name}.C.>", f"$O.{name}.M.>"),
        storage=Storage.MEMORY,
        allow_rollup_hdrs=True,
        allow_direct=True,
    )
    await manager.create_stream(config)
    yield await open_store(manager, name)
    await delete_store(manager, name)


async def content(store: Store, name: str) -> bytes:
    pieces: list[bytes] = []
    await store.read(await store.info(name), pieces.append)
    return b"".join(pieces)


async def test_an_object_whose_answer_got_lost_is_whole(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    tell = Store._tell

    async def lost(self: Store, info: ObjectInfo) -> None:
        await tell(self, info)
        raise Unreachable("nats: timeout")

    async with open_manager(settings) as manager, store_of(manager, "LOST") as store:
        await store.put(ObjectInfo("it", "LOST", "old"), [b"old"], lambda _: None)
        monkeypatch.setattr(Store, "_tell", lost)
        with pytest.raises(JsctlError, match="timeout"):
            await store.put(ObjectInfo("it", "LOST", "new"), [b"new"], lambda _: None)
        assert await content(store, "it") == b"new"
