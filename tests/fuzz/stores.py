"""Whole stores and logs with changed bytes in their files: opened, or refused as damaged.

Nothing may come out that was not put in: a message that is read is the one that was stored.
"""

import random

from jsctl.broker.errors import BrokerError, Damaged
from jsctl.broker.store import record
from jsctl.broker.store.frame import frame_of
from jsctl.broker.store.message_store import MessageStore
from jsctl.broker.store.wal.format import BLOCK, MIRROR_BYTES
from jsctl.broker.store.wal.log import Wal, WalOptions
from jsctl.broker.subject.matching import ALL
from tests.fuzz.mutate import mutated
from tests.fuzz.target import Target
from tests.support.sim_disk import SimDisk

MESSAGES = 40
SECTOR = 512
WORDS = (bytes(8), b"\xff" * 8)
OPTIONS = WalOptions(b"i" * 16, MIRROR_BYTES + 8 * BLOCK)


def copied(files: dict[str, bytes], directory: str) -> SimDisk:
    """A disk with these files."""
    disk = SimDisk(random.Random(1))
    disk.make_directory(directory)
    for path, content in files.items():
        file = disk.open(path, create=True)
        file.write(0, [content])
        file.sync()
        file.close()
    disk.sync_directory(directory)
    return disk


class Damage(Target):
    """An input names a file and changes it: number of the file, a seed of the change."""

    share = 0.02
    directory = "/store"

    def __init__(self) -> None:
        self.files = self.written()
        self.used = {path: _used(content) for path, content in self.files.items()}

    def written(self) -> dict[str, bytes]:
        """Files of a store in order."""
        raise NotImplementedError

    def opened(self, disk: SimDisk) -> None:
        """Open it and read all."""
        raise NotImplementedError

    def seeds(self) -> list[bytes]:
        return [bytes([number, 0, 1]) for number in range(len(self.files))]

    def make(self, rng: random.Random, pool: list[bytes]) -> bytes:
        return rng.randbytes(4)

    def run(self, data: bytes, rng: random.Random) -> None:
        if not data:
            return
        files = dict(self.files)
        path = sorted(files)[data[0] % len(files)]
        change = random.Random(data[1:])
        files[path] = self._changed(change, path)
        try:
            self.opened(copied(files, self.directory))
        except BrokerError:
            return

    def _changed(self, change: random.Random, path: str) -> bytes:
        """Most often within a sector that is not empty: files are made longer than is written."""
        content, used = self.files[path], self.used[path]
        if not used or change.random() < 0.25:
            return mutated(change, content, WORDS, len(content) + 64)
        at = change.choice(used)
        sector = content[at : at + SECTOR]
        wrong = mutated(change, sector, WORDS, len(sector)).ljust(len(sector), b"\x00")
        return content[:at] + wrong + content[at + len(sector) :]


def _used(content: bytes) -> list[int]:
    """Where sectors begin that are not empty."""
    return [at for at in range(0, len(content), SECTOR) if any(content[at : at + SECTOR])]


class MessageStores(Damage):
    """A stream's files."""

    name = "message-store"

    def written(self) -> dict[str, bytes]:
        disk = SimDisk(random.Random(1))
        store = MessageStore.open(disk, self.directory)
        for seq in range(1, MESSAGES + 1, 4):
            rows = [_message(at) for at in range(seq, seq + 4)]
            store.append(frame_of(rows), seq)
        job = store.checkpoint(index=True)
        assert job is not None
        job.run()
        store.done(job)
        store.close()
        return {path: disk.content(path) for path in disk.paths()}

    def opened(self, disk: SimDisk) -> None:
        store = MessageStore.open(disk, self.directory)
        for seq in range(1, MESSAGES + 1):
            try:
                found = store.load(seq)
            except Damaged:
                continue
            assert found is None or found == _message(seq), "a message is the one that was stored"
        store.subjects(ALL)
        store.close()


def _message(seq: int) -> record.Record:
    return record.Record(seq, 10**18 + seq, b"s.%d" % (seq % 7), b"", b"payload %d" % seq)


class Logs(Damage):
    """The write-ahead log of all groups."""

    name = "wal"
    directory = "/wal"

    def written(self) -> dict[str, bytes]:
        disk = SimDisk(random.Random(1))
        wal, _ = Wal.open(disk, self.directory, OPTIONS)
        wal.add_vote(b"S:one", 3, b"peerpeer")
        for first in range(1, MESSAGES, 10):
            wal.add_entries(b"S:one", [_entry(index) for index in range(first, first + 10)])
            wal.add_vote(b"other", first, b"peer")
            while batch := wal.take_batch():
                batch.run()
                wal.done(batch.ticket)
                if not wal.pending_bytes:
                    break
        wal.close()
        return {path: disk.content(path) for path in disk.paths()}

    def opened(self, disk: SimDisk) -> None:
        wal, found = Wal.open(disk, self.directory, OPTIONS)
        group = found.groups.get(b"S:one")
        if group is not None:
            for entry in group.entries:
                assert entry == _entry(entry[0]), "an entry is the one that was written"
        complete = group is not None and len(group.entries) == MESSAGES
        doubted = found.damage or found.unsure or (group is not None and group.standing != "whole")
        assert complete or doubted or found.empty or group is not None
        wal.close()


def _entry(index: int) -> tuple[int, int, int, bytes]:
    return (index, 3, 0, b"%06d" % index + bytes(20))


TARGETS = (MessageStores, Logs)
