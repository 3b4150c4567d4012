"""What is left of a restore that is given up: nothing of it, and all of what others made."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from nats.aio.msg import Msg

from jsctl.api.stream import StreamConfig
from jsctl.backups import archive, s2
from jsctl.backups.entries import entry_bytes
from jsctl.client import backup
from jsctl.client.backup import restore_stream
from jsctl.client.manager import Manager, open_manager
from jsctl.errors import JsctlError, Unreachable
from jsctl.settings import Context, Settings
from jsctl.testing import Broker, BrokerFactory, RealServer

COUNT, SLOW = 5, 3
CONFIG = {"name": "S", "subjects": ["s.>"]}
STATE = {"first_seq": 1, "last_seq": COUNT, "messages": COUNT, "consumer_count": 0}
Meanwhile = Callable[[Manager, Path], Awaitable[object]]


@pytest.fixture(scope="module")
def broker(jsctl_session_broker: BrokerFactory) -> Broker:
    return jsctl_session_broker("-js")


@pytest.fixture(scope="module")
def quiet(jsctl_session_broker: BrokerFactory) -> Broker:
    """Without JetStream."""
    return jsctl_session_broker()


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """An archive of several chunks."""
    body = bytes(backup.RESTORE_CHUNK_BYTES)
    entries = [entry_bytes("s.1", 10**18, seq, b"", body) for seq in range(1, COUNT + 1)]
    parts = (archive.begin_bytes(10**18, STATE), *entries, archive.end_bytes())
    (tmp_path / "stream.arc.s2").write_bytes(b"".join(map(s2.plain_chunk, parts)))
    return tmp_path


class GivenUp(JsctlError):
    """Ends a restore."""


async def give_up(_manager: Manager, _saved: Path) -> None:
    raise GivenUp("enough")


async def somebody_makes_one(manager: Manager, _saved: Path) -> None:
    await manager.create_stream(StreamConfig(name="S", subjects=("s.>",)))
    raise GivenUp("enough")


async def somebody_restores_it(manager: Manager, saved: Path) -> None:
    await restore_stream(manager, saved, CONFIG, STATE)
    raise GivenUp("enough")


def interpose(manager: Manager, meanwhile: Callable[[], Awaitable[object]], at: int) -> None:
    """Something happens before one of the chunks of a restore is sent."""
    exchange, sent = manager.requests.exchange, list[str]()

    async def sending(subject: str, payload: bytes, headers: dict[str, str] | None = None) -> bytes:
        if subject.startswith("$JS.SNAPSHOT.RESTORE."):
            sent.append(subject)
            if len(sent) == at:
                await meanwhile()
        return await exchange(subject, payload, headers)

    manager.requests.exchange = sending  # type: ignore[method-assign]


async def broken_off(url: str, saved: Path, meanwhile: Meanwhile) -> tuple[list[str], list[str]]:
    """The names of streams, and what is told of a part, when a restore ends in its midst."""
    left = list[str]()
    settings = Settings(connection=Context(url=url))
    async with open_manager(settings) as manager, open_manager(settings) as other:
        interpose(manager, lambda: meanwhile(other, saved), COUNT)
        with pytest.raises(JsctlError):
            await restore_stream(
                manager, saved, CONFIG, STATE, part_left=lambda: left.append("part")
            )
        names = await other.stream_names()
        for name in names:
            await other.delete_stream(name)
        return names, left


@pytest.mark.parametrize(
    ("meanwhile", "names"),
    [(give_up, []), (somebody_makes_one, ["S"]), (somebody_restores_it, ["S"])],
)
def test_a_broker(broker: Broker, saved: Path, meanwhile: Meanwhile, names: list[str]) -> None:
    assert asyncio.run(broken_off(broker.url, saved, meanwhile)) == (names, [])


@pytest.mark.processes
def test_a_server_that_keeps_a_part(saved: Path) -> None:
    with RealServer("-js") as server:
        assert asyncio.run(broken_off(server.url, saved, give_up)) == ([], [])


@pytest.mark.processes
def test_a_server_on_which_somebody_else_was_first(saved: Path) -> None:
    """A part of what he restores is there when the other one is given up."""

    async def both(url: str) -> tuple[list[str], int]:
        settings = Settings(connection=Context(url=url))
        begun, may_send = asyncio.Event(), asyncio.Event()

        async def wait() -> None:
            begun.set()
            await may_send.wait()

        async with open_manager(settings) as one, open_manager(settings) as other:

            async def later() -> None:
                interpose(other, wait, 1)
                interpose(other, lambda: give_up(other, saved), 2)
                with pytest.raises(GivenUp):
                    await restore_stream(other, saved, CONFIG, STATE)

            async def let_later_go_on() -> None:
                may_send.set()
                await task

            async with asyncio.TaskGroup() as group:
                task = group.create_task(later())
                await begun.wait()
                interpose(one, let_later_go_on, COUNT)
                await restore_stream(one, saved, CONFIG, STATE)
            info = await one.stream_info("S")
            return await one.stream_names(), info.state.messages

    with RealServer("-js") as server:
        assert asyncio.run(both(server.url)) == (["S"], COUNT)


async def ended(url: str, saved: Path, *, answers: bool) -> list[int]:
    """How often a receiver hears of the end that takes its time, and answers or is gone then."""
    settings, ends = Settings(connection=Context(url=url)), list[int]()
    async with open_manager(settings) as manager, open_manager(settings) as receiver:

        async def begin(message: Msg) -> None:
            await message.respond(b'{"deliver_subject": "chunks"}')

        async def take(message: Msg) -> None:
            if message.data:
                await message.respond(b"")
                return
            ends.append(len(ends))
            if len(ends) == SLOW:
                if answers:
                    await message.respond(b"{}")
                await chunks.unsubscribe()

        await receiver.client.subscribe("$JS.API.STREAM.RESTORE.S", cb=begin)
        chunks = await receiver.client.subscribe("chunks", cb=take)
        await receiver.client.flush()
        await restore_stream(manager, saved, CONFIG, STATE)
    return ends


def test_a_receiver_that_takes_its_time_is_waited_for(
    quiet: Broker, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backup, "ALIVE_S", 0.05)
    assert len(asyncio.run(ended(quiet.url, saved, answers=True))) == SLOW


def test_one_that_is_gone_is_not(
    quiet: Broker, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backup, "ALIVE_S", 0.05)
    with pytest.raises(Unreachable, match="gone"):
        asyncio.run(ended(quiet.url, saved, answers=False))
