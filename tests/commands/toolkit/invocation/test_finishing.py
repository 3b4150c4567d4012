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

    assert finished(tidies_up()) == 7


def test_an_interrupt_behind_parts_that_failed_is_one() -> None:
    async def goes_on() -> int | None:
        await fails()
        signal.raise_signal(signal.SIGINT)
        await asyncio.Event().wait()
        return None

    with pytest.raises(KeyboardInterrupt):
        finished(goes_on())
