"""What only the machine can tell."""

import os
import resource
from collections import Counter
from pathlib import Path

import pytest

from jsctl.broker.errors import ConfigError
from jsctl.broker.machine import (
    DRAWN_BYTES,
    FILE_BYTES_MIN,
    Chance,
    check_limits,
    jetstream_limits,
    stored_bytes,
)
from jsctl.broker.options import JetStreamOptions, Options

DRAWS = 20_000


@pytest.mark.parametrize("count", [1, 2, 62, 1 << 32, 1 << 88])
def test_numbers_of_chance_are_below_what_is_asked(count: int) -> None:
    chance = Chance()
    assert all(0 <= chance.below(count) < count for _ in range(2 * DRAWN_BYTES // 8))


def test_each_number_comes_as_often_as_others() -> None:
    chance = Chance()
    found = Counter(chance.below(62) for _ in range(DRAWS))
    assert len(found) == 62
    assert max(found.values()) < 2 * DRAWS / 62


def test_the_system_is_asked_once_for_some_hundred_numbers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[int] = []

    def drawn(count: int) -> bytes:
        asked.append(count)
        return bytes(range(256)) * (count // 256)

    monkeypatch.setattr(os, "urandom", drawn)
    chance = Chance()
    found = [chance.below(1 << 32) for _ in range(DRAWN_BYTES // 8)]
    assert asked == [DRAWN_BYTES]
    assert found[:2] == [0x03020100, 0x0B0A0908]
    chance.below(2)
    assert asked == [DRAWN_BYTES, DRAWN_BYTES]


@pytest.mark.parametrize(
    ("limit", "stored", "refused"),
    [
        (FILE_BYTES_MIN - 1, True, True),
        (FILE_BYTES_MIN - 1, False, False),
        (FILE_BYTES_MIN, True, False),
        (resource.RLIM_INFINITY, True, False),
    ],
)
def test_a_store_whose_files_may_not_grow_does_not_start(
    monkeypatch: pytest.MonkeyPatch, limit: int, stored: bool, refused: bool
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (limit, limit))
    options = Options(jetstream=JetStreamOptions(enabled=stored))
    if not refused:
        check_limits(options)
        return
    with pytest.raises(ConfigError, match=rf"ulimit -f: .*{limit} bytes.*{FILE_BYTES_MIN}"):
        check_limits(options)


def test_two_have_other_numbers() -> None:
    one, other = Chance(), Chance()
    assert [one.below(1 << 32) for _ in range(8)] != [other.below(1 << 32) for _ in range(8)]


def test_what_a_store_takes_already_is_no_room_that_it_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "streams" / "S"
    folder.mkdir(parents=True)
    (folder / "1.seg").write_bytes(os.urandom(1 << 20))
    (tmp_path / "streams" / "link").symlink_to(folder)
    stored = stored_bytes(tmp_path)
    assert 1 << 20 <= stored < 2 << 20, "files once, and not what links lead to"
    assert stored_bytes(tmp_path / "none") == 0

    class NearlyFull:
        f_bavail, f_frsize = 4, 1 << 10

    monkeypatch.setattr(os, "statvfs", lambda path: NearlyFull)
    assert jetstream_limits(JetStreamOptions(), tmp_path)[1] == stored + (3 << 10)
