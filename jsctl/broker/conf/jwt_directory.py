"""A directory with the JWTs of accounts, one file each: `<account>.jwt`, as nats-server has it.

A file is the old or the new one whatever happens, and what was carried out stays (fsync of the
file, then of the directory). What else lies there is nobody's business.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from jsctl.broker.errors import ConfigError
from jsctl.broker.nkey import KeyKind, decode
from jsctl.files import replace_file

SUFFIX = ".jwt"
DELETED = ".deleted"
FILE_MODE = 0o640
TOKEN_BYTES_MAX = 1024 * 1024


def read_all(directory: Path) -> list[tuple[str, str]]:
    """All (account, JWT) there; it is made if it is not there. Raises ConfigError."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        return [
            (path.name.removesuffix(SUFFIX), _content(path))
            for path in sorted(directory.iterdir())
            if path.suffix == SUFFIX and decode(path.name.removesuffix(SUFFIX), KeyKind.ACCOUNT)
        ]
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ConfigError(
            f"the directory of account JWTs cannot be used: {reason}",
            place=str(directory),
            remedy="name another dir for the resolver, or let this one be written",
        ) from None


def _content(path: Path) -> str:
    """A JWT, or something that is none: whoever reads it tells of that."""
    with path.open("rb") as file:
        return file.read(TOKEN_BYTES_MAX + 1).decode("utf-8", "replace")


def missing(directory: Path, tokens: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Those of some (account, JWT) that are not what is there."""
    found: list[tuple[str, str]] = []
    for account, token in tokens:
        try:
            known = _content(_file(directory, account))
        except OSError:
            known = ""
        if known != token:
            found.append((account, token))
    return found


def carry_out(
    directory: Path, changes: Sequence[tuple[str, str]], *, keeps_deleted: bool
) -> list[str]:
    """Write (account, JWT), and remove those without one; for each what went wrong, or empty.

    Without an error it is durable. All of them cost one sync of the directory.
    """
    told: list[str] = []
    for account, token in changes:
        try:
            if token:
                replace_file(_file(directory, account), token.encode(), FILE_MODE)
            else:
                _remove(_file(directory, account), keeps=keeps_deleted)
        except OSError as error:
            told.append(f"{_file(directory, account)}: {error.strerror}")
        else:
            told.append("")
    try:
        _sync(directory)
    except OSError as error:
        return [one or f"{directory}: {error.strerror}" for one in told]
    return told


def _file(directory: Path, account: str) -> Path:
    assert decode(account, KeyKind.ACCOUNT) is not None, "nothing else becomes a name of a file"
    return directory / f"{account}{SUFFIX}"


def _remove(path: Path, *, keeps: bool) -> None:
    try:
        if keeps:
            path.replace(path.with_name(path.name + DELETED))
        else:
            path.unlink()
    except FileNotFoundError:
        pass


def _sync(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
