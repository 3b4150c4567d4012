"""What a server remembers of a log that is lost: without it, it would vote a second time."""

import random

import pytest

from jsctl.broker.assets.lost_log import find_loss, forget_loss
from jsctl.broker.assets.meta.group_file import META_DIRECTORY, write_founding
from jsctl.broker.peers.items import Founding
from jsctl.broker.replication.state_file import GroupState, WriteState
from jsctl.broker.store.wal.log import Wal, WalOptions
from jsctl.broker.store.wal.recovery import Recovered
from tests.support.sim_disk import SimDisk

OPTIONS = WalOptions(b"1" * 16, 1 << 16)


def disk() -> SimDisk:
    """An empty one."""
    return SimDisk(random.Random(1))


def opened(on: SimDisk) -> Recovered:
    """The log as a start finds it."""
    wal, recovered = Wal.open(on, "log", OPTIONS)
    wal.close()
    return recovered


def found(on: SimDisk) -> None:
    """The server belongs to a meta group from now on."""
    write_founding(on, Founding("m", ("a",), (1,)))


def test_a_new_server_lost_nothing() -> None:
    one = disk()
    assert not find_loss(one, opened(one))


def test_a_server_that_ended_before_its_first_sync_lost_nothing() -> None:
    one = disk()
    opened(one)
    found(one)
    assert not find_loss(one, opened(one))


def test_a_log_without_its_files_is_lost_until_that_is_settled() -> None:
    one = disk()
    opened(one)
    found(one)
    one.remove_tree("log")
    assert find_loss(one, opened(one)) == "the log is lost"
    assert "earlier run" in find_loss(one, opened(one))
    forget_loss(one)
    assert not find_loss(one, opened(one))


def test_a_log_of_which_only_the_reserve_is_left_is_lost() -> None:
    """No state need have been written yet: all that the server promised was in the first file."""
    one = disk()
    opened(one)
    found(one)
    first, _ = sorted(one.list("log"))
    one.remove(f"log/{first}")
    assert find_loss(one, opened(one)) == "the log is lost"


@pytest.mark.parametrize(
    ("zeroed", "lost"),
    [([0], "part of the log is lost"), ([0, 1], "the log is lost"), ([1], "")],
    ids=["first", "all", "reserve"],
)
def test_zeros_are_never_a_log_in_which_nothing_was(zeroed: list[int], lost: str) -> None:
    one = disk()
    opened(one)
    found(one)
    names = sorted(one.list("log"))
    for number in zeroed:
        path = f"log/{names[number]}"
        one.overwrite(path, bytes(len(one.content(path))))
    assert find_loss(one, opened(one)) == lost


def test_an_empty_log_beside_a_state_is_lost() -> None:
    one = disk()
    opened(one)
    found(one)
    WriteState(one, META_DIRECTORY, GroupState(1, 9, 1, b"", b""), ()).run()
    assert find_loss(one, opened(one)) == "the log is lost"


def test_what_the_log_itself_is_not_sure_of() -> None:
    one = disk()
    assert find_loss(one, Recovered(empty=False, unsure=True)) == "part of the log is lost"
