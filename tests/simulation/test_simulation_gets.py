"""Direct gets under all faults: what is answered is committed, and who has it, finds it."""

from collections.abc import Callable

import pytest

from jsctl.broker.jsapi.direct_gets import DirectGets, LateGet
from jsctl.broker.raft import reads
from jsctl.broker.raft.state import RaftState
from tests.simulation.getters import draw_gets
from tests.simulation.hunting import drawn, hunt
from tests.simulation.run import Simulation

Patch = pytest.MonkeyPatch
FIXED = 4
HUNTED = 8


def test_fixed_seeds_with_gets() -> None:
    got = sum(Simulation(draw_gets(seed)).run().getter.got for seed in range(FIXED))
    assert got > 1_000, "messages were found"


def _does_not_wait(patch: Patch) -> None:
    serve = DirectGets._serve_late

    def hasty(self: DirectGets, get: LateGet, line: object) -> None:
        get.index = 0
        serve(self, get, line)  # type: ignore[arg-type]

    patch.setattr(DirectGets, "_serve_late", hasty)


def _promises_what_is_not_on_its_disk(patch: Patch) -> None:
    ask = reads.ask

    def rash(state: RaftState) -> None:
        before = len(state.out.send)
        ask(state)
        for message in state.out.send[before:]:
            message.index = state.log.last_index  # type: ignore[union-attr]

    patch.setattr(reads, "ask", rash)


@pytest.mark.planted
@pytest.mark.parametrize(
    ("plant", "first"), [(_does_not_wait, 0), (_promises_what_is_not_on_its_disk, 1)]
)
def test_a_get_that_goes_wrong_is_found(
    plant: Callable[[Patch], None], first: int, monkeypatch: Patch
) -> None:
    hunt(plant, drawn(draw_gets, first, HUNTED), monkeypatch)
