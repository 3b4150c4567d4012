"""A small part of the matrix, and that it would say so if something was wrong."""

import asyncio
import random
from collections.abc import Coroutine
from contextlib import suppress
from pathlib import Path

import pytest

from jsctl.testing import Cluster
from jsctl.testing.broker import HOST
from tests.faults import damage
from tests.faults.__main__ import verdict as told_of
from tests.faults.links import LISTEN, links
from tests.faults.play import play
from tests.faults.rig import Rig
from tests.faults.rows import ROWS, Row, damage_stopped, kill_leader
from tests.faults.verdict import Outcome
from tests.faults.volumes import Volume
from tests.support.waiting import eventually

ROW = next(row for row in ROWS if row.name == "kill leader")


async def both(rig: Rig, given: dict[str, Volume]) -> None:
    """A killed leader, and a damaged file."""
    await kill_leader(rig, given)
    await damage_stopped(rig, given)


@pytest.mark.processes
def test_a_round_is_safe() -> None:
    notes: list[str] = []
    row = Row(0, "smoke", both, 30.0, 30.0)
    outcome = play(row, 3, 1, 2.0, notes)
    assert outcome.acked > 300
    assert outcome.is_safe, (outcome, notes)
    assert outcome.whole_s < 60, (outcome, notes)


def test_what_is_wrong_is_told() -> None:
    assert told_of(ROW, Outcome(1000, 0, 0, 0, 0.5, 3)) == "ok"
    for one in (Outcome(9, 1, 0, 0, 0, 0), Outcome(9, 0, 1, 0, 0, 0), Outcome(9, 0, 0, 1, 0, 0)):
        assert told_of(ROW, one) == "NOT SAFE"
    assert told_of(ROW, Outcome(9, 0, 0, 0, 0, 0, again=1)) == "NOT SAFE"
    slow = Outcome(9, 0, 0, 0, ROW.silence_s + 1, 2 * ROW.whole_s)
    assert told_of(ROW, slow).count("s") and "silent" in told_of(ROW, slow)
    assert "not whole" in told_of(ROW, slow)


async def test_a_cut_link_carries_nothing_until_it_heals(tmp_path: Path) -> None:
    cluster = Cluster(3, directory=tmp_path)

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(100):
            writer.write(data)
        writer.close()
        ended.set()

    ended = asyncio.Event()
    listen = LISTEN.search(cluster["n2"].config)
    assert listen
    server = await asyncio.start_server(echo, HOST, int(listen[1]))
    with links(cluster) as made:
        # The first of the two others that n1 dials is n2.
        port = int(cluster["n1"].config.partition("routes: [")[2].split('"')[1].rpartition(":")[2])
        reader, writer = await asyncio.open_connection(HOST, port)

        async def said(text: bytes) -> bool:
            writer.write(text)
            with suppress(TimeoutError):
                async with asyncio.timeout(0.05):
                    return await reader.readexactly(len(text)) == text
            return False

        writer.write(b"hello")
        async with asyncio.timeout(30.0):
            assert await reader.readexactly(5) == b"hello"
        made.cut([("n1", "n2")])
        await eventually(lambda: nothing_of(said(b"lost?")), "it carries nothing")
        made.heal()
        # What waited comes first.
        assert (await reader.readexactly(5)) == b"lost?"
        writer.close()
        await ended.wait()
        server.close()
    cluster.close()


async def nothing_of(said: Coroutine[None, None, bool]) -> bool:
    return not await said


@pytest.mark.parametrize("way", damage.WAYS_OF_LOGS, ids=lambda way: way.__name__)
def test_each_way_changes_a_file(way: object, tmp_path: Path) -> None:
    assert callable(way)
    path = tmp_path / "0000000001.seg"
    content = bytes(range(1, 200)) * 50
    path.write_bytes(content)
    assert way(path, random.Random(4))
    assert not path.is_file() or path.read_bytes() != content


def test_kinds_of_files_are_found(tmp_path: Path) -> None:
    for name in (
        "a/1.seg",
        "a/1.cat",
        "a/state.0",
        "a/durable",
        "a/index",
        "log/1.wal",
        "identity.0",
    ):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"x" * 10)
    for kind in damage.CLASSES:
        (found,), segments = damage.files(tmp_path, kind), damage.files(tmp_path, "segment")
        assert damage.damage(tmp_path, kind, random.Random(1)).startswith(
            str(found.relative_to(tmp_path))
        )
        assert kind == "segment" or damage.files(tmp_path, "segment") == segments
