"""Stores with damage: both tools refuse the same lines, and no line makes it worse.

Where `nats` goes on, jsctl may say what is wrong first; docs/differences.md says why.
"""

import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.commands.conftest import Result
from tests.support.real_cli import nats, needs_nats

Run = Callable[..., Result]
pytestmark = [needs_nats, pytest.mark.processes]

MAKING = (
    "auth operator add OP",
    "auth account add A --defaults",
    "auth account keys add A role --payload 1K",
    "auth user add u A --defaults",
    "auth user add s A --key role --defaults",
)
LOOKING = ("auth operator list", "auth account ls", "auth user ls A", "auth user info u A")
CHANGING = (
    "auth operator edit OP --tags x",
    "auth account edit A --connections 4",
    "auth user edit u A --payload 4",
    "auth user rm u A -f",
)
ALL = (*LOOKING, *CHANGING)
OPERATOR, ACCOUNT = "stores/OP/OP.jwt", "stores/OP/accounts/A/A.jwt"
ONE_USER = "stores/OP/accounts/A/users/u.jwt"


def cut(place: str) -> Callable[[Path], None]:
    """Half of a file is gone."""

    def damage(store: Path) -> None:
        content = (store / place).read_bytes()
        (store / place).write_bytes(content[: len(content) // 2])

    return damage


def filled(place: str, content: bytes) -> Callable[[Path], None]:
    """A file has other contents."""

    def damage(store: Path) -> None:
        (store / place).write_bytes(content)

    return damage


def gone(place: str) -> Callable[[Path], None]:
    """A file or a folder is not there."""

    def damage(store: Path) -> None:
        path = store / place
        shutil.rmtree(path) if path.is_dir() else path.unlink()

    return damage


def file_for(place: str) -> Callable[[Path], None]:
    """A file is where a folder should be."""

    def damage(store: Path) -> None:
        gone(place)(store)
        (store / place).touch()

    return damage


def folder_for(pattern: str) -> Callable[[Path], None]:
    """Folders are where files should be."""

    def damage(store: Path) -> None:
        for path in list(store.glob(pattern)):
            path.unlink()
            path.mkdir()

    return damage


def seeds(kind: str, content: bytes) -> Callable[[Path], None]:
    """All seeds of a kind are something else."""

    def damage(store: Path) -> None:
        for path in store.glob(f"keys/keys/{kind}/*/*.nk"):
            path.write_bytes(content)

    return damage


def copied(source: str, place: str) -> Callable[[Path], None]:
    """A file has the contents of another one."""

    def damage(store: Path) -> None:
        shutil.copyfile(store / source, store / place)

    return damage


DAMAGES: dict[str, tuple[Callable[[Path], None], tuple[str, ...]]] = {
    "half an operator": (cut(OPERATOR), ALL),
    "an empty operator": (filled(OPERATOR, b""), ALL),
    "no operator": (gone(OPERATOR), (*ALL, "auth operator add OP")),
    "an operator that is a folder": (folder_for(OPERATOR), ALL),
    "an account for an operator": (copied(ACCOUNT, OPERATOR), ALL),
    "half an account": (cut(ACCOUNT), ALL),
    "no account": (gone(ACCOUNT), ("auth account ls", "auth user ls A")),
    "an operator for an account": (copied(OPERATOR, ACCOUNT), ALL),
    "half a user": (cut(ONE_USER), ALL),
    "a user that is no text": (filled(ONE_USER, b"\xff\xfe"), ALL),
    "an account for a user": (copied(ACCOUNT, ONE_USER), ALL),
    "other files among users": (filled("stores/OP/accounts/A/users/x.txt", b""), LOOKING),
    "a file among accounts": (filled("stores/OP/accounts/file", b""), LOOKING),
    "users that are a file": (file_for("stores/OP/accounts/A/users"), ALL),
    "accounts that are a file": (file_for("stores/OP/accounts"), ALL),
    "stores that are a file": (file_for("stores"), (*ALL, "auth operator add NEW")),
    "a file among stores": (filled("stores/file", b""), (*LOOKING, "auth operator add file")),
    "a mark that is no JSON": (filled("stores/OP/.nsc", b"x"), ALL),
    "a mark without a name": (filled("stores/OP/.nsc", b"{}"), ALL),
    "a mark with a path": (filled("stores/OP/.nsc", b'{"name":"../OP"}'), ALL),
    "no seeds": (gone("keys/keys"), (*LOOKING, *CHANGING[:3], "auth user add w A --defaults")),
    "no seed of the operator": (gone("keys/keys/O"), (*LOOKING, *CHANGING[:2])),
    "no seed of the account": (
        gone("keys/keys/A"),
        (*LOOKING, CHANGING[2], "auth user add w A --defaults", "auth user add w A --key role"),
    ),
    "no seed of the user": (
        gone("keys/keys/U"),
        (*LOOKING, "auth user credential {files}/x u A", "auth operator backup OP {files}/x"),
    ),
    "broken seeds of users": (seeds("U", b"garbage"), ALL),
    "broken seeds of operators": (seeds("O", b"garbage"), ALL),
    "empty seeds of operators": (seeds("O", b""), ALL),
    "seeds of users that are folders": (folder_for("keys/keys/U/*/*.nk"), ALL),
    "several operators and none selected": (
        lambda store: None,
        ("auth operator add TWO", "auth operator info", "auth account ls", "auth user ls A"),
    ),
}


def contents(store: Path) -> dict[Path, bytes | None]:
    return {
        path.relative_to(store): path.read_bytes() if path.is_file() else None
        for path in store.rglob("*")
    }


@pytest.mark.parametrize("name", DAMAGES)
def test_damage_is_told_and_not_made_worse(
    cli: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "sound"))
    for line in MAKING:
        assert cli(*shlex.split(line)).code == 0
    damage, lines = DAMAGES[name]
    homes = {program: tmp_path / program for program in ("nats", "jsctl")}
    for home in homes.values():
        shutil.copytree(tmp_path / "sound", home / "data")
        (home / "files").mkdir()
        damage(home / "data" / "nats" / "nsc")
    for line in lines:
        codes: dict[str, int] = {}
        store = homes["jsctl"] / "data" / "nats" / "nsc"
        before = contents(store)
        for program, home in homes.items():
            monkeypatch.setenv("XDG_DATA_HOME", str(home / "data"))
            words = shlex.split(line.format(files=home / "files"))
            done = nats(*words) if program == "nats" else cli(*words)
            codes[program] = min(done.code, 1)  # a panic of Go is 2
        assert codes["nats"] == codes["jsctl"], (line, done.err)
        if done.code:
            told = [one for one in done.err.splitlines() if one and not one.startswith("  ")]
            assert len(told) == 1, done.err
            assert contents(store) == before, line
