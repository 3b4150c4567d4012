"""The connections of a dashboard: one of the account, one of the system account, or both.

Either may be missing or lack rights; what can be asked is found out when it is dialled.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from jsctl.api.errors import ApiError
from jsctl.api.jsontext import of_people, parse_object
from jsctl.api.subjects import USER_INFO
from jsctl.api.times import SECOND_NS
from jsctl.client.connection import open_client
from jsctl.client.facts import connection_facts
from jsctl.client.failures import foreign_errors
from jsctl.client.manager import PAGES_MAX, Manager
from jsctl.client.system import MonitorSystem, NatsSystem, SystemSource
from jsctl.dashboard.model.documents import Document, integer, section, sections, text
from jsctl.dashboard.model.model import Told
from jsctl.dataclass import dataclass
from jsctl.errors import JsctlError, NotAllowed
from jsctl.settings import Settings

if TYPE_CHECKING:
    from nats.aio.msg import Msg

    from jsctl.client.library import NatsClient

PING_NS = SECOND_NS
"""A server that has not answered a ping by then has missed the round."""
SILENCE_SECONDS = 0.15
"""So long after the last answer of several nobody else is waited for."""
DETAILS_NS = 10 * SECOND_NS
DETAILS_SILENCE_SECONDS = 1.0
"""The same of details: a server with thousands of streams takes longer than others do."""
NO_SYSTEM = "server metrics need the system account: add --system-context NAME"
NO_JETSTREAM = "this account has no JetStream: streams are shown, but cannot be changed or read"
NO_ACCESS = "neither JetStream nor servers answer this user: add --system-context NAME"
PROBE_NS = 2 * SECOND_NS
EVENTS = (
    "$JS.EVENT.ADVISORY.>",
    "$SYS.ACCOUNT.*.CONNECT",
    "$SYS.ACCOUNT.*.DISCONNECT",
    "$SYS.SERVER.*.SHUTDOWN",
    "$SYS.SERVER.*.LAMEDUCK",
    "$SYS.SERVER.*.CLIENT.AUTH.ERR",
)
OWN_EVENTS = EVENTS[:1]
NOT_FOUND = 404
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


@dataclass(frozen=True, slots=True)
class _System:
    """Who tells about servers: asked in haste at every tick, and with patience for details."""

    quick: SystemSource
    slow: SystemSource


class Dialer:
    """Where to connect to: with the settings of an account, and of the system account if any."""

    def __init__(self, settings: Settings, system_settings: Settings | None) -> None:
        self.settings = replace(settings, connection_name="jsctl dashboard")
        self.system_settings = system_settings

    async def dial(self, hear: Hear) -> "Link":
        """Connects and finds out what may be asked; `hear` gets every event.

        Raises JsctlError, and leaves no connection behind then.
        """
        clients: list[NatsClient] = []
        try:
            client = await open_client(self.settings)
            clients.append(client)
            manager = Manager(client, self.settings)
            account = await _account_of(_quick(manager))
            jetstream = await _has_jetstream(manager)
            await _listen(client, OWN_EVENTS, hear)
            system = await self._system(clients, hear)
        except BaseException:
            await _close(clients)
            raise
        return Link(
            clients,
            manager,
            account=account,
            jetstream=jetstream,
            system=system,
            system_settings=self.system_settings or self.settings,
        )

    async def _system(self, clients: "list[NatsClient]", hear: Hear) -> _System | None:
        """None without rights; a connection that it needs is added to the others."""
        if self.settings.monitor:
            ports = MonitorSystem(self.settings.monitor, 2.0)
            return _System(ports, ports)
        client, settings = clients[0], self.settings
        if self.system_settings is not None:
            settings = replace(self.system_settings, connection_name="jsctl dashboard (system)")
            client = await open_client(settings)
            clients.append(client)
        quick = NatsSystem(
            client, replace(settings, timeout_ns=PING_NS), silence_seconds=SILENCE_SECONDS
        )
        try:
            await quick.gather("", expected=1)
        except NotAllowed:
            if self.system_settings is not None:
                raise
            return None
        slow = NatsSystem(
            client,
            replace(settings, timeout_ns=DETAILS_NS),
            silence_seconds=DETAILS_SILENCE_SECONDS,
        )
        await _listen(client, EVENTS, hear)
        return _System(quick, slow)


async def _account_of(manager: Manager) -> str:
    """The name of our account, empty if nobody says it."""
    try:
        answer = parse_object(await manager.requests.exchange(USER_INFO.decode(), b""))
    except (JsctlError, ValueError):
        return ""
    return text(section(answer, "data"), "account")


async def _has_jetstream(manager: Manager) -> bool | None:
    """None for who may not ask."""
    try:
        await _quick(manager).account_info()
    except NotAllowed:
        return None
    except (JsctlError, ApiError):
        return False
    return True


def _quick(manager: Manager) -> Manager:
    return manager.with_timeout(min(manager.settings.timeout_ns, PROBE_NS))


async def _listen(client: "NatsClient", subjects: tuple[str, ...], hear: Hear) -> None:
    async def heard(message: "Msg") -> None:
        try:
            document = of_people(message.data)
        except ValueError:
            return
        if isinstance(document, dict):
            hear(message.subject, document)

    for subject in subjects:
        await client.subscribe(subject, cb=heard)


async def _close(clients: "Iterable[NatsClient]") -> None:
    for client in clients:
        if not client.is_closed:
            await client.close()


class Link:
    """Made by a `Dialer`; methods raise JsctlError or ApiError when they cannot answer."""

    def __init__(
        self,
        clients: "Sequence[NatsClient]",
        manager: Manager,
        *,
        account: str,
        jetstream: bool | None,
        system: _System | None,
        system_settings: Settings,
    ) -> None:
        self.manager = manager
        self.account = account
        self.jetstream = bool(jetstream)
        """Whether the account has it."""
        self._may_ask = jetstream is not None
        self._clients = tuple(clients)
        self._system = system
        self._system_settings = system_settings

    async def close(self) -> None:
        """Ends both connections."""
        await _close(self._clients)

    @property
    def connected(self) -> bool:
        """Whether a server is at the other end now."""
        return all(client.is_connected for client in self._clients)

    @property
    def system(self) -> SystemSource | None:
        """Who tells about servers, if anybody does."""
        return self._system.quick if self._system else None

    @property
    def client(self) -> "NatsClient":
        """The connection of the account."""
        return self.manager.client

    def system_manager(self) -> Manager:
        """The JetStream API as the system account may use it. Raises NotAllowed."""
        slow = self._system.slow if self._system else None
        if not isinstance(slow, NatsSystem):
            raise NotAllowed("this needs a connection to the system account")
        return Manager(slow.client, self._system_settings)

    async def seek_jetstream(self) -> bool:
        """Whether the account has it after all: nobody may have led the cluster, or be slow."""
        if not self.jetstream and self._may_ask and self.connected:
            found = await _has_jetstream(self.manager)
            self.jetstream, self._may_ask = bool(found), found is not None
        return self.jetstream

    async def rtt_ns(self) -> int:
        """To our own server and back."""
        try:
            return (await connection_facts(self.client, self.manager.settings.timeout)).rtt_ns
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
        if self._system is None or not self.connected:
            return []
        source = self._system.slow if slow else self._system.quick
        found = await source.gather(kind, options, expected=expected, server_id=server_id)
        return [
            Told(section(one.document, "server"), one.data, one.rtt_ns)
            for one in found
            if one.error is None
        ]

    async def names(self) -> list[str] | None:
        """All streams of the account, also those that cannot answer; None if unknown."""
        if not self.jetstream:
            return None
        try:
            return await self.manager.with_timeout(2 * SECOND_NS).stream_names()
        except (JsctlError, ApiError):
            return None

    async def lists(self) -> Lists:
        """Streams and consumers by the JetStream API."""
        streams, missing = await self._pages("stream_list", "streams")
        told = {text(section(one, "config"), "name") for one in streams}
        consumers: list[Document] = []
        for one in streams:
            if not integer(section(one, "state"), "consumer_count"):
                continue
            name = text(section(one, "config"), "name")
            try:
                found, _ = await self._pages("consumer_list", "consumers", name)
            except ApiError as error:
                if error.code != NOT_FOUND:
                    raise
                continue  # it was deleted meanwhile
            consumers += found
        return Lists(streams, consumers, tuple(name for name in missing if name not in told))

    async def account_document(self) -> Document:
        """INFO of the account."""
        return await self.manager.requests.ask("account_info")

    async def _pages(
        self, operation: str, key: str, *names: str
    ) -> tuple[list[Document], list[str]]:
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
