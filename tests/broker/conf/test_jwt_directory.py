"""The directory with the JWTs of accounts."""

import errno
import os
from pathlib import Path

import pytest

from jsctl.auth.keys import KeyKind, generate
from jsctl.broker.conf import jwt_directory
from jsctl.broker.errors import ConfigError

FIRST, SECOND = (generate(KeyKind.ACCOUNT).public for _ in range(2))


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    place = tmp_path / "a" / "b"
    assert jwt_directory.read_all(place) == []
    told = jwt_directory.carry_out(place, [(FIRST, "one"), (SECOND, "two\n")], keeps_deleted=True)
    assert told == ["", ""]
    assert dict(jwt_directory.read_all(place)) == {FIRST: "one", SECOND: "two\n"}
    given = [(FIRST, "one"), (SECOND, "new"), (generate(KeyKind.ACCOUNT).public, "x")]
    assert jwt_directory.missing(place, given) == given[1:]
    assert (place / f"{FIRST}.jwt").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("keeps", [True, False])
def test_what_is_deleted_is_kept_beside_or_gone(tmp_path: Path, keeps: bool) -> None:
    jwt_directory.carry_out(tmp_path, [(FIRST, "one")], keeps_deleted=keeps)
    changes = [(FIRST, ""), (SECOND, "")]
    assert jwt_directory.carry_out(tmp_path, changes, keeps_deleted=keeps) == ["", ""]
    assert jwt_directory.read_all(tmp_path) == []
    assert [path.name for path in tmp_path.iterdir()] == ([f"{FIRST}.jwt.deleted"] if keeps else [])


def test_what_else_is_there_is_left_alone(tmp_path: Path) -> None:
    for name in ("notes.txt", "A.jwt", f"{FIRST}.jwt.deleted", f".{FIRST}.jwt.7.new"):
        (tmp_path / name).write_text("x")
    (tmp_path / f"{FIRST}.jwt").write_bytes(b"\xff\x00")
    assert jwt_directory.read_all(tmp_path) == [(FIRST, "\ufffd\x00")]


def test_a_directory_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(ConfigError, match="cannot be used"):
        jwt_directory.read_all(tmp_path / "file")
    place = tmp_path / "file"
    (first, second) = jwt_directory.carry_out(
        place, [(FIRST, "x"), (SECOND, "")], keeps_deleted=True
    )
    assert "Not a directory" in first and "Not a directory" in second


def test_a_disk_that_is_full_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jwt_directory.carry_out(tmp_path, [(FIRST, "old")], keeps_deleted=True)

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    told = jwt_directory.carry_out(tmp_path, [(FIRST, "new")], keeps_deleted=True)
    assert "No space left" in told[0]
    assert jwt_directory.read_all(tmp_path) == [(FIRST, "old")]
    assert len(list(tmp_path.iterdir())) == 1
