"""Reloads that concern others: whoever publishes and listens meanwhile loses nothing."""

import asyncio
from pathlib import Path

import nats
import nats.errors
import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg

from tests.support.careless_reload import FILE
from tests.support.reloading import Reloading

RELOADS = 100
ENOUGH = 200
"""Messages of each kind, at least."""


def config(number: int) -> str:
    """Accounts and users of others come, change and go; two clients are in account A."""
    others = "\n".join(
        f"OTHER{one} {{ jetstream: enabled, users: [ {{user: o{one}, password: p{number}}} ]\n"
        f" mappings {{ x: y{number} }}\n exports: [ {{service: s}} ] }}"
        for one in range(number % 3, number % 7 + 3)
    )
    imports = f"imports: [ {{service: {{account: B, subject: help}}, to: help{number}}} ]"
    permissions = f'permissions {{ subscribe: {{deny: "denied.{number}"}} }}'
    return f"""jetstream {{ store_dir: "@DIR/store", max_mem: 64MB, max_file: 1GB }}
max_payload: {100_000 + number}
accounts {{
    A {{
        jetstream: enabled
        users: [ {{user: a, password: a}}, {{user: z{number}, password: z}},
                 {{user: l, password: l, {permissions}}} ]
        {imports if number % 2 else ""}
    }}
    B {{ users: [ {{user: b, password: p{number}}} ], exports: [ {{service: help}} ] }}
    {others}
}}
"""


class Load:
    """Clients that publish until they are told to stop, and count."""

    def __init__(self, publisher: Client, listener: Client, trouble: list[str]) -> None:
        self.publisher, self.listener, self.trouble = publisher, listener, trouble
        self.said = self.heard = self.stored = 0
        self.stop = False

    async def hear(self) -> None:
        """Count what is said from now on: everything, once, in its order."""

        async def count(message: Msg) -> None:
            if message.subject != f"core.{self.heard}":
                self.trouble.append(f"{message.subject} came as number {self.heard}")
            self.heard += 1

        await self.listener.subscribe("core.>", cb=count)
        await self.listener.flush()

    async def say(self) -> None:
        """Publish without an answer, as fast as the others let it."""
        while not self.stop or self.said < ENOUGH:
            await self.publisher.publish(f"core.{self.said}", b"x" * 100)
            self.said += 1
            if self.said % 20 == 0:
                await self.publisher.flush()
        await self.publisher.flush()

    async def store(self) -> None:
        """Publish to a stream, each with its answer."""
        js = self.publisher.jetstream(timeout=30)
        while not self.stop or self.stored < ENOUGH:
            answer = await js.publish("kept.x", b"%d" % self.stored)
            self.stored += 1
            assert answer.seq == self.stored


async def trouble_of(server: Reloading, reloads: int) -> list[str]:
    """What clients of account A notice of reloads that concern others."""
    found: list[str] = []
    told = asyncio.Event()

    async def lost(*_: object) -> None:
        found.append("a client was told of an error, or lost its connection")
        told.set()

    async def watch() -> None:
        """End it all: nobody has to wait for answers that cannot come."""
        await told.wait()
        raise nats.errors.ConnectionClosedError

    async def connect(name: str) -> Client:
        return await nats.connect(
            server.broker.url,
            user=name,
            password=name,
            allow_reconnect=False,
            disconnected_cb=lost,
            error_cb=lost,
        )

    publisher, listener = await connect("a"), await connect("l")
    await publisher.jetstream(timeout=30).add_stream(name="KEPT", subjects=["kept.>"])
    load = Load(publisher, listener, found)
    await load.hear()
    try:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(load.say())
            tasks.create_task(load.store())
            watching = tasks.create_task(watch())
            for number in range(1, reloads + 1):
                await asyncio.to_thread(server.must_reload, config(number))
            load.stop = True
            watching.cancel()
        await listener.flush()
        state = (await publisher.jetstream().stream_info("KEPT")).state
    except* nats.errors.Error as group:
        found.append(repr(group.exceptions))
    else:
        if load.heard != load.said:
            found.append(f"{load.heard} of {load.said} messages were heard")
        if not state.messages == state.last_seq == load.stored:
            found.append(f"{state.messages} messages of {load.stored} are stored")
    trouble = list(found)  # Who closes a client is told so.
    for client in (publisher, listener):
        await client.close()
    print(f"said {load.said} heard {load.heard} stored {load.stored} trouble {trouble[:3]}")
    return trouble


async def test_others_do_not_notice() -> None:
    with Reloading("jsctl", config(0)) as server:
        assert await trouble_of(server, RELOADS) == []


@pytest.mark.parametrize("bug", ["hangs up", "loses", "repeats", "never takes"])
async def test_a_careless_reload_would_be_noticed(bug: str) -> None:
    """The test above is worth something: it fails when one reload does this once."""

    def careless(directory: Path) -> None:
        (directory / FILE).write_text(bug)

    with Reloading("careless", config(0), careless) as server:
        assert await trouble_of(server, 3) != []
