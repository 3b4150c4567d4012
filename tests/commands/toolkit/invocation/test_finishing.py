"""A command that goes on behind tasks of its own that failed, and an interrupt then."""

import asyncio
import signal
from contextlib import suppress

import pytest

from jsctl.commands.toolkit.invocation import finishing
from jsctl.commands.toolkit.invocation.finishing import finished


async def fails() -> None:
    async def part() -> None:
        raise ValueError

    with suppress(ExceptionGroup):
        async with asyncio.TaskGroup() as parts:
            for _ in range(2):
                parts.create_task(part())


def test_parts_that_fail_are_no_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that goes on behind them, as to take back what is there, is not broken off."""
    monkeypatch.setattr(finishing, "TOLD_AGAIN_S", 0.01)

    async def tidies_up() -> int | None:
        await fails()
        looked = asyncio.Event()
        asyncio.get_running_loop().call_later(0.1, looked.set)
        await looked.wait()
        return 7

    assert finished(tidies_up) == 7


def test_an_interrupt_behind_parts_that_failed_is_one() -> None:
    async def goes_on() -> int | None:
        await fails()
        signal.raise_signal(signal.SIGINT)
        await asyncio.Event().wait()
        return None

    with pytest.raises(KeyboardInterrupt):
        finished(goes_on)


def test_what_a_command_leaves_behind_is_not_waited_for_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(finishing, "ENDED_S", 0.05)
    stubborn: list[asyncio.Task[None]] = []

    async def goes_on() -> None:
        begun.set()
        while not released.is_set():
            with suppress(asyncio.CancelledError):
                await released.wait()

    async def command() -> int | None:
        loop = asyncio.get_running_loop()
        stubborn.append(loop.create_task(goes_on()))
        await begun.wait()
        return 5

    begun, released = asyncio.Event(), asyncio.Event()
    assert finished(command) == 5
    (left,) = stubborn
    assert not left.done()
    left._log_destroy_pending = False  # type: ignore[attr-defined] # Python would tell of it


def test_one_that_came_before_the_command_keeps_it_from_beginning() -> None:
    begun: list[str] = []

    async def command() -> int | None:
        begun.append("all")
        return None

    def making() -> asyncio.AbstractEventLoop:
        signal.raise_signal(signal.SIGINT)
        return before()

    before = asyncio.new_event_loop
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(asyncio, "new_event_loop", making)
        with pytest.raises(KeyboardInterrupt):
            finished(command)
    assert not begun
