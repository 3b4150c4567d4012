"""A directory with the JWTs of accounts, one file each: `<account>.jwt`, as nats-server has it."""

from pathlib import Path

from jsctl.broker.errors import ConfigError
from jsctl.broker.nkey import KeyKind, decode

SUFFIX = ".jwt"
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
        return file.read(TOKEN_BYTES_MAX + 1).decode("utf-8", "replace").strip()
