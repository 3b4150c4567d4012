"""What keys do, without a cluster."""

from dataclasses import replace

import pytest

from jsctl.dashboard.model.snapshot import Badge, Level, Stream
from jsctl.dashboard.once import text_of
from jsctl.dashboard.screens.dialogs import Choices, ConfirmScreen
from jsctl.dashboard.screens.main import MainScreen
from jsctl.dashboard.screens.stream.screen import StreamScreen
from jsctl.dashboard.widgets.grid import Grid
from tests.dashboard.conftest import Driven
from tests.dashboard.sample import sample
from tests.dashboard.shots import open_stream, showing

pytestmark = pytest.mark.slow

MUTATING = ("d", "P", "x", "R", "e", "p", "n", "U", "b", "Z", "D")


def grid(driven: Driven, name: str) -> Grid[Stream]:
    """A table of the screen."""
    found: Grid[Stream] = driven.app.screen.query_one(f"#{name}", Grid)
    return found


def is_ready(driven: Driven) -> bool:
    """Whether the button of a dialog can be pressed."""
    return not driven.app.screen.query_one("#do").disabled


async def test_the_worst_is_first() -> None:
    async with showing() as driven:
        rows = grid(driven, "streams").rows
        assert rows[0].level is Level.BAD
        assert [row.level for row in rows] == sorted((row.level for row in rows), reverse=True)


async def test_the_cursor_keeps_its_row() -> None:
    async with showing() as driven:
        await driven.press("down", "down")
        streams = grid(driven, "streams")
        before = streams.current
        assert before is not None
        turned = tuple(reversed(driven.now.streams))
        streams._touched = 0.0
        driven.app.show(replace(driven.now, streams=turned))
        await driven.pilot.pause()
        assert streams.current == before
        assert streams.rows[-1].name == "OBJ_assets", "the order follows the data"


async def test_the_order_stands_still_after_a_key() -> None:
    async with showing() as driven:
        await driven.press("down")
        streams = grid(driven, "streams")
        before = [row.name for row in streams.rows]
        driven.app.show(replace(driven.now, streams=tuple(reversed(driven.now.streams))))
        await driven.pilot.pause()
        assert [row.name for row in streams.rows] == before


async def test_a_filter_limits_the_rows() -> None:
    async with showing() as driven:
        await driven.press("slash", *"ord.r")
        streams = grid(driven, "streams")
        assert {row.name for row in streams.rows} == {"ORDERS", "ORDERS-DR"}
        await driven.press("enter")
        assert driven.app.screen.focused is streams
        assert "/ord.r" in text_of(driven.app)
        await driven.press("escape")
        assert len(streams.rows) == len(driven.now.streams)


async def test_a_broken_filter_changes_nothing() -> None:
    async with showing() as driven:
        await driven.press("slash", "left_parenthesis")
        assert len(grid(driven, "streams").rows) == len(driven.now.streams)


async def test_sorting_by_columns() -> None:
    async with showing() as driven:
        streams = grid(driven, "streams")
        await driven.press("s")
        names = [row.name for row in streams.rows]
        assert names == sorted(names)
        await driven.press("S")
        assert [row.name for row in streams.rows] == sorted(names, reverse=True)


async def test_freezing_stops_the_picture() -> None:
    async with showing() as driven:
        await driven.press("space")
        driven.app.show(replace(driven.now, context="elsewhere"))
        await driven.pilot.pause()
        shown = text_of(driven.app)
        assert "FROZEN" in shown and "prod-east" in shown and "elsewhere" not in shown
        await driven.press("space")
        assert "elsewhere" in text_of(driven.app)


async def test_a_name_has_to_be_typed_before_data_go() -> None:
    async with showing() as driven:
        await driven.press("down", "x")
        dialog = driven.app.screen
        assert isinstance(dialog, ConfirmScreen)
        assert not is_ready(driven)
        await driven.press(*"CLICK")
        assert not is_ready(driven)
        await driven.press("enter")
        assert driven.app.screen is dialog, "enter does nothing yet"
        await driven.press("S")
        assert is_ready(driven)
        await driven.press("escape")
        assert driven.app.screen is not dialog


async def test_the_command_line_follows_the_choice() -> None:
    async with showing() as driven:
        await driven.press("down", "x")
        assert "$ jsctl stream purge CLICKS -f" in text_of(driven.app)
        await driven.press("down", "down")
        assert "$ jsctl stream purge CLICKS --keep 1000 -f" in text_of(driven.app)
        driven.app.screen.query_one(Choices).focus()
        await driven.press("left")
        assert "$ jsctl stream purge CLICKS --keep 1 -f" in text_of(driven.app)


async def test_cancel_has_the_focus_where_yes_is_enough() -> None:
    async with showing() as driven:
        await driven.press("down", "d")
        assert driven.app.screen.focused is driven.app.screen.query_one("#cancel")
        await driven.press("enter")
        assert isinstance(driven.app.screen, MainScreen)


async def test_pausing_takes_another_length_only_if_it_is_one() -> None:
    async with showing() as driven:
        await driven.press("3", "down", "P")
        dialog = driven.app.screen
        dialog.query_one("#other").focus()
        await driven.press(*"9x")
        assert not is_ready(driven)
        await driven.press("backspace", "m")
        assert is_ready(driven)
        assert "jsctl consumer pause CLICKS warehouse 9m" in text_of(driven.app)


async def test_what_read_only_leaves_out_is_there_otherwise() -> None:
    async with showing() as driven:
        found = set()
        for tab in "1234":
            await driven.press(tab, "down")
            found |= set(driven.app.screen.active_bindings)
        assert set(MUTATING) - {"U"} <= found, "nobody is pinned"


async def test_read_only_leaves_out_what_changes_anything() -> None:
    async with showing(read_only=True) as driven:
        for tab in "1234567":
            await driven.press(tab)
            assert not set(MUTATING) & set(driven.app.screen.active_bindings), tab
            last = text_of(driven.app).splitlines()[-1]
            assert "Purge" not in last and "Step-down" not in last
        await driven.press("1", *MUTATING)
        assert len(driven.app.screen_stack) == 1, "no dialog is open"
        entries = list(driven.app.get_system_commands(driven.app.screen))
        assert not [one for one in entries if one.title.startswith(("Stream:", "Server:"))]


async def test_files_of_this_machine_are_not_written_from_a_browser() -> None:
    async with showing() as driven:
        await driven.press("down")
        assert "b" in driven.app.screen.active_bindings
        driven.app.options = replace(driven.app.options, web=True)
        driven.app.screen.refresh_bindings()
        assert "b" not in driven.app.screen.active_bindings
        await driven.press("b")
        assert len(driven.app.screen_stack) == 1
        entries = driven.app.get_system_commands(driven.app.screen)
        assert not [one for one in entries if "backup" in one.title]


async def test_every_entry_of_the_palette_has_a_command_line() -> None:
    async with showing() as driven:
        for entry in driven.app.get_system_commands(driven.app.screen):
            assert entry.help.startswith("jsctl ") or len(entry.help) <= 5, entry.title


async def test_actions_need_the_rights() -> None:
    async with showing(replace(sample(), account="OTHER")) as driven:
        await driven.press("down", "x")
        assert isinstance(driven.app.screen, MainScreen), "that stream is not ours"


async def test_keys_can_be_mapped() -> None:
    async with showing(keymap={"purge": "ctrl+x"}) as driven:
        await driven.press("down", "x")
        assert isinstance(driven.app.screen, MainScreen)
        await driven.press("ctrl+x")
        assert isinstance(driven.app.screen, ConfirmScreen)


async def test_tabs_and_back() -> None:
    async with showing() as driven:
        await driven.press("2", "down", "enter")
        assert isinstance(driven.app.screen, StreamScreen)
        await driven.press("escape")
        assert isinstance(driven.app.screen, MainScreen)
        assert grid(driven, "all-streams").current is not None


async def test_jumping_to_a_table() -> None:
    async with showing() as driven:
        await driven.press("ctrl+o", "d")
        assert driven.app.screen.focused is grid(driven, "consumers")


async def test_payload_forms_and_following() -> None:
    async with showing() as driven:
        screen = await open_stream(driven)
        assert '"sku": "A-' in text_of(driven.app)
        await driven.press("v", "v", "v")
        assert screen.form == "hex"
        assert "7b 22 69 64 22" in text_of(driven.app)
        await driven.press("up")
        assert not screen.follow, "looking at an older message stops the following"


async def test_old_data_are_grey_and_told_so() -> None:
    now = replace(sample(), connected=False, stale_ns=7_000_000_000)
    async with showing(now) as driven:
        shown = text_of(driven.app)
        assert "no connection" in shown and "stale 7s" in shown
        assert "CLICKS" in shown
        assert grid(driven, "streams").ink.faded


async def test_a_lost_connection_is_told_in_80_columns() -> None:
    """A round trip that is over has no room there."""
    now = replace(sample(), context="127.0.0.1:40865", badge=Badge.UNKNOWN, rtt_ns=330_000)
    now = replace(now, connected=False, stale_ns=12_000_000_000)
    async with showing(now, size=(80, 24)) as driven:
        shown = text_of(driven.app)
        assert "no connection" in shown and "stale 12s" in shown
        assert "rtt" not in shown


@pytest.mark.parametrize("width", [40, 43, 59, 60, 70, 80, 100, 120])
async def test_the_badge_has_room_in_every_width(width: int) -> None:
    """The context gives way, and in narrow windows, as of phones, all that stands at the right."""
    name = "nats://a-server-with-a-long-name.example:4222"
    now = replace(sample(), context=name, badge=Badge.DEGRADED, rtt_ns=330_000)
    async with showing(now, size=(width, 24), read_only=True) as driven:
        first = text_of(driven.app).splitlines()[0]
        assert "DEGRADED" in first


@pytest.mark.parametrize("key", ["t", "t,t", "t,t,t"])
async def test_themes_change_while_it_runs(key: str) -> None:
    async with showing() as driven:
        before = driven.app.ink
        await driven.press(*key.split(","))
        assert (driven.app.ink.palette == before.palette) is (key.count("t") == 3)


async def test_foreign_themes_work() -> None:
    async with showing(theme="dracula") as driven:
        assert "CLICKS" in text_of(driven.app)
        driven.app.theme = "ansi-light"
        await driven.pilot.pause()
        assert "CLICKS" in text_of(driven.app)


async def test_a_message_can_be_published_again() -> None:
    async with showing() as driven:
        await open_stream(driven)
        await driven.press("p")
        shown = text_of(driven.app)
        assert "Publish to ORDERS" in shown
        assert "$ jsctl publish orders." in shown
