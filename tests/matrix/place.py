"""What a feature has to work with: a client, names of its own, and patience."""

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error
from nats.js import JetStreamContext
from nats.js.errors import Error as JetStreamError

from jsctl.errors import JsctlError
from tests.support.waiting import eventually

Config = dict[str, Any]
Headers = dict[str, str]
WAIT_S = 60.0
TRY_S = 3.0
SECOND = 1_000_000_000


class Place:
    """One feature at one number of replicas in one kind of storage."""

    def __init__(
        self, client: Client, name: str, replicas: int, storage: str, directory: Path
    ) -> None:
        self.client = client
        self.js: JetStreamContext = client.jetstream(timeout=TRY_S)
        self.name = name
        self.replicas = replicas
        self.storage = storage
        self.directory = directory
        self.urls: list[str] = []
        """Of all servers."""
        self.rounds = 0
        """How often it was used since its streams were empty, this time included."""
        self.turn = 0
        """How often it was used."""

    @property
    def word(self) -> str:
        """Of this turn alone."""
        return f"turn {self.turn}"

    def subject(self, token: str = "a") -> str:
        """Of the feature's first stream."""
        return f"{self.name}.{token}"

    async def ask(self, subject: str, body: Config | None = None) -> Any:
        """The decoded answer of the API; asked again while nobody answers."""
        payload = b"" if body is None else json.dumps(body).encode()

        async def answered() -> Any:
            try:
                message = await self.client.request(f"$JS.API.{subject}", payload, timeout=TRY_S)
            except Error:
                return None
            found = json.loads(message.data)
            return None if found.get("error", {}).get("err_code") in PASSING else found

        return await eventually(answered, f"{subject} is answered", WAIT_S)

    async def done(self, subject: str, body: Config | None = None) -> Any:
        """An answer that is no error."""
        found = await self.ask(subject, body)
        assert "error" not in found, (self.name, subject, found)
        return found

    async def stream(self, suffix: str = "", **config: Any) -> str:
        """A new stream; its name."""
        name = f"{self.name}{suffix}"
        made: Config = {"name": name, "num_replicas": self.replicas, "storage": self.storage}
        if "mirror" not in config and "sources" not in config:
            made["subjects"] = [f"{name}.>"]
        await self.done(f"STREAM.CREATE.{name}", {**made, **config})
        return name

    async def consumer(self, stream: str = "", name: str = "C", **config: Any) -> None:
        """A new pull consumer."""
        stream = stream or self.name
        made = {"durable_name": name, "ack_policy": "explicit", "ack_wait": 30 * SECOND, **config}
        body = {"stream_name": stream, "config": made}
        await self.done(f"CONSUMER.CREATE.{stream}.{name}", body)

    async def send(self, subject: str, payload: bytes, headers: Headers | None = None) -> Any:
        """The answer to a publish that is sent until it has one, the same message each time."""

        async def stored() -> Any:
            try:
                answer = await self.client.request(subject, payload, timeout=TRY_S, headers=headers)
            except Error:
                return None
            found = json.loads(answer.data)
            return None if found.get("error", {}).get("err_code") in PASSING else found

        return await eventually(stored, f"{subject} is stored", WAIT_S)

    async def put(self, token: str, text: str, headers: Headers | None = None) -> int:
        """Store a message once in the first stream; its sequence."""
        return await self.put_to(self.subject(token), text, headers)

    async def put_to(self, subject: str, text: str, headers: Headers | None = None) -> int:
        """Store a message once; its sequence."""
        named = {"Nats-Msg-Id": f"{subject} {text}", **(headers or {})}
        found = await self.send(subject, text.encode(), named)
        assert "error" not in found, (self.name, found)
        return int(found["seq"])

    async def state(self, stream: str = "") -> Config:
        """Of a stream."""
        found: Config = (await self.done(f"STREAM.INFO.{stream or self.name}"))["state"]
        return found

    async def holds(self, count: int, stream: str = "") -> None:
        """Wait until a stream has so many messages."""

        async def counted() -> bool:
            return bool((await self.state(stream))["messages"] == count)

        await eventually(counted, f"{stream or self.name} holds {count} messages", WAIT_S)

    async def last(self, subject: str, stream: str = "") -> Config | None:
        """The last message of a subject, if there is one."""
        body = {"last_by_subj": subject}
        found = await self.ask(f"STREAM.MSG.GET.{stream or self.name}", body)
        message: Config | None = found.get("message")
        return message

    async def next(self, stream: str = "", name: str = "C", **body: Any) -> Msg:
        """The next message of a pull consumer, asked for until there is one."""
        stream = stream or self.name
        asked = json.dumps({"batch": 1, "expires": 2 * SECOND, **body}).encode()

        async def got() -> Msg | None:
            inbox = self.client.new_inbox()
            heard = await self.client.subscribe(inbox)
            subject = f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{name}"
            await self.client.publish(subject, asked, inbox)
            try:
                message = await heard.next_msg(TRY_S)
            except Error:
                return None
            finally:
                await heard.unsubscribe()
            return message if message.reply.startswith("$JS.ACK.") else None

        return await eventually(got, f"{stream} > {name} has a message", WAIT_S)

    async def until(self, fact: Callable[[], Awaitable[Any]], what: str) -> None:
        """Wait for what a leader that died may delay."""

        why: list[str] = []

        async def seen() -> Any:
            try:
                return await fact()
            except (Error, JetStreamError, JsctlError) as error:
                why[:] = [f"{type(error).__name__}: {error}"]
                return None

        try:
            await eventually(seen, what, WAIT_S)
        except AssertionError as error:
            raise AssertionError(f"{error}, {why}") from None

    async def acked(self, message: Msg) -> None:
        """Acknowledge a message until somebody says so."""

        async def told() -> bool:
            try:
                await self.client.request(message.reply, b"+ACK", timeout=TRY_S)
            except Error:
                return False
            return True

        await eventually(told, "the acknowledgement is taken", WAIT_S)


PASSING = frozenset((10005, 10008, 10074, 10118, 10119))
"""What a cluster says while leaders are elected, or before it knows who is there."""
