"""Draws the pictures of the documents: `make pictures`.

SVG, made by the dashboard itself from a fixed cluster, so that they change only when it does.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

from jsctl.dashboard.once import svg_of
from jsctl.dashboard.screens.server import ServerScreen
from tests.dashboard.conftest import Driven
from tests.dashboard.sample import connections
from tests.dashboard.shots import open_stream, showing

Stage = Callable[[Driven], Awaitable[object]]


async def _stream(driven: Driven) -> None:
    await open_stream(driven)
    await driven.press("up", "up", "up")


async def _server(driven: Driven) -> None:
    await driven.press("4", "down", "enter")
    screen = driven.app.screen
    assert isinstance(screen, ServerScreen)
    screen.connections = connections()
    screen.draw(screen.snapshot, screen.ink)
    await driven.pilot.pause()


async def _palette(driven: Driven) -> None:
    await driven.press("colon", *"clicks")
    await driven.pilot.pause(1.0)


def _keys(*keys: str) -> Stage:
    async def press(driven: Driven) -> None:
        await driven.press(*keys)

    return press


PICTURES: tuple[tuple[str, tuple[int, int], str, Stage], ...] = (
    ("overview", (120, 40), "jsctl-dark", _keys()),
    ("overview-80x24", (80, 24), "jsctl-dark", _keys()),
    ("overview-light", (120, 40), "jsctl-light", _keys()),
    ("overview-colourblind", (120, 40), "jsctl-colourblind", _keys()),
    ("stream", (120, 40), "jsctl-dark", _stream),
    ("server", (120, 40), "jsctl-dark", _server),
    ("purge", (120, 40), "jsctl-dark", _keys("down", "x")),
    ("pause", (120, 40), "jsctl-dark", _keys("3", "down", "P")),
    ("palette", (120, 40), "jsctl-dark", _palette),
)


async def draw(directory: Path) -> list[Path]:
    """All pictures, into a directory."""
    made = []
    for name, size, theme, stage in PICTURES:
        async with showing(size=size, theme=theme) as driven:
            await stage(driven)
            path = directory / f"{name}.svg"
            path.write_text(svg_of(driven.app), encoding="utf-8")
            made.append(path)
    return made


if __name__ == "__main__":
    for path in asyncio.run(draw(Path(sys.argv[1]))):
        print(path)
