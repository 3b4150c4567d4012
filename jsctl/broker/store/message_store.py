"""The store of a file stream: its parts put together, made durable, and its files kept tidy.

Appends are not synced: the caller's log is. A checkpoint job syncs segments, says how far in the
`durable` file, saves the index now and then, rewrites segments that are mostly dead, and removes
dead ones.
"""

from functools import partial

from jsctl.broker.ports import Disk
from jsctl.broker.store import record
from jsctl.broker.store.checkpoint import (
    DURABLE_NAME,
    INDEX_NAME,
    CheckpointJob,
    Durable,
    Witness,
    damage_of_slots,
)
from jsctl.broker.store.file_records import FileRecords
from jsctl.broker.store.index import Facts, StoreIndex, record_sum
from jsctl.broker.store.recovery import Recovery
from jsctl.broker.store.saved_index import encode_index
from jsctl.broker.store.scrub import EnvelopeCheck, FileCheck, SmallCheck, SummedCheck
from jsctl.broker.store.segments.erasures import ERASE_NAME, read_erasures
from jsctl.broker.store.segments.files import SegmentFiles, StoreOptions
from jsctl.broker.store.segments.open_files import waits_for_room
from jsctl.broker.store.segments.rewrite import LiveRecords, RestoredRecords, SegmentRewrite
from jsctl.broker.store.seqset import SeqSet
from jsctl.broker.store.stream_store import StoreJob, StreamStore

_INDEX_CHANGES_MIN = 50_000
_COMPACTIONS_MAX = 2


class MessageStore(StreamStore):
    """Messages of one stream in the files of one directory."""

    def __init__(
        self, disk: Disk, directory: str, options: StoreOptions, witness: Witness | None = None
    ) -> None:
        index = StoreIndex()
        self._files = SegmentFiles(disk, directory, options, index)
        self._file_records = FileRecords(self._files, index)
        super().__init__(index, self._file_records)
        recovery = Recovery(self._files, index, self._remover, witness)
        recovery.run()
        self.damage = recovery.damage
        self.forgets_removals = recovery.forgets_removals
        self._durable = recovery.durable
        self._job: CheckpointJob | None = None
        self._suspects: list[tuple[int, int]] = []
        """Ranges of segments that could not be written anew, as something in them does not check,
        be it in what is removed. They kept others from it."""
        self._look_from = 0
        """Where it is looked again at what the disk did not give."""
        self._to_erase = 0
        """Segments, at the last look, of which something is to be erased."""
        self._doubtful = False
        """A copy of the durable position does not check: it is to be written anew."""
        self._noted = read_erasures(disk, directory)
        """Segments of which the disk says that something is to be erased; None: not known."""
        for one in self._files.segments[:-1]:
            one.erase = self._noted is None or one.number in self._noted
            self.erasing |= one.erase

    @staticmethod
    def open(
        disk: Disk,
        directory: str,
        options: StoreOptions | None = None,
        witness: Witness | None = None,
    ) -> "MessageStore":
        """Open or create a store; `witness` if it is known to be there. Raises DiskError,
        DiskFull."""
        # A new one has no directory yet. What is in it counts with the first checkpoint only,
        # which makes its name durable.
        return MessageStore(disk, directory, options or StoreOptions(), witness)

    @property
    def directory(self) -> str:
        """Where the files are."""
        return self._files.directory

    # Durability

    def may_erase(self) -> bool:
        """See `StreamStore`. A segment is written anew for one message of it: while messages of
        more and more segments are being erased, that waits for the end of it, or for the checkpoint
        that comes anyway. A view keeps them all as they are."""
        before, self._to_erase = self._to_erase, sum([one.erase for one in self._files.segments])
        if self._files.views:
            return False
        return self._to_erase <= _COMPACTIONS_MAX or self._to_erase == before

    def find_room(self) -> bool:
        """Write what the disk had no room for; whether all is written. Raises DiskError."""
        return self._files.find_room()

    def checkpoint(self, index: bool = False) -> StoreJob | None:
        """Work that makes everything up to now durable; None if it is.

        Only one at a time: the caller reports a job `done` before it asks for the next one, and
        only when nothing waits for room (`find_room`).
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
            and not (files.unsynced or rewrites or files.doomed or wants_index or self._doubtful)
        ):
            return None
        self._doubtful = False
        files.appear()
        newest = files.segments[-1]
        catalogues = files.catalogue_writes()
        files.rest()
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
            erase=[one.number for one in files.segments if one.erase],
            noted=self._noted,
        )
        files.unsynced, files.doomed = set(), []
        files.pin({one.number for one in rewrites})
        if wants_index:
            files.changes = 0
        return self._job

    def done(self, job: StoreJob) -> None:
        """A job has been run without an error."""
        assert job is self._job, "one job at a time"
        self._durable = self._job.durable
        left = {one.number for one in self._job.rewrites if one.made is None}
        self._take_results()
        for at, segment in enumerate(self._files.segments[:-1]):
            if segment.number in left:
                self._suspects.append(self._suspected(at))

    def failed(self, job: StoreJob) -> None:
        """A job ended with an error other than SyncFailed: its work is done by a later one."""
        assert job is self._job, "one job at a time"
        alive = {one.number for one in self._files.segments}
        self._files.unsynced |= alive.intersection(self._job.unsynced)
        self._files.doomed += self._job.doomed
        self._take_results()

    def _take_results(self) -> None:
        assert self._job is not None, "a job is running"
        self._noted = self._job.noted
        self._files.pin(set())
        for write in self._job.catalogues:
            write.landed()
        for one in self._job.rewrites:
            if one.made is not None:
                self._files.replace(one.number, one.made)
                for seq in one.restored:
                    self._file_records.restored.pop(seq, None)
        self._job = None

    # Damage at rest

    def resting(self) -> list[FileCheck]:
        """Checks of all files: segments with their catalogues, and two small ones."""
        files = self._files
        found: list[FileCheck] = []
        for one in files.segments:
            if one.number in files.unsynced and not files.disk.is_file(files.path(one.number)):
                continue
            if waits_for_room(one):
                continue  # It is not all in its file yet.
            found.append(EnvelopeCheck(files.path(one.number), one.size, of=one))
            path, size = files.catalogue_path(one.number), one.catalogue.size
            if one.sealed and not one.catalogue.unwritten:
                found.append(EnvelopeCheck(path, -1, is_catalogue=True, of=one))
            elif size:
                found.append(EnvelopeCheck(path, size, of=one))
        if self._durable is not None:
            place = f"{files.directory}/{DURABLE_NAME}"
            verify = partial(damage_of_slots, directory=files.directory)
            found.append(SmallCheck(place, verify, required=True))
        found += [SummedCheck(f"{files.directory}/{name}") for name in (INDEX_NAME, ERASE_NAME)]
        return found

    def suspect(self, check: FileCheck) -> tuple[int, int] | None:
        """See `StreamStore`."""
        files = self._files
        if not check.path.startswith(f"{files.directory}/"):
            return None  # Of a store that this one has replaced.
        if isinstance(check, EnvelopeCheck):
            return self._suspect_segment(check)
        if check.path.endswith(INDEX_NAME):
            # It is only a shortcut, and made anew when it is worth it.
            files.disk.remove(check.path)
            return 1, 0
        self._doubtful = check.path.endswith((DURABLE_NAME, ERASE_NAME))
        if check.path.endswith(ERASE_NAME):
            self._noted = None
        return (1, 0) if self._doubtful else None

    def _suspect_segment(self, check: EnvelopeCheck) -> tuple[int, int] | None:
        """A segment or its catalogue does not check."""
        files = self._files
        at = next((at for at, one in enumerate(files.segments) if one is check.of), None)
        if at is None:
            return None  # Given up, or written anew.
        one = files.segments[at]
        job = self._job
        if job is not None and any(rewrite.number == one.number for rewrite in job.rewrites):
            return None  # Perhaps the new one was read, which is not `one`.
        one.damaged = True
        if one is files.segments[-1]:
            # Only what is closed is written anew.
            files.roll()
        return (1, 0) if check.path == files.catalogue_path(one.number) else self._suspected(at)

    def _suspected(self, at: int) -> tuple[int, int]:
        """A segment does not check: what range it has."""
        files = self._files
        files.segments[at].damaged = True
        # What is read next is what the next start would find, also if the file is gone.
        files.close_file(files.segments[at])
        self._file_records.forget_chunk()
        return files.firsts[at], files.firsts[at + 1] - 1

    def take_suspects(self) -> list[tuple[int, int]]:
        """See `StreamStore`."""
        found, self._suspects = self._suspects, []
        return found

    def recount(self) -> None:
        """See `StreamStore`."""
        files, index = self._files, self._index
        guessed, files.guessed = files.guessed, set()
        if not guessed:
            return
        restored = self._file_records.restored
        for segment in [one for one in files.segments if one.number in guessed]:
            segment.table = None
            table = files.table(segment)
            for seq in index.live(segment.first_seq, segment.last_seq, segment.count):
                if table.find(seq) < 0 and seq not in restored:
                    self._lose(seq)
        files.guessed = set()
        known = [
            seq
            for seq in index.live(index.first, index.last, index.retained_messages)
            if seq not in index.lost
        ]
        index.bytes, crcs = self._records.tally(known) if known else (0, 0)
        index.digest = record_sum(crcs, sum(known))

    @property
    def unread(self) -> SeqSet:
        """See `StreamStore`."""
        return self._file_records.unread

    def look_again(self, count_max: int, failures_max: int) -> int:
        """See `StreamStore`."""
        unread, before = self._file_records.unread, len(self._index.lost)
        self._files.forget_partial()
        self.recount()
        seq = unread.next_present(self._look_from)
        while seq is not None and count_max and failures_max:
            self._read_again(seq)
            count_max, failures_max = count_max - 1, failures_max - (seq in unread)
            self._look_from = seq + 1
            seq = unread.next_present(self._look_from)
        if seq is None:
            self._look_from = 0
        return max(before - len(self._index.lost), 0)

    def _read_again(self, seq: int) -> None:
        """What the disk did not give counts again if it is the message that was here."""
        lost, records = self._index.lost, self._file_records
        records.unread.remove(seq)
        raws, _ = records.read_raw((seq,)) if seq in lost else ([], 0)
        known = lost.facts.get(seq)
        for raw in raws:
            facts = Facts(*record.raw_facts(raw))
            if known is None or known.crc in (0, facts.crc):
                self._index.put_back(seq, facts)

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
        return encode_index(state, self._files.segments, index.subjects)

    def _compactions(self) -> list[SegmentRewrite]:
        """Give up dead segments, and choose those that are mostly dead to be rewritten."""
        chosen: list[SegmentRewrite] = []
        self.has_more_to_erase = False
        files, index = self._files, self._index
        if files.views:
            return chosen
        self.erasing = False
        wanted = self._homes()
        for segment in files.segments[:-1]:
            live = files.live_of(segment)
            if not live and segment.number not in wanted:
                files.doom(segment)
            elif not live or segment.damaged or not (segment.erase or live * 2 < segment.count):
                continue
            elif len(chosen) >= _COMPACTIONS_MAX:
                self.has_more_to_erase |= segment.erase
            else:
                seqs = index.live(segment.first_seq, segment.last_seq, live)
                restored = self._file_records.restored
                sound = not index.lost and not restored
                if sound or not any(seq in index.lost or seq in restored for seq in seqs):
                    filler = LiveRecords(seqs)
                    chosen.append(SegmentRewrite(segment.number, segment.size, filler))
        return chosen

    def _homes(self) -> set[int]:
        """Numbers of the segments to which what is damaged, or put back, is to be written."""
        lost, restored = self._index.lost.seqs, self._file_records.restored
        seqs = [*(first for first, _ in lost.ranges()), *restored]
        return {self._files.of(seq).number for seq in seqs}

    def _restorations(self) -> list[SegmentRewrite]:
        """Segments of which all that was damaged is back."""
        chosen: list[SegmentRewrite] = []
        self.has_more_to_restore = False
        files, index, restored = self._files, self._index, self._file_records.restored
        if files.views or (not restored and not any(one.damaged for one in files.segments)):
            return chosen
        homes = {files.of(seq).number for seq in restored}
        for at, segment in enumerate(files.segments[:-1]):
            if segment.number not in homes and not segment.damaged:
                continue
            # What no segment has any more is written to the one before, or to the first of all.
            first = files.firsts[at] if at else index.first
            last = files.firsts[at + 1] - 1
            seqs = index.live(first, last, index.retained_messages)
            raws = {seq: restored[seq] for seq in seqs if seq in restored}
            if seqs and not index.lost.seqs.count_range(first, last):
                if 0 < self.restorations_max <= len(chosen):
                    self.has_more_to_restore = True
                    break
                places = files.places(segment, [seq for seq in seqs if seq not in raws])
                filler = RestoredRecords(seqs, raws, segment.mark, places, index.deleted.copy())
                rewrite = SegmentRewrite(
                    segment.number, segment.size, filler, tuple(raws), salvage=True
                )
                chosen.append(rewrite)
        return chosen


__all__ = ["MessageStore", "StoreOptions"]
