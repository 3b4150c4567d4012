"""How far reading a backup has come, on a terminal; a heading everywhere."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from jsctl.backups.directory import archive_of
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.render.humanize import size

STEP = 100
"""A line is drawn anew for each of so many parts."""


@contextmanager
def reading(
    call: Call, verb: str, source: Path, passes: int = 1
) -> Iterator[Callable[[int], None]]:
    """Gives the function that is told the bytes read; what is refused before has no heading."""
    total = archive_of(source).stat().st_size
    shown = call.flag("progress") and not call.as_data
    bar = shown and call.output.stderr.isatty()
    drawn, begun = -1, False

    def begin() -> None:
        nonlocal begun
        if shown and not begun:
            more = f" in {passes} passes" if passes > 1 else ""
            call.output.print(f"{verb} backup in {source} with {size(total)}{more}")
        begun = True

    def told(read: int) -> None:
        nonlocal drawn
        begin()
        now = read * STEP // max(total, 1)
        if bar and now != drawn:
            drawn = now
            call.output.stderr.write(f"\r{size(read)} / {size(total)} {now} %\x1b[K")
            call.output.stderr.flush()

    try:
        yield told
        begin()
    finally:
        if bar:
            call.output.stderr.write("\r\x1b[K")
        if shown and begun:
            call.output.print()
