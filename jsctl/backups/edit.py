"""A copy of a backup with only some of its messages, written whole or not at all.

A filter that keeps the newest messages of each subject reads the archive twice: what is kept of a
subject is known only when all of it was seen. The copy is made in a folder beside its place.
"""

import hashlib
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import BinaryIO

from jsctl.backups.archive import (
    CONSUMERS,
    HEAD_PAD,
    ArchiveReader,
    ConsumerEntry,
    MessageEntry,
    StateEntry,
    end_bytes,
    state_bytes,
)
from jsctl.backups.directory import Description, Stage, archive_of, description_of, staged
from jsctl.backups.entries import entry_bytes
from jsctl.backups.filters import Dropped, Filter, Judge, is_tombstone
from jsctl.backups.obfuscation import Obfuscator, key_file_of
from jsctl.backups.s2 import BrokenStream, Packed, plain_chunk
from jsctl.dataclass import dataclass
from jsctl.errors import UsageError

SLOT_BYTES = {True: 24, False: 16}
"""What the reference implementation counts for a kept key, compacted or not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """What to do. `tool` names the program in the copy's record, `now_ns` says what is too old."""

    wanted: Filter = field(default_factory=Filter)
    renumber: bool = False
    dry_run: bool = False
    hidden: Obfuscator | None = None
    """Hides names and bodies."""
    key_file: Path | None = None
    """Where its keys come from, if they were there before."""
    tool: str = ""
    now_ns: int = 0
    progress: Callable[[int], None] = lambda _read: None


@dataclass(slots=True)
class Edited:
    """What was done: counts, and the copy's description."""

    description: Description
    source_messages: int = 0
    source_subjects: int = 0
    kept: int = 0
    kept_subjects: int = 0
    bytes: int = 0
    first_sequence: int = 0
    last_sequence: int = 0
    dropped: Counter[Dropped] = field(default_factory=Counter)
    consumers_kept: int = 0
    consumers_dropped: int = 0
    tombstones: int = 0
    state_keys: int = 0
    state_bytes: int = 0
    too_old: int = 0
    warnings: list[str] = field(default_factory=list)
    obfuscated: "Obfuscated | None" = None


@dataclass(frozen=True, slots=True)
class Obfuscated:
    """What was hidden; there is a key file where something was written."""

    tokens: int
    bodies: int
    key_file: Path | None


def edit_backup(source: Path, target: Path, edit: Edit) -> Edited:
    """Makes the copy. Raises UsageError, Conflict for a target that is not empty, BrokenStream."""
    edit.wanted.check()
    path, description = archive_of(source), description_of(source)
    if edit.wanted.kv_compact and not description.is_bucket:
        found = description.config.get("subjects")
        subjects = " ".join(map(str, found)) if isinstance(found, list) else ""
        raise UsageError(
            f'KVCompact requires a KV bucket backup: stream "{description.name}" '
            f"with subjects [{subjects}] is not one"
        )
    if edit.dry_run:
        return _Editor(path, description, edit, None).run()
    return _in_place(target, path, description, edit)


def _in_place(target: Path, path: Path, description: Description, edit: Edit) -> Edited:
    with staged(target) as stage:
        with stage.archive() as out:
            editor = _Editor(path, description, edit, out)
            done = editor.run()
        editor.commit(stage, done.description)
    return done


class _Editor:
    """One edit; `out` is None where nothing is to be written."""

    def __init__(
        self, path: Path, description: Description, edit: Edit, out: BinaryIO | None
    ) -> None:
        self.path = path
        self.description = description
        self.edit = edit
        self.out = out
        self.done = Edited(description)
        self.judge = Judge(edit.wanted)
        self.subjects: set[str] = set()
        self.kept_subjects: set[str] = set()
        self.state = StateEntry(0, {})
        self.packed = Packed(out) if out is not None else None
        self.hidden = edit.hidden
        age = description.config.get("max_age")
        self.oldest_ns = edit.now_ns - age if isinstance(age, int) and age > 0 else None

    def run(self) -> Edited:
        """Reads once or twice, writes, and sums up."""
        keep: Mapping[str, frozenset[int]] | None = None
        if self.edit.wanted.per_subject:
            keep = self._newest()
        self._copy(keep)
        if self.out is not None:
            self.out.seek(0)
            self.out.write(self._head(exact=True))
        self._sum_up()
        return self.done

    def commit(self, stage: Stage, description: Description) -> None:
        """The copy gets its place, and the keys theirs: both or none."""
        path, new = key_file_of(stage.target), False
        stage.describe(description)
        if self.hidden is not None:
            assert self.done.obfuscated is not None
            new = self.hidden.save(path, self.edit.key_file)
            self.done.obfuscated = replace(self.done.obfuscated, key_file=path)
        try:
            stage.commit()
        except OSError:
            if new:
                path.unlink()
            raise

    def _entries(self) -> Iterator[StateEntry | ConsumerEntry | MessageEntry]:
        with self.path.open("rb") as file:
            reader = ArchiveReader(file)
            try:
                for entry in reader:
                    yield entry
                    self.edit.progress(file.tell())
            except BrokenStream as error:
                text = f"{self.path}: {error} (last good entry: {reader.last})"
                raise type(error)(text) from None

    def _newest(self) -> dict[str, frozenset[int]]:
        """Of each subject the sequences that are kept; counts what is not."""
        wanted, passed = self.edit.wanted, 0
        most = 1 if wanted.kv_compact else wanted.last_per_subject
        newest: dict[str, deque[tuple[int, bool]]] = {}
        for entry in self._entries():
            if not isinstance(entry, MessageEntry) or not self._passes(entry):
                continue
            passed += 1
            gone = wanted.kv_compact and is_tombstone(entry)
            newest.setdefault(entry.subject, deque(maxlen=most)).append((entry.sequence, gone))
        keep = {
            subject: frozenset(sequence for sequence, gone in slots if not gone)
            for subject, slots in newest.items()
        }
        reason = Dropped.KV_COMPACT if wanted.kv_compact else Dropped.LAST_PER_SUBJECT
        self.done.dropped[reason] = passed - sum(map(len, keep.values()))
        slots = len(newest) if wanted.kv_compact else sum(map(len, newest.values()))
        self.done.state_keys = len(newest)
        names = sum(len(subject.encode()) for subject in newest)
        self.done.state_bytes = names + slots * SLOT_BYTES[wanted.kv_compact]
        return keep

    def _passes(self, message: MessageEntry) -> bool:
        """Whether the filter lets a message through; counts it."""
        done = self.done
        done.source_messages += 1
        self.subjects.add(message.subject)
        reason = self.judge(message)
        if reason is None:
            return True
        done.dropped[reason] += 1
        if reason in (Dropped.HEADER, Dropped.PAYLOAD):
            done.tombstones += is_tombstone(message)
        return False

    def _copy(self, keep: Mapping[str, frozenset[int]] | None) -> None:
        for entry in self._entries():
            if isinstance(entry, StateEntry):
                self.state = entry
                if self.out is not None:
                    self.out.write(self._head(exact=False))
            elif isinstance(entry, ConsumerEntry):
                self._consumer(entry)
            elif keep is None:
                if self._passes(entry):
                    self._message(entry)
            elif entry.sequence in keep.get(entry.subject, ()):
                self._message(entry)
        self._write(end_bytes(), last=True)

    def _consumer(self, entry: ConsumerEntry) -> None:
        if self.edit.renumber:
            self.done.consumers_dropped += 1
            return
        self.done.consumers_kept += 1
        if self.hidden is not None:
            entry = self.hidden.consumer(entry)
        name = f"{CONSUMERS}{entry.name}"
        self._write(entry_bytes(name, entry.time_ns, 0, b"", entry.data))

    def _message(self, message: MessageEntry) -> None:
        done = self.done
        done.kept += 1
        self.kept_subjects.add(message.subject)
        if self.oldest_ns is not None and message.time_ns < self.oldest_ns:
            done.too_old += 1
        if self.edit.renumber:
            message = replace(message, sequence=done.kept)
        if self.hidden is not None:
            keep_body = bool(self.description.config.get("allow_msg_counter"))
            message = self.hidden.message(message, keep_body=keep_body)
        done.first_sequence = done.first_sequence or message.sequence
        done.bytes += message.stored_bytes(memory=self.description.in_memory)
        self._write(
            entry_bytes(
                message.subject, message.time_ns, message.sequence, message.headers, message.payload
            )
        )

    def _write(self, data: bytes, *, last: bool = False) -> None:
        if self.packed is None:
            return
        self.packed.write(data)
        if last:
            self.packed.end()

    def _head(self, *, exact: bool) -> bytes:
        """The archive's state; how many messages there are is known at the end."""
        number, done = self._source_number, self.done
        renumber = self.edit.renumber
        state: dict[str, object] = {
            "messages": done.kept if exact else 0,
            "bytes": done.bytes if exact else 0,
            "first_seq": 1 if renumber else number("first_seq"),
            "first_ts": "0001-01-01T00:00:00Z",
            "last_seq": (done.kept if exact else 0) if renumber else self._last,
            "last_ts": "0001-01-01T00:00:00Z",
            "consumer_count": 0 if renumber else number("consumer_count"),
        }
        return plain_chunk(state_bytes(self.state.time_ns, state, pad=HEAD_PAD))

    def _source_number(self, key: str) -> int:
        value = self.state.state.get(key, 0)
        return value if isinstance(value, int) else 0

    @property
    def _last(self) -> int:
        told = self.description.state.get("last_seq", 0)
        return max(self._source_number("last_seq"), told if isinstance(told, int) else 0)

    def _range(self) -> tuple[int, int]:
        """The first and last sequence that a stream restored from the copy has."""
        done = self.done
        if self.edit.renumber:
            return 1, done.kept
        if done.kept:
            return done.first_sequence, self._last
        if not done.source_messages:
            return self._source_number("first_seq"), self._source_number("last_seq")
        return self._last + 1, self._last

    def _sum_up(self) -> None:
        done, config = self.done, dict(self.description.config)
        done.source_subjects, done.kept_subjects = len(self.subjects), len(self.kept_subjects)
        done.first_sequence, done.last_sequence = self._range()
        if self.edit.renumber:
            config.pop("first_seq", None)
        done.warnings = list(self._warnings(config))
        words = self.edit.wanted.words() + (["renumber"] if self.edit.renumber else [])
        words += ["obfuscate"] if self.hidden is not None else []
        record: dict[str, object] = {"version": self.edit.tool} if self.edit.tool else {}
        record |= {"options": words, "source_digest": f"sha256:{_digest(self.path)}"}
        state = {
            "messages": done.kept,
            "bytes": done.bytes,
            "first_seq": done.first_sequence,
            "first_ts": "0001-01-01T00:00:00Z",
            "last_seq": done.last_sequence,
            "last_ts": "0001-01-01T00:00:00Z",
            "consumer_count": done.consumers_kept,
        }
        source = self.description.source
        if self.hidden is not None:
            record["obfuscated"] = True
            config = self.hidden.config(config)
            source = self.hidden.source_record(source) if source is not None else None
            done.obfuscated = Obfuscated(len(self.hidden.originals), self.hidden.bodies, None)
        done.description = Description(config, state, record, source)

    def _warnings(self, config: Mapping[str, object]) -> Iterator[str]:
        """Limits of the stream that will trim what is restored."""
        done, most = self.done, self._limit(config, "max_msgs")
        if most and done.kept > most:
            yield (
                f"{done.kept} messages kept but max_msgs is {most}: "
                f"restore will discard the oldest {done.kept - most}"
            )
        most = self._limit(config, "max_bytes")
        if most and done.bytes > most:
            yield (
                f"{done.bytes} bytes kept but max_bytes is {most}: "
                "restore will discard the oldest messages"
            )
        if done.too_old:
            from jsctl.api.times import format_duration

            age = format_duration(self._limit(config, "max_age"))
            yield (
                f"{done.too_old} kept messages are already older than max_age {age}: "
                "restore will discard them"
            )
        most, wanted = self._limit(config, "max_msgs_per_subject"), self.edit.wanted
        if most and wanted.last_per_subject > most:
            yield (
                f"last-per-subject {wanted.last_per_subject} exceeds max_msgs_per_subject {most}: "
                f"restore will keep only {most} per subject"
            )

    @staticmethod
    def _limit(config: Mapping[str, object], key: str) -> int:
        value = config.get(key, 0)
        return value if isinstance(value, int) and value > 0 else 0


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
