"""Services that do not tell what they should: what is no answer is passed over, and nothing that
they say ends a command otherwise than with its output or one line."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass

import nats
import pytest
from nats.aio.msg import Msg

from jsctl.testing import Broker, BrokerFactory
from tests.support.forked import jsctl

pytestmark = pytest.mark.processes
MANY = 3000
Document = Mapping[str, object]
ECHO = {"name": "echo", "subject": "demo.echo", "queue_group": "q"}
INFO: Document = {
    **{"type": "io.nats.micro.v1.info_response", "name": "demo", "id": "A", "version": "1.0.0"},
    "endpoints": [ECHO],
}
STATS: Document = {
    **{"type": "io.nats.micro.v1.stats_response", "name": "demo", "id": "A"},
    **{"started": "2026-01-02T03:04:05Z", "endpoints": [{**ECHO, "num_requests": 5}]},
}
NO_ANSWERS = (b"", b"no JSON", b"null", b"[]", b"5", b"[" * 100_000, b'{"name":"\xff","id":"x"}')


@dataclass(frozen=True, slots=True)
class Done:
    """What a command line did."""

    code: int
    out: str
    err: str


async def asked(broker: Broker, told: Mapping[str, list[bytes]], *words: str) -> Done:
    """What `service` does where one says this, by verb."""
    client = await nats.connect(broker.url)

    async def answer(message: Msg) -> None:
        for one in told.get(message.subject.split(".")[1], []):
            await message.respond(one)

    await client.subscribe("$SRV.>", cb=answer)
    await client.flush()
    done = await asyncio.to_thread(jsctl, ["-s", broker.url, "service", *words])
    await client.close()
    return Done(done.returncode, done.stdout, done.stderr)


def connections(broker: Broker) -> int:
    """How many there were so far."""
    page = broker.monitor("/varz")
    assert isinstance(page, dict) and isinstance(page["total_connections"], int)
    return page["total_connections"]


def texts(*documents: Document) -> list[bytes]:
    return [json.dumps(one).encode() for one in documents]


def without(document: Document, key: str) -> Document:
    return {name: value for name, value in document.items() if name != key}


async def test_what_is_no_answer_is_passed_over(jsctl_broker: BrokerFactory) -> None:
    broken = [without(INFO, key) for key in ("type", "name", "id")]
    lines = [*NO_ANSWERS, *texts(*broken, {**INFO, "name": 5}, STATS, INFO)]
    done = await asked(jsctl_broker(), {"INFO": lines}, "ls", "-j")
    assert (done.code, json.loads(done.out)) == (0, [INFO]), done.err


@pytest.mark.parametrize("endpoints", [None, "x", [], ["x", 1, None], [{}], [{"name": 5}]])
async def test_endpoints_that_are_none(jsctl_broker: BrokerFactory, endpoints: object) -> None:
    odd: Document = {"endpoints": endpoints}
    told = {"INFO": texts({**INFO, **odd}), "STATS": texts({**STATS, **odd})}
    broker = jsctl_broker()
    assert "demo" in (await asked(broker, told, "ls")).out
    shown = await asked(broker, told, "info", "demo")
    assert (shown.code, "demo (A)" in shown.out) == (0, True), shown.err
    table = await asked(broker, told, "stats", "demo")
    assert (table.code, "demo Service Statistics" in table.out) == (0, True), table.err
    refused = await asked(broker, told, "request", "demo", "echo", "x")
    assert refused.code == 1 and 'error: service "demo" has no endpoint' in refused.err


@pytest.mark.parametrize(
    ("figures", "shown"),
    [
        ({"num_requests": "5", "num_errors": None}, "Requests: 0"),
        ({"num_requests": -5}, "Requests: -5"),
        ({"num_requests": 10**30, "processing_time": 1e308}, "Requests: 1,000,000,000,000"),
    ],
)
async def test_figures_that_are_none(
    jsctl_broker: BrokerFactory, figures: Document, shown: str
) -> None:
    told = {"INFO": texts(INFO), "STATS": texts({**STATS, "endpoints": [{**ECHO, **figures}]})}
    done = await asked(jsctl_broker(), told, "info", "demo")
    assert (done.code, shown in done.out) == (0, True), (done.out, done.err)


@pytest.mark.parametrize(
    ("started", "shown"),
    [
        ("", ""),
        ("yesterday", "Started: yesterday"),
        ("2026-01-02T03:04:05Z", "Started: 2026-01-02"),
    ],
)
async def test_when_it_started(jsctl_broker: BrokerFactory, started: str, shown: str) -> None:
    """Who does not say when it started is not one that started two thousand years ago."""
    told = {"INFO": texts(INFO), "STATS": texts({**STATS, "started": started})}
    done = await asked(jsctl_broker(), told, "info", "demo")
    assert done.code == 0 and shown in done.out and ("Started" in done.out) == bool(shown)


async def test_thousands(jsctl_broker: BrokerFactory) -> None:
    instances = [{**STATS, "id": f"{number:05}"} for number in range(MANY)]
    done = await asked(jsctl_broker(), {"STATS": texts(*instances)}, "stats", "demo", "-j")
    assert done.code == 0 and [one["id"] for one in json.loads(done.out)] == [
        f"{number:05}" for number in range(MANY)
    ]


async def test_who_is_asked_for_statistics_is_one(jsctl_broker: BrokerFactory) -> None:
    """And nobody else is waited for: both questions are those of one client."""
    broker = jsctl_broker()
    before = connections(broker)
    told = {"INFO": texts(INFO), "STATS": texts(STATS)}
    assert (await asked(broker, told, "info", "demo")).code == 0
    service_and_tool = 2
    assert connections(broker) - before == service_and_tool


async def test_an_instance_that_does_not_tell_how_it_does(jsctl_broker: BrokerFactory) -> None:
    told = {"INFO": texts(INFO), "STATS": [b"no"]}
    done = await asked(jsctl_broker(), told, "info", "demo", "--timeout", "2s")
    assert done.code == 1
    assert done.err.endswith("jsctl: error: no statistics received for demo > A\n")
