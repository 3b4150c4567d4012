"""When the poller asks what, with a link that only counts."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from io import StringIO
from time import time_ns
from typing import cast

import pytest
from rich.console import Console
from textual.widgets import ContentSwitcher

from jsctl.api.times import SECOND_NS
from jsctl.dashboard.app import Dashboard
from jsctl.dashboard.connection.link import Dialer, Hear, Link
from jsctl.dashboard.connection.poller import (
    DETAILS_MAX_S,
    DETAILS_MIN_S,
    DETAILS_SHARE,
    Poller,
    Show,
    next_pause,
)
from jsctl.dashboard.model.model import Told
from jsctl.dashboard.model.snapshot import Badge, Snapshot
from jsctl.dashboard.options import DashboardOptions
from jsctl.dashboard.screens.dialogs import ConfirmScreen
from jsctl.errors import NotAllowed, NotFound, Unreachable
from tests.dashboard.sample import sample
from tests.dashboard.test_model import T0, cluster_of, detail, jsz, statsz
from tests.support.waiting import eventually

pytestmark = pytest.mark.slow


class CountingLink:
    """Answers at once, or fails, or is not connected; remembers what was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.failures: list[Exception] = []
        self.connected = True
        self.system = object()
        self.jetstream = True
        self.account = "A"
        self.opened = 0
        self.closed = 0
        self.hear: Hear = lambda _subject, _document: None

    async def dial(self, hear: Hear) -> Link:
        self.opened += 1
        self.hear = hear
        if self.failures:
            raise self.failures.pop(0)
        return cast(Link, self)

    async def close(self) -> None:
        self.closed += 1

    async def rtt_ns(self) -> int:
        return 1000

    async def names(self) -> list[str]:
        return ["S"]

    async def ask_servers(self, kind: str, *_: object, **__: object) -> list[Told]:
        if not self.connected:
            return []
        self.asked.append(kind)
        if kind == "STATSZ":
            return [statsz(name, T0 + len(self.asked)) for name in ("n1", "n2", "n3")]
        if kind == "JSZ":
            return [jsz("n1", T0 + len(self.asked), detail("S", cluster_of("n1", "n2", "n3")))]
        return []

    def count(self, kind: str) -> int:
        """How often that was asked."""
        return self.asked.count(kind)


class Running:
    """A poller in the background and what it showed."""

    def __init__(self, link: CountingLink) -> None:
        self.link = link
        self.shown: list[Snapshot] = []
        self.poller = Poller(cast(Dialer, link), "test", self.shown.append, 0.05)

    async def until(self, fact: Callable[[], object], what: str) -> None:
        """Waits for a fact."""

        async def look() -> bool:
            return bool(fact())

        await eventually(look, what)


@asynccontextmanager
async def running(link: CountingLink) -> AsyncIterator[Running]:
    """A poller until the block ends."""
    run = Running(link)
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(run.poller.run())
        yield run
        task.cancel()


async def test_cheap_questions_often_and_dear_ones_seldom() -> None:
    link = CountingLink()
    async with running(link) as run:
        await run.until(lambda: link.count("STATSZ") >= 10, "ten ticks")
        assert link.count("JSZ") <= 2
        assert run.shown[-1].badge is Badge.HEALTHY
        assert [one.name for one in run.shown[-1].streams] == ["S"]
    assert link.closed == 1


def test_one_slow_look_does_not_make_all_that_is_shown_old() -> None:
    assert next_pause(1.0, DETAILS_MIN_S) == 2 * DETAILS_MIN_S
    assert next_pause(0.01, 2 * DETAILS_MIN_S) == DETAILS_MIN_S
    pause = DETAILS_MIN_S
    for _ in range(8):
        pause = next_pause(1.0, pause)
    assert pause == 1.0 / DETAILS_SHARE
    assert next_pause(1_000.0, DETAILS_MAX_S) == DETAILS_MAX_S


@pytest.mark.parametrize(
    ("kind", "more", "said"),
    [
        ("stream_leader_elected", {"leader": "n2"}, "elected n2"),
        ("stream_damage", {"server": "n2", "action": "found", "messages": 2}, "2 messages damaged"),
    ],
)
async def test_an_event_hurries_the_dear_questions(
    kind: str, more: dict[str, object], said: str
) -> None:
    link = CountingLink()
    async with running(link) as run:
        await run.until(lambda: link.count("JSZ") == 1, "the first report")
        document = {"type": f"io.nats.jetstream.advisory.v1.{kind}", "id": "1", "stream": "S"}
        link.hear("$JS.EVENT.ADVISORY.X", document | more)
        started = asyncio.get_running_loop().time()
        await run.until(lambda: link.count("JSZ") == 2, "the second report")
        assert asyncio.get_running_loop().time() - started < 1.5, "not after two seconds"
        assert any(one.said.startswith(said) for one in run.shown[-1].events)


async def test_it_goes_on_when_the_connection_is_away() -> None:
    link = CountingLink()
    async with running(link) as run:
        await run.until(lambda: run.shown and run.shown[-1].streams, "streams")
        link.connected = False
        await run.until(lambda: not run.shown[-1].connected, "the loss is shown")
        await run.until(lambda: run.shown[-1].stale_ns > 200_000_000, "the age is shown")
        assert run.shown[-1].streams and run.shown[-1].badge is Badge.HEALTHY
        link.connected = True
        await run.until(lambda: run.shown[-1].connected, "it is back")


async def test_a_first_connection_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jsctl.dashboard.connection.poller.RETRY_S", 0.01)
    link = CountingLink()
    link.failures = [Unreachable("nobody there"), Unreachable("still nobody")]
    async with running(link) as run:
        await run.until(lambda: run.shown and run.shown[-1].badge is Badge.HEALTHY, "connected")
        assert link.opened == 3
        assert run.shown[0].note == "nobody there"
        assert run.shown[0].badge is Badge.CONNECTING


class DeafLink(CountingLink):
    """Swallows the cancellation of a question, as `asyncio.wait_for` did before Python 3.12."""

    def __init__(self) -> None:
        super().__init__()
        self.never = asyncio.Event()

    async def ask_servers(self, kind: str, *_: object, **__: object) -> list[Told]:
        self.asked.append(kind)
        if kind in ("STATSZ", "JSZ"):
            with suppress(asyncio.CancelledError):
                await self.never.wait()
        return []


async def test_a_swallowed_cancellation_does_not_keep_it_alive() -> None:
    link = DeafLink()
    run = Running(link)
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(run.poller.run())
        await run.until(lambda: {"STATSZ", "JSZ"} <= set(link.asked), "both questions wait")
        shown = len(run.shown)
        run.poller.end()
        task.cancel()
        await run.until(task.done, "it ended")
    assert link.closed == 1
    assert len(run.shown) == shown, "what comes after the end is shown to nobody"


async def test_wrong_credentials_are_not_tried_again() -> None:
    link = CountingLink()
    link.failures = [NotAllowed("no")]
    with pytest.raises(NotAllowed):
        await Poller(cast(Dialer, link), "test", lambda _snapshot: None).run()
    assert link.opened == 1


async def test_raft_groups_are_asked_for_only_when_somebody_looks() -> None:
    link = CountingLink()
    async with running(link) as run:
        await run.until(lambda: link.count("STATSZ") >= 3, "some ticks")
        plain = link.count("RAFTZ") - link.count("STATSZ")
        assert plain in (-1, 0), "that of the meta group, with every tick"
        run.poller.wants_raft = True
        run.poller.hurry()
        await run.until(lambda: link.count("RAFTZ") > link.count("STATSZ"), "groups are asked for")


async def test_silence_between_two_looks_is_not_stale() -> None:
    link = CountingLink()
    link.system = None  # no system rights
    poller = Poller(cast(Dialer, link), "test", lambda _snapshot: None, 60.0)
    shown: list[Snapshot] = []
    poller.show = shown.append
    poller.model.heard_ns = time_ns() - 30 * SECOND_NS
    poller.publish()
    assert shown[0].stale_ns == 0
    poller.model.heard_ns = time_ns() - 70 * SECOND_NS
    poller.publish()
    assert 9 * SECOND_NS < shown[1].stale_ns < 12 * SECOND_NS


async def test_another_context_replaces_the_connection() -> None:
    links = {"": CountingLink(), "other": CountingLink()}

    def make(context: str, show: Show) -> Poller:
        if context not in links:
            raise NotFound(f'unknown context "{context}"')
        return Poller(cast(Dialer, links[context]), context or "first", show, 0.05)

    app = Dashboard(DashboardOptions(), make, lambda: ["other"])
    async with app.run_test(notifications=True) as pilot:

        async def named(name: str) -> None:
            async def look() -> bool:
                await pilot.pause()
                return app.snapshot.context == name

            await eventually(look, name)

        await named("first")
        await pilot.press("3")
        app.connect("other")
        await named("other")
        assert (links[""].closed, links["other"].opened) == (1, 1)
        assert app.screen.query_one(ContentSwitcher).current == "tab-consumers", "the screen stays"
        app.connect("nobody")
        await pilot.pause()
        assert app.snapshot.context == "other", "a wrong name changes nothing"
    assert links["other"].closed == 1


async def test_wrong_credentials_end_the_program_with_the_reason() -> None:
    link = CountingLink()
    link.failures = [NotAllowed("no")]

    def make(_context: str, show: Show) -> Poller:
        return Poller(cast(Dialer, link), "test", show, 0.05)

    app = Dashboard(DashboardOptions(), make)
    async with app.run_test() as pilot:

        async def ended() -> bool:
            await pilot.pause()
            return app.failure is not None

        await eventually(ended, "it ended")
    assert isinstance(app.failure, NotAllowed)
    assert app.return_value == 1


async def test_the_trace_of_a_bug_shows_no_values() -> None:
    app = Dashboard()
    async with app.run_test():
        try:
            password = "hunter2".upper()
            raise RuntimeError(f"a bug with {len(password)} letters")
        except RuntimeError:
            app._fatal_error()
        console = Console(width=200, record=True, file=StringIO())
        for shown in app._exit_renderables:
            console.print(shown)
    text = console.export_text()
    assert "a bug with" in text
    assert "HUNTER2" not in text


class SilentDialer:
    """Nobody ever answers, and nobody refuses."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    async def dial(self, _hear: Hear) -> Link:
        self.asked.set()
        await asyncio.Event().wait()
        raise AssertionError


async def test_an_action_without_a_connection_says_so() -> None:
    """While another context is being dialled the picture of the one before can be seen."""
    dialer = SilentDialer()
    dialled: dict[str, object] = {"": CountingLink(), "slow": dialer}

    def make(context: str, show: Show) -> Poller:
        return Poller(cast(Dialer, dialled[context]), context or "first", show, 0.05)

    app = Dashboard(DashboardOptions(), make)
    async with app.run_test(notifications=True, size=(120, 40)) as pilot:
        app.connect("slow")
        await dialer.asked.wait()
        app.show(sample())
        await pilot.pause()
        await pilot.press("down", "d")
        await pilot.pause()
        assert isinstance(app.screen, ConfirmScreen)
        await pilot.press("y")

        async def told() -> bool:
            await pilot.pause()
            return any("no connection" in one.message for one in app._notifications)

        await eventually(told, "the outcome is told", 20.0)
        assert app.is_running and app.failure is None
