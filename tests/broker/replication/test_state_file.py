"""The durable state of a group: whatever happens to a slot, the last good state is found."""

import random
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jsctl.broker.errors import Damaged, DiskError, SyncFailed
from jsctl.broker.replication.state_file import GroupState, WriteState, decode, encode, load
from tests.support.sim_disk import SimDisk

STATE = GroupState(3, 70, 5, b"members", b"a snapshot")


def disk(seed: int = 1) -> SimDisk:
    """An empty one."""
    return SimDisk(random.Random(seed))


def write(on: SimDisk, generation: int, snapshot: bytes = b"x") -> None:
    """Write a state whose index is ten times its generation."""
    WriteState(on, "d", GroupState(generation, generation * 10, 1, b"m", snapshot), ()).run()


@given(
    st.integers(0, 2**64 - 1),
    st.integers(0, 2**64 - 1),
    st.integers(0, 2**64 - 1),
    st.binary(max_size=50),
    st.binary(max_size=50),
)
def test_round_trip(
    generation: int, index: int, term: int, members: bytes, snapshot: bytes
) -> None:
    state = GroupState(generation, index, term, members, snapshot)
    assert decode(encode(state, "d"), "d/p") == state


def test_every_flipped_bit_is_found() -> None:
    good = encode(STATE, "")
    for bit in range(len(good) * 8):
        bad = bytearray(good)
        bad[bit // 8] ^= 1 << (bit % 8)
        with pytest.raises(Damaged):
            decode(bytes(bad), "p")


def test_every_truncation_and_every_addition_is_found() -> None:
    good = encode(STATE, "")
    for size in range(len(good)):
        with pytest.raises(Damaged):
            decode(good[:size], "p")
    with pytest.raises(Damaged, match="instead of"):
        decode(good + b"\0", "p")


def test_the_newest_counts_and_slots_are_used_in_turn() -> None:
    one = disk()
    assert load(one, "d").state is None
    for generation in range(1, 6):
        write(one, generation)
        found = load(one, "d").state
        assert found is not None and found.generation == generation
    assert one.list("d") == ["state.0", "state.1"]


def test_a_damaged_slot_is_reported_and_the_other_used() -> None:
    one = disk()
    write(one, 1)
    write(one, 2)
    one.flip_bit("d/state.0", 40)
    loaded = load(one, "d")
    assert loaded.state is not None and loaded.state.generation == 1
    assert [found.path for found in loaded.damage] == ["d/state.0"]
    one.overwrite("d/state.1", b"")
    loaded = load(one, "d")
    assert loaded.state is None and len(loaded.damage) == 2


def test_a_slot_that_cannot_be_read_is_damage() -> None:
    one = disk()
    write(one, 1)
    write(one, 2)
    one.unreadable = [("d/state.0", 0, 1)]
    loaded = load(one, "d")
    assert loaded.state is not None and loaded.state.generation == 1
    (found,) = loaded.damage
    assert found.path == "d/state.0" and "I/O error" in str(found)


@given(st.integers(0, 10_000), st.integers(0, 6))
def test_a_power_cut_at_any_sync_leaves_one_of_the_two_states(seed: int, syncs: int) -> None:
    one = disk(seed)
    write(one, 4, b"old" * 300)
    one.power_fails_in = syncs
    try:
        write(one, 5, b"new" * 500)
        one.power_fails_in = None
        one.crash()
        allowed = {5}
    except DiskError:
        allowed = {4, 5}
    loaded = load(one, "d")
    assert loaded.state is not None and not loaded.damage
    assert loaded.state.generation in allowed
    one.crash()
    again = load(one, "d").state
    assert again is not None and again == loaded.state, "what was believed once stays"


def test_what_the_state_relies_on_is_durable_before_it() -> None:
    one = disk()
    order: list[str] = []

    @dataclass
    class Before:
        index: int = 10

        def run(self) -> None:
            assert not one.exists("d/state.1")
            order.append("store")

    job = WriteState(one, "d", GroupState(1, 10, 1, b"", b""), (Before(), Before()))
    assert job.index == 10
    job.run()
    assert order == ["store", "store"] and one.exists("d/state.1")


def test_a_failed_sync_leaves_the_state_before() -> None:
    one = disk()
    write(one, 1)
    one.fail_syncs = 1
    with pytest.raises(SyncFailed):
        write(one, 2)
    found = load(one, "d").state
    assert found is not None and found.generation == 1
    write(one, 2, b"shorter")
    found = load(one, "d").state
    assert found is not None and found.snapshot == b"shorter"


def test_the_state_of_another_group_is_damage() -> None:
    one = disk()
    write(one, 1)
    write(one, 2)
    WriteState(one, "other", GroupState(9, 900, 7, b"m", b"foreign"), ()).run()
    one.overwrite("d/state.0", one.content("other/state.1"))
    loaded = load(one, "d")
    assert loaded.state is not None and loaded.state.generation == 1
    assert [damage.path for damage in loaded.damage] == ["d/state.0"]


def test_a_state_that_does_not_say_whose_it_is_was_written_by_a_former_version() -> None:
    assert decode(encode(STATE, ""), "d/state.0") == STATE
