"""What a dashboard says where it may ask nothing, and that it asks again where nobody answered."""

import json
from collections.abc import Iterator

import nats
import pytest
from nats.aio.msg import Msg

from jsctl.dashboard.connection.link import Dialer
from jsctl.dashboard.connection.poller import Poller, Rounds
from jsctl.dashboard.model.model import Model
from jsctl.dashboard.model.snapshot import Badge, Snapshot
from jsctl.settings import Context, Settings
from jsctl.testing import Broker

USERS = """
accounts { A { jetstream: enabled, users [
  { user: all, password: p }
  { user: none, password: p, permissions { publish: "x", subscribe: "x" } }
] } }
"""
PREFIX = "FAKE"
NO_LEADER = {"code": 503, "err_code": 10008, "description": "JetStream not available"}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(jetstream=True, config=USERS) as running:
        yield running


def nothing(_snapshot: Snapshot) -> None:
    """For whom nobody looks."""


@pytest.mark.processes
async def test_who_may_ask_nothing_is_told_so(broker: Broker) -> None:
    settings = Settings(connection=Context(url=broker.url, user="none", password="p"))
    seen = await Poller(Dialer(settings, None), "", nothing, 0.2).once()
    assert (seen.connected, seen.badge) == (True, Badge.NO_ACCESS)
    assert seen.note.startswith("neither JetStream nor servers answer this user")


@pytest.mark.processes
async def test_a_jetstream_without_a_leader_is_seen_when_it_has_one(broker: Broker) -> None:
    led = False
    client = await nats.connect(broker.url, user="all", password="p")

    async def answer(message: Msg) -> None:
        if not led:
            await message.respond(json.dumps({"error": NO_LEADER}).encode())
            return
        subject = message.subject.replace(PREFIX, "$JS.API", 1)
        await message.respond((await client.request(subject, message.data)).data)

    await client.subscribe(f"{PREFIX}.>", cb=answer)
    await client.jetstream().add_stream(name="S", subjects=["s"])
    context = Context(url=broker.url, user="all", password="p", jetstream_api_prefix=PREFIX)
    link = await Dialer(Settings(connection=context), None).dial(lambda *_: None)
    try:
        model = Model("")
        rounds = Rounds(link, model)
        await rounds.look()
        assert model.snapshot(1).badge is Badge.NO_ACCESS
        led = True
        await rounds.look()
        assert [one.name for one in model.snapshot(1).streams] == ["S"]
        assert model.snapshot(1).jetstream
    finally:
        await link.close()
        await client.close()
