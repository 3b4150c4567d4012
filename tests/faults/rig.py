"""A cluster of real processes with one stream, and what faults and verdicts ask of it."""

import asyncio
import json
import random
import time
from dataclasses import dataclass, field
from typing import Any

import nats
from nats.aio.client import Client
from nats.errors import Error

from jsctl.testing import Broker, Cluster
from jsctl.testing.cluster import SYSTEM_PASSWORD, SYSTEM_USER
from tests.faults.links import Links
from tests.support.load import Load, connected, quiet
from tests.support.waiting import eventually

STREAM = "S"
ASK_S = 2.0


@dataclass(slots=True)
class Rig:
    """`load` publishes while faults are carried out."""

    cluster: Cluster
    rng: random.Random
    replicas: int
    load: Load
    bytes_max: int = -1
    """The stream's limit."""
    links: Links | None = None
    client: Client | None = None
    notes: list[str] = field(default_factory=list)
    """What was done, for people who look into a row that failed."""

    async def create(self) -> None:
        """Make the stream."""
        self.client = await connected(self.cluster.urls)
        config = {
            "name": STREAM,
            "subjects": ["s.>"],
            "num_replicas": self.replicas,
            "allow_direct": True,
            "max_bytes": self.bytes_max,
        }

        async def made() -> bool:
            return "config" in await self.ask(f"STREAM.CREATE.{STREAM}", **config)

        await eventually(made, "the stream is made")

    async def close(self) -> None:
        """Let go of the connection."""
        if self.client is not None:
            await self.client.close()

    async def ask(self, subject: str, **fields: object) -> Any:
        """The answer to an API request; {} when there is none in time."""
        assert self.client is not None
        body = json.dumps(fields).encode() if fields else b""
        try:
            answer = await self.client.request(f"$JS.API.{subject}", body, timeout=ASK_S)
        except Error:
            return {}
        return json.loads(answer.data)

    async def ask_at(
        self, broker: Broker, subject: str, *, system: bool = False, **fields: object
    ) -> Any:
        """The answer to an API request at one server; {} when there is none in time."""
        user = {"user": SYSTEM_USER, "password": SYSTEM_PASSWORD} if system else {}
        client = await nats.connect(broker.url, allow_reconnect=False, error_cb=quiet, **user)
        try:
            body = json.dumps(fields).encode() if fields else b""
            answer = await client.request(f"$JS.API.{subject}", body, timeout=ASK_S)
        except Error:
            return {}
        finally:
            await client.close()
        return json.loads(answer.data)

    def cuts(self) -> Links:
        """The links of a row that cuts some."""
        assert self.links is not None, "the row has links"
        return self.links

    async def leader(self) -> Broker:
        """The stream's leader, once there is one that runs."""

        async def led() -> Broker | None:
            info = await self.ask(f"STREAM.INFO.{STREAM}")
            name = info.get("cluster", {}).get("leader", "")
            return self.cluster[name] if name and self.cluster[name].running else None

        return await eventually(led, "a leader")

    async def follower(self) -> Broker:
        """A server with a replica that does not lead."""

        async def found() -> list[str] | None:
            info = await self.ask(f"STREAM.INFO.{STREAM}")
            names = [one["name"] for one in info.get("cluster", {}).get("replicas", [])]
            return [name for name in names if self.cluster[name].running] or None

        return self.cluster[self.rng.choice(await eventually(found, "a follower"))]

    async def off_loop(self, work: Any, *given: Any) -> Any:
        """Something that waits, in a thread: publishers go on."""
        return await asyncio.to_thread(work, *given)

    async def start(self, broker: Broker) -> None:
        """Start a server again, and wait until it listens."""
        if not broker.running:
            await self.off_loop(broker.start)

    async def acks(self, least: int, most: int) -> None:
        """So long as it takes for some acknowledgements."""
        await self.load.more(self.rng.randint(least, most))

    async def whole_s(self, limit_s: float) -> float:
        """How long it takes until everything is as it should be; the limit or more if it is not."""
        began = time.monotonic()
        try:
            await eventually(self._is_whole, "whole", limit_s)
        except AssertionError:
            return max(limit_s, time.monotonic() - began)
        return time.monotonic() - began

    async def _is_whole(self) -> bool:
        info = await self.ask(f"STREAM.INFO.{STREAM}")
        peers = info.get("cluster", {}).get("replicas", [])
        if len(peers) != self.replicas - 1 or not all(one["current"] for one in peers):
            return False
        names = [info["cluster"]["leader"], *(one["name"] for one in peers)]
        states = [await self.off_loop(self._state, name) for name in names]
        # While more comes in, they are not asked at the same moment.
        even = not self.load.has_ended or len({one["last_seq"] for one in states if one}) == 1
        return all(states) and even

    def _state(self, name: str) -> Any:
        """The replica of a server as it has it itself; None if something is wrong with it."""
        try:
            page: Any = self.cluster[name].monitor("/jsz?streams=true")
            health: Any = self.cluster[name].monitor("/healthz")
        except OSError:
            return None
        if health["status"] != "ok":
            return None
        streams = [one for account in page["account_details"] for one in account["stream_detail"]]
        state = next((one["state"] for one in streams if one["name"] == STREAM), None)
        return None if state is None or state.get("lost") else state
