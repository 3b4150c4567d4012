"""A dashboard without a cluster: it shows a given snapshot, and its screen can be read."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from textual.color import Color

from jsctl.dashboard.app import Dashboard
from jsctl.dashboard.look.glyphs import UNICODE, Glyphs
from jsctl.dashboard.look.palette import DARK
from jsctl.dashboard.model.snapshot import Snapshot
from jsctl.dashboard.once import lines_of
from jsctl.dashboard.options import DashboardOptions
from jsctl.dashboard.screens.stream.screen import StreamScreen
from tests.dashboard.conftest import Driven
from tests.dashboard.sample import messages, sample


@asynccontextmanager
async def showing(
    snapshot: Snapshot | None = None,
    size: tuple[int, int] = (120, 40),
    *,
    theme: str = DARK.name,
    glyphs: Glyphs = UNICODE,
    read_only: bool = False,
    keymap: Mapping[str, str] | None = None,
) -> AsyncIterator[Driven]:
    """A dashboard that shows a snapshot and has no connection."""
    options = DashboardOptions(theme=theme, glyphs=glyphs, read_only=read_only, keymap=keymap or {})
    app = Dashboard(options)
    app.snapshot = snapshot or sample()
    async with app.run_test(size=size, notifications=True) as pilot:
        driven = Driven(app, pilot)
        app.show(app.snapshot)
        await pilot.pause()
        await pilot.pause()
        yield driven


async def open_stream(driven: Driven, name: str = "ORDERS") -> StreamScreen:
    """The view of a stream, with messages as if they had been read."""
    screen = StreamScreen(driven.app, f"APP/{name}")
    await driven.app.push_screen(screen)
    await driven.pilot.pause()
    screen.messages = messages()
    screen.problem = ""
    screen.follow = True
    screen._draw_messages(screen.ink)
    await driven.pilot.pause()
    return screen


def styles_of(app: Dashboard) -> str:
    """The colours of the screen: line by line, runs of cells with ink and ground."""
    lines = []
    for line in lines_of(app):
        runs: list[tuple[int, str]] = []
        for one in line:
            style = one.style
            ink = ground = ""
            if style is not None:
                ink = Color.from_rich_color(style.color).hex6 if style.color else ""
                ground = Color.from_rich_color(style.bgcolor).hex6 if style.bgcolor else ""
                ink += "b" if style.bold else ""
            name = f"{ink}/{ground}" if one.text.strip() else f"/{ground}"
            if runs and runs[-1][1] == name:
                runs[-1] = (runs[-1][0] + one.cell_length, name)
            else:
                runs.append((one.cell_length, name))
        lines.append(" ".join(f"{count}:{name}" for count, name in runs))
    return "\n".join(lines) + "\n"
