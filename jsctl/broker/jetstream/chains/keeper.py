"""The chain of a stream that may have none: begun and ended by its config, and kept in step with
its store."""

from typing import TYPE_CHECKING

from jsctl.api.stream import StreamConfig
from jsctl.broker import lazy
from jsctl.broker.jetstream.chains.chain_key import CHAIN_KEY
from jsctl.broker.jetstream.streams.entries import StreamEntry
from jsctl.broker.store.frame import Frame
from jsctl.broker.store.seqset import SeqSet
from jsctl.broker.store.stream_store import StreamStore

if TYPE_CHECKING:
    from jsctl.broker.jetstream.chains import chain as chains
    from jsctl.broker.jetstream.chains.chain import Chain
else:
    chains = lazy.module("jsctl.broker.jetstream.chains.chain")


class ChainKeeper:
    """Of one stream. `last_seq`: the last sequence that the log has given, as far as it is
    applied; the store may be ahead."""

    __slots__ = ("_store", "chain", "last_seq")

    def __init__(self, store: StreamStore, last_seq: int) -> None:
        self.chain: Chain | None = None
        self.last_seq = last_seq
        self._store = store

    def applies(self, index: int, entry: StreamEntry, config: StreamConfig) -> None:
        """An entry is about to be applied."""
        if self.chain is None or not self.chain.is_starting:
            return
        if index > self._store.mark:
            self.chain.settle(self._gone())
        else:
            self.chain.explain(chains.explained(entry, config))

    def stored(self, frame: Frame) -> None:
        """Messages were appended."""
        self.last_seq = frame.last_seq
        chain = self.chain
        if chain is not None:
            known = len(chain.blocks)
            chain.add(frame)
            if len(chain.blocks) > known and not chain.is_starting:
                chain.trim(self._store.first_seq)

    def configured(self, index: int, config: StreamConfig) -> None:
        """The stream has this configuration behind an entry."""
        if CHAIN_KEY not in config.metadata:
            self.chain = None
        elif self.chain is None:
            self.chain = chains.Chain(self.last_seq)
            if index <= self._store.mark:
                self.chain.started()

    def adopt(self, chain: "Chain") -> None:
        """The stream is restored, and this came with it."""
        self.chain = chain

    def started(self) -> None:
        """State and store come from this server's disk."""
        if self.chain is not None:
            self.chain.started()

    def settled(self, applied: int) -> "Chain | None":
        """The chain, compared with the store if that is not ahead of the log any more."""
        if self.chain is not None and applied >= self._store.mark:
            if self.chain.is_starting:
                self.chain.settle(self._gone())
            self.chain.trim(self._store.first_seq)
        return self.chain

    def settled_with_gone(self, applied: int) -> "tuple[Chain, SeqSet] | None":
        """The same, and what is removed from the stream."""
        chain = self.settled(applied)
        return None if chain is None else (chain, self._gone())

    def snapshot(self, applied: int) -> list[bytes]:
        """In pieces; none where there is no chain."""
        chain = self.settled(applied)
        return [] if chain is None else chain.snapshot(self._gone())

    def restore(self, snapshot: bytes, at: int) -> int:
        """Inverse; returns where it ends."""
        self.chain, at = chains.Chain.restore(snapshot, at)
        return at

    def _gone(self) -> SeqSet:
        gone = self._store.deleted()
        gone.add_range(0, self._store.first_seq - 1)
        return gone
