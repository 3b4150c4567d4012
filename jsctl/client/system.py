"""What servers tell about themselves: over the system account, or their monitoring ports.

Both sources give the same replies, so reports need not know which one they use. A gather ends
at once when as many servers answered as are expected; otherwise a short silence after the last
answer ends it, and the timeout bounds it.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from time import perf_counter_ns
from typing import TYPE_CHECKING, Protocol, TypeVar
from urllib.parse import urlsplit

from jsctl.api import jsontext
from jsctl.api.codec import DecodeError, decode, dumps, encode
from jsctl.api.errors import ApiError
from jsctl.api.server import EventFilterOptions, ServerInfo
from jsctl.api.subjects import server_request
from jsctl.client.addresses import shown_urls
from jsctl.client.headers import status_of
from jsctl.dataclass import dataclass
from jsctl.errors import JsctlError, NotAllowed, Unreachable
from jsctl.settings import Settings

if TYPE_CHECKING:
    from nats.aio.msg import Msg

    from jsctl.client.library import NatsClient

T = TypeVar("T")
PAGE_BYTES_MAX = 256 << 20
"""Of a monitoring port: what servers with very many streams and connections tell."""
PAGE_TIMES = 10
"""A page that comes slowly may take so many times as long as an answer may be silent."""
SILENCE_SECONDS = 0.3
"""So long after the last answer nobody else is waited for."""
ANYWHERE = EventFilterOptions()
NO_RIGHTS = (
    "server request failed, ensure the account used has system privileges "
    "and appropriate permissions"
)


class NoSystemRights(NotAllowed):
    """Nobody answers this account's requests to servers: it is not the system account."""


@dataclass(frozen=True, slots=True)
class SystemReply:
    """One server's answer; `rtt_ns` from sending to it. `data` is the undecoded content."""

    server: ServerInfo
    data: dict[str, object] = field(default_factory=dict)
    error: ApiError | None = None
    rtt_ns: int = 0
    document: dict[str, object] = field(default_factory=dict)
    """The whole envelope, for printing it unchanged."""

    def as_(self, cls: type[T]) -> T:
        """The content decoded."""
        return decode(cls, self.data)


class SystemSource(Protocol):
    """Where facts about servers come from."""

    async def gather(
        self,
        kind: str,
        options: Mapping[str, object] | None = None,
        *,
        where: EventFilterOptions = ANYWHERE,
        expected: int = 0,
        server_id: str = "",
    ) -> list[SystemReply]:
        """The answers of all servers to VARZ, JSZ, ...; an empty kind asks for STATSZ.

        `options` are the request's own keys, `where` limits who answers, `expected` is how
        many answers are enough (0: unknown), `server_id` asks a single server.
        """


class NatsSystem:
    """The system account of a connection."""

    def __init__(
        self,
        client: "NatsClient",
        settings: Settings,
        *,
        silence_seconds: float = 0.0,
        unreadable: Callable[[str], None] | None = None,
    ) -> None:
        """`silence_seconds` after the last answer a gather ends although more are expected.

        0: then the timeout alone ends it. `unreadable` is told of answers that cannot be read,
        which are passed over then; without it the first one is an error.
        """
        self.client = client
        self.settings = settings
        self.silence_seconds = silence_seconds
        self.unreadable = unreadable

    async def gather(
        self,
        kind: str,
        options: Mapping[str, object] | None = None,
        *,
        where: EventFilterOptions = ANYWHERE,
        expected: int = 0,
        server_id: str = "",
    ) -> list[SystemReply]:
        """See `SystemSource`. Raises NoSystemRights."""
        body = {**(options or {}), **encode(where)}
        subject = server_request(kind, server_id or "PING").decode()
        payload = dumps(body) if body else b""
        try:
            return await self.gather_on(subject, payload, expected=1 if server_id else expected)
        except NoSystemRights as error:
            if not kind or server_id:
                raise
            raise NoSystemRights(f"{subject}: {error}", hints=error.hints) from None

    async def gather_on(
        self, subject: str, payload: bytes = b"", *, expected: int = 0
    ) -> list[SystemReply]:
        """The answers to any subject with the envelope of system requests."""
        inbox = self.client.new_inbox()
        async with self.client.refusals.scope(lambda: (subject, inbox)):
            return await self._gather(subject, payload, inbox, expected)

    async def _gather(
        self, subject: str, payload: bytes, inbox: str, expected: int
    ) -> list[SystemReply]:
        subscription = await self.client.subscribe(inbox)
        started = perf_counter_ns()
        replies: list[SystemReply] = []
        known: set[str] = set()
        heard = 0
        await self.client.publish(subject, payload, reply=inbox)
        deadline = asyncio.get_running_loop().time() + self.settings.timeout
        try:
            while not expected or heard < expected:
                left = deadline - asyncio.get_running_loop().time()
                patience = self.silence_seconds or (0.0 if expected else SILENCE_SECONDS)
                wait = min(left, patience) if patience and heard else left
                message = await _next(subscription, wait)
                if message is None:
                    break
                found = self._read(message, perf_counter_ns() - started)
                if found and found[0].server.id in known:
                    continue  # it is asked on each link to it: that of the account, that of SYS
                heard += 1
                replies += found
                known.update(reply.server.id for reply in found if reply.server.id)
        finally:
            await subscription.unsubscribe()
        return replies

    def _read(self, message: "Msg", rtt_ns: int) -> list[SystemReply]:
        try:
            return [_reply(message, rtt_ns)]
        except DecodeError as error:
            problem = f"the answer of a server cannot be read: {error}"
            if self.unreadable is None:
                raise JsctlError(problem) from None
            self.unreadable(problem)
            return []

    async def count_servers(self) -> int:
        """How many servers the connected one knows; 0 when it does not say."""
        replies = await self.gather("", expected=1)
        found = replies[0].data.get("active_servers") if replies else 0
        return found if isinstance(found, int) else 0


async def _next(subscription: object, wait: float) -> "Msg | None":
    from nats.aio.subscription import Subscription
    from nats.errors import TimeoutError as NatsTimeout

    assert isinstance(subscription, Subscription)
    if wait <= 0:
        return None
    try:
        return await subscription.next_msg(timeout=wait)
    except (NatsTimeout, TimeoutError):
        return None


def _reply(message: "Msg", rtt_ns: int) -> SystemReply:
    if status_of(message.headers) == "503":
        raise NoSystemRights(NO_RIGHTS)
    document = jsontext.parse_object(message.data)
    server = decode(ServerInfo, document.get("server") or {})
    data = document.get("data", document.get("statsz")) or {}
    if not isinstance(data, dict):
        data = {}
    return SystemReply(server, data, _error(document.get("error")), rtt_ns, document)


def _error(problem: object) -> ApiError | None:
    if not problem:
        return None
    if not isinstance(problem, dict):
        return ApiError(0, 0, str(problem))
    code = problem.get("code")
    description = str(problem.get("description", problem))
    return ApiError(code if isinstance(code, int) else 0, 0, description)


PATHS: Mapping[str, str] = {
    "": "varz",
    "STATSZ": "varz",
    "VARZ": "varz",
    "CONNZ": "connz",
    "ROUTEZ": "routez",
    "GATEWAYZ": "gatewayz",
    "LEAFZ": "leafz",
    "SUBSZ": "subsz",
    "ACCOUNTZ": "accountz",
    "JSZ": "jsz",
    "HEALTHZ": "healthz",
    "RAFTZ": "raftz",
    "IPQUEUESZ": "ipqueuesz",
}
"""Kind of a request -> path of the monitoring port."""

_QUERY_NAMES: Mapping[str, str] = {
    "consumer": "consumers",
    "direct_consumer": "direct-consumers",
    "leader_only": "leader-only",
    "stream_leader_only": "stream-leader-only",
    "subscriptions": "subs",
    "filter_subject": "filter_subject",
}
_ACCOUNT_IS_ACC = frozenset({"JSZ", "CONNZ", "LEAFZ", "ACCOUNTZ", "RAFTZ", "SUBSZ"})


class MonitorSystem:
    """The monitoring ports of one or several servers, e.g. `http://n1:8222`."""

    def __init__(self, urls: Sequence[str], timeout: float) -> None:
        self.urls = [url.rstrip("/") for url in urls]
        self.timeout = timeout

    async def gather(
        self,
        kind: str,
        options: Mapping[str, object] | None = None,
        *,
        where: EventFilterOptions = ANYWHERE,
        expected: int = 0,
        server_id: str = "",
    ) -> list[SystemReply]:
        """See `SystemSource`; servers that do not answer are left out.

        Raises Unreachable when none answers.
        """
        import httpx

        query = _query(kind, options or {})
        async with httpx.AsyncClient(timeout=self.timeout) as web:
            found = await asyncio.gather(*(self._one(web, url, kind, query) for url in self.urls))
        replies = [reply for reply in found if reply is not None]
        if not replies:
            raise Unreachable(f"no monitoring port answered: {shown_urls(self.urls)}")
        return [
            reply
            for reply in replies
            if (not server_id or reply.server.id == server_id) and chosen(reply.server, where)
        ]

    async def _one(
        self, web: object, url: str, kind: str, query: Mapping[str, str]
    ) -> SystemReply | None:
        import httpx

        assert isinstance(web, httpx.AsyncClient)
        started = perf_counter_ns()
        try:
            _ = urlsplit(url).port  # Raises ValueError for one that there is none of.
            varz = await self._page(web, f"{url}/varz", {})
            rtt_ns = perf_counter_ns() - started
            data = varz
            if PATHS[kind] != "varz":
                data = await self._page(web, f"{url}/{PATHS[kind]}", query)
        except (httpx.HTTPError, TimeoutError, ValueError, OverflowError):  # the last one of a port
            return None
        server = _server_of(varz)
        return SystemReply(server, data, None, rtt_ns, {"server": encode(server), "data": data})

    async def _page(self, web: object, url: str, query: Mapping[str, str]) -> dict[str, object]:
        """One page. Raises ValueError for what is none, however long it is, and TimeoutError for
        one that does not end."""
        import httpx

        assert isinstance(web, httpx.AsyncClient)
        found = bytearray()
        async with (
            asyncio.timeout(PAGE_TIMES * self.timeout),
            web.stream("GET", url, params=dict(query)) as answer,
        ):
            async for chunk in answer.aiter_bytes():
                found += chunk
                if len(found) > PAGE_BYTES_MAX:
                    raise ValueError("no page is so long")
        return jsontext.parse_object(bytes(found), bytes_max=PAGE_BYTES_MAX)


def _server_of(varz: Mapping[str, object]) -> ServerInfo:
    jetstream = varz.get("jetstream")
    config = jetstream.get("config") if isinstance(jetstream, dict) else None
    cluster = varz.get("cluster")
    tags = varz.get("tags")
    return ServerInfo(
        name=str(varz.get("server_name", "")),
        host=str(varz.get("host", "")),
        id=str(varz.get("server_id", "")),
        cluster=str(cluster.get("name", "")) if isinstance(cluster, dict) else "",
        domain=str(config.get("domain", "")) if isinstance(config, dict) else "",
        ver=str(varz.get("version", "")),
        tags=tuple(map(str, tags)) if isinstance(tags, list) else (),
        jetstream=bool(config),
        time=str(varz.get("now", "")),
    )


def _query(kind: str, options: Mapping[str, object]) -> dict[str, str]:
    query: dict[str, str] = {}
    for key, value in options.items():
        name = _QUERY_NAMES.get(key, key)
        if key == "account" and kind in _ACCOUNT_IS_ACC:
            name = "acc"
        if value not in (None, "", False):
            query[name] = "true" if value is True else str(value)
    return query


def chosen(server: ServerInfo, where: EventFilterOptions) -> bool:
    """Whether a server is one of those that are asked."""
    pairs = (
        (where.server_name, server.id if where.server_name == server.id else server.name),
        (where.cluster, server.cluster),
        (where.host, server.host),
        (where.domain, server.domain),
    )
    for wanted, actual in pairs:
        if wanted and not (wanted == actual if where.exact_match else wanted in actual):
            return False
    return set(where.tags) <= set(server.tags)


def open_system(client: "NatsClient | None", settings: Settings) -> SystemSource:
    """Monitoring ports when the settings name some, else the connection."""
    if settings.monitor:
        return MonitorSystem(settings.monitor, settings.timeout)
    assert client is not None
    return NatsSystem(client, settings)
