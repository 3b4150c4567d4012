"""A backup of which a part gets lost on its way is none."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jsctl.backups import archive, s2
from jsctl.backups.entries import entry_bytes
from jsctl.client.backup import backup_stream
from jsctl.errors import JsctlError

CHUNK = 50
BEGIN = archive.begin_bytes(1, {"first_seq": 1, "last_seq": 9})
ENTRIES = [entry_bytes("s", 5, seq, b"", b"%d" % seq * 40) for seq in range(1, 10)]
WHOLE = b"".join(map(s2.plain_chunk, (BEGIN, *ENTRIES, archive.end_bytes())))
OLD = s2.compressed(bytes(1024))


def sent(data: bytes) -> list[tuple[str, bytes]]:
    """Replies and parts, as servers send them: all but the last one are to be acknowledged."""
    parts = [data[at : at + CHUNK] for at in range(0, len(data), CHUNK)]
    replies = [f"$JS.SNAPSHOT.ACK.S.x.{CHUNK}.{index}" for index in range(1, len(parts))]
    return list(zip([*replies, ""], parts, strict=True))


def backed_up(
    parts: list[tuple[str, bytes]],
    target: Path,
    minor: int = 15,
    *,
    meanwhile: Callable[[], None] = lambda: None,
) -> None:
    heard = [SimpleNamespace(reply=reply, data=data, headers=None) for reply, data in parts]
    heard.append(SimpleNamespace(reply="", data=b"", headers={"Status": "204"}))

    async def nothing(*_words: object) -> None:
        return None

    async def next_msg(timeout: float) -> Any:
        return heard.pop(0)

    async def subscribe(inbox: str) -> Any:
        return SimpleNamespace(next_msg=next_msg, unsubscribe=nothing)

    async def ask(*_words: object, body: object) -> dict[str, object]:
        meanwhile()
        return {"config": {"name": "S"}, "state": {"bytes": 5}}

    manager: Any = SimpleNamespace(
        client=SimpleNamespace(
            new_inbox=lambda: "in",
            subscribe=subscribe,
            publish=nothing,
            connected_server_version=SimpleNamespace(major=2, minor=minor),
        ),
        requests=SimpleNamespace(ask=ask),
    )
    asyncio.run(backup_stream(manager, "S", target))


@pytest.mark.parametrize(
    ("data", "minor"), [(WHOLE, 15), (WHOLE + s2.plain_chunk(b"more"), 15), (OLD, 10)]
)
def test_what_came_whole_is_kept(tmp_path: Path, data: bytes, minor: int) -> None:
    backed_up(sent(data), tmp_path / "b", minor)
    (kept,) = (tmp_path / "b").glob("*.s2")
    assert kept.read_bytes() == data


def test_the_archive_is_on_the_disk_before_it_is_described(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced, sync = list[int](), os.fsync

    def noted(file: int) -> None:
        synced.append(os.fstat(file).st_ino)
        sync(file)

    monkeypatch.setattr(os, "fsync", noted)
    backed_up(sent(WHOLE), tmp_path / "b")
    names = ("stream.arc.s2", "backup.json")
    assert synced == [(tmp_path / "b" / name).stat().st_ino for name in names]


@pytest.mark.parametrize("lost", [0, 3, -2, -1])
def test_a_part_that_is_lost_is_noticed(tmp_path: Path, lost: int) -> None:
    parts = sent(WHOLE)
    del parts[lost]
    with pytest.raises(JsctlError, match="got lost"):
        backed_up(parts, tmp_path / "b")
    assert not (tmp_path / "b").exists()


@pytest.mark.parametrize(
    ("data", "minor"), [(b"", 15), (WHOLE[: -len(s2.plain_chunk(bytes(5)))], 15), (OLD[:-1], 10)]
)
def test_a_lost_end_is_noticed(tmp_path: Path, data: bytes, minor: int) -> None:
    with pytest.raises(JsctlError, match="got lost"):
        backed_up(sent(data) if data else [], tmp_path / "b", minor)
    assert not (tmp_path / "b").exists()


def test_two_backups_do_not_write_into_one_archive(tmp_path: Path) -> None:
    archive_of_other = tmp_path / "b" / "stream.arc.s2"

    def begun() -> None:
        archive_of_other.parent.mkdir()
        archive_of_other.write_bytes(b"of somebody else")

    with pytest.raises(JsctlError, match="exists"):
        backed_up(sent(WHOLE), tmp_path / "b", meanwhile=begun)
    assert [one.name for one in (tmp_path / "b").iterdir()] == ["stream.arc.s2"]
    assert archive_of_other.read_bytes() == b"of somebody else"
