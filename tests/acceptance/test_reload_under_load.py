"""Reloads that concern others: whoever publishes and listens meanwhile loses nothing."""

import asyncio

import nats
from nats.aio.client import Client

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

    def __init__(self, publisher: Client, listener: Client) -> None:
        self.publisher, self.listener = publisher, listener
        self.said = self.heard = self.stored = 0
        self.stop = False

    async def hear(self) -> None:
        """Count what is said from now on."""

        async def count(_: object) -> None:
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


async def test_others_do_not_notice() -> None:
    with Reloading("jsctl", config(0)) as server:
        lost: list[str] = []

        async def trouble(*_: object) -> None:
            lost.append("a client noticed")

        async def connect(name: str) -> Client:
            return await nats.connect(
                server.broker.url,
                user=name,
                password=name,
                allow_reconnect=False,
                disconnected_cb=trouble,
                error_cb=trouble,
            )

        publisher, listener = await connect("a"), await connect("l")
        await publisher.jetstream(timeout=30).add_stream(name="KEPT", subjects=["kept.>"])
        load = Load(publisher, listener)
        await load.hear()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(load.say())
            tasks.create_task(load.store())
            for number in range(1, RELOADS + 1):
                await asyncio.to_thread(server.must_reload, config(number))
            load.stop = True
        await listener.flush()
        state = (await publisher.jetstream().stream_info("KEPT")).state
        assert lost == []
        assert load.heard == load.said
        assert state.messages == state.last_seq == load.stored
        print(f"said {load.said} heard {load.heard} stored {load.stored} lost {len(lost)}")
        await publisher.close()
        await listener.close()
