"""Directories of batches: whole or not there, recovered from every step that a crash can stop."""

from pathlib import Path

import pytest

from jsctl.errors import Conflict, NotFound
from jsctl.spark.pipeline.layout import COMPACTED, STAGING, TRASH, BatchDirectory, hold_lock

pa = pytest.importorskip("pyarrow")


@pytest.fixture
def directory(tmp_path: Path) -> BatchDirectory:
    """Three batches of ten rows each."""
    found = BatchDirectory(tmp_path / "d")
    found.open("me", "pipeline")
    for batch in range(3):
        stage(found, batch, batch * 10, 10)
        found.publish(batch, {"from": batch * 10, "to": batch * 10 + 9})
    found.write_manifest({"about": "it"})
    return found


def stage(directory: BatchDirectory, batch: int, first: int, rows: int) -> Path:
    import pyarrow.parquet as parquet

    staged = directory.staging(batch) / "day=2026-01-01"
    staged.mkdir(parents=True)
    parquet.write_table(pa.table({"seq": list(range(first, first + rows))}), staged / "p.parquet")
    (staged / ".p.parquet.crc").write_bytes(b"left by Spark")
    (directory.staging_of(batch) / "_SUCCESS").touch()
    return directory.staging_of(batch)


def visible(directory: BatchDirectory) -> list[int]:
    """What a reader of the directories sees."""
    import pyarrow.dataset as dataset

    table = dataset.dataset(directory.root, partitioning="hive").to_table(columns=["seq"])
    found: list[int] = sorted(table["seq"].to_pylist())
    return found


def listed(directory: BatchDirectory) -> list[int]:
    """What a reader of the manifest sees."""
    import pyarrow.parquet as parquet

    paths = [directory.root / name for name in directory.manifest()["files"]]
    found = [seq for path in paths for seq in parquet.read_table(path)["seq"].to_pylist()]
    return sorted(found)


def test_batches_are_there_whole(directory: BatchDirectory) -> None:
    assert visible(directory) == listed(directory) == list(range(30))
    entry = directory.entries()[1]
    assert (entry.id, entry.rows, entry.first_seq, entry.last_seq) == (1, 10, 10, 19)
    assert not list(directory.root.rglob("_SUCCESS"))
    assert directory.manifest()["about"] == {"about": "it"}
    assert directory.has(2)
    assert not directory.has(3)


def test_an_unfinished_batch_is_never_seen(directory: BatchDirectory) -> None:
    stage(directory, 3, 30, 10)
    assert visible(directory) == list(range(30))
    again = BatchDirectory(directory.root)
    again.open("me", "pipeline")
    assert not (directory.root / STAGING).exists()
    assert visible(again) == list(range(30))


@pytest.mark.parametrize("crash", ["before the swap", "in the swap", "after the swap", "nowhere"])
def test_a_compaction_survives_a_crash(directory: BatchDirectory, crash: str) -> None:
    staged = stage(directory, 2, 0, 30)
    merged = directory.entries()
    if crash == "nowhere":
        directory.publish_compacted(staged, merged)
    else:
        other = BatchDirectory(directory.root)
        crash_in(other, crash)
        with pytest.raises(KeyboardInterrupt):
            other.publish_compacted(staged, merged)
    again = BatchDirectory(directory.root)
    again.open("me", "pipeline")
    again.write_manifest()
    assert visible(again) == listed(again) == list(range(30))
    assert [entry.extra for entry in again.entries()] == [{"from": 0, "to": 29}]
    assert all(again.has(batch) for batch in range(3)), "a replay finds what was merged"
    assert not (directory.root / COMPACTED).exists()
    assert not (directory.root / TRASH).exists()
    stage(again, 3, 30, 10)
    again.publish(3)
    assert visible(again) == list(range(40))


def crash_in(directory: BatchDirectory, where: str) -> None:
    """Make a compaction stop at a step."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    if where == "before the swap":
        directory.write_manifest = stop  # type: ignore[method-assign,assignment] # a kill
    elif where == "in the swap":
        swap = directory._swap

        def half() -> None:
            trash = directory.root / TRASH
            trash.mkdir()
            (directory.root / "batch=1").rename(trash / "batch=1")
            stop(swap)

        directory._swap = half  # type: ignore[method-assign] # stands for a kill
    else:
        write, times = directory.write_manifest, iter((False, True))

        def second() -> None:
            stop() if next(times) else write()

        directory.write_manifest = second  # type: ignore[method-assign,assignment] # as above


def test_a_directory_has_one_owner(directory: BatchDirectory, tmp_path: Path) -> None:
    with pytest.raises(Conflict, match="another pipeline"):
        BatchDirectory(directory.root).open("you", "pipeline")
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "precious").touch()
    with pytest.raises(Conflict, match="is not empty"):
        BatchDirectory(tmp_path / "x").open("me", "pipeline")
    with pytest.raises(NotFound, match="no _manifest"):
        BatchDirectory(tmp_path / "x").manifest()


def test_a_lock_names_its_holder(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    refused = pytest.raises(Conflict, match="it is used by process")
    with hold_lock(lock, "it is used by"), refused, hold_lock(lock, "it is used by"):
        raise AssertionError("it was held twice")
    with hold_lock(lock, "it is used by"):
        pass


def test_a_directory_whose_making_was_broken_off_is_made(tmp_path: Path) -> None:
    """As by a full disk: the first file was written, and not renamed yet."""
    (tmp_path / "._owner.json.4711.new").write_text("{")
    directory = BatchDirectory(tmp_path)
    with directory.locked():
        directory.open("me", "pipeline")
    with pytest.raises(Conflict, match="written by another"):
        directory.open("you", "pipeline")
