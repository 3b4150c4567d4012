"""A file that is sound, but that of another segment, or of another stream, is damage."""

import random
from functools import cache
from itertools import product

import pytest

from jsctl.broker.store.frame import frame_of
from jsctl.broker.store.message_store import MessageStore
from jsctl.broker.store.scrub import EnvelopeCheck
from jsctl.broker.store.segments.segment import Envelope, belongs, home_of
from tests.broker.store.test_retained import COUNT, OPTIONS, kept, read_all, retained, row, settle
from tests.support.sim_disk import SimDisk

pytestmark = pytest.mark.slow


@cache
def others() -> dict[str, bytes]:
    """Files of another stream, with other messages at the same sequences."""
    disk = SimDisk(random.Random(4))
    store = MessageStore.open(disk, "t", OPTIONS)
    for mark, first in enumerate(range(1, 2 * COUNT, 3), 1):
        rows = [row(seq) for seq in range(first, first + 3)]
        store.append(
            frame_of([one._replace(payload=b"foreign" + one.payload) for one in rows]), mark
        )
        if mark % 5 == 0:
            settle(store)
    settle(store)
    store.close()
    return {path: disk.content(path) for path in disk.paths()}


def of_kind(paths: list[str], kind: str) -> list[str]:
    return [path for path in paths if path.endswith(kind)]


@pytest.mark.parametrize("index", [False, True], ids=["segments", "index"])
@pytest.mark.parametrize("kind", [".seg", ".cat"])
@pytest.mark.parametrize("whose", ["its own", "another's"])
def test_a_file_of_another_segment(whose: str, kind: str, index: bool) -> None:
    lost = 0
    filled, want = kept(index)
    own = {path: filled.content(path) for path in of_kind(filled.paths(), kind)}
    given = own if whose == "its own" else {k: others()[k] for k in of_kind([*others()], kind)}
    for into, taken in product(own, given):
        if into == taken:
            continue
        disk = filled.copy()
        disk.overwrite(into, given[taken])
        for _ in range(2):
            store = MessageStore.open(disk, "s", OPTIONS)
            read_all(store)
            assert retained(store) == want, (into, taken)
            store.check_totals()
            for seq in store.live_seqs(1, store.last_seq, COUNT):
                if seq not in store.lost:
                    assert store.load(seq) == row(seq), (into, taken)
            lost += bool(store.state().lost)
            settle(store)
            store.close()
    assert lost if kind == ".seg" else not lost


@pytest.mark.parametrize("kind", [".seg", ".cat"])
def test_the_scrub_finds_it(kind: str) -> None:
    filled, _ = kept()
    disk = filled.copy()
    store = MessageStore.open(disk, "s", OPTIONS)
    first = next(one for one in of_kind(disk.paths(), kind))
    disk.overwrite(first, others()[first.replace("s/", "t/")])
    (known,) = (one for one in store.resting() if one.path == first)
    assert isinstance(known, EnvelopeCheck)
    check = EnvelopeCheck(first, len(disk.content(first)), known.is_catalogue, known.of)
    while not check.done:
        check.step(disk, 100)
    assert check.damage == f"{first}: it is that of another segment"
    assert store.suspect(check) is not None


def test_bounds_of_a_former_version_tell_the_number_only() -> None:
    begin = Envelope(1, 0, 8, 0, 0)
    home = home_of("streams/S/store.0", 7)
    assert belongs(home.to_bytes(8, "little"), begin, home)
    assert belongs((7).to_bytes(8, "little"), begin, home)
    assert not belongs((8).to_bytes(8, "little"), begin, home)
    assert not belongs(home_of("streams/T/store.0", 7).to_bytes(8, "little"), begin, home)
    assert not belongs(home.to_bytes(8, "little"), begin._replace(kind=2), home)
    assert home == home_of("streams/S/store.1", 7), "a received copy is the same stream's"


@cache
def later() -> tuple[SimDisk, tuple[object, ...]]:
    """A store in which more was appended and removed since it was `kept`."""
    filled, _ = kept(True)
    disk = filled.copy()
    store = MessageStore.open(disk, "s", OPTIONS)
    first, mark = store.last_seq + 1, store.mark + 1
    store.append(frame_of([row(seq) for seq in range(first, first + 9)]), mark)
    store.remove([3, first], mark + 1)
    settle(store, index=True)
    found = retained(store)
    store.close()
    return disk, found


@pytest.mark.parametrize("name", ["index", "durable"])
@pytest.mark.parametrize("whose", ["its own of before", "another's"])
def test_a_small_file_that_is_not_of_here_and_now(whose: str, name: str) -> None:
    """It is sound, and speaks of something else: the segments decide."""
    disk, want = later()
    disk = disk.copy()
    disk.make_directory("s")
    before = kept(True)[0].content(f"s/{name}") if whose != "another's" else None
    given = before if before is not None else foreign()[f"t/{name}"]
    assert given != disk.content(f"s/{name}")
    disk.overwrite(f"s/{name}", given)
    for _ in range(2):
        store = MessageStore.open(disk, "s", OPTIONS)
        read_all(store)
        assert retained(store) == want
        assert not store.lost
        store.check_totals()
        settle(store)
        store.close()


@cache
def foreign() -> dict[str, bytes]:
    """The small files of another stream, which goes further than this one."""
    disk = SimDisk(random.Random(5))
    store = MessageStore.open(disk, "t", OPTIONS)
    for mark, first in enumerate(range(1, 4 * COUNT, 3), 1):
        store.append(frame_of([row(seq) for seq in range(first, first + 3)]), mark)
    store.remove(list(range(1, 2 * COUNT)), mark + 1)
    settle(store, index=True)
    store.close()
    return {path: disk.content(path) for path in disk.paths()}
