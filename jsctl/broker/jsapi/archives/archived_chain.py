"""The chain of hashes of a stream in an archive: what its messages do not tell, and how it is made
anew when they are restored.

Leaves of messages that are there are made of them; those of removed ones, the link from which the
chain goes on, and the one that it has to end with are in the archive's state. An archive of a
server that knows no chains has none: the chain begins with its first message then.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Iterator, Mapping

from jsctl.backups.s2 import BrokenStream
from jsctl.broker.jetstream.chains.chain import BLOCK_SEQS, HASH_BYTES, Block, Chain, leaf_of
from jsctl.broker.jsapi.archives.consumer_documents import SEQUENCE_MAX
from jsctl.broker.store.frame import frame_of
from jsctl.broker.store.record import FRAME_HEADER_BYTES, Row
from jsctl.broker.store.seqset import SeqSet

STATE_KEY = "jsctl_chain"
REMOVED_TOLD = 50_000
"""Leaves of removed messages in an archive: the chain of one with more begins later there."""
Document = dict[str, object]


def document_of(chain: Chain, gone: SeqSet) -> Document:
    """What an archive says of a chain, `gone` being what the stream has removed."""
    anchor_seq, anchor, blocks = chain.newest(gone, REMOVED_TOLD)
    told: Document = {
        "since": chain.since,
        "anchor_seq": anchor_seq,
        "anchor": anchor.hex(),
        "seq": chain.seq,
        "hash": chain.link.hex(),
        "removed": [[seq, leaf.hex()] for block in blocks for seq, leaf in _gone_in(block, gone)],
    }
    return told | ({"missing": list(chain.missing.ranges())} if chain.missing else {})


def _gone_in(block: Block, gone: SeqSet) -> Iterator[tuple[int, bytes]]:
    """Sequences and leaves of removed messages, without a look at all that are there."""
    begin = block.number * BLOCK_SEQS
    seq = gone.next_present(begin)
    while seq is not None and seq < begin + BLOCK_SEQS:
        at = bisect_left(block.places, seq - begin)
        if at < len(block.places) and block.places[at] == seq - begin:
            yield seq, block.leaf(at)
        seq = gone.next_present(seq + 1)


class ChainBuild:
    """Makes the chain of a stream that is restored. Raises BrokenStream for what cannot be."""

    def __init__(self) -> None:
        self.chain = Chain(0)
        self._removed: deque[tuple[int, bytes]] = deque()
        self._end: tuple[int, bytes] | None = None

    def told(self, document: object) -> None:
        """What the archive's state says."""
        if document is None:
            return
        try:
            assert isinstance(document, dict)
            self._read(document)
        except (AssertionError, KeyError, TypeError, ValueError):
            raise BrokenStream("the chain of the archive cannot be read") from None

    def _read(self, document: Mapping[str, object]) -> None:
        since, anchor_seq = _seq(document["since"]), _seq(document["anchor_seq"])
        anchor = _hash(document["anchor"])
        self.chain = Chain(since, anchor_seq, anchor, anchor_seq, anchor)
        removed, missing = document["removed"], document.get("missing", [])
        assert isinstance(removed, list) and isinstance(missing, list)
        for seq, leaf in removed:
            assert not self._removed or self._removed[-1][0] < seq
            self._removed.append((_seq(seq), _hash(leaf)))
        for first, last in missing:
            self.chain.missing.add_range(_seq(first), _seq(last))
        self._end = _seq(document["seq"]), _hash(document["hash"])

    def add(self, row: Row) -> None:
        """A message of the archive, stored or not."""
        self._add_removed(row[0] - 1)
        if row[0] > self.chain.seq:
            self._add(row[0], leaf_of(frame_of([row]).buffer[FRAME_HEADER_BYTES:]))

    def _add_removed(self, up_to: int) -> None:
        while self._removed and self._removed[0][0] <= up_to:
            seq, leaf = self._removed.popleft()
            if seq > self.chain.seq:
                self._add(seq, leaf)

    def _add(self, seq: int, leaf: bytes) -> None:
        chain, known = self.chain, len(self.chain.blocks)
        chain.add_leaf(seq, leaf)
        if len(chain.blocks) > known:
            chain.trim(0)

    def finish(self) -> Chain:
        """The chain, if it is the one that the archive speaks of."""
        self._add_removed(SEQUENCE_MAX)
        if self._end is not None and (self.chain.seq, self.chain.link) != self._end:
            raise BrokenStream("the messages of the archive do not fit its chain of hashes")
        return self.chain


def _seq(value: object) -> int:
    assert isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= SEQUENCE_MAX
    return value


def _hash(value: object) -> bytes:
    assert isinstance(value, str)
    found = bytes.fromhex(value)
    assert len(found) == HASH_BYTES
    return found
