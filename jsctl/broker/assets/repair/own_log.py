"""Damaged messages that the server's own log still has: what is in memory of it was verified."""

from collections.abc import Iterator

from jsctl.broker.jetstream.streams.entries import Messages, StreamEntryKind, decode
from jsctl.broker.raft.core import Raft
from jsctl.broker.raft.types import EntryKind
from jsctl.broker.store.seqset import SeqSet


def from_own_log(raft: Raft, wanted: SeqSet) -> dict[int, bytes]:
    """Encoded records, by sequence, of those wanted that committed entries have."""
    found: dict[int, bytes] = {}
    for entry in raft.log.entries:
        if entry.index > raft.applied:
            break
        if entry.kind is EntryKind.DATA and entry.data[0] == StreamEntryKind.MESSAGES:
            made = decode(entry.data)
            assert isinstance(made, Messages), "as its kind says"
            found.update(_chosen(made, wanted))
    return found


def _chosen(made: Messages, wanted: SeqSet) -> Iterator[tuple[int, bytes]]:
    frame = made.frame
    if not wanted.count_range(frame.first_seq, frame.last_seq):
        return
    columns = frame.columns
    ends = [*columns.offsets[1:], len(frame.buffer)]
    for seq, start, end in zip(columns.seqs, columns.offsets, ends, strict=True):
        if seq in wanted:
            yield seq, frame.buffer[start:end]
