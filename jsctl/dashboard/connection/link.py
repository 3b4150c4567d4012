"""The connections of a dashboard: one of the account, one of the system account, or both.

Either may be missing or lack rights; what can be asked is found out when it is opened.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from jsctl.api.errors import ApiError
from jsctl.api.subjects import USER_INFO
from jsctl.api.times import SECOND_NS
from jsctl.client.connection import foreign_errors, open_client
from jsctl.client.facts import connection_facts
from jsctl.client.manager import PAGES_MAX, Manager
from jsctl.client.system import MonitorSystem, NatsSystem, SystemSource
from jsctl.dashboard.model.documents import Document, integer, section, sections, text
from jsctl.dashboard.model.model import Told
from jsctl.errors import JsctlError, NotAllowed, Unreachable
from jsctl.settings import Settings

if TYPE_CHECKING:
    from nats.aio.msg import Msg

    from jsctl.client.library import NatsClient

PING_NS = SECOND_NS
"""A server that has not answered a ping by then has missed the round."""
SILENCE_SECONDS = 0.15
"""So long after the last answer of several nobody else is waited for."""
DETAILS_NS = 10 * SECOND_NS
NO_SYSTEM = "server metrics need the system account: add --system-context NAME"
NO_JETSTREAM = "this account has no JetStream: streams are shown, but cannot be changed or read"
EVENTS = (
    "$JS.EVENT.ADVISORY.>",
    "$SYS.ACCOUNT.*.CONNECT",
    "$SYS.ACCOUNT.*.DISCONNECT",
    "$SYS.SERVER.*.SHUTDOWN",
    "$SYS.SERVER.*.LAMEDUCK",
    "$SYS.SERVER.*.CLIENT.AUTH.ERR",
)
OWN_EVENTS = EVENTS[:1]
Hear = Callable[[str, Document], None]


def failures() -> tuple[type[Exception], ...]:
    """Everything that asking a server may end in; for `except`."""
    return (JsctlError, ApiError, *foreign_errors())


@dataclass(frozen=True, slots=True)
class Lists:
    """Streams and consumers of the account; `unreachable` streams are only named."""

    streams: list[Document]
    consumers: list[Document]
    unreachable: tuple[str, ...]


class Link:
    """Opened by `open`; every method raises JsctlError or ApiError when it cannot answer."""

    def __init__(self, settings: Settings, system_settings: Settings | None) -> None:
        self.settings = replace(settings, connection_name="jsctl dashboard")
        self.system_settings = system_settings
        self.account = ""
        self.manager: Manager | None = None
        self.jetstream = False
        self._clients: list[NatsClient] = []
        self._system: SystemSource | None = None
        self._slow: SystemSource | None = None

    async def open(self, hear: Hear) -> None:
        """Connects and finds out what may be asked; `hear` gets every event."""
        client = await open_client(self.settings)
        self._clients.append(client)
        self.manager = Manager(client, self.settings)
        await self._who_am_i(client)
        await self._listen(client, OWN_EVENTS, hear)
        await self._open_system(client, hear)

    async def _who_am_i(self, client: "NatsClient") -> None:
        assert self.manager is not None
        quick = self.manager.with_timeout(min(self.settings.timeout_ns, 2 * SECOND_NS))
        try:
            answer = json.loads(await quick.requests.exchange(USER_INFO.decode(), b""))
            self.account = text(section(answer, "data"), "account")
        except (JsctlError, ValueError):
            self.account = ""
        try:
            await quick.account_info()
            self.jetstream = True
        except (JsctlError, ApiError):
            self.jetstream = False

    async def _open_system(self, client: "NatsClient", hear: Hear) -> None:
        if self.settings.monitor:
            self._system = self._slow = MonitorSystem(self.settings.monitor, 2.0)
            return
        settings = self.settings
        if self.system_settings is not None:
            settings = replace(self.system_settings, connection_name="jsctl dashboard (system)")
            client = await open_client(settings)
            self._clients.append(client)
        quick = NatsSystem(client, replace(settings, timeout_ns=PING_NS))
        quick.silence_seconds = SILENCE_SECONDS
        try:
            await quick.gather("", expected=1)
        except NotAllowed:
            if self.system_settings is not None:
                raise
            return
        self._system = quick
        self._slow = NatsSystem(client, replace(settings, timeout_ns=DETAILS_NS))
        self._slow.silence_seconds = 2 * SILENCE_SECONDS
        await self._listen(client, EVENTS, hear)

    async def _listen(self, client: "NatsClient", subjects: tuple[str, ...], hear: Hear) -> None:
        async def heard(message: "Msg") -> None:
            try:
                document = json.loads(message.data)
            except ValueError:
                return
            if isinstance(document, dict):
                hear(message.subject, document)

        for subject in subjects:
            await client.subscribe(subject, cb=heard)

    async def close(self) -> None:
        """Ends both connections."""
        clients, self._clients = self._clients, []
        for client in clients:
            if not client.is_closed:
                await client.close()

    @property
    def connected(self) -> bool:
        """Whether a server is at the other end now."""
        return bool(self._clients) and all(client.is_connected for client in self._clients)

    @property
    def system(self) -> SystemSource | None:
        """Who tells about servers, if anybody does."""
        return self._system

    @property
    def client(self) -> "NatsClient":
        """The connection of the account. Raises Unreachable before `open`."""
        if not self._clients:
            raise Unreachable("not connected")
        return self._clients[0]

    def system_manager(self) -> Manager:
        """The JetStream API as the system account may use it. Raises NotAllowed."""
        if not isinstance(self._slow, NatsSystem):
            raise NotAllowed("this needs a connection to the system account")
        return Manager(self._slow.client, self.system_settings or self.settings)

    async def rtt_ns(self) -> int:
        """To our own server and back."""
        try:
            return (await connection_facts(self.client)).rtt_ns
        except foreign_errors():
            return 0

    async def ask_servers(
        self,
        kind: str,
        options: Mapping[str, object] | None = None,
        *,
        expected: int = 0,
        slow: bool = False,
        server_id: str = "",
    ) -> list[Told]:
        """Answers of all servers, or of one; none while the connection is away."""
        source = self._slow if slow else self._system
        if source is None or not self.connected:
            return []
        found = await source.gather(kind, options, expected=expected, server_id=server_id)
        return [
            Told(section(one.document, "server"), one.data, one.rtt_ns)
            for one in found
            if one.error is None
        ]

    async def names(self) -> list[str] | None:
        """All streams of the account, also those that cannot answer; None if unknown."""
        if self.manager is None or not self.jetstream:
            return None
        try:
            return await self.manager.with_timeout(2 * SECOND_NS).stream_names()
        except (JsctlError, ApiError):
            return None

    async def lists(self) -> Lists:
        """Streams and consumers by the JetStream API."""
        assert self.manager is not None
        streams, missing = await self._pages("stream_list", "streams")
        told = {text(section(one, "config"), "name") for one in streams}
        consumers: list[Document] = []
        for one in streams:
            if not integer(section(one, "state"), "consumer_count"):
                continue
            name = text(section(one, "config"), "name")
            found, _ = await self._pages("consumer_list", "consumers", name)
            consumers += found
        return Lists(streams, consumers, tuple(name for name in missing if name not in told))

    async def account_document(self) -> Document:
        """INFO of the account."""
        assert self.manager is not None
        return await self.manager.requests.ask("account_info")

    async def _pages(
        self, operation: str, key: str, *names: str
    ) -> tuple[list[Document], list[str]]:
        assert self.manager is not None
        items: list[Document] = []
        missing: list[str] = []
        for _ in range(PAGES_MAX):
            body = {"offset": len(items) + len(missing)}
            document = await self.manager.requests.ask(operation, *names, body=body)
            page = sections(document, key)
            gone = document.get("missing")
            items += page
            missing += [str(one) for one in gone] if isinstance(gone, list) else []
            if not page or len(items) + len(missing) >= integer(document, "total"):
                break
        return items, missing
