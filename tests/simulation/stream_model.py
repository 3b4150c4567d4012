"""What a stream must hold after each entry of its log: the rules once more, as simple as can be.

Nothing of the broker's own stream is used but the decoding of entries and configs.
"""

from collections.abc import Sequence

from jsctl.api.codec import loads
from jsctl.api.stream import StreamConfig
from jsctl.broker.jetstream.streams.entries import (
    Config,
    Delete,
    Expire,
    Messages,
    Purge,
    RemoveMessages,
    StreamEntry,
)
from jsctl.broker.store.record import decode_frame
from tests.simulation.violation import Violation


class StreamModel:
    """Sequence -> (subject, time) of what is there."""

    def __init__(self, config: StreamConfig) -> None:
        self.config = config
        self.consumed: list[int] = []
        """Removed because nobody needs them any more; whoever looks takes them."""
        self.rows: dict[int, tuple[bytes, int]] = {}

    def apply(self, entry: StreamEntry) -> None:
        """Take one entry."""
        match entry:
            case Messages():
                self._store(entry)
            case Expire():
                self._expire(entry)
            case Delete():
                self.rows.pop(entry.seq, None)
            case RemoveMessages():
                self.consumed += [seq for seq in entry.seqs if self.rows.pop(seq, None)]
            case Purge():
                self._purge(entry)
            case Config():
                self.config = loads(StreamConfig, entry.config)
                self._limit()

    def _store(self, entry: Messages) -> None:
        for record in decode_frame(entry.frame):
            if record.seq not in entry.skipped:
                self.rows[record.seq] = (record.subject, record.time_ns)
        self._limit()
        most = self.config.max_msgs
        if 0 < most < len(self.rows):
            raise Violation(f"{self.config.name} took a message above its limit of {most}")

    def _limit(self) -> None:
        if self.config.max_msgs_per_subject > 0:
            for subject in {subject for subject, _ in self.rows.values()}:
                same = [seq for seq, row in self.rows.items() if row[0] == subject]
                self._drop(same[: -self.config.max_msgs_per_subject])
        if self.config.max_msgs > 0 and self.config.discard.value == "old":
            self._drop(list(self.rows)[: -self.config.max_msgs])

    def _drop(self, seqs: Sequence[int]) -> None:
        for seq in seqs:
            del self.rows[seq]

    def _expire(self, entry: Expire) -> None:
        for seq in [one for one in self.rows if one <= entry.up_to]:
            age = entry.now_ns - self.rows.pop(seq)[1]
            if not 0 < self.config.max_age <= age:
                raise Violation(f"{self.config.name} lets {seq} expire after {age} ns")

    def _purge(self, entry: Purge) -> None:
        found = [
            seq
            for seq, (subject, _) in self.rows.items()
            if seq <= entry.up_to and entry.filter in (b"", subject)
        ]
        self._drop(found[: -entry.keep] if entry.keep else found)
