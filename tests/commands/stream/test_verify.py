"""`stream verify`: heads that were kept, and what is said of files that are none."""

import asyncio
import io
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from jsctl.api.responses import ChainHead, ReplicaAudit, StreamAudit
from jsctl.commands.stream.verify import verify
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.commands.toolkit.invocation.output import Output
from jsctl.commands.toolkit.invocation.prompts import Prompts
from jsctl.settings import Settings
from jsctl.testing import Broker
from tests.commands.conftest import Result

Run = Callable[..., Result]
pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker("-js") as one:
        yield one


@pytest.fixture
def run(broker: Broker, cli: Run) -> Iterator[Run]:
    """A command line at the broker, which forgets the stream behind the test."""
    yield lambda *words: cli("-s", broker.url, *words)
    assert cli("-s", broker.url, "stream", "rm", "S", "--force").code == 0


@pytest.fixture
def kept(run: Run, tmp_path: Path) -> Path:
    """The head of a stream with a chain."""
    words = ("--subjects", "s", "--metadata", "jsctl.chain:sha256", "--defaults")
    assert run("stream", "add", "S", *words).code == 0
    for number in range(3):
        assert run("pub", "s", f"{number}", "-J", "-q").code == 0
    head = tmp_path / "head"
    assert run("stream", "verify", "S", "--save", str(head)).code == 0
    return head


def test_a_head_of_a_chain_that_began_elsewhere_does_not_fit(run: Run, kept: Path) -> None:
    assert run("stream", "verify", "S", "--head", str(kept)).code == 0
    told = json.loads(kept.read_text())
    kept.write_text(json.dumps(told | {"since": 1}))
    done = run("stream", "verify", "S", "--head", str(kept))
    assert done.code == 1 and "NOT proved" in done.out


def test_a_head_that_cannot_be_saved_is_told(run: Run, kept: Path) -> None:
    done = run("stream", "verify", "S", "--save", str(kept.parent / "none" / "head"))
    assert done.code == 1
    assert done.err.splitlines()[-1].endswith("none/head: no such file or directory")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"seq": -1}', '{"stream": "S", "key": "U"}'])
def test_what_is_no_head_is_told(run: Run, kept: Path, text: str) -> None:
    kept.write_text(text)
    done = run("stream", "verify", "S", "--head", str(kept), "--key", "UABC")
    assert done.code == 1 and done.err.splitlines()[-1].startswith("jsctl: error: ")


def test_a_verification_that_somebody_began_earlier_is_not_enough() -> None:
    proved = (ReplicaAudit(name="n1", state="proved"),)
    answers = [
        StreamAudit(id=1, done=True, last_seq=5, replicas=proved),
        StreamAudit(id=2, done=True, last_seq=10, replicas=proved),
    ]
    output = Output(io.StringIO(), io.StringIO())
    call = Call({"stream": "S"}, {"deadline": "1m"}, Settings(), output, Prompts())

    class Manager:
        async def chain_head(self, name: str, seq: int = 0) -> ChainHead:
            return ChainHead(stream=name, seq=10)

        async def verify_stream(self, name: str, *, start: bool) -> StreamAudit:
            return answers.pop(0)

    @asynccontextmanager
    async def manager(what: str = "") -> AsyncIterator[Any]:
        yield Manager()

    call.manager = manager  # type: ignore[method-assign] # no server is there
    assert asyncio.run(verify(call)) == 0
    assert answers == []
