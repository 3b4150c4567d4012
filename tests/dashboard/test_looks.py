"""What the screens look like, kept as text; colours are kept as runs of cells.

With `REWRITE=1` in the environment the present looks are taken as expected; read the diff.
"""

import os
from pathlib import Path

import pytest

from jsctl.dashboard.look.glyphs import ASCII, UNICODE
from jsctl.dashboard.look.palette import PALETTES
from jsctl.dashboard.model.snapshot import Snapshot
from jsctl.dashboard.once import text_of
from tests.dashboard.sample import sample
from tests.dashboard.shots import open_stream, showing, styles_of

pytestmark = pytest.mark.slow

LOOKS = Path(__file__).parent / "looks"
SIZES = ((80, 24), (120, 40), (180, 50))
THEMES = [palette.name for palette in PALETTES]
KEYS: dict[str, tuple[str, ...]] = {
    "streams": ("2",),
    "consumers": ("3",),
    "servers": ("4",),
    "raft": ("5",),
    "buckets": ("6",),
    "objects": ("7",),
    "events": ("8",),
    "server": ("4", "down", "enter"),
    "consumer": ("3", "down", "enter"),
    "group": ("5", "enter"),
    "mirrors": ("m",),
    "step-down": ("down", "d"),
    "purge": ("down", "x"),
    "pause": ("3", "down", "P"),
    "remove-server": ("4", "down", "down", "down", "R"),
    "help": ("question_mark",),
    "jump": ("ctrl+o",),
    "filter": ("slash", "o", "r", "d"),
}


def compare(name: str, shown: str) -> None:
    """With the kept look."""
    path = LOOKS / f"{name}.txt"
    if os.environ.get("REWRITE"):
        LOOKS.mkdir(exist_ok=True)
        path.write_text(shown, encoding="utf-8")
        return
    assert shown == path.read_text(encoding="utf-8"), f"{name}: REWRITE=1 keeps the new look"


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("theme", THEMES)
async def test_the_overview(size: tuple[int, int], theme: str) -> None:
    async with showing(size=size, theme=theme) as driven:
        compare(f"overview-{size[0]}x{size[1]}", text_of(driven.app))
        compare(f"overview-{size[0]}x{size[1]}-{theme}-colours", styles_of(driven.app))


@pytest.mark.parametrize("name", list(KEYS))
async def test_the_other_screens(name: str) -> None:
    async with showing() as driven:
        await driven.press(*KEYS[name])
        await driven.pilot.pause()
        compare(name, text_of(driven.app))


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_a_stream(size: tuple[int, int]) -> None:
    async with showing(size=size) as driven:
        await open_stream(driven)
        await driven.press("up", "up")
        compare(f"stream-{size[0]}x{size[1]}", text_of(driven.app))


async def test_plain_characters() -> None:
    async with showing(glyphs=ASCII) as driven:
        shown = text_of(driven.app)
        compare("overview-ascii", shown)
        assert shown.isascii()
        await driven.press("down", "x")
        assert text_of(driven.app).isascii()


async def test_without_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    async with showing() as driven:
        coloured = text_of(driven.app)
    monkeypatch.setenv("NO_COLOR", "1")
    async with showing() as driven:
        assert driven.app.no_color
        assert text_of(driven.app) == coloured, "glyphs and words carry every state"


async def test_no_key_is_cut_off() -> None:
    for size in SIZES:
        async with showing(size=size) as driven:
            last = text_of(driven.app).splitlines()[-1]
            assert last.endswith("q Quit"), last
            assert len(last) <= size[0]


@pytest.mark.parametrize("size", [(20, 5), (60, 16), (300, 100)])
async def test_any_size_shows_a_screen(size: tuple[int, int]) -> None:
    async with showing(size=size) as driven:
        assert "jsctl" in text_of(driven.app)
        for key in "12345678":
            await driven.press(key)


async def test_nothing_known_yet() -> None:
    async with showing(Snapshot(context="prod-east")) as driven:
        compare("connecting", text_of(driven.app))


async def test_without_system_rights_a_hint_is_given() -> None:
    from dataclasses import replace

    from jsctl.dashboard.connection.link import NO_SYSTEM
    from jsctl.dashboard.model.snapshot import Meta

    now = replace(sample(), servers=(), meta=Meta(), groups=(), system=False, note=NO_SYSTEM)
    async with showing(now) as driven:
        shown = text_of(driven.app)
        assert "--system-context NAME" in shown
        compare("no-system", shown)


def test_the_sets_of_glyphs_have_no_doubles() -> None:
    for glyphs in (UNICODE, ASCII):
        marks = [glyphs.ok, glyphs.note, glyphs.warn, glyphs.bad, glyphs.leader]
        assert len(set(marks)) == len(marks)
    assert all(getattr(ASCII, name).isascii() for name in ASCII.__dataclass_fields__)
