"""Chains of hashes under all faults: they are the same everywhere, and prove what is stored."""

from collections.abc import Callable, Iterable

import pytest

from jsctl.api.stream import StreamConfig
from jsctl.broker.jetstream.chains import chain as chains
from jsctl.broker.jetstream.chains.chain import Chain
from jsctl.broker.jetstream.chains.keeper import ChainKeeper
from jsctl.broker.jetstream.streams.entries import StreamEntry
from jsctl.broker.store.frame import Frame
from jsctl.broker.store.seqset import SeqSet
from tests.simulation.hunting import drawn, hunt
from tests.simulation.plan import draw_chains
from tests.simulation.run import Simulation

Patch = pytest.MonkeyPatch
FIXED = 4
HUNTED = 15


def test_fixed_seeds_with_chains() -> None:
    linked = 0
    for seed in range(FIXED):
        run = Simulation(draw_chains(seed)).run()
        books = [one.books for one in run.checker.groups.values() if one.books is not None]
        known = [one.stream.chained.chain for one in books]
        linked += sum(one.count for one in known if one is not None)
    assert linked > 300, "messages were linked"


def _forgets_what_is_restored(patch: Patch) -> None:
    """A snapshot has the head, and no leaves."""
    snapshot = Chain.snapshot

    def empty(self: Chain, removed: SeqSet) -> list[bytes]:
        blocks, self.blocks = self.blocks, []
        try:
            return snapshot(self, removed)
        finally:
            self.blocks = blocks

    patch.setattr(Chain, "snapshot", empty)


def _explains_nothing(patch: Patch) -> None:
    """What was removed behind the snapshot is missing after a start."""

    def nothing(entry: StreamEntry, config: StreamConfig) -> Iterable[tuple[int, int]]:
        return ()

    patch.setattr(chains, "explained", nothing)


def _begins_where_the_store_is(patch: Patch) -> None:
    """A chain that begins while entries are applied once more begins at the store's end."""

    def wrong(self: ChainKeeper, index: int, config: StreamConfig) -> None:
        if self.chain is None:
            self.chain = Chain(0)
        if index <= self._store.mark:
            self.chain.seq = max(self.chain.seq, self._store.last_seq)

    def lenient(self: ChainKeeper, frame: Frame) -> None:
        self.last_seq = frame.last_seq
        if self.chain is not None and frame.first_seq > self.chain.seq:
            self.chain.add(frame)

    patch.setattr(ChainKeeper, "configured", wrong)
    patch.setattr(ChainKeeper, "stored", lenient)


@pytest.mark.planted
@pytest.mark.mutants
@pytest.mark.parametrize(
    "plant", [_forgets_what_is_restored, _explains_nothing, _begins_where_the_store_is]
)
def test_a_chain_that_goes_wrong_is_found(
    plant: Callable[[Patch], None], monkeypatch: Patch
) -> None:
    hunt(plant, drawn(draw_chains, 0, HUNTED), monkeypatch)
