"""Who asks what, when. Knows no screen: it calls back with snapshots.

Cheap questions go out at every tick: pings of all servers and the state of the meta group.
Details of all streams and consumers are dear; they are asked for so seldom that they take at
most `DETAILS_SHARE` of the time, but at once when an event says that something changed.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from time import perf_counter, time_ns
from typing import TypeAlias

from jsctl.api.errors import ApiError
from jsctl.api.times import SECOND_NS
from jsctl.dashboard.connection.link import (
    NO_ACCESS,
    NO_JETSTREAM,
    NO_SYSTEM,
    Dialer,
    Link,
    failures,
)
from jsctl.dashboard.model.documents import Document
from jsctl.dashboard.model.model import Model
from jsctl.dashboard.model.snapshot import Event, Level, Snapshot
from jsctl.errors import JsctlError, NotAllowed, UsageError

DETAILS_SHARE = 0.04
DETAILS_MIN_S = 2.0
DETAILS_MAX_S = 60.0
HURRY_S = 0.25
"""So long after an event details are asked for again: events come in flocks."""
RETRY_S = 1.0
REFRESH_MIN_S = 0.2
REFRESH_MAX_S = 60.0
REPORT = {"accounts": True, "streams": True, "consumer": True, "config": True, "raft": True}
URGENT = frozenset({"stream", "consumer", "leader", "quorum", "damage", "server", "pause", "pin"})
"""Categories of events after which the details have changed."""
Show = Callable[[Snapshot], None]


MakePoller: TypeAlias = Callable[[str, Show], "Poller"]
"""A poller for the context of a name; the empty name is the one of the command line."""


class Rounds:
    """The questions that go over one connection, and whose answers go into a model."""

    def __init__(self, link: Link, model: Model) -> None:
        """Notes in the model what the connection may ask."""
        self.link = link
        self.model = model
        model.account = link.account
        model.connected = True
        model.system = link.system is not None
        self._note(link.jetstream)

    def _note(self, jetstream: bool) -> None:
        model = self.model
        model.jetstream = jetstream
        model.note = NO_SYSTEM if jetstream else NO_ACCESS
        if model.system:
            model.note = "" if jetstream else NO_JETSTREAM

    async def tick(self) -> None:
        """The cheap questions."""
        if self.link.connected:
            self.model.rtt_ns = await self.link.rtt_ns()
        if self.link.system is None:
            return
        expected = self.model.expected_servers()
        statsz = await self.link.ask_servers("STATSZ", expected=expected)
        self.model.read_servers(statsz, time_ns())
        self.model.read_raft_meta(
            await self.link.ask_servers("RAFTZ", expected=len(statsz) or expected)
        )

    async def look(self, *, raft: bool = False) -> None:
        """The dear questions; with `raft` those about all raft groups too."""
        model, link = self.model, self.link
        if not link.jetstream:
            self._note(await link.seek_jetstream())
        if link.system is None:
            if link.jetstream and link.connected:
                found = await link.lists()
                model.read_lists(found.streams, found.consumers, found.unreachable, time_ns())
                model.read_account(await link.account_document(), time_ns())
            return
        up = [name for name, track in model.servers.items() if track.up]
        options = dict(REPORT)
        if link.jetstream and link.account:
            options = {**REPORT, "account": link.account}  # type: ignore[dict-item]
        told = await link.ask_servers("JSZ", options, expected=len(up), slow=True)
        names = await link.names()
        whole = {one.name for one in told} >= set(up)
        for _ in model.details_in_steps(told, names, time_ns(), whole=whole):
            await asyncio.sleep(0)
        if raft:
            await self._look_at_raft(len(up))

    async def _look_at_raft(self, expected: int) -> None:
        accounts = {account for account, _ in self.model.streams} or {self.link.account}
        told = []
        for account in sorted(accounts):
            if account:
                asked = {"account": account}
                told += await self.link.ask_servers("RAFTZ", asked, expected=expected, slow=True)
        self.model.read_raft(told)


class Poller:
    """Runs until it is ended and cancelled; `show` is called with every new snapshot.

    Both are needed: a request of nats-py whose answer comes in the moment of the cancellation
    swallows it (`asyncio.wait_for` before Python 3.12), and then only `end` is left.
    `refresh_s` may be changed at any time. `wants_raft` asks for the raft groups of the account
    too, as long as somebody looks at them.
    """

    def __init__(self, dialer: Dialer, context: str, show: Show, refresh_s: float = 1.0) -> None:
        self.dialer = dialer
        self.link: Link | None = None
        """Until somebody answers there is none."""
        self.show = show
        self.refresh_s = refresh_s
        self.wants_raft = False
        self.model = Model(context)
        self.failure: JsctlError | None = None
        self._hurry = asyncio.Event()
        self._soon = asyncio.Event()
        self._details_s = DETAILS_MIN_S
        self._ended = False

    async def run(self) -> None:
        """Connects, and goes on trying, then asks for ever."""
        link = await self._connect()
        if link is None:
            return
        rounds = Rounds(link, self.model)
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._tick_for_ever(rounds))
                tasks.create_task(self._look_for_ever(rounds))
        finally:
            await link.close()

    async def once(self, rounds: int = 2) -> Snapshot:
        """Connects and gives one snapshot after some rounds; rates need two. May raise."""
        link = await self.dialer.dial(self._hear)
        questions = Rounds(link, self.model)
        try:
            for number in range(rounds):
                if number:
                    await asyncio.sleep(self.refresh_s)
                await questions.tick()
                await questions.look()
            return self.model.snapshot(time_ns())
        finally:
            await link.close()

    def hurry(self) -> None:
        """Ask for everything again, soon."""
        self._hurry.set()
        self._soon.set()

    def end(self) -> None:
        """Ask for nothing more; whoever calls this also cancels `run`."""
        self._ended = True
        self.hurry()

    def say(self, level: Level, what: str, who: str, said: str) -> None:
        """Add an event of our own and show it."""
        self.model.say(time_ns(), level, what, who, said)
        self.publish()

    def publish(self) -> None:
        """Hand out a snapshot of what is known, unless nobody wants one any more."""
        if self._ended:
            return
        link = self.link
        self.model.connected = link is not None and link.connected
        pause_s = self.refresh_s
        if link is None or link.system is None:
            pause_s = max(self._details_s, self.refresh_s)
        self.model.pause_ns = round(pause_s * SECOND_NS)
        self.show(self.model.snapshot(time_ns()))

    async def _connect(self) -> Link | None:
        """The connection, however long it takes; None when it was ended before."""
        while not self._ended:
            try:
                self.link = await self.dialer.dial(self._hear)
            except (NotAllowed, UsageError):
                raise
            except (JsctlError, ApiError) as error:
                self.model.note = str(error)
                self.publish()
                await asyncio.sleep(RETRY_S)
            else:
                return self.link
        return None

    async def _tick_for_ever(self, rounds: Rounds) -> None:
        while not self._ended:
            started = perf_counter()
            down = self.model.down()
            await self._guarded(rounds.tick)
            self.publish()
            if self.model.down() != down:
                self.hurry()
            left = self.refresh_s - (perf_counter() - started)
            await _wait(self._soon, max(0.02, left))

    async def _look_for_ever(self, rounds: Rounds) -> None:
        while not self._ended:
            started = perf_counter()
            await self._guarded(partial(rounds.look, raft=self.wants_raft))
            self.publish()
            cost = perf_counter() - started
            self._details_s = next_pause(cost, self._details_s)
            if await _wait(self._hurry, max(self._details_s, self.refresh_s)):
                await asyncio.sleep(HURRY_S + min(cost, 1.0))

    async def _guarded(self, ask: Callable[[], Awaitable[None]]) -> None:
        """A failed round is no news: the snapshot says how old its data is."""
        try:
            await ask()
        except failures():
            pass

    def _hear(self, subject: str, document: Document) -> None:
        event: Event | None = self.model.read_event(subject, document, time_ns())
        if event is None:
            return
        if event.what in URGENT:
            self._hurry.set()
        if event.what == "server":
            self._soon.set()


def next_pause(cost_s: float, pause_s: float) -> float:
    """Seconds until details are asked for again, after a look that took `cost_s`; `pause_s` was the
    pause before it.

    At most twice that: one slow look, as the first one is while the screen is made, does not make
    what is shown a minute old.
    """
    return min(max(cost_s / DETAILS_SHARE, DETAILS_MIN_S), 2 * pause_s, DETAILS_MAX_S)


async def _wait(event: asyncio.Event, seconds: float) -> bool:
    """Whether the event came before the time was over; it is taken back."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    event.clear()
    return True
