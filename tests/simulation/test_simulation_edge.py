"""A leaf node with a JetStream of its own, cut off, killed and slow: both sides have in the end
what the other one stored, see `edge`."""

import pytest

from tests.simulation.far_plan import draw_edge
from tests.simulation.kept import kept
from tests.simulation.planting import overlooks
from tests.simulation.run import Simulation, failure

FIXED = 2
HUNTED = 2


def test_fixed_seeds() -> None:
    stored = 0
    for seed in range(FIXED):
        run = Simulation(draw_edge(seed)).run()
        assert run.edge is not None
        stored += run.edge.checker.acknowledged
    assert stored > 300, "the leaf node stores"


def test_what_is_left_out_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    overlooks(monkeypatch)
    assert any("lacks" in failure(draw_edge(seed)) for seed in range(HUNTED))


# A network came back in the middle of a dial. Questions to an origin behind a leaf node overtook
# the news of who waits for their answers. Who asked was told so, and his server was killed; the
# request, which another one kept, was answered by the process that came after. A question that was
# asked again was decided on twice by the same server, as whoever had it first passed it on, too; or
# not at all, as he gave it back; or again after it was said that nobody answers.
FOUND = [
    (171000013, 5),
    (173000004, 3),
    (193000063, 3),
    (260000005, 3),
    (262000000, 3),
    (262000009, 3),
]


@pytest.mark.parametrize(("seed", "servers"), kept(FOUND, 4))
def test_seeds_that_failed_once(seed: int, servers: int) -> None:
    Simulation(draw_edge(seed, servers)).run()
