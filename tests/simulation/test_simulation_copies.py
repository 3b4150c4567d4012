"""Mirrors and sources under all faults: each message of an origin comes once, in order, to all."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from jsctl.broker.assets.replicas.inbound import Inbound
from jsctl.broker.jetstream.sourcing.origin import UpstreamOrigin
from jsctl.broker.jetstream.sourcing.upstream import Upstream
from jsctl.broker.jetstream.streams.positions import SourcePosition
from tests.simulation.hunting import drawn, hunt
from tests.simulation.plan import draw_copies
from tests.simulation.planting import overlooks
from tests.simulation.run import Simulation

Patch = pytest.MonkeyPatch
FIXED = 4
HUNTED = 12


def test_fixed_seeds_with_copies() -> None:
    taken = 0
    for seed in range(FIXED):
        run = Simulation(draw_copies(seed)).run()
        books = [known.books for known in run.checker.groups.values() if known.books is not None]
        taken += sum(len(one) for book in books for one in book.taken.values())
    assert taken > 500, "messages were taken from other streams"


def test_a_restarted_server_is_known_before_what_it_leads() -> None:
    """It was forgotten when a heartbeat told of the restart later: nobody found the leader."""
    Simulation(draw_copies(16)).run()


def test_what_a_server_leads_is_known_behind_a_link_that_breaks() -> None:
    """It was said once, on that link: who did not hear it asked for nothing of that stream again,
    and its mirror had nothing."""
    plan = draw_copies(300_000_005, 5)
    needed = {(1_200, "pause"), (1_297, "reset"), (1_446, "reset")}
    items = [item for item in plan.items if (item.at_ms, item.kind) in needed]
    Simulation(replace(plan, items=tuple(items))).run()


def _begins_again(patch: Patch) -> None:
    """A new leader does not know what was taken."""

    def nothing(self: Inbound, origin: UpstreamOrigin, identity: str) -> SourcePosition:
        return SourcePosition(0, "")

    patch.setattr(Inbound, "_durable", nothing)


def _goes_on_at_once(patch: Patch) -> None:
    """What the stream did not take is given up."""
    ask = Upstream.ask

    def impatient(self: Upstream, *rest: object) -> object:
        self.taken(len(self.queue))
        self.seq += 1
        return ask(self, *rest)  # type: ignore[arg-type]

    patch.setattr(Upstream, "ask", impatient)


@pytest.mark.planted
@pytest.mark.mutants
@pytest.mark.parametrize("plant", [_begins_again, overlooks, _goes_on_at_once])
def test_what_is_lost_or_comes_twice_is_found(
    plant: Callable[[Patch], None], monkeypatch: Patch
) -> None:
    hunt(plant, drawn(draw_copies, 0, HUNTED), monkeypatch)
