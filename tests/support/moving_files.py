"""Files that a running program writes, moves and removes while a test looks for them."""

from pathlib import Path


def files(directory: Path, pattern: str) -> list[Path]:
    """As `glob`; looked for again when a directory went away meanwhile."""
    while True:
        try:
            return list(directory.glob(pattern))
        except FileNotFoundError:
            continue


def size(path: Path) -> int:
    """Bytes of a file, 0 if it is gone."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
