"""Batches under all faults: what is stored of an atomic one is all of it, in one piece, once; and
what is told of a fast one is so.
"""

from collections.abc import Callable, Mapping

import pytest

from jsctl.api.errors import ApiError
from jsctl.broker.jetstream.batches import fast
from jsctl.broker.jetstream.batches.atomic import AtomicBatch, AtomicBatches
from jsctl.broker.jetstream.batches.fast import FastBatch, FastBatches
from jsctl.broker.jetstream.batches.fast_replies import FastReply, read_reply
from jsctl.broker.jetstream.batches.publishing import BatchPublishing
from jsctl.broker.jetstream.streams.checks import Taken
from jsctl.broker.jetstream.streams.sequencer import Admitted, Building
from tests.simulation.batchers import Batcher
from tests.simulation.fast_publishers import FastPublisher
from tests.simulation.hunting import drawn, hunt
from tests.simulation.plan import draw_batches
from tests.simulation.run import Simulation

Patch = pytest.MonkeyPatch
FIXED = 4
HUNTED = 16


def test_fixed_seeds_with_batches() -> None:
    done, swift = 0, 0
    for seed in range(FIXED):
        run = Simulation(draw_batches(seed)).run()
        done += sum(one.done for one in run.publishers if isinstance(one, Batcher))
        swift += sum(one.done for one in run.publishers if isinstance(one, FastPublisher))
    assert done > 50, "atomic batches were acknowledged"
    assert swift > 20, "fast batches were acknowledged"


def _overlooks_what_is_missing(patch: Patch) -> None:
    refuse = AtomicBatches._refuse

    def careless(
        self: AtomicBatches,
        batch: AtomicBatch,
        seq: int,
        commit: bytes | None,
        fields: Mapping[bytes, bytes],
    ) -> ApiError | None:
        return refuse(self, batch, len(batch.members) + 1, commit, fields)

    patch.setattr(AtomicBatches, "_refuse", careless)


def _two_entries(patch: Patch) -> None:
    commit = BatchPublishing.commit

    def halves(
        self: BatchPublishing, batch: AtomicBatch, reply: bytes, time_ns: int, made: Admitted
    ) -> None:
        first = AtomicBatch(batch.id, 0, batch.members[:2])
        commit(self, first, b"", time_ns, made)
        if len(batch.members) > 2:
            commit(self, AtomicBatch(batch.id, 0, batch.members[2:]), reply, time_ns, made)

    patch.setattr(BatchPublishing, "commit", halves)


def _tells_at_once(patch: Patch) -> None:
    """How far a fast batch is, before it is safe."""

    def now(
        self: FastBatches,
        batch: FastBatch,
        taken: Taken,
        reply: bytes,
        building: Building,
        *,
        commits: bool,
    ) -> None:
        store(self, batch, taken, reply, building, commits=commits)
        while building.acks._others:
            EARLY.append(building.acks._others.pop())

    def append(self: FastBatches, *words: object) -> None:
        add(self, *words)  # type: ignore[arg-type]
        made = words[4]
        assert isinstance(made, Admitted)
        made.rejects += EARLY
        EARLY.clear()

    EARLY: list[tuple[bytes, bytes]] = []
    store, add = FastBatches._store, FastBatches._append
    patch.setattr(FastBatches, "_store", now)
    patch.setattr(FastBatches, "_append", append)


def _takes_gaps(patch: Patch) -> None:
    def careless(reply: bytes) -> FastReply | None:
        found = read_reply(reply)
        return found and found._replace(gap_ok=True)

    patch.setattr(fast, "read_reply", careless)


def _goes_on_too_far(patch: Patch) -> None:
    """A new leader takes more for stored than is."""

    def enter(self: FastBatch, time_ns: int) -> object:
        mark = entering(self, time_ns)
        return mark and mark._replace(seq=mark.seq + 1)

    entering = FastBatch.enter
    patch.setattr(FastBatch, "enter", enter)


PLANTS = [
    _overlooks_what_is_missing,
    _two_entries,
    _tells_at_once,
    _takes_gaps,
    _goes_on_too_far,
]


@pytest.mark.planted
@pytest.mark.mutants
@pytest.mark.parametrize("plant", PLANTS)
def test_a_part_of_a_batch_is_found(plant: Callable[[Patch], None], monkeypatch: Patch) -> None:
    hunt(plant, drawn(draw_batches, 0, HUNTED), monkeypatch)
