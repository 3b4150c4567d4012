"""A file system for each server: it can be full, and lose power. Only root has loop devices."""

import fcntl
import os
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SHUTDOWN = 0x8004587D
"""ext4: stop at once."""
WITHOUT_LOG = struct.pack("I", 2)
"""And write nothing of what waits."""
SIZE_MB = 400


class NoVolumes(Exception):
    """This machine gives none; the text says why."""


class Volume:
    """One ext4 in a file, mounted."""

    def __init__(self, image: Path, place: Path) -> None:
        self.image = image
        self.place = place
        place.mkdir(parents=True, exist_ok=True)
        with image.open("wb") as file:
            file.truncate(SIZE_MB << 20)
        _run("mkfs.ext4", "-q", "-F", str(image))
        self.mount()

    def mount(self) -> None:
        """Make it readable, replaying its journal."""
        _run("mount", "-o", "loop,errors=remount-ro", str(self.image), str(self.place))

    def unmount(self) -> None:
        """Take it away."""
        subprocess.run(["umount", "-l", str(self.place)], check=False, capture_output=True)

    def cut_power(self) -> None:
        """Lose what was not synced, and come back."""
        self.fail()
        self.unmount()
        self.mount()

    def fail(self) -> None:
        """Every write and sync fails from now on."""
        where = os.open(self.place, os.O_RDONLY)
        try:
            fcntl.ioctl(where, SHUTDOWN, WITHOUT_LOG)
        finally:
            os.close(where)

    def turn_read_only(self) -> None:
        """The kernel has met an error in the file system, and lets nobody write any more."""
        device = next(
            line.split()[0]
            for line in Path("/proc/mounts").read_text().splitlines()
            if line.split()[1] == str(self.place)
        )
        trigger = Path("/sys/fs/ext4", Path(device).name, "trigger_fs_error")
        trigger.write_text("tests.faults")

    def mend(self) -> None:
        """Check it, and mount it again."""
        _run("umount", str(self.place))
        # Status 1: errors were corrected.
        subprocess.run(["e2fsck", "-fy", str(self.image)], check=False, capture_output=True)
        self.mount()

    def fill(self) -> None:
        """Leave no room."""
        with (self.place / "filler").open("wb") as file:
            free = os.statvfs(self.place)
            os.posix_fallocate(file.fileno(), 0, max(1, (free.f_bavail - 4) * free.f_frsize))

    def free(self) -> None:
        """There is room again."""
        (self.place / "filler").unlink(missing_ok=True)


@contextmanager
def volumes(directory: Path, names: list[str]) -> Iterator[dict[str, Volume]]:
    """One for each server, at `directory`/name. Raises NoVolumes."""
    made: dict[str, Volume] = {}
    try:
        for name in names:
            made[name] = Volume(directory / f"{name}.ext4", directory / name)
        yield made
    except (OSError, subprocess.CalledProcessError) as error:
        if len(made) == len(names):
            raise
        raise NoVolumes(f"no loop devices here: {error}") from error
    finally:
        for volume in made.values():
            volume.unmount()


def _run(*words: str) -> None:
    try:
        subprocess.run(words, check=True, capture_output=True, timeout=60)
    except FileNotFoundError as error:
        raise OSError(f"{words[0]} is not installed") from error
