"""What is kept of the time, whoever answers: a capture ends when it is told to."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from jsctl.api.stream import StreamConfig
from jsctl.client.manager import Manager
from jsctl.spark.pipeline.capture import API_AUDIT, ROOT, Capture, Counts, capture
from tests.support.waiting import eventually

ANSWER_S = 30


class Answering:
    """A server with the stream and nothing else; `answer` is what is said of each message."""

    def __init__(self, answer: bytes) -> None:
        self.answer = answer
        self.client = self
        self.settings = SimpleNamespace(timeout=5.0)
        self.heard: list[Any] = []
        self.stored: list[str] = []

    async def stream_info(self, name: str) -> SimpleNamespace:
        return SimpleNamespace(config=StreamConfig(name=name, subjects=(f"{ROOT}.>",)))

    async def streams(self) -> SimpleNamespace:
        return SimpleNamespace(items=())

    async def subscribe(self, _subject: str, cb: Any) -> None:
        self.heard.append(cb)

    async def flush(self) -> None:
        return

    async def request(self, subject: str, _body: bytes, timeout: float) -> SimpleNamespace:
        self.stored.append(subject)
        return SimpleNamespace(data=self.answer)


async def captured(server: Answering, subject: str, body: bytes) -> Counts:
    """What is counted of one advisory."""
    what = Capture(every_ns=1_000_000)
    said = asyncio.Event()

    def told(_counts: Counts) -> None:
        if said.is_set():
            what.stopping.set()

    async with asyncio.timeout(ANSWER_S), asyncio.TaskGroup() as tasks:
        running = tasks.create_task(capture(cast(Manager, server), what, told))
        await heard(server, subject, body)
        said.set()
    return running.result()


async def heard(server: Answering, subject: str, body: bytes) -> None:
    """An advisory, as soon as somebody listens."""

    async def listens() -> bool:
        return bool(server.heard)

    await eventually(listens, "somebody listens")
    await server.heard[0](SimpleNamespace(subject=subject, data=body))


async def test_it_can_be_broken_off_while_advisories_wait() -> None:
    class Silent(Answering):
        """Says nothing of advisories."""

        async def request(self, subject: str, body: bytes, timeout: float) -> SimpleNamespace:
            answer = await super().request(subject, body, timeout)
            if "advisory" in subject:
                await asyncio.Event().wait()
            return answer

    server = Silent(b'{"stream": "JSCTL_TELEMETRY", "seq": 1}')
    async with asyncio.timeout(ANSWER_S), asyncio.TaskGroup() as tasks:
        running = tasks.create_task(capture(cast(Manager, server), Capture(), lambda _counts: None))
        await heard(server, "$JS.EVENT.ADVISORY.STREAM.CREATED.S", b"{}")

        async def begun() -> bool:
            return any("advisory" in one for one in server.stored)

        await eventually(begun, "an advisory waits")
        running.cancel()
    assert running.cancelled()


async def test_nobody_waits_once_for_each_that_a_server_does_not_take_any_more() -> None:
    goes = asyncio.Event()

    class Gone(Answering):
        """Answers nobody in the end."""

        async def request(self, subject: str, body: bytes, timeout: float) -> SimpleNamespace:
            answer = await super().request(subject, body, timeout)
            if "advisory" in subject:
                await goes.wait()
                answer.data = b""
            return answer

    server, what = Gone(b'{"stream": "JSCTL_TELEMETRY", "seq": 1}'), Capture()
    async with asyncio.timeout(ANSWER_S), asyncio.TaskGroup() as tasks:
        running = tasks.create_task(capture(cast(Manager, server), what, lambda _counts: None))
        for at in range(5):
            await heard(server, f"$JS.EVENT.ADVISORY.STREAM.CREATED.S{at}", b"{}")

        async def begun() -> bool:
            return any("advisory" in one for one in server.stored)

        await eventually(begun, "one is on its way")
        what.stopping.set()
        goes.set()
    counts = running.result()
    assert (counts.advisories, counts.failed, counts.dropped) == (0, 1, 4)


@pytest.mark.parametrize("answer", [b"hello", b"[]", b"", b"\xff", b'{"error": {}}', b"{}"])
async def test_an_answer_that_is_none_is_a_failure(answer: bytes) -> None:
    """As of a service that listens there, too."""
    server = Answering(answer)
    counts = await captured(server, "$JS.EVENT.ADVISORY.STREAM.CREATED.S", b"{}")
    assert f"{ROOT}.advisory.ADVISORY.STREAM.CREATED.S" in server.stored
    assert counts.failed == len(server.stored)


@pytest.mark.parametrize(
    ("subject", "kept"),
    [
        ("$JS.API.STREAM.INFO.ORDERS", False),
        ("$JS.API.STREAM.MSG.GET.ORDERS", False),
        ("$JS.hub.API.CONSUMER.LIST.ORDERS", False),
        ("$JS.API.STREAM.DELETE.INFO", True),
        ("$JS.API.CONSUMER.CREATE.LIST.NAMES", True),
        ("$JS.API.STREAM.MSG.DELETE.GET", True),
    ],
)
async def test_looks_are_told_by_the_request_and_not_by_a_name(subject: str, kept: bool) -> None:
    server = Answering(b'{"stream": "JSCTL_TELEMETRY", "seq": 1}')
    counts = await captured(server, API_AUDIT, b'{"subject": "%s"}' % subject.encode())
    assert (counts.advisories == 1, counts.failed) == (kept, 0)
