"""What must not end the dashboard, nor let it act on another cluster than that which was meant."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from textual.widgets import Input, TextArea, Tree

from jsctl.api.errors import ApiError
from jsctl.api.stream import StreamConfig
from jsctl.client.manager import Manager
from jsctl.dashboard.actions.streams import publish
from jsctl.dashboard.app import Dashboard
from jsctl.dashboard.connection.link import Dialer, Link
from jsctl.dashboard.connection.poller import Poller, Show
from jsctl.dashboard.model.model import Told
from jsctl.dashboard.model.snapshot import Source, Stream
from jsctl.dashboard.options import DashboardOptions
from jsctl.dashboard.screens.dialogs import ConfirmScreen
from jsctl.dashboard.screens.editing import EditScreen
from jsctl.dashboard.screens.main import MainScreen
from jsctl.dashboard.screens.requests import ContextWanted
from jsctl.dashboard.screens.seeking import parse_seek
from jsctl.dashboard.screens.server import ServerScreen
from jsctl.dashboard.screens.sources import NODES_MAX
from jsctl.dashboard.widgets.grid import Grid
from jsctl.errors import JsctlError, NotAllowed
from jsctl.settings import Settings
from tests.dashboard.shots import open_stream, showing
from tests.dashboard.test_poller import CountingLink
from tests.support.waiting import eventually


async def test_sorting_goes_on_by_the_first_column_where_its_own_is_not_shown_any_more() -> None:
    async with showing(size=(160, 40)) as driven:
        await driven.press("2")
        streams = driven.app.screen.query_one("#all-streams", Grid)
        streams.sort_key = streams._columns()[-1][0].column.key
        await driven.pilot.resize_terminal(50, 40)
        await driven.pilot.pause()
        assert streams.sort_key not in [one.column.key for one, _ in streams._columns()]
        await driven.press("s")
        assert streams.sort_key == streams._columns()[0][0].column.key


async def test_a_filter_with_a_number_beyond_all_bounds_is_none() -> None:
    async with showing() as driven:
        streams = driven.app.screen.query_one("#streams", Grid)
        assert not streams.set_filter("a{99999999999999999999}")
        assert len(streams.rows) == len(driven.now.streams)


@pytest.mark.processes
@pytest.mark.parametrize(
    ("editor", "told"),
    [
        ("/nowhere/editor", "No such file"),
        ("edit 'it", "quotation"),
        ("rm", "No such file"),
        ("cp /bin/true", "utf-8"),
    ],
)
async def test_an_editor_that_does_not_work_is_told(
    monkeypatch: pytest.MonkeyPatch, editor: str, told: str
) -> None:
    @contextmanager
    def suspended() -> Iterator[None]:
        yield

    monkeypatch.setenv("VISUAL", editor)
    async with showing() as driven:
        monkeypatch.setattr(driven.app, "suspend", suspended)
        stream = driven.now.streams[0]
        screen = EditScreen(stream, StreamConfig(name=stream.name), driven.app.ink)
        await driven.app.push_screen(screen)
        await driven.pilot.pause()
        before = screen.query_one(TextArea).text
        await driven.press("ctrl+e")
        assert screen.is_current and screen.query_one(TextArea).text == before
        assert any(told in one.message for one in driven.app._notifications)


class Answering:
    """Who is asked for what a stream says of a message."""

    def __init__(self, answer: bytes) -> None:
        self.answer = answer
        self.manager = self
        self.requests = self

    async def exchange(self, _subject: str, _body: bytes) -> bytes:
        return self.answer


@pytest.mark.parametrize("answer", [b"[]", b"42", b"{}", b'{"stream": "S"}', b'{"seq": null}', b""])
async def test_what_is_no_answer_of_a_stream_stores_nothing(answer: bytes) -> None:
    with pytest.raises(JsctlError, match=r"something else than a stream answered on a\.b"):
        await publish(cast(Link, Answering(answer)), "a.b", "")


class OddConnections(CountingLink):
    """Tells connections that are none."""

    async def ask_servers(self, kind: str, *_: object, **__: object) -> list[Told]:
        self.asked.append(kind)
        return [Told({}, {"connections": [{"cid": "seven"}, {"cid": 8, "name": "good"}]})]


async def test_a_connection_that_cannot_be_read_is_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with showing() as driven:
        link = OddConnections()
        monkeypatch.setattr(Dashboard, "link", link)
        server = replace(driven.now.servers[0], id="ID", up=True)
        driven.app.show(replace(driven.now, servers=(server,)))
        screen = ServerScreen(driven.app, server.name)
        await driven.app.push_screen(screen)

        async def told() -> bool:
            await driven.pilot.pause()
            return bool(screen.connections)

        await eventually(told, "the connections are shown")
        assert [one.cid for one in screen.connections] == [8]


def switching(links: dict[str, CountingLink]) -> Dashboard:
    """A dashboard with a link for each context."""

    def make(context: str, show: Show) -> Poller:
        return Poller(cast(Dialer, links[context]), context or "first", show, 0.05)

    return Dashboard(DashboardOptions(), make, lambda: list(links))


async def named(pilot: Any, app: Dashboard, name: str) -> None:
    """Waits until a context is shown."""

    async def look() -> bool:
        await pilot.pause()
        return app.snapshot.context == name and bool(app.snapshot.streams)

    await eventually(look, name)


async def test_raft_groups_are_asked_for_in_another_context_too() -> None:
    app = switching({"": CountingLink(), "other": CountingLink()})
    async with app.run_test() as pilot:
        await named(pilot, app, "first")
        await pilot.press("5")
        app.connect("other")
        await named(pilot, app, "other")
        assert app.poller is not None and app.poller.wants_raft


async def test_a_dialog_is_not_answered_in_another_context() -> None:
    """What was to be deleted here may be there, too."""
    app = switching({"": CountingLink(), "other": CountingLink()})
    async with app.run_test() as pilot:
        await named(pilot, app, "first")
        app.screen.query_one("#streams", Grid).select("A/S")
        await pilot.press("D")
        await pilot.pause()
        assert isinstance(app.screen, ConfirmScreen)
        app.post_message(ContextWanted("other"))
        await named(pilot, app, "other")
        assert isinstance(app.screen, MainScreen)


async def test_the_picture_of_before_is_not_shown_where_another_context_refuses() -> None:
    refusing = CountingLink()
    refusing.failures = [NotAllowed("no such user")]
    app = switching({"": CountingLink(), "other": refusing})
    async with app.run_test() as pilot:
        await named(pilot, app, "first")
        app.connect("other")

        async def told() -> bool:
            await pilot.pause()
            return app.snapshot.note == "no such user"

        await eventually(told, "the reason is shown")
        assert (app.snapshot.context, app.snapshot.streams) == ("other", ())


async def test_digits_of_other_kinds_are_no_sequence() -> None:
    async with showing() as driven:
        await open_stream(driven)
        await driven.press("i")
        field = driven.app.screen.query_one(Input)
        for text in ("²", "9" * 5000):
            field.value = text
            await driven.pilot.pause()
            assert parse_seek(text, 0)[0] == "subject"


async def test_the_cursor_stays_in_the_tree_of_sources() -> None:
    async with showing() as driven:
        await driven.press("m")
        tree = driven.app.screen.query_one(Tree)
        await driven.press("down", "down")
        before = tree.cursor_line
        assert before > 0
        later = tuple(
            replace(one, sources=tuple(replace(s, active_ns=s.active_ns + 1) for s in one.sources))
            for one in driven.now.streams
        )
        driven.app.show(replace(driven.now, streams=later))
        await driven.pilot.pause()
        assert tree.cursor_line == before


async def test_streams_that_all_feed_each_other_are_drawn_at_once() -> None:
    async with showing() as driven:
        names = [f"S{number}" for number in range(12)]
        mesh = tuple(
            Stream("APP", name, sources=tuple(Source(one, False) for one in names if one != name))
            for name in names
        )
        driven.app.show(replace(driven.now, streams=mesh))
        await driven.press("m")
        assert len(driven.app.screen.query_one(Tree)._tree_nodes) <= NODES_MAX + len(names) + 1


async def test_consumers_of_a_stream_that_goes_meanwhile_are_left_out() -> None:
    class Requests:
        """Of two streams one is deleted as soon as it is listed."""

        async def ask(self, operation: str, *names: str, body: object) -> dict[str, object]:
            if operation == "stream_list":
                found = [
                    {"config": {"name": name}, "state": {"consumer_count": 1}}
                    for name in ("GONE", "HERE")
                ]
                return {"streams": found, "total": 2}
            if names == ("GONE",):
                raise ApiError(404, 10059, "stream not found")
            return {"consumers": [{"name": "c"}], "total": 1}

    manager = cast(Manager, SimpleNamespace(requests=Requests()))
    link = Link((), manager, account="", jetstream=True, system=None, system_settings=Settings())
    assert [one["name"] for one in (await link.lists()).consumers] == ["c"]
