"""Dead letters under all faults: what is given up is stored elsewhere, once."""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from jsctl.broker.jetstream.consumers.dead_letters import LetterBox
from jsctl.broker.jetstream.consumers.state import ConsumerState, Death
from jsctl.broker.protocol import headers as blocks
from jsctl.broker.protocol.deliveries import Item
from jsctl.broker.store.record import Record
from tests.simulation import plan as plans
from tests.simulation.dead_letters import DEAD
from tests.simulation.hunting import drawn, hunt
from tests.simulation.plan import Plan, draw_letters
from tests.simulation.run import Simulation

Patch = pytest.MonkeyPatch
FIXED = 5
HUNTED = 15


def test_fixed_seeds_with_dead_letters() -> None:
    stored = 0
    for seed in range(FIXED):
        run = Simulation(draw_letters(seed)).run()
        books = [one.books for one in run.checker.groups.values() if one.books is not None]
        stored += sum(len(one.letters) for one in books if one.name == DEAD)
    assert stored > 50, "letters were stored"


def _sends_what_is_not_committed(patch: Patch) -> None:
    due = LetterBox._due

    def early(
        self: LetterBox, committed: dict[int, Death], dead: dict[int, Death], now_ns: int
    ) -> Sequence[int]:
        return due(self, dead, dead, now_ns)

    patch.setattr(LetterBox, "_due", early)


def _expects_nothing(patch: Patch) -> None:
    letter = LetterBox._letter

    def bold(self: LetterBox, wanted: bytes, record: Record, death: Death) -> Item:
        subject, reply, headers, payload, shown = letter(self, wanted, record, death)
        headers = blocks.remove(headers, b"Nats-Expected-Last-Subject-Sequence")
        return subject, reply, headers, payload, shown

    patch.setattr(LetterBox, "_letter", bold)


def _snapshots_know_of_none(patch: Patch) -> None:
    encode = ConsumerState.encode

    def forgetful(self: ConsumerState) -> bytes:
        dead, self.dead = self.dead, {}
        try:
            return encode(self)
        finally:
            self.dead = dead

    patch.setattr(ConsumerState, "encode", forgetful)


def cut_off(seed: int, servers: int) -> Plan:
    """Again and again a consumer's leader hears all servers but the other replicas."""
    picks = random.Random(seed)
    items = [
        plans.Item(at, "cut_consumer_off", picks.randrange(60), 0, 800)
        for at in range(1400, 3400, 250)
    ]
    return replace(draw_letters(seed, servers), items=tuple(items))


@pytest.mark.planted
@pytest.mark.mutants
@pytest.mark.parametrize(("plant", "first"), [(_expects_nothing, 16), (_snapshots_know_of_none, 0)])
def test_a_letter_that_goes_wrong_is_found(
    plant: Callable[[Patch], None], first: int, monkeypatch: Patch
) -> None:
    hunt(plant, drawn(draw_letters, first, HUNTED), monkeypatch)


@pytest.mark.planted
@pytest.mark.mutants
def test_a_letter_that_is_sent_too_early_is_found(monkeypatch: Patch) -> None:
    hunt(_sends_what_is_not_committed, drawn(cut_off, 208, HUNTED, (5,)), monkeypatch)
