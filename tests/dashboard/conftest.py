"""A dashboard on a running cluster, driven by keys."""

import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.screen import ModalScreen

from jsctl.dashboard.app import Dashboard
from jsctl.dashboard.connection.link import Dialer
from jsctl.dashboard.connection.poller import DETAILS_MAX_S, Poller, Show
from jsctl.dashboard.model.snapshot import Snapshot
from jsctl.dashboard.options import DashboardOptions
from jsctl.dashboard.widgets.grid import Grid
from jsctl.settings import Context, Settings
from jsctl.testing import SYSTEM_PASSWORD, SYSTEM_USER
from tests.support.waiting import eventually

SEEN_S = 2 * DETAILS_MAX_S
"""On a busy machine a first look at the details may take so long that the next waits a minute."""


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No setting of the person who runs the tests gets in."""
    for name in list(os.environ):
        if name.startswith(("NATS_", "JSCTL_", "NO_COLOR", "TEXTUAL")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    monkeypatch.setenv("COLORTERM", "truecolor")


@pytest.fixture(autouse=True)
def brisk_pilot(monkeypatch: pytest.MonkeyPatch) -> None:
    """Textual's pilot takes 20 ms twice a key to find the program idle; half of that will do.

    It also waits until every widget has worked off its messages, which is what tests rely on.
    """
    monkeypatch.setattr("textual._wait.SLEEP_GRANULARITY", 0.01)
    monkeypatch.setattr("textual._wait.SLEEP_IDLE", 0.0005)


@dataclass(frozen=True, slots=True)
class Driven:
    """A dashboard and the keys to it."""

    app: Dashboard
    pilot: Pilot[int]

    @property
    def now(self) -> Snapshot:
        """What it shows."""
        return self.app.snapshot

    async def until(
        self, fact: Callable[[Snapshot], object], what: str, deadline_s: float = SEEN_S
    ) -> None:
        """Waits until the snapshot is so; AssertionError."""

        async def look() -> bool:
            await self.pilot.pause()
            return bool(fact(self.app.snapshot))

        await eventually(look, what, deadline_s)

    async def press(self, *keys: str) -> None:
        """Keys, one after the other."""
        await self.pilot.press(*keys)
        await self.pilot.pause()

    async def dialog(self, grid: str, row: str, key: str) -> None:
        """The dialog that a key opens on a row; AssertionError.

        A look that comes in between may take the row away or what can be done to it (on a busy
        machine an answer may be late): as a person would, it tries again.
        """

        async def opened() -> bool:
            if not isinstance(self.app.screen, ModalScreen):
                self.app.screen.query_one(grid, Grid).select(row)
                await self.press(key)
            return isinstance(self.app.screen, ModalScreen)

        await eventually(opened, f"{key} on {row} opens a dialog", SEEN_S)

    async def type(self, text: str) -> None:
        """A text, key by key."""
        await self.press(*({".": "full_stop", "-": "minus"}.get(one, one) for one in text))


def settings_of(urls: list[str], *, system: bool = False) -> Settings:
    """How to reach a cluster, as its system user or as nobody in particular."""
    url = ",".join(urls)
    if not system:
        return Settings(connection=Context(url=url))
    return Settings(connection=Context(url=url, user=SYSTEM_USER, password=SYSTEM_PASSWORD))


Drive = Callable[..., AbstractAsyncContextManager[Driven]]


@pytest.fixture
def drive() -> Drive:
    """Call it with the URLs of a cluster for a dashboard on it."""

    @asynccontextmanager
    async def start(
        urls: list[str],
        *,
        app: bool = True,
        system: bool = True,
        read_only: bool = False,
        size: tuple[int, int] = (120, 40),
    ) -> AsyncIterator[Driven]:
        settings = settings_of(urls, system=not app)
        system_settings = settings_of(urls, system=True) if system and app else None

        def make(_context: str, show: Show) -> Poller:
            return Poller(Dialer(settings, system_settings), "test", show)

        dashboard = Dashboard(DashboardOptions(read_only=read_only), make)
        async with dashboard.run_test(size=size, notifications=True) as pilot:
            yield Driven(dashboard, pilot)

    return start
