"""The store of a file stream: its parts put together, made durable, and its files kept tidy.

Appends are not synced: the caller's log is. A checkpoint job syncs segments, says how far in the
`durable` file, saves the index now and then, rewrites segments that are mostly dead, and removes
dead ones.
"""

from jsctl.broker.ports import Disk
from jsctl.broker.store.checkpoint import CheckpointJob, Durable
from jsctl.broker.store.file_records import FileRecords
from jsctl.broker.store.index import StoreIndex
from jsctl.broker.store.recovery import Recovery
from jsctl.broker.store.saved_index import encode_index
from jsctl.broker.store.segments.files import SegmentFiles, StoreOptions
from jsctl.broker.store.segments.rewrite import LiveRecords, RestoredRecords, SegmentRewrite
from jsctl.broker.store.stream_store import StoreJob, StreamStore

_INDEX_CHANGES_MIN = 50_000
_COMPACTIONS_MAX = 2


class MessageStore(StreamStore):
    """Messages of one stream in the files of one directory."""

    def __init__(self, disk: Disk, directory: str, options: StoreOptions) -> None:
        index = StoreIndex()
        self._files = SegmentFiles(disk, directory, options, index)
        self._file_records = FileRecords(self._files, index)
        super().__init__(index, self._file_records)
        recovery = Recovery(self._files, index, self._remover)
        recovery.run()
        self.damage = recovery.damage
        """What did not check at the opening."""
        self._durable = recovery.durable
        self._job: CheckpointJob | None = None

    @staticmethod
    def open(disk: Disk, directory: str, options: StoreOptions | None = None) -> "MessageStore":
        """Open or create a store. Raises DiskError, DiskFull."""
        # What is in it counts with the first checkpoint only, which makes its name durable.
        disk.make_directory(directory, durable=False)
        return MessageStore(disk, directory, options or StoreOptions())

    @property
    def directory(self) -> str:
        """Where the files are."""
        return self._files.directory

    # Durability

    def durable_mark(self) -> int:
        """Up to here a restart finds everything without the caller's log."""
        return self._durable.mark if self._durable else 0

    def checkpoint(self, index: bool = False) -> StoreJob | None:
        """Work that makes everything up to now durable; None if it is.

        Only one at a time: the caller reports a job `done` before it asks for the next one.
        The index is saved when enough has changed, or always with `index` (before closing).
        """
        # A None for a running job would be taken for "durable", and the log be let go of.
        assert self._job is None, "a checkpoint while another one runs"
        rewrites = [*self._compactions(), *self._restorations()]
        wants_index = self._wants_index(index)
        durable, files, known = self._durable, self._files, self._index
        assert durable is None or durable.mark <= known.mark, "the mark never goes back"
        if (
            durable
            and durable.mark == known.mark
            and not (files.unsynced or rewrites or files.doomed or wants_index)
        ):
            return None
        newest = files.segments[-1]
        catalogues = files.catalogue_writes()
        self._job = CheckpointJob(
            disk=files.disk,
            directory=files.directory,
            durable=Durable(
                durable.generation + 1 if durable else 1,
                newest.number,
                newest.size,
                known.mark,
                known.first,
                known.last,
                known.last_time,
                0 if newest.catalogue.unwritten else newest.catalogue.size,
            ),
            unsynced=sorted(files.unsynced),
            rewrites=rewrites,
            catalogues=catalogues,
            index=self._encode_index() if wants_index else None,
            doomed=files.doomed,
        )
        files.unsynced, files.doomed = set(), []
        if wants_index:
            files.changes = 0
        return self._job

    def done(self, job: StoreJob) -> None:
        """A job has been run without an error."""
        assert job is self._job, "one job at a time"
        self._durable = self._job.durable
        self._take_results()

    def failed(self, job: StoreJob) -> None:
        """A job ended with an error other than SyncFailed: its work is done by a later one."""
        assert job is self._job, "one job at a time"
        alive = {one.number for one in self._files.segments}
        self._files.unsynced |= alive.intersection(self._job.unsynced)
        self._files.doomed += self._job.doomed
        self._take_results()

    def _take_results(self) -> None:
        assert self._job is not None, "a job is running"
        for write in self._job.catalogues:
            write.landed()
        for one in self._job.rewrites:
            if one.made is not None:
                self._files.replace(one.number, one.made)
                for seq in one.restored:
                    self._file_records.restored.pop(seq, None)
        self._job = None

    def close(self) -> None:
        """Release files; nothing is synced. Not while a job is running."""
        self._files.close()

    def delete(self) -> None:
        """Remove the directory."""
        self.close()
        self._files.disk.remove_tree(self._files.directory)

    def _wants_index(self, forced: bool) -> bool:
        if self._index.lost:
            return False
        changes = self._files.changes
        many = changes >= max(_INDEX_CHANGES_MIN, self._index.messages // 2)
        return many or (forced and changes > 0)

    def _encode_index(self) -> bytes:
        index = self._index
        state = index.bytes.to_bytes(8, "little") + index.bounds(0).encode()
        live = index.subjects.live
        rows = ((subject, live(subject)) for subject in index.subjects)
        return encode_index(state, self._files.segments, rows)

    def _compactions(self) -> list[SegmentRewrite]:
        """Give up dead segments, and choose those that are mostly dead to be rewritten."""
        chosen: list[SegmentRewrite] = []
        files, index = self._files, self._index
        for segment in files.segments[:-1]:
            live = files.live_of(segment)
            if not live:
                files.doom(segment)
            elif (segment.erase or live * 2 < segment.count) and len(chosen) < _COMPACTIONS_MAX:
                seqs = index.live(segment.first_seq, segment.last_seq, live)
                restored = self._file_records.restored
                if not any(seq in index.lost or seq in restored for seq in seqs):
                    filler = LiveRecords(seqs)
                    chosen.append(SegmentRewrite(segment.number, segment.size, filler))
        return chosen

    def _restorations(self) -> list[SegmentRewrite]:
        """Segments of which all that was damaged is back."""
        chosen: list[SegmentRewrite] = []
        files, index, restored = self._files, self._index, self._file_records.restored
        if not restored:
            return chosen
        for at, segment in enumerate(files.segments[:-1]):
            # What no segment has any more is written to the one before, or to the first of all.
            first = files.firsts[at] if at else index.first
            last = files.firsts[at + 1] - 1
            seqs = index.live(first, last, index.retained_messages)
            raws = {seq: restored[seq] for seq in seqs if seq in restored}
            if raws and not any(seq in index.lost for seq in seqs):
                filler = RestoredRecords(seqs, raws, segment.mark, index.deleted.copy())
                rewrite = SegmentRewrite(segment.number, segment.size, filler, tuple(raws))
                chosen.append(rewrite)
        return chosen


__all__ = ["MessageStore", "StoreOptions"]
