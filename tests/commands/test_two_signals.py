"""A second signal behind the first: a command ends by one of them, and shows no more for it."""

import asyncio
import gc
import random
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from jsctl.commands.toolkit.invocation import finishing
from jsctl.commands.toolkit.invocation.finishing import asked_to_stop, finished
from jsctl.testing import Broker, BrokerFactory
from tests.support.interrupted import started
from tests.support.signalled import (
    CONFIG,
    DRAWN,
    LATEST_S,
    LOADED_S,
    a_terminal,
    fill,
    is_whole,
    program,
)
from tests.support.waiting import wait_for

pytestmark = pytest.mark.processes
END_S = 60
DRAWS = 12
GAP_S = 0.3
CAPTURE = "pipeline capture --every 50ms"
KEPT = b"Stored in JSCTL_TELEMETRY: "
GOES_ON = (*DRAWN, CAPTURE, "pipeline capture --every 1s", "object watch O", "stream verify OBJ_O")
ENDS = (signal.SIGINT, signal.SIGTERM)
INTERRUPTED = 130


@pytest.fixture(scope="module")
def filled(jsctl_session_broker: BrokerFactory, tmp_path_factory: pytest.TempPathFactory) -> Broker:
    """With what the lines name."""
    broker = jsctl_session_broker("-js", config=CONFIG, name="n1")
    fill(broker, tmp_path_factory.mktemp("large") / "object")
    return broker


@pytest.mark.parametrize("second", ENDS)
@pytest.mark.parametrize("first", ENDS)
def test_a_capture_is_stopped_once_however_often_it_is_asked(
    filled: Broker, first: signal.Signals, second: signal.Signals, tmp_path: Path
) -> None:
    with a_terminal() as its:
        end = its.terminal
        words = program(filled, CAPTURE, tmp_path)
        with started(words, stdin=end, stdout=end, stderr=end, session=True) as process:
            wait_for(lambda: its.has(b"states"), "it captures")
            process.send_signal(first)
            process.send_signal(second)
            wait_for(lambda: its.is_over(process), "it ends", END_S)
            assert process.returncode == 0, its.found
        assert its.found.count(KEPT) == 1


@pytest.mark.parametrize("again", ENDS)
def test_a_capture_whose_server_is_silent_is_broken_off_by_a_later_one(
    filled: Broker, again: signal.Signals, tmp_path: Path
) -> None:
    with a_terminal() as its:
        words, end = program(filled, f"--timeout 1h {CAPTURE}", tmp_path), its.terminal
        with started(words, stdin=end, stdout=end, stderr=end, session=True) as process:
            wait_for(lambda: its.has(b"states"), "it captures")
            filled.pause()

            def ends() -> bool:
                if not its.is_over(process):
                    process.send_signal(again)
                return process.poll() is not None

            try:
                process.send_signal(signal.SIGTERM)
                wait_for(ends, "it ends", END_S)
            finally:
                filled.resume()
            assert process.returncode == (INTERRUPTED if again is signal.SIGINT else -again)


def test_what_is_asked_to_stop_is_told_once_and_then_as_anything_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stopped: list[str] = []

    async def stopping() -> int | None:
        asked = asyncio.Event()

        def stop() -> None:
            stopped.append("asked")
            asked.set()

        with asked_to_stop(stop):
            for _ in range(3):
                signal.raise_signal(signal.SIGINT)
            await asked.wait()
            monkeypatch.setattr(finishing, "TOLD_AGAIN_S", 0.0)
            signal.raise_signal(signal.SIGINT)
            await asyncio.Event().wait()
        return None

    with pytest.raises(KeyboardInterrupt):
        finished(stopping)
    assert stopped == ["asked"]


def test_one_right_behind_it_is_the_same_when_it_has_stopped() -> None:
    async def stopping() -> int | None:
        asked = asyncio.Event()
        with asked_to_stop(asked.set):
            signal.raise_signal(signal.SIGTERM)
            await asked.wait()
        signal.raise_signal(signal.SIGINT)
        await asyncio.to_thread(lambda: None)
        return 3

    assert finished(stopping) == 3


async def in_a_group() -> None:
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(does_not_look_up())
        tasks.create_task(asyncio.Event().wait())


async def beside() -> None:
    asyncio.get_running_loop().create_task(does_not_look_up())
    await asyncio.Event().wait()


async def while_tidied() -> None:
    try:
        await asyncio.wait_for(does_not_look_up(), END_S)
    finally:
        await asyncio.to_thread(lambda: None)


async def does_not_look_up() -> None:
    """Two come, and the second one is late."""
    signal.raise_signal(signal.SIGINT)
    finishing.TOLD_AGAIN_S = 0.0
    signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("shape", [in_a_group, beside, while_tidied])
def test_nothing_is_shown_of_what_a_later_one_breaks_off(
    shape: Callable[[], Awaitable[None]],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(finishing, "TOLD_AGAIN_S", END_S)
    with pytest.raises(KeyboardInterrupt):
        finished(shape)
    gc.collect()
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_two_signals_at_any_moment(filled: Broker, seed: int, tmp_path: Path) -> None:
    draw = random.Random(seed)
    for at in range(DRAWS):
        line, pair = draw.choice(GOES_ON), draw.choices(ENDS, k=2)
        moment_s, gap_s = draw.uniform(LOADED_S, LATEST_S), draw.choice((0, draw.uniform(0, GAP_S)))
        what = (line, [one.name for one in pair], moment_s, gap_s)
        folder = tmp_path / str(at)
        folder.mkdir()
        with a_terminal() as its:
            words, end = program(filled, line, folder), its.terminal
            with started(
                words, stdin=end, stdout=end, stderr=end, folder=folder, session=True
            ) as process:
                its.look(moment_s)
                over = process.poll() is not None
                for number in pair:
                    process.send_signal(number)
                    its.look(gap_s)
                wait_for(lambda: its.is_over(process), f"{what} ends", END_S)
                right = {INTERRUPTED, 0, 1} if signal.SIGINT in pair else set()
                right |= {0} if "capture" in line else set()
                right |= {-one for one in pair if one is not signal.SIGINT}
                assert over or process.returncode in right, (what, its.found)
        assert all(map(is_whole, folder.iterdir())), (what, [*folder.rglob("*")])
