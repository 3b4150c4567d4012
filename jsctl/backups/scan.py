"""Looking through a backup: whether it is whole, and what is in it."""

from collections import Counter
from collections.abc import Callable
from dataclasses import field
from pathlib import Path

from jsctl.backups.archive import ArchiveReader, ConsumerEntry, StateEntry
from jsctl.backups.directory import Description, archive_of, description_of
from jsctl.backups.s2 import BrokenStream
from jsctl.dataclass import dataclass


@dataclass(slots=True)
class Contents:
    """What an archive holds. Sequences and times are 0 where it has no messages."""

    description: Description
    declared: dict[str, object] = field(default_factory=dict)
    consumers: list[str] = field(default_factory=list)
    subjects: Counter[str] = field(default_factory=Counter)
    entries: int = 0
    messages: int = 0
    bytes: int = 0
    first_sequence: int = 0
    last_sequence: int = 0
    first_time_ns: int = 0
    last_time_ns: int = 0

    @property
    def counts_are_advisory(self) -> bool:
        """Whether the archive does not say how many messages it has."""
        declared = self.declared.get("messages"), self.declared.get("bytes")
        return self.messages > 0 and not all(declared)


def read_contents(
    directory: Path, progress: Callable[[int], None] = lambda _read: None
) -> Contents:
    """Reads all of an archive and checks it. `progress` gets the bytes read so far.

    Raises BrokenStream with the last good entry, and what opening the directory raises.
    """
    path, description = archive_of(directory), description_of(directory)
    found, memory = Contents(description), description.in_memory
    with path.open("rb") as file:
        reader = ArchiveReader(file)
        try:
            for entry in reader:
                if isinstance(entry, StateEntry):
                    found.declared = entry.state
                elif isinstance(entry, ConsumerEntry):
                    found.consumers.append(entry.name)
                else:
                    found.messages += 1
                    found.subjects[entry.subject] += 1
                    found.bytes += entry.stored_bytes(memory=memory)
                    found.first_sequence = found.first_sequence or entry.sequence
                    found.first_time_ns = found.first_time_ns or entry.time_ns
                    found.last_sequence, found.last_time_ns = entry.sequence, entry.time_ns
                    progress(file.tell())
        except BrokenStream as error:
            raise type(error)(f"{path}: {error} (last good entry: {reader.last})") from None
        found.entries = reader.count
    return found
