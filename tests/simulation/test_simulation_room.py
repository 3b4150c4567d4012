"""Disks that are full again and again, and changes while servers come and go; small segments."""

from collections.abc import Callable, Sequence

import pytest

from jsctl.broker.errors import DiskFull
from jsctl.broker.pieces import Piece
from jsctl.broker.ports import Disk
from jsctl.broker.store.message_store import MessageStore
from jsctl.broker.store.segments.patient_file import PatientFile
from jsctl.broker.store.segments.rewrite import SegmentRewrite
from jsctl.broker.store.segments.segment import segment_name
from tests.simulation.hunting import drawn, hunt
from tests.simulation.outcomes import outcome
from tests.simulation.plan import Plan, draw_room, draw_turmoil
from tests.simulation.run import failure

BLOCK = 4
Patch = pytest.MonkeyPatch


@pytest.mark.parametrize("drawing", [draw_room, draw_turmoil])
@pytest.mark.parametrize("servers", [3, 5])
@pytest.mark.parametrize("first", [0, pytest.param(2, marks=pytest.mark.mutants)])
def test_fixed_seeds(drawing: Callable[[int, int], Plan], servers: int, first: int) -> None:
    for seed in range(first, first + 2):
        plan = drawing(seed, servers)
        assert not outcome(plan).failure, plan


def test_what_needs_room_happens(monkeypatch: Patch) -> None:
    """Segments are written anew, and there is no room for some of what is to be written."""
    made: list[int] = []
    waited: list[str] = []
    take, flush = MessageStore._take_results, PatientFile.flush

    def results(self: MessageStore) -> None:
        assert self._job is not None
        made.extend(one.number for one in self._job.rewrites if one.made is not None)
        take(self)

    def flushed(self: PatientFile) -> bool:
        if not flush(self):
            waited.append(self.path)
            return False
        return True

    monkeypatch.setattr(MessageStore, "_take_results", results)
    monkeypatch.setattr(PatientFile, "flush", flushed)
    for seed in range(3 * BLOCK):
        assert not failure(draw_room(seed))
        if made and waited:
            return
    pytest.fail(f"{len(made)} written anew, {len(waited)} had to wait")


def _what_finds_no_room_is_dropped(patch: Patch) -> None:
    write = PatientFile.write

    def careless(self: PatientFile, offset: int, parts: Sequence[Piece]) -> None:
        write(self, offset, parts)
        if self.is_waiting:
            self._waiting[:] = bytes(len(self._waiting))

    patch.setattr(PatientFile, "write", careless)


def _what_is_written_anew_takes_its_place_at_once(patch: Patch) -> None:
    """A segment is cut before it is known that there is room for what is left of it."""
    run = SegmentRewrite.run

    def hasty(self: SegmentRewrite, disk: Disk, directory: str) -> None:
        try:
            run(self, disk, directory)
        except DiskFull:
            disk.open(f"{directory}/{segment_name(self.number)}").truncate(self.size // 2)
            raise

    patch.setattr(SegmentRewrite, "run", hasty)


@pytest.mark.planted
@pytest.mark.parametrize(
    ("plant", "first"),
    [(_what_finds_no_room_is_dropped, 18), (_what_is_written_anew_takes_its_place_at_once, 3222)],
)
def test_carelessness_without_room_is_found(
    plant: Callable[[Patch], None], first: int, monkeypatch: Patch
) -> None:
    hunt(plant, drawn(draw_room, first, 6 * BLOCK), monkeypatch, asserted=True)
