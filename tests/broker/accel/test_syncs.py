"""The thread that syncs a file beside the interpreter."""

import errno
import os
import select
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from jsctl.broker.accel.choice import compiled, made_syncer
from jsctl.broker.errors import SyncFailed
from jsctl.broker.ports import Syncer
from jsctl.broker.store.disk import RealDisk

pytestmark = pytest.mark.skipif(compiled() is None, reason="the compiled loops are not built")
READABLE_MS = 10_000


@pytest.fixture
def syncer() -> Iterator[Syncer]:
    from jsctl.broker.accel._syncs import Syncer as Compiled

    made = Compiled()
    yield made
    made.close()


def readable(syncer: Syncer, wait_ms: int) -> bool:
    look = select.poll()
    look.register(syncer.fileno(), select.POLLIN)
    return bool(look.poll(wait_ms))


def test_a_sync_ends_and_tells(syncer: Syncer, tmp_path: Path) -> None:
    with (tmp_path / "file").open("wb") as file:
        for waits in (True, False, True):
            file.write(b"more")
            file.flush()
            syncer.begin(file.fileno())
            assert not waits or readable(syncer, READABLE_MS)
            assert syncer.end() == 0
            assert syncer.took_ns > 0
            assert not readable(syncer, 0)


def test_a_failure_is_the_systems_number(syncer: Syncer, tmp_path: Path) -> None:
    reading, writing = os.pipe()
    try:
        syncer.begin(writing)
        assert readable(syncer, READABLE_MS)
        assert syncer.end() == errno.EINVAL
    finally:
        os.close(reading)
        os.close(writing)
    with (tmp_path / "file").open("wb") as file:
        syncer.begin(file.fileno())
        assert syncer.end() == 0


def test_one_at_a_time_and_an_end_for_each(syncer: Syncer, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="no sync"):
        syncer.end()
    with (tmp_path / "file").open("wb") as file:
        syncer.begin(file.fileno())
        with pytest.raises(RuntimeError, match="there is a sync already"):
            syncer.begin(file.fileno())
        assert syncer.end() == 0
        with pytest.raises(RuntimeError, match="no sync"):
            syncer.end()
        for wrong in (-1, 1 << 40):
            with pytest.raises((ValueError, OverflowError)):
                syncer.begin(wrong)
        with pytest.raises(TypeError):
            syncer.begin("no number")  # type: ignore[arg-type]


def test_the_end_waits_for_what_is_under_way(syncer: Syncer, tmp_path: Path) -> None:
    with (tmp_path / "file").open("wb") as file:
        syncer.begin(file.fileno())
        syncer.close()
        syncer.close()
        with pytest.raises(RuntimeError):
            syncer.begin(file.fileno())


def test_a_forked_process_has_no_thread(syncer: Syncer, tmp_path: Path) -> None:
    with (tmp_path / "file").open("wb") as file:
        syncer.begin(file.fileno())
        child = os.fork()
        if not child:
            try:
                syncer.end()
            except RuntimeError:
                syncer.close()
                os._exit(7)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        assert syncer.end() == 0


def test_the_loops_in_python_sync_by_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    assert made_syncer() is not None
    monkeypatch.setenv("JSCTL_PURE", "1")
    assert made_syncer() is None


def test_a_file_of_a_disk(syncer: Syncer, tmp_path: Path) -> None:
    disk = RealDisk(tmp_path / "disk")
    file = disk.open("file", create=True)
    file.write(0, (b"first",))
    file.begin_sync(syncer)
    file.sync()
    assert not readable(syncer, 0)
    file.begin_sync(syncer)
    file.close()
    os.mkfifo(tmp_path / "pipe")
    failing = disk.open("file")
    number = os.open(tmp_path / "pipe", os.O_RDWR)
    failing._fd, kept = number, failing._fd
    failing.begin_sync(syncer)
    with pytest.raises(SyncFailed, match="Invalid argument"):
        failing.sync()
    failing.begin_sync(syncer)
    failing._fd = kept
    os.close(number)
    failing.close()


def test_who_waits_for_a_sync_does_not_keep_the_thread_from_its_end(tmp_path: Path) -> None:
    from jsctl.broker.accel._syncs import Syncer as Compiled

    failures: list[int] = []

    def end(syncer: Syncer) -> None:
        failures.append(syncer.end())

    with (tmp_path / "file").open("wb") as file:
        for _ in range(300):
            file.write(b"more")
            file.flush()
            syncer = Compiled()
            syncer.begin(file.fileno())
            both = [
                Thread(target=end, args=(syncer,), daemon=True),
                Thread(target=syncer.close, daemon=True),
            ]
            for one in both:
                one.start()
            for one in both:
                one.join(READABLE_MS / 1000)
            assert not any(one.is_alive() for one in both)
    assert failures == [0] * 300, "what was begun has an end, also behind that of the thread"
